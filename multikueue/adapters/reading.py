"""Reading the texts of a declaration: each fault is kept with the field it is in, so that all are told at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import attrs

from multikueue.adapters.expressions import Expression
from multikueue.adapters.jsonpatches import Operation, Patch
from multikueue.adapters.paths import FieldPath

_T = TypeVar("_T")

PathRule = Callable[[FieldPath], str]
"""Why a path cannot stand where it stands; empty if it can."""


@attrs.define(eq=False)
class Reading:
    """Reads parts of one declaration."""

    source: str
    """Where the declaration stands, for messages."""
    faults: list[tuple[str, str]] = attrs.field(factory=list, init=False)
    """Field and reason of what cannot be used."""

    def part(self, field: str, read: Callable[[], _T], otherwise: _T) -> _T:
        """Whatever `read` makes of a field; `otherwise` if that raises a ValueError, which is noted."""
        try:
            return read()
        except ValueError as error:
            self.faults.append((field, str(error)))
            return otherwise

    def path(self, field: str, text: str | None, rule: PathRule) -> FieldPath | None:
        """A path; None if none is given, or it cannot be used."""
        return None if text is None else self.part(field, lambda: _path(text, rule), None)

    def paths(self, field: str, texts: Sequence[str], rule: PathRule) -> tuple[FieldPath, ...]:
        """Some paths."""
        found = (self.path(f"{field}[{number}]", text, rule) for number, text in enumerate(texts))
        return tuple(path for path in found if path is not None)

    def expression(self, field: str, text: str | None) -> Expression | None:
        """An expression over the job; None if none is given, or it cannot be used."""
        return None if text is None else self.part(field, lambda: Expression.compiled(text, ("object",)), None)

    def patch(self, field: str, steps: Sequence[Any], variables: tuple[str, ...]) -> Patch:
        """A JSON patch; an empty one changes nothing."""
        found = (self._step(f"{field}[{number}]", step, variables) for number, step in enumerate(steps))
        return Patch(f"{self.source}.{field}", tuple(step for step in found if step is not None))

    def _step(self, field: str, step: Any, variables: tuple[str, ...]) -> Operation | None:
        return self.part(field, lambda: Operation.parse(step, variables), None)


def _path(text: str, rule: PathRule) -> FieldPath:
    path = FieldPath.parse(text)
    why = rule(path)
    if why:
        raise ValueError(f"{text} {why}")
    return path
