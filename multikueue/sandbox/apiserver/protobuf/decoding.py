"""
From protobuf to the JSON that Go would write for the same object.

`messages.json` says what each message consists of (`tests/conformance/protobuf_messages.py` makes it from Kubernetes'
sources). No message contains itself, so nesting ends with the table; the size ends with the largest body.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from types import MappingProxyType
from typing import Any, Final

import attrs

from multikueue.core.model.names import Json
from multikueue.sandbox.apiserver.encoding import decode, packaged
from multikueue.sandbox.apiserver.protobuf.wire import BYTES, VARINT, ProtobufError, read, signed, varints

CONTENT_TYPE: Final = "application/vnd.kubernetes.protobuf"
_MAGIC: Final = b"k8s\x00"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_INLINE: Final = "-"
_ENTRY_KEY, _ENTRY_VALUE = 1, 2
_ANY_VERSION: Final = "*"


@attrs.frozen
class Field:
    """A field of a message.

    Attributes:
        name: in JSON; `-` where the fields of this one stand in its parent.
        form: `[]` for a list, `{}` for a map, `?` for a value that JSON leaves out when it is zero, else empty.
        type: a scalar or a message.
    """

    name: str
    form: str
    type: str

    @classmethod
    def parse(cls, line: str) -> tuple[int, Field]:
        """A line of the table: `3 name ?string`."""
        number, name, described = line.split(" ")
        named = described.lstrip("[]{}?")
        return int(number), cls(name, described.removesuffix(named), named)


@cache
def _table() -> Json:
    table: Json = packaged(__package__, "messages.json")
    return table


@cache
def fields_of(message: str) -> Mapping[int, Field]:
    """The fields of a message by number."""
    return MappingProxyType(dict(Field.parse(line) for line in _table()["messages"][message]))


def roots() -> Mapping[str, str]:
    """The messages of kinds, by `apiVersion/kind`."""
    messages: Mapping[str, str] = _table()["roots"]
    return messages


def decode_protobuf(raw: bytes) -> Json:
    """The object in a body.

    Raises:
        ProtobufError: it is none, or of a kind that is not read in this form.
    """
    if not raw.startswith(_MAGIC):
        raise ProtobufError(f"provided data does not appear to be a protobuf message, expected prefix {_MAGIC!r}")
    envelope = {number: value for number, _, value in read(raw[len(_MAGIC) :])}
    if envelope.get(3):
        raise ProtobufError(f"the content encoding {envelope[3]!r} is not known")
    head = {number: _text(value) for number, _, value in read(_bytes(envelope.get(1, b"")))}
    api_version, kind = head.get(1, ""), head.get(2, "")
    message = roots().get(f"{api_version}/{kind}") or roots().get(f"{_ANY_VERSION}/{kind}")
    if message is None:
        raise ProtobufError(f'no kind "{kind}" is registered for version "{api_version}" in protobuf')
    return {"apiVersion": api_version, "kind": kind, **_message(message, _bytes(envelope.get(2, b"")))}


def _message(name: str, raw: bytes) -> Json:
    fields = fields_of(name)
    message: Json = {}
    for number, wire, value in read(raw):
        field = fields.get(number)
        if field is None:  # of a later release
            continue
        if field.form == "{}":
            message.setdefault(field.name, {}).update([_entry(field, value)])
        elif field.form == "[]":
            message.setdefault(field.name, []).extend(_items(field, wire, value))
        elif field.name == _INLINE:
            message |= _value(field, value)
        else:
            message[field.name] = _value(field, value)
            if field.form == "?" and not message[field.name]:
                del message[field.name]
    return message


def _items(field: Field, wire: int, value: int | bytes) -> list[Any]:
    """One item, or packed numbers."""
    if wire == BYTES and field.type in _NUMBERS and isinstance(value, bytes):
        return [_value(field, number) for number in varints(value)]
    return [_value(field, value)]


def _entry(field: Field, value: int | bytes) -> tuple[str, Any]:
    parts = {number: part for number, _, part in read(_bytes(value))}
    absent = b"" if field.type not in _NUMBERS else 0
    return _text(parts.get(_ENTRY_KEY, b"")), _value(field, parts.get(_ENTRY_VALUE, absent))


def _value(field: Field, value: int | bytes) -> Any:
    """A value as JSON has it.

    Raises:
        ProtobufError: it has not the wire type that the field must have.
    """
    if isinstance(value, int) != (field.type in _NUMBERS):
        got, wanted = (VARINT, BYTES) if isinstance(value, int) else (BYTES, VARINT)
        raise ProtobufError(f"proto: wrong wireType = {got} for field {field.name}, not {wanted}")
    if isinstance(value, int):
        return _NUMBERS[field.type](value)
    special = _SPECIAL.get(field.type) or _SPECIAL.get(field.type.rpartition(".")[2])
    return special(value) if special else _message(field.type, value)


def _bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise ProtobufError("proto: wrong wireType = 0, not 2")
    return value


def _text(value: int | bytes) -> str:
    try:
        return _bytes(value).decode()
    except UnicodeDecodeError as error:
        raise ProtobufError(f"a text is not UTF-8: {error}") from error


def _quantity(raw: bytes) -> str:
    return _text(_last(raw, 1, b"")) or "0"


def _int_or_string(raw: bytes) -> int | str:
    kind, number, text = _last(raw, 1, 0), _last(raw, 2, 0), _last(raw, 3, b"")
    return _text(text) if kind else signed(_number(number), 32)


def _time(raw: bytes) -> str | None:
    return _stamp(raw, "seconds")


def _micro_time(raw: bytes) -> str | None:
    return _stamp(raw, "microseconds")


def _stamp(raw: bytes, precision: str) -> str | None:
    """A time in UTC; None for none."""
    if not raw:
        return None
    seconds, nanos = signed(_number(_last(raw, 1, 0)), 64), signed(_number(_last(raw, 2, 0)), 32)
    try:
        moment = _EPOCH + timedelta(seconds=seconds, microseconds=nanos // 1000)
    except OverflowError as error:
        raise ProtobufError(f"a time is out of range: {seconds} s") from error
    return moment.replace(tzinfo=None).isoformat(timespec=precision) + "Z"


def _json(raw: bytes) -> Any:
    text = _bytes(_last(raw, 1, b""))
    try:
        return decode(text) if text else None
    except ValueError as error:
        raise ProtobufError(f"a field that holds JSON does not: {error}") from error


def _texts(raw: bytes) -> list[str]:
    return [_text(value) for number, _, value in read(raw) if number == 1]


def _last(raw: bytes, wanted: int, absent: int | bytes) -> int | bytes:
    """The value of one field of a small message: the last one counts."""
    values = [value for number, _, value in read(raw) if number == wanted]
    return values[-1] if values else absent


def _number(value: int | bytes) -> int:
    if isinstance(value, bytes):
        raise ProtobufError("proto: wrong wireType = 2, not 0")
    return value


_NUMBERS: Final[Mapping[str, Callable[[int], Any]]] = {
    "bool": bool,
    "int32": lambda value: signed(value, 32),
    "int64": lambda value: signed(value, 64),
}
_SPECIAL: Final[Mapping[str, Callable[[bytes], Any]]] = {
    "string": _text,
    "bytes": lambda raw: base64.b64encode(raw).decode(),
    "Quantity": _quantity,
    "IntOrString": _int_or_string,
    "Time": _time,
    "MicroTime": _micro_time,
    "FieldsV1": _json,
    "ExtraValue": _texts,
}
"""Scalars, and messages with a JSON form of their own."""
