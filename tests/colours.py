"""The colour science that the tests measure colours with, imported without its side effects."""

from __future__ import annotations

import warnings

import numpy as np

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it warns of the optional packages that it does without
    import colour

# It makes numpy print as it did in 2017, in every other test too.
np.set_printoptions(legacy=False)

__all__ = ["colour"]
