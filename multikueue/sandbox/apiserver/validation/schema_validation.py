"""Structural schemas, validate a pruned and defaulted object."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from typing import Any

from multikueue.core.model.names import Json
from multikueue.sandbox.apiserver.encoding import encode
from multikueue.sandbox.apiserver.status_errors import Cause
from multikueue.sandbox.apiserver.validation.schema_defaulting import field_schema

_TYPES: dict[str, type] = {"object": dict, "array": list, "string": str, "boolean": bool}
_NAMES = {dict: "object", list: "array", str: "string", bool: "boolean", int: "integer", float: "number"}


def validate(schema: Json, value: Any, old: Any = None, path: str = "") -> Iterator[Cause]:
    """Everything the schema forbids, depth first; CEL rules are `cel_rules.check_rules`.

    What did not change is not judged again (ratcheting); `old` is the stored value, None for a new one.
    """
    name = path.lstrip(".")
    if old is not None and old == value and encode(old) == encode(value):
        return
    if value is None:
        if not schema.get("nullable"):
            wanted = schema.get("type") or "object"
            message = f'Invalid value: "null": {name} in body must be of type {wanted}: "null"'
            yield Cause("FieldValueTypeInvalid", name, message)
            if "enum" in schema:
                yield from check_limits(schema, value, name)
        return
    wrong = _check_type(schema, value, name)
    if wrong:
        yield wrong
        if schema.get("type") == "integer" and isinstance(value, float):
            why = f"Checked value must be of type integer (default format) in {name}"
            yield Cause("FieldValueInvalid", "<nil>", f'Invalid value: "": {why}')
        return
    yield from check_limits(schema, value, name)
    if isinstance(value, list):
        yield from _validate_items(schema, value, old, path)
    elif isinstance(value, dict):
        yield from _validate_fields(schema, value, old, path)
    yield from _check_combinations(schema, value, path)


def _check_type(schema: Json, value: Any, name: str) -> Cause | None:
    if schema.get("x-kubernetes-int-or-string"):
        if isinstance(value, int | str) and not isinstance(value, bool):
            return None
        message = f'Invalid value: "{value}": {name} in body must be of type integer,string'
        return Cause("FieldValueTypeInvalid", name, message)
    wanted = schema.get("type")
    if not wanted or _is_a(wanted, value):
        return None
    got = _NAMES.get(type(value), "?")
    message = f'Invalid value: "{got}": {name} in body must be of type {wanted}: "{got}"'
    return Cause("FieldValueTypeInvalid", name, message)


def _is_a(wanted: str, value: Any) -> bool:
    if wanted in _TYPES:
        return isinstance(value, _TYPES[wanted])
    if isinstance(value, bool):
        return False
    if wanted == "integer":
        return isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    return isinstance(value, int | float)


def _validate_items(schema: Json, value: list[Any], old: Any, path: str) -> Iterator[Cause]:
    yield from _check_duplicates(schema, value, path.lstrip("."))
    items = schema.get("items")
    if isinstance(items, dict):
        before = items_by_identity(schema, old)
        for index, item in enumerate(value):
            identity = item_identity(schema, item) if before else ""
            yield from validate(items, item, before.get(identity), f"{path}[{index}]")


def _check_duplicates(schema: Json, value: list[Any], name: str) -> Iterator[Cause]:
    if schema.get("x-kubernetes-list-type") not in ("set", "map") or len(value) < 2:
        return
    seen: set[str] = set()
    for index, item in enumerate(value):
        identity = item_identity(schema, item)
        if identity in seen:
            yield Cause("FieldValueDuplicate", f"{name}[{index}]", f"Duplicate value: {item}")
        seen.add(identity)


def item_identity(schema: Json, item: Any) -> str:
    """What tells the items of a list with keys, or of a set, apart."""
    keys = schema.get("x-kubernetes-list-map-keys")
    if keys and isinstance(item, dict):
        return repr([item.get(key) for key in keys])
    return repr(item)


def items_by_identity(schema: Json, items: Any) -> dict[str, Any]:
    """The items of a list by what tells them apart; only in lists with keys do items stay the same ones."""
    if schema.get("x-kubernetes-list-type") != "map" or not isinstance(items, list):
        return {}
    return {item_identity(schema, item): item for item in items if isinstance(item, dict)}


def _validate_fields(schema: Json, value: Json, old: Any, path: str) -> Iterator[Cause]:
    for key in schema.get("required") or ():
        if key not in value:
            yield Cause("FieldValueRequired", f"{path}.{key}".lstrip("."), "Required value")
    for key, item in value.items():
        child = field_schema(schema, key)
        if child:
            before = old.get(key) if isinstance(old, dict) else None
            yield from validate(child, item, before, f"{path}.{key}")


def _check_combinations(schema: Json, value: Any, path: str) -> Iterator[Cause]:
    name = path.lstrip(".")
    for combination in ("allOf", "anyOf", "oneOf"):
        if combination not in schema:
            continue
        fits = [not any(validate(option, value, path=path)) for option in schema[combination]]
        wrong = {"allOf": not all(fits), "anyOf": not any(fits), "oneOf": sum(fits) != 1}
        if wrong[combination]:
            message = f"Invalid value: {name} in body must validate {combination}"
            yield Cause("FieldValueInvalid", name, message)


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
    if "multipleOf" in schema:
        yield from _check_multiple(schema["multipleOf"], value, name)


def _check_multiple(factor: float, value: float, name: str) -> Iterator[Cause]:
    """As kube-openapi: of whole numbers by what is whole in the factor, of others within a billionth."""
    if isinstance(value, int):
        if not (whole := int(factor)):
            message = f"Invalid value: 0: factor MultipleOf declared for {name} must be positive: 0"
            yield Cause("FieldValueInvalid", name, message)
            return
        fits = value % whole == 0
    else:
        times = value / factor
        fits = abs(times) < 2**53 and abs(times - round(times)) <= abs(round(times)) * 1e-9
    if not fits:
        yield _invalid(name, value, f"should be a multiple of {factor}")


def _check_length(schema: Json, value: list[Any], name: str) -> Iterator[Cause]:
    if len(value) > schema.get("maxItems", len(value)):
        message = f"Too many: {len(value)}: must have at most {schema['maxItems']} items"
        yield Cause("FieldValueTooMany", name, message)
    if len(value) < schema.get("minItems", 0):
        yield _invalid(name, len(value), f"should have at least {schema['minItems']} items")


def _invalid(name: str, value: object, rule: str) -> Cause:
    return Cause("FieldValueInvalid", name, f"Invalid value: {value}: {name} in body {rule}")
