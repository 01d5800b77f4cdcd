"""One test for all cases of a law, which says of which it does not hold.

Thousands of cases that take a tenth of a millisecond each are told one by one in more time than
they take.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

import pytest

PARAM = type(pytest.param())
TOLD = 12
"""Cases that a failure names."""


def every(names: str, cases: Iterable[Any], ids: Any = None) -> Callable[..., Any]:
    """As `pytest.mark.parametrize`, in one test that goes through all cases and names those that
    fail, with the traceback of the first.

    >>> @every("n", [1, 2, 3])
    ... def test(n):
    ...     assert n < 3
    >>> test()
    Traceback (most recent call last):
    AssertionError: 1 of 3 cases of test fail:
    n=3: AssertionError
    """
    listed = list(cases)
    wanted = [name.strip() for name in names.split(",") if name.strip()]

    def decorate(test: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(test)

        @wraps(test)
        def all_of(**fixtures: Any) -> None:
            failed: list[tuple[str, BaseException]] = []
            for case in listed:
                if isinstance(case, PARAM):
                    values = case.values
                else:
                    values = [case] if len(wanted) == 1 else [*case]
                given = dict(zip(wanted, values, strict=True))
                try:
                    test(**given, **fixtures)
                except (Exception, pytest.fail.Exception) as error:
                    said = ", ".join(f"{name}={_shown(value)}" for name, value in given.items())
                    why = f"{type(error).__name__} {error}".strip().splitlines()[0][:300]
                    failed.append((f"{said}: {why}", error))
            if failed:
                told = "\n".join(said for said, _ in failed[:TOLD])
                raise AssertionError(
                    f"{len(failed)} of {len(listed)} cases of {test.__name__} fail:\n{told}"
                ) from failed[0][1]

        all_of.__signature__ = signature.replace(  # type: ignore[attr-defined]
            parameters=[one for name, one in signature.parameters.items() if name not in wanted]
        )
        del all_of.__wrapped__  # type: ignore[attr-defined]
        return all_of

    return decorate


def _shown(value: object) -> str:
    try:
        return repr(value)[:80]
    except ValueError:  # a number of very many digits
        return f"<{type(value).__name__}>"
