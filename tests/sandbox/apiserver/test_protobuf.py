"""Protobuf bodies: what kubectl sent, any message of the tables, and any bytes."""

from __future__ import annotations

import base64
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multikueue.core.model.names import Json
from multikueue.sandbox.apiserver.protobuf import ProtobufError, decode_protobuf
from multikueue.sandbox.apiserver.protobuf.decoding import Field, fields_of, roots
from multikueue.sandbox.apiserver.protobuf.wire import read, signed, varint
from tests.data.files import PROTOBUF

PRINTED = sorted(PROTOBUF.glob("*.json"))
NUMBERS = {"int32": 32, "int64": 64}
SPECIAL = {"Quantity", "IntOrString", "Time", "MicroTime", "FieldsV1", "ExtraValue"}


def number(value: int) -> bytes:
    """A varint."""
    value &= 2**64 - 1
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*encoded, value])


def counted(tag: int, raw: bytes) -> bytes:
    """A field of bytes."""
    return number(tag << 3 | 2) + number(len(raw)) + raw


def body(api_version: str, kind: str, raw: bytes) -> bytes:
    """A body as clients send it."""
    head = counted(1, api_version.encode()) + counted(2, kind.encode())
    return b"k8s\0" + counted(1, head) + counted(2, raw) + counted(3, b"") + counted(4, b"")


def special(name: str, draw: st.DrawFn) -> tuple[bytes, Any]:
    """A message with a form of its own in JSON, and that form."""
    match name:
        case "Quantity":
            return counted(1, b"100m"), "100m"
        case "IntOrString":
            if draw(st.booleans()):
                return number(1 << 3) + number(1) + counted(3, b"web"), "web"
            value = draw(st.integers(-(2**31), 2**31 - 1))
            return number(1 << 3) + number(0) + number(2 << 3) + number(value), value
        case "Time" | "MicroTime":
            moment = number(1 << 3) + number(1_700_000_000) + number(2 << 3) + number(5_000_999)
            return moment, "2023-11-14T22:13:20" + (".005000Z" if name == "MicroTime" else "Z")
        case "FieldsV1":
            return counted(1, b'{"f:a":{}}'), {"f:a": {}}
    return counted(1, b"a") + counted(1, b""), ["a", ""]


def value(field: Field, draw: st.DrawFn, depth: int) -> tuple[bytes | int, Any]:
    """A value on the wire, and in JSON."""
    if field.type == "bool":
        flag = draw(st.booleans())
        return int(flag), flag
    if field.type in NUMBERS:
        bound = 2 ** (NUMBERS[field.type] - 1)
        chosen = draw(st.integers(-bound, bound - 1))
        return chosen, chosen
    if field.type == "string":
        text = draw(st.text(max_size=3))
        return text.encode(), text
    if field.type == "bytes":
        raw = draw(st.binary(max_size=3))
        return raw, base64.b64encode(raw).decode()
    short = field.type.rpartition(".")[2]
    return special(short, draw) if short in SPECIAL else message(field.type, draw, depth + 1)


def on_wire(tag: int, raw: bytes | int) -> bytes:
    """A field."""
    return number(tag << 3) + number(raw) if isinstance(raw, int) else counted(tag, raw)


def message(name: str, draw: st.DrawFn, depth: int = 0) -> tuple[bytes, Json]:
    """A message with some of its fields, and the JSON of it."""
    fields = list(fields_of(name).items())
    chosen = draw(st.lists(st.sampled_from(fields), max_size=3 if depth else 5, unique_by=lambda item: item[0]))
    raw = b""
    expected: Json = {}
    for tag, field in chosen if depth < 5 else ():
        part, read_as = value(field, draw, depth)
        if field.form == "{}":
            raw += counted(tag, counted(1, b"key") + on_wire(2, part))
            expected[field.name] = {"key": read_as}
        elif field.form == "[]":
            raw += on_wire(tag, part) * 2
            expected[field.name] = [read_as] * 2
        elif field.name == "-":
            raw += on_wire(tag, part)
            expected |= read_as
        else:
            raw += on_wire(tag, part)
            if field.form != "?" or read_as:
                expected[field.name] = read_as
    return raw, expected


@st.composite
def messages(draw: st.DrawFn) -> tuple[str, bytes, Json]:
    """A kind as `apiVersion/kind`, a message of it, and its JSON."""
    place = draw(st.sampled_from(sorted(root for root in roots() if not root.startswith("*"))))
    return place, *message(roots()[place], draw)


@given(messages())
def test_any_message_of_the_tables_is_read_as_what_was_written(drawn: tuple[str, bytes, Json]) -> None:
    """Scalars with their signs, lists, maps, fields of the parent, and messages with a form of their own."""
    place, raw, expected = drawn
    api_version, _, kind = place.rpartition("/")

    assert decode_protobuf(body(api_version, kind, raw)) == {"apiVersion": api_version, "kind": kind, **expected}


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(raw: bytes) -> None:
    """Nothing else comes out of it, whatever a client sends."""
    for sent in (raw, b"k8s\0" + raw, body("v1", "Pod", raw), body("batch/v1", "Job", raw)):
        with suppress(ProtobufError):
            assert isinstance(decode_protobuf(sent), dict)


@given(st.data())
def test_a_body_that_was_cut_or_changed_is_read_or_refused(data: st.DataObject) -> None:
    """Real bodies with one byte changed, or without their end."""
    raw = bytearray((data.draw(st.sampled_from(sorted(PROTOBUF.glob("*.pb"))))).read_bytes())
    at = data.draw(st.integers(0, len(raw) - 1))
    raw[at] = data.draw(st.integers(0, 255))
    with suppress(ProtobufError):
        assert isinstance(decode_protobuf(bytes(raw[: data.draw(st.integers(at, len(raw)))])), dict)


def without_nulls(value: Any) -> Any:
    """What a server makes of fields that are null; kubectl prints times that are not set so."""
    if isinstance(value, dict):
        return {key: without_nulls(part) for key, part in value.items() if part is not None}
    return [without_nulls(part) for part in value] if isinstance(value, list) else value


@pytest.mark.parametrize("printed", PRINTED, ids=[path.stem for path in PRINTED])
def test_what_kubectl_sends_is_what_it_prints(printed: Path) -> None:
    """The body of a command, and what the same command prints with `--dry-run=client -o json`."""
    expected = without_nulls(json.loads(printed.read_text()))
    decoded = without_nulls(decode_protobuf(printed.with_suffix(".pb").read_bytes()))

    assert decoded == expected


def deepest(name: str, above: tuple[str, ...] = ()) -> int:
    """How deep messages are in each other; fails where one contains itself."""
    assert name not in above, (*above, name)
    inner = {field.type for field in fields_of(name).values() if field.type.rpartition(".")[2] not in SPECIAL}
    nested = [message for message in inner if "." in message]
    return 1 + max((deepest(message, (*above, name)) for message in nested), default=0)


def test_no_message_contains_itself() -> None:
    """So no body can nest deeper than the tables do."""
    assert max(deepest(name) for name in set(roots().values())) <= 16


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (b"", "expected prefix"),
        (b"{}", "expected prefix"),
        (body("v1", "Widget", b""), 'no kind "Widget" is registered for version "v1"'),
        (body("v1", "Job", b""), 'no kind "Job" is registered for version "v1"'),
        (body("v1", "ConfigMap", b"\x0a\x05a"), "unexpected EOF"),
        (body("v1", "ConfigMap", b"\x0a"), "unexpected EOF"),
        (body("v1", "ConfigMap", b"\x08\x01"), "wrong wireType = 0 for field metadata"),
        (body("v1", "ConfigMap", b"\x22\x00"), "wrong wireType = 2 for field immutable"),
        (body("v1", "ConfigMap", b"\x02\x00"), "illegal tag 0"),
        (body("v1", "ConfigMap", b"\x0b"), "illegal wireType 3"),
        (body("v1", "ConfigMap", b"\x08" + b"\xff" * 11), "integer overflow"),
        (body("v1", "ConfigMap", counted(2, counted(1, b"\xff"))), "not UTF-8"),
        (body("v1", "ConfigMap", counted(1, counted(8, number(8) + number(2**62)))), "a time is out of range"),
    ],
)
def test_what_is_refused_is_refused_with_a_reason(raw: bytes, why: str) -> None:
    """The words tell what to look for."""
    with pytest.raises(ProtobufError, match=why):
        decode_protobuf(raw)


def test_fields_of_a_later_release_are_passed_over() -> None:
    """Of every wire type, as a Go server does."""
    unknown = counted(90, b"x") + number(91 << 3) + number(7) + number(92 << 3 | 5) + b"1234" + number(93 << 3 | 1)
    config_map = decode_protobuf(body("v1", "ConfigMap", unknown + b"12345678" + counted(2, counted(1, b"k"))))

    assert config_map == {"apiVersion": "v1", "kind": "ConfigMap", "data": {"k": ""}}


def test_numbers_in_one_field_are_read_too() -> None:
    """Protobuf calls that packed; Kubernetes does not write it, but must be read when others do."""
    (tag,) = (
        tag for tag, field in fields_of("core.v1.PodSecurityContext").items() if field.name == "supplementalGroups"
    )
    context = counted(tag, number(1) + number(300))
    (spec,) = (tag for tag, field in fields_of("core.v1.Pod").items() if field.name == "spec")
    (inner,) = (tag for tag, field in fields_of("core.v1.PodSpec").items() if field.name == "securityContext")
    pod = decode_protobuf(body("v1", "Pod", counted(spec, counted(inner, context))))

    assert pod["spec"] == {"securityContext": {"supplementalGroups": [1, 300]}}


@given(st.integers(-(2**63), 2**63 - 1))
def test_numbers_come_back_as_they_were(drawn: int) -> None:
    """With their sign."""
    raw = number(drawn)
    assert varint(raw, 0) == (drawn % 2**64, len(raw))
    assert signed(varint(raw, 0)[0], 64) == drawn


def test_delete_options_are_read_of_any_version() -> None:
    """Typed clients send them with the version of the kind that they delete."""
    raw = counted(4, b"Background")
    for version in ("v1", "batch/v1"):
        assert decode_protobuf(body(version, "DeleteOptions", raw))["propagationPolicy"] == "Background"


def test_the_wire_is_read_without_knowing_what_it_means() -> None:
    """Numbers of fields, wire types and values, in their order."""
    assert list(read(number(8) + number(300) + counted(2, b"ab"))) == [(1, 0, 300), (2, 2, b"ab")]
