"""What rows are made of is checked when they are made, by what their fields are annotated as."""

from __future__ import annotations

from collections import abc
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import attrs

from multikueue.core.functions import fault_of
from multikueue.errors import AdapterError


def checked(made: type, fields: list[attrs.Attribute[Any]]) -> list[attrs.Attribute[Any]]:
    """A `field_transformer` of attrs, for fields without a validator of their own: functions, parts of rows, and tuples
    of them take nothing else.

    Otherwise it would fail for the first job, and for each one after it.
    """
    annotated = get_type_hints(made)

    def validate(one: object, field: attrs.Attribute[Any], given: object) -> None:
        if given is not field.default and (fault := _fault(annotated[field.name], given)):
            raise AdapterError(f"{made.__name__}.{field.name}: {given!r:.100} {fault}")

    return [field if field.validator else field.evolve(validator=validate) for field in fields]


def _fault(annotation: Any, given: object) -> str:
    """Why it is something else; empty if it is not, or if that is not looked at here."""
    form, parts = get_origin(annotation), get_args(annotation)
    if form in (Union, UnionType):
        if given is None and NoneType in parts:
            return ""
        faults = [_fault(part, given) for part in parts if part is not NoneType]
        return faults[0] if all(faults) else ""
    if abc.Callable in (form, annotation):
        count = len(parts[0]) if parts and parts[0] is not ... else None
        return fault_of(given, count, f"{count} argument{'s' if count != 1 else ''}")
    if form is tuple and parts and attrs.has(parts[0]):
        if not isinstance(given, tuple):
            return f"is no tuple of {parts[0].__name__}"
        return next((fault for entry in given if (fault := _fault(parts[0], entry))), "")
    if attrs.has(annotation) and not isinstance(given, annotation):
        return f"is no {annotation.__name__}"
    return ""
