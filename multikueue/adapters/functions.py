"""The functions of a row are checked when it is made, by what their fields are annotated as."""

from __future__ import annotations

from collections import abc
from typing import Any, get_args, get_origin, get_type_hints

import attrs

from multikueue.core.functions import fault_of
from multikueue.errors import AdapterError


def checked(rules: type, fields: list[attrs.Attribute[Any]]) -> list[attrs.Attribute[Any]]:
    """A `field_transformer` of attrs: a field that is annotated as a function takes nothing that cannot be called so.

    A row raises `AdapterError` for it. Otherwise it would fail for the first job, and for each one after it.
    """
    annotated = get_type_hints(rules)
    return [_checked(field, annotated[field.name]) for field in fields]


def _checked(field: attrs.Attribute[Any], annotation: Any) -> attrs.Attribute[Any]:
    choices = (annotation, *get_args(annotation))
    function = next((choice for choice in choices if get_origin(choice) is abc.Callable), None)
    if function is None:
        return field
    count, optional = len(get_args(function)[0]), type(None) in choices

    def validate(rules: object, field: attrs.Attribute[Any], given: object) -> None:
        if given is field.default or (optional and given is None):
            return
        if fault := fault_of(given, count, f"{count} argument{'s' if count != 1 else ''}"):
            raise AdapterError(f"{type(rules).__name__}.{field.name}: {given!r:.100} {fault}")

    return field.evolve(validator=validate)
