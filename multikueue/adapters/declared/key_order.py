"""Loops over maps in CEL, in one order: the library goes over the keys of a map in another order each time, and what is
made of that never converges.
"""

from __future__ import annotations

import re
from typing import Any, Final

from multikueue.adapters.declared.costs import LITERAL, MACRO

IN_ORDER: Final = "keys_in_order"
"""The function around what a loop goes over."""
_WORD: Final = re.compile(r"[A-Za-z_]\w*\Z")
_OPENED_BY: Final = {")": "(", "]": "[", "}": "{"}


def in_order(value: Any) -> Any:
    """The keys of a map, sorted; anything else as it is."""
    return sorted(value, key=lambda key: (type(key).__name__, key)) if isinstance(value, dict) else value


def ordered(text: str) -> str:
    """An expression whose loops go over what `in_order` makes of each map, at any depth.

    Args:
        text: of an expression that compiles.
    """
    bare = LITERAL.sub(lambda literal: " " * len(literal[0]), text)  # what stands in a text is no loop
    put: list[tuple[int, str]] = []
    for macro in MACRO.finditer(bare):
        put += [(_begin(bare, macro.start()), f"{IN_ORDER}("), (macro.start(), ")")]
    for at, what in sorted(put, key=lambda each: each[0], reverse=True):
        text = text[:at] + what + text[at:]
    return text


def _begin(bare: str, end: int) -> int:
    """Where the value begins that ends before `end`: a path, with its indexes and calls, or what stands in brackets."""
    at, is_whole = end, True
    while is_whole:
        at = len(bare[:at].rstrip())
        if bare[at - 1 : at] in _OPENED_BY:
            at = _opened(bare, at - 1)
            before = _WORD.search(bare[:at].rstrip())
            if before is None and bare[:at].rstrip()[-1:] in _OPENED_BY:  # `a[0][1]`, `f(x)[0]`
                continue
            if before is not None and before[0] != "in":
                at = before.start()
        elif (word := _WORD.search(bare[:at])) is not None:
            at = word.start()
        is_whole = bare[:at].rstrip()[-1:] == "."
        at = len(bare[:at].rstrip()) - 1 if is_whole else at
    return at


def _opened(bare: str, closed: int) -> int:
    """Where the bracket is opened that is closed there."""
    depth = 0
    for at in range(closed, -1, -1):
        depth += (bare[at] in ")]}") - (bare[at] in "([{")
        if not depth:
            return at
    return 0
