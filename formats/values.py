"""Values from outside, or for outside, by name: those of `diagnosis.values`."""

from diagnosis.values import Document as Document
from diagnosis.values import Facts as Facts
