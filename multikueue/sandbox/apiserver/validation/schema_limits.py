"""Structural schemas: the limits of single values (enum, lengths, ranges, patterns), in the server's words."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from typing import Any

from multikueue.core.model.names import Json
from multikueue.sandbox.apiserver.status_errors import Cause

_DATE_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
_INLINE_FLAGS = re.compile(r"\(\?([ims]+)\)")


@functools.lru_cache(1024)
def compile_pattern(pattern: str) -> re.Pattern[str]:
    """Compile a CRD's pattern: RE2 allows inline flags anywhere, Python only at the front."""
    flags = "".join(_INLINE_FLAGS.findall(pattern))
    return re.compile((f"(?{flags})" if flags else "") + _INLINE_FLAGS.sub("", pattern))


def check_limits(schema: Json, value: Any, name: str) -> Iterator[Cause]:
    """What is wrong with a value of the right type."""
    if "enum" in schema and value not in schema["enum"]:
        supported = ", ".join(f'"{item}"' for item in schema["enum"])
        message = f'Unsupported value: "{value}": supported values: {supported}'
        yield Cause("FieldValueNotSupported", name, message)
    if isinstance(value, str):
        yield from _check_text(schema, value, name)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield from _check_number(schema, value, name)
    elif isinstance(value, list):
        yield from _check_length(schema, value, name)
    elif isinstance(value, dict) and len(value) > schema.get("maxProperties", len(value)):
        message = f"Too many: {len(value)}: must have at most {schema['maxProperties']} items"
        yield Cause("FieldValueTooMany", name, message)


def _check_text(schema: Json, value: str, name: str) -> Iterator[Cause]:
    if len(value) > schema.get("maxLength", len(value)):
        message = f"Too long: may not be more than {schema['maxLength']} bytes"
        yield Cause("FieldValueTooLong", name, message)
    if len(value) < schema.get("minLength", 0):
        yield _invalid(name, f'"{value}"', f"should be at least {schema['minLength']} chars long")
    if "pattern" in schema and not compile_pattern(schema["pattern"]).search(value):
        yield _invalid(name, f'"{value}"', f"should match '{schema['pattern']}'")
    if schema.get("format") == "date-time" and not _DATE_TIME.fullmatch(value):
        yield _invalid(name, f'"{value}"', f'must be of type date-time: "{value}"')


def _check_number(schema: Json, value: float, name: str) -> Iterator[Cause]:
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is not None and (value < low or (schema.get("exclusiveMinimum") and value == low)):
        yield _invalid(name, value, f"should be greater than or equal to {low}")
    if high is not None and (value > high or (schema.get("exclusiveMaximum") and value == high)):
        yield _invalid(name, value, f"should be less than or equal to {high}")
    if "multipleOf" in schema and value % schema["multipleOf"]:
        yield _invalid(name, value, f"should be a multiple of {schema['multipleOf']}")


def _check_length(schema: Json, value: list[Any], name: str) -> Iterator[Cause]:
    if len(value) > schema.get("maxItems", len(value)):
        message = f"Too many: {len(value)}: must have at most {schema['maxItems']} items"
        yield Cause("FieldValueTooMany", name, message)
    if len(value) < schema.get("minItems", 0):
        yield _invalid(name, len(value), f"should have at least {schema['minItems']} items")


def _invalid(name: str, value: object, rule: str) -> Cause:
    return Cause("FieldValueInvalid", name, f"Invalid value: {value}: {name} in body {rule}")
