"""The wire format of protobuf: fields as pairs of a number and a value, without knowing what they mean."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

VARINT: Final = 0
BYTES: Final = 2
_FIXED: Final = {1: 8, 5: 4}
"""Wire types of a fixed length, in bytes. No message here has such fields; unknown ones are passed over."""
_MAX_VARINT: Final = 10
"""Bytes of a number of 64 bits."""


class ProtobufError(ValueError):
    """The bytes are no message of the kind that they should be."""


def read(raw: bytes) -> Iterator[tuple[int, int, int | bytes]]:
    """The fields of a message in their order: number, wire type, and a number or bytes.

    Raises:
        ProtobufError: the bytes end within a field, or hold a group, which no client of Kubernetes writes.
    """
    at = 0
    while at < len(raw):
        key, at = varint(raw, at)
        number, wire = key >> 3, key & 7
        if not 0 < number < 1 << 29:
            raise ProtobufError(f"proto: illegal tag {number}")
        if wire == VARINT:
            value, at = varint(raw, at)
            yield number, wire, value
            continue
        if wire == BYTES:
            size, at = varint(raw, at)
        elif wire in _FIXED:
            size = _FIXED[wire]
        else:
            raise ProtobufError(f"proto: illegal wireType {wire}")
        if size > len(raw) - at:
            raise ProtobufError("unexpected EOF")
        yield number, wire, raw[at : at + size]
        at += size


def varint(raw: bytes, at: int) -> tuple[int, int]:
    """The number at a place, unsigned and of 64 bits, and where it ends.

    Raises:
        ProtobufError: there is none.
    """
    value = 0
    for shift, byte in enumerate(raw[at : at + _MAX_VARINT]):
        value |= (byte & 0x7F) << 7 * shift
        if byte < 0x80:
            return value & 0xFFFF_FFFF_FFFF_FFFF, at + shift + 1
    raise ProtobufError("unexpected EOF" if len(raw) - at < _MAX_VARINT else "proto: integer overflow")


def varints(raw: bytes) -> Iterator[int]:
    """Numbers one after the other, as in a packed field.

    Raises:
        ProtobufError: the bytes end within one.
    """
    at = 0
    while at < len(raw):
        value, at = varint(raw, at)
        yield value


def signed(value: int, bits: int) -> int:
    """The lowest bits of a number, as Go converts it to a signed type of that size."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value
