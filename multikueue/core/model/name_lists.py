"""How messages name several things: the first of many, and those that may be meant by a name that is not known."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import Final

MOST_NAMED: Final = 5


def listed(names: Sequence[str], most: int = MOST_NAMED) -> str:
    """`a, b and 3 more`: the first so many of them."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


def alike(name: str, known: Iterable[str], most: int = 1) -> list[str]:
    """The known names that look like this one, whatever their case, the likest first."""
    by_letters = {other.lower(): other for other in known}
    return [by_letters[close] for close in difflib.get_close_matches(name.lower(), by_letters, most)]


def question(names: Iterable[str]) -> str:
    """`did you mean "a" or "b"?`; empty: there are none."""
    quoted = [f'"{name}"' for name in names]
    return f"did you mean {' or '.join(quoted)}?" if quoted else ""


def did_you_mean(name: str, known: Iterable[str], most: int = 1) -> str:
    """The question after the known names that look like this one; empty: none does."""
    return question(alike(name, known, most))


def suggestion(name: str, known: Iterable[str]) -> str:
    """The same in brackets, to stand behind a name: ` (did you mean "a"?)`; empty: none looks like it."""
    close = did_you_mean(name, known)
    return f" ({close})" if close else ""


def instead(name: str, known: Iterable[str]) -> str:
    """What to add to the message that a name is not known: `: did you mean "a"?`, or `; there are a and b`."""
    names = sorted(known)
    if close := did_you_mean(name, names):
        return f": {close}"
    return f"; there are {listed(names)}" if names else ""
