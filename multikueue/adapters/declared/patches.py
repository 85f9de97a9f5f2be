"""JSON patches (RFC 6902) of copies, whose values may be expressions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs
import jsonpatch
import jsonpointer

from multikueue.adapters.declared.expressions import MAX_TOLD, Expression
from multikueue.adapters.paths import MAPS
from multikueue.core.model.labels import MARKS_OF_COPIES
from multikueue.core.model.names import Json
from multikueue.core.model.objects import json_fault, shortened
from multikueue.core.model.written_values import LABEL_VALUE
from multikueue.errors import RuleError

_OPERATIONS: Final = {
    **dict.fromkeys(("add", "replace", "test"), ("path", "value")),
    "remove": ("path",),
    **dict.fromkeys(("move", "copy"), ("path", "from")),
}
"""What each operation needs."""


@attrs.frozen
class Operation:
    """One step of a patch."""

    raw: Json
    """The step as RFC 6902 has it; without a value if that is an expression."""
    value: Expression | None
    when: Expression | None = None
    """Whether the step is done; None for always."""

    @classmethod
    def parse(cls, given: Any, variables: tuple[str, ...]) -> Operation:
        """Read one step. Its value may be an expression, in `valueExpression`, and `when` a condition for it.

        Raises:
            ValueError: it is none, or changes what is not the copy's to have; the message says why.
        """
        if not isinstance(given, Mapping):
            raise ValueError(f"{given!r} is not a step of a patch: write it like {{op: add, path: /spec/a, value: 1}}")
        raw = dict(given)
        if fault := json_fault(raw.get("value"), "value"):
            raise ValueError(f"{fault}: put it in quotes if it is a text")
        expression, when = raw.pop("valueExpression", None), raw.pop("when", None)
        _check_fields(raw, has_expression=expression is not None)
        _check_pointer("path", raw["path"], written=True)
        if raw.get("value") is not None and (why := _unfit(raw["path"], raw["value"])):
            raise ValueError(f"value: {why}")
        if "from" in raw:
            _check_pointer("from", raw["from"], written=raw["op"] == "move")
        return cls(raw, _compiled("valueExpression", expression, variables), _compiled("when", when, variables, bool))

    def applied(self, target: Json, variables: Mapping[str, Json | str]) -> Json:
        """The target after this step; the argument stays as it is.

        Raises:
            RuleError: the step does not apply, or its value cannot be told.
        """
        try:
            if self.when is not None and not self.when.holds(**variables):
                return target
            step = self.raw if self.value is None else {**self.raw, "value": self.value.value(**variables)}
            changed = jsonpatch.apply_patch(target, [step])
        except (jsonpatch.JsonPatchException, jsonpointer.JsonPointerException, TypeError, LookupError) as error:
            raise RuleError(f"{self.raw['op']} {self.raw['path']} does not apply: {_reason(error)}") from None
        assert isinstance(changed, dict), "a step below the root leaves an object an object"
        value = jsonpointer.resolve_pointer(changed, self.raw["path"], None)
        if value is not None and (why := _unfit(self.raw["path"], value)):
            raise RuleError(f"{self.raw['op']} {self.raw['path']} does not apply: {why}")
        return changed


@attrs.frozen
class DeclaredPatch:
    """A whole patch, and where it is set, for messages."""

    where: str
    operations: tuple[Operation, ...]

    def applied(self, target: Json, variables: Mapping[str, Json | str]) -> Json:
        """The target after all steps; the argument stays as it is.

        Raises:
            RuleError: a step does not apply; the message names it.
        """
        for number, operation in enumerate(self.operations):
            try:
                target = operation.applied(target, variables)
            except RuleError as error:
                raise RuleError(f"{self.where}[{number}]: {error}") from None
        return target

    def applied_idempotently(self, target: Json, variables: Mapping[str, Json | str]) -> Json:
        """The target after all steps, where doing them again changes nothing: or each reconcile would write the copy.

        Raises:
            RuleError: a step does not apply, or each time changes the copy anew.
        """
        once = self.applied(target, variables)
        if self.applied(once, {**variables, **({"remote": once} if "remote" in variables else {})}) != once:
            raise RuleError(f"{self.where}: the patch would change the copy again each time: make it set, not add up")
        return once


def _compiled(field: str, expression: Any, variables: tuple[str, ...], wanted: type | None = None) -> Expression | None:
    try:
        return None if expression is None else Expression.compiled(expression, variables, field, wanted=wanted)
    except ValueError as error:
        raise ValueError(f"{field}: {error}") from None


def _check_fields(raw: Json, *, has_expression: bool) -> None:
    name = raw.get("op")
    if not isinstance(name, str) or name not in _OPERATIONS:
        raise ValueError(f"op: {name!r} is not one of {', '.join(_OPERATIONS)}")
    needed = _OPERATIONS[name]
    if has_expression and "value" not in needed:
        raise ValueError(f"valueExpression: {name} has no value")
    if has_expression and "value" in raw:
        raise ValueError("valueExpression: value says it already: keep one of the two")
    for field in needed:
        if field not in raw and not (field == "value" and has_expression):
            raise ValueError(f"{field}: {name} needs it")
    for field in raw:
        if field not in ("op", *needed):
            raise ValueError(f"{field}: {name} does not use it")


def _check_pointer(field: str, pointer: Any, *, written: bool) -> None:
    """Refuse what would make the copy another object, or one that is not ours."""
    try:
        steps = tuple(jsonpointer.JsonPointer(pointer).parts)
    except (jsonpointer.JsonPointerException, TypeError):
        raise ValueError(f"{field}: {pointer!r} is not a JSON pointer: write it like /spec/managedBy") from None
    why = _forbidden(steps) if written else ""
    if why:
        raise ValueError(f"{field}: {pointer!r} {why}")


def _forbidden(steps: Sequence[str]) -> str:
    if not steps or steps[0] in ("apiVersion", "kind"):
        return "is what makes the copy a copy: change its spec, labels or annotations"
    if steps[0] == "status":
        return "belongs to the worker: only spec, labels and annotations of a copy are ours"
    if steps[0] != "metadata":
        return ""
    if tuple(steps[:2]) not in MAPS or len(steps) != 3:
        return "is not ours to change: of the metadata only single labels and annotations are"
    return "marks the copy as ours" if steps[2] in MARKS_OF_COPIES else ""


def _unfit(pointer: str, value: Any) -> str:
    """Why no server would take a copy with this value there; empty if it is no label or annotation, or fits."""
    steps = tuple(jsonpointer.JsonPointer(pointer).parts[:2])
    if steps not in MAPS:
        return ""
    if not isinstance(value, str):
        return f"labels and annotations are texts, and this is {shortened(repr(value), MAX_TOLD)}: put it in quotes"
    if steps[1] == "labels" and value and not LABEL_VALUE.fullmatch(value):
        return (
            f"{shortened(repr(value), MAX_TOLD)} is no value of a label: at most 63 letters, digits, '-', '_' and '.'"
        )
    return ""


def _reason(error: Exception) -> str:
    return shortened(str(error.args[0] if error.args else error), MAX_TOLD)
