"""How much work an expression in CEL may be: a bound by its shape and by the size of what it reads.

The interpreter counts no steps and cannot be stopped, so the bound is computed before. What it does with `n` values
takes up to `n ** degree` steps of some 100 ns:

* `all`, `exists` and `exists_one` take a step for each entry, each as long as its body.
* `map` and `filter` copy what they have found so far for each entry.
* A body that reads a variable from outside (`object.spec.list`) copies that for each entry.
* Going through a list that belongs to the entry itself (`object.a.all(x, x.b.all(...))`) adds nothing: all such lists
  together are no longer than what is read.

Settings are written by those who run the daemon, objects by anybody: this bounds what an object can do to a rule that
means well.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable
from typing import Any, Final

MAX_STEPS: Final = 1_000_000
"""Steps of one evaluation: 0.1 to 0.5 s. Kubernetes has the same number for one of its own rules."""
MAX_RANGE: Final = 1_000
"""Entries that `lists.range` may make: its argument may come from an object."""

_CHARACTERS: Final = 100
"""Characters of a text that take as long as one value."""
LITERAL: Final = re.compile(r"//[^\n]*|[rRbB]{0,2}(\"\"\"|'''|\"|')((?:\\.|(?!\1).)*)\1", re.DOTALL)
MACRO: Final = re.compile(r"\.\s*(all|exists|exists_one|existsOne|map|filter)\s*\(\s*([A-Za-z_]\w*)\s*,")
_COPYING: Final = frozenset(("map", "filter"))
_PAIRWISE: Final = re.compile(r"\b(?:distinct|sets\.\w+)\s*\(")
"""Functions that compare each entry with each other one."""
_PATH: Final = re.compile(r"([A-Za-z_]\w*)(?:\s*\.\s*[A-Za-z_]\w*)*\s*$")
_NO_PATH: Final = frozenset(".)]}'\"")
"""What a name at the end of a path must not come after: it would be a part of something longer."""


def degree(text: str, variables: Iterable[str]) -> int:
    """The degree of an expression; 0: no loop.

    Args:
        text: of an expression that compiles.
        variables: those that are given to it.
    """
    return _degree(LITERAL.sub("''", text), frozenset(variables), frozenset())


def exceeds(values: Iterable[Any], degree: int, *, each_character: bool) -> bool:
    """Whether an expression of this degree may take more than `MAX_STEPS` steps with these values.

    Args:
        values: what it reads, as JSON has values.
        degree: see `degree`.
        each_character: whether it makes lists of texts, as `split` does.
    """
    if not degree:
        return False
    room, waiting = _largest(degree), list(values)
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value
        room -= 1 + len(value) // (1 if each_character else _CHARACTERS) if isinstance(value, str) else 1
        if room < 0 or len(waiting) > room:
            return True
    return False


def _largest(degree: int) -> int:
    """How many values it may be."""
    root = round(math.pow(MAX_STEPS, 1 / degree))
    return root if root**degree <= MAX_STEPS else root - 1


def _degree(text: str, outer: frozenset[str], parts: Collection[str]) -> int:
    """The degree of a text without literals. `parts`: variables of loops that stand for a part of what is read."""
    degree, at = 2 if _PAIRWISE.search(text) else 0, 0
    while (macro := MACRO.search(text, at)) is not None:
        at = _closing(text, macro.end())
        name, variable = macro.groups()
        root = _root(text[: macro.start()])
        own = 1 if root not in parts else 0
        inside = {*parts, variable} if root in outer or root in parts else {*parts} - {variable}
        body = text[macro.end() : at]
        inner = max(_degree(body, outer, inside), int(_reads(body, outer - {variable})))
        degree = max(degree, own + (name in _COPYING) + inner)
    return degree


def _reads(body: str, names: Iterable[str]) -> bool:
    return any(re.search(rf"(?<![\w.])\b{name}\b", body) for name in names)


def _root(before: str) -> str:
    """The variable of a plain path that a text ends with; empty if it ends with anything else."""
    path = _PATH.search(before)
    if path is None or before[: path.start()].rstrip()[-1:] in _NO_PATH - {""}:
        return ""
    return path.group(1)


def _closing(text: str, at: int) -> int:
    """Where the parenthesis that was opened before `at` is closed."""
    open_ = 1
    for index in range(at, len(text)):
        open_ += (text[index] in "([{") - (text[index] in ")]}")
        if not open_:
            return index
    return len(text)
