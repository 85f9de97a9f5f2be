"""
From what a client sent to what the server works with.

A builtin kind goes through a Go type: fields it does not have are dropped, wrong types are refused, quantities and
times get their canonical form, and empty fields are left out where the type says so. A custom kind is pruned and
defaulted by its schema.
"""

from __future__ import annotations

import base64
import binascii
import functools
import re
from datetime import UTC, datetime
from decimal import ROUND_CEILING, Decimal
from typing import Any, Final

import attrs

from multikueue.core.model.conditions import timestamp
from multikueue.core.model.names import Json
from multikueue.core.model.quantities import BINARY, POWERS, exact
from multikueue.sandbox.apiserver.kinds.builtin_schemas import definition, metadata_schema
from multikueue.sandbox.apiserver.kinds.resources import ResourceType
from multikueue.sandbox.apiserver.status_errors import StatusError, bad_request
from multikueue.sandbox.apiserver.validation.schema_defaulting import drop_nulls, fill_defaults, prune

_OWN = ("apiVersion", "kind", "metadata")
_TYPES: dict[str, tuple[tuple[type, ...], str]] = {
    "string": ((str,), "string"),
    "boolean": ((bool,), "bool"),
    "integer": ((int,), "int"),
    "number": ((int, float), "float64"),
    "object": ((dict,), "map"),
    "array": ((list,), "slice"),
}
_NO_QUANTITY = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_RAW = "io.k8s.apimachinery.pkg.runtime.RawExtension"
_FIELDS_V1 = "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1"
_BOUNDS = {"int32": 1 << 31, "int64": 1 << 63, "": 1 << 63}
_TIME = re.compile(r"(\d{4}-\d\d-\d\dT)(\d|[01]\d|2[0-3])(:\d\d:\d\d([.,]\d+)?(Z|[+-]\d\d:\d\d))")
_MICRO_TIME = re.compile(r"(\d{4}-\d\d-\d\dT)(\d|[01]\d|2[0-3])(:\d\d:\d\d[.,]\d{6}(Z|[+-]\d\d:\d\d))")
_NO_TIME = ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000000Z")
"""Go's zero, which is written as null."""


class UndecodableError(ValueError):
    """A value does not fit the Go type."""


@attrs.define(eq=False)
class _Decoder:
    """Decodes one object and collects what it does not know."""

    unknown: list[str] = attrs.field(factory=list)

    def value(self, schema: Json, value: Any, path: str) -> Any:
        """A value in the form the server stores it in."""
        reference = schema.get("$ref", "")
        if reference:
            if reference in (_RAW, _FIELDS_V1):
                return value
            return self._referred(reference.rpartition(".")[2], definition(reference), value, path)
        kind = schema.get("type", "")
        if kind:
            _check_type(kind, value, path)
        if kind == "integer" and not -_BOUNDS[schema.get("format", "")] <= value < _BOUNDS[schema.get("format", "")]:
            raise UndecodableError(f"json: cannot unmarshal number {value} into Go struct field {path.lstrip('.')}")
        if kind == "array":
            items = schema.get("items") or {}
            return [self.value(items, _or_zero(items, item), f"{path}[{n}]") for n, item in enumerate(value)]
        if kind == "object" and "additionalProperties" in schema:
            items = schema["additionalProperties"]
            return {key: self.value(items, _or_zero(items, item), f"{path}.{key}") for key, item in value.items()}
        if kind == "object":
            return self.struct(schema, value, path)
        if schema.get("format") == "byte":
            return _bytes(value, path)
        return value

    def _referred(self, name: str, schema: Json, value: Any, path: str) -> Any:
        match name:
            case "Quantity":
                return _quantity(value, path)
            case "Time":
                return _time(value, path)
            case "MicroTime":
                return _time(value, path, micro=True)
            case "IntOrString":
                return value
        return self.value(schema, value, path)

    def struct(self, schema: Json, value: Json, path: str) -> Json:
        """A value of a type with named fields."""
        fields = schema.get("properties") or {}
        self.unknown += [f"{path}.{key}".lstrip(".") for key in value if key not in fields]
        decoded = {}
        for key, field in fields.items():
            given = _or_zero(field, value.get(key))
            if given is not None:
                given = self.value(field, given, f"{path}.{key}")
                if not (field.get("x-omit-empty") and given in (0, "", {}, [])):
                    decoded[key] = given
            elif field.get("x-null"):
                decoded[key] = None
        return decoded


def _or_zero(schema: Json, value: Any) -> Any:
    """What a Go value that is no pointer holds when nothing is given, or what it is defaulted to."""
    return schema.get("default") if value is None else value


def _check_type(kind: str, value: Any, path: str) -> None:
    types, name = _TYPES[kind]
    if not isinstance(value, types) or (isinstance(value, bool) and kind != "boolean"):
        got = {str: "string", bool: "bool", dict: "object", list: "array"}.get(type(value), "number")
        raise UndecodableError(f"json: cannot unmarshal {got} into Go struct field {path.lstrip('.')} of type {name}")


def _bytes(value: str, path: str) -> str:
    try:
        base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError) as error:
        raise UndecodableError(f"illegal base64 data at {path.lstrip('.')}") from error
    return value


def _quantity(value: Any, path: str) -> str:
    try:
        return canonical_quantity(value)
    except ValueError as error:
        raise UndecodableError(f"{path.lstrip('.')}: {error}") from error


def _time(value: Any, path: str, *, micro: bool = False) -> str | None:
    form, layout = (_MICRO_TIME, "05.000000") if micro else (_TIME, "05")
    try:
        if isinstance(value, str) and (match := form.fullmatch(value)):
            return _canonical_time(f"{match[1]}{match[2]:>02}{match[3]}", micro=micro)
    except (ValueError, OverflowError):  # no such day
        pass
    raise UndecodableError(
        f'parsing time "{value}" at {path.lstrip(".")}: cannot parse as "2006-01-02T15:04:{layout}Z07:00"'
    )


@functools.lru_cache(4096)
def _canonical_time(value: str, *, micro: bool) -> str | None:
    time = datetime.fromisoformat(value).astimezone(UTC)
    text = f"{time:%Y-%m-%dT%H:%M:%S.%f}Z".zfill(27) if micro else timestamp(time).zfill(20)
    return None if text in _NO_TIME else text


def decode_object(
    row: ResourceType,
    obj: Json,
    *,
    strict: bool = False,
    patched: bool = False,
    applied: bool = False,
    unknown: list[str] | None = None,
) -> Json:
    """An object as the server works with it.

    Args:
        row: the kind.
        obj: as the client sent it, or as a patch or an apply left it.
        strict: unknown fields are an error.
        patched: it is a patch's result.
        applied: it is an apply's result, where nulls in a custom kind stay.
        unknown: gets the fields that are dropped.

    Raises:
        StatusError: 400, it does not fit the kind, or in strict mode has unknown fields; 422 if a patch made it so,
            500 if an apply did.
    """
    decoder = _Decoder()
    try:
        if row.custom:
            decoded = _custom(row, obj, decoder, keep_nulls=applied)
        elif row.schema:
            decoded = decoder.struct(row.schema, obj, "")
            decoded |= {"apiVersion": obj["apiVersion"], "kind": obj["kind"]}
        else:
            decoded = {**obj, "metadata": decoder.struct(metadata_schema(), obj["metadata"], "metadata")}
    except UndecodableError as error:
        if applied:
            raise StatusError(500, "", f"failed to convert new object to proper version: {error}") from error
        raise _undecodable(row, str(error), patched=patched) from error
    if strict and decoder.unknown:
        listed = ", ".join(f'unknown field "{field}"' for field in decoder.unknown)
        why = f"strict decoding error: {listed}"
        raise _undecodable(row, why, patched=True) if patched else bad_request(why)
    if unknown is not None:
        unknown += decoder.unknown
    return decoded


def empty_object(row: ResourceType) -> Json:
    """An object of a kind before anything is set."""
    head: Json = {"apiVersion": row.api_version, "kind": row.kind}
    if row.custom:
        return head
    return decode_object(row, {**head, "metadata": {}})


def _custom(row: ResourceType, obj: Json, decoder: _Decoder, *, keep_nulls: bool) -> Json:
    schema = row.custom.schema if row.custom else {}
    body = {key: value for key, value in obj.items() if key not in _OWN}
    prune(schema, body, decoder.unknown)
    if not keep_nulls:
        drop_nulls(schema, body)
    fill_defaults(schema, body)
    metadata = decoder.struct(metadata_schema(), obj["metadata"], "metadata")
    return {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "metadata": metadata, **body}


def _undecodable(row: ResourceType, why: str, *, patched: bool) -> StatusError:
    if not patched:
        return bad_request(f'{row.kind} in version "{row.version}" cannot be handled as a {row.kind}: {why}')
    cause = {"reason": "FieldValueInvalid", "message": f"Invalid value: {why}", "field": "patch"}
    return StatusError(422, "Invalid", f' "" is invalid: patch: Invalid value: {why}', details={"causes": [cause]})


_MOST: Final = 2**63 - 1
"""Of anything: Kubernetes takes a greater quantity for this one."""


def canonical_quantity(value: Any) -> str:
    """A quantity in the form the server stores: `0.5` is `500m`, `1024Mi` is `1Gi`.

    Raises:
        ValueError: it is none.
    """
    try:
        number, suffix = exact("" if isinstance(value, bool) else str(value))
    except ValueError as error:
        raise ValueError(_NO_QUANTITY) from error
    if number > _MOST:
        return str(_MOST)
    if suffix in BINARY and number == number.to_integral_value() and abs(number) >= 1024:
        return _binary(int(number))
    return _decimal(number, exponential=suffix not in BINARY and suffix not in POWERS)


def _binary(whole: int) -> str:
    fitting = [suffix for suffix, size in BINARY.items() if whole % size == 0]
    return f"{whole // BINARY[fitting[-1]]}{fitting[-1]}" if fitting else str(whole)


def _decimal(number: Decimal, *, exponential: bool) -> str:
    nanos = int(number.scaleb(9).to_integral_value(ROUND_CEILING))
    if nanos == 0:
        return "0"
    suffix, power = max(((s, p) for s, p in POWERS.items() if nanos % 10 ** (p + 9) == 0), key=lambda item: item[1])
    whole = nanos // 10 ** (power + 9)
    if exponential:
        return f"{whole}e{power}" if power else str(whole)
    return f"{whole}{suffix}"
