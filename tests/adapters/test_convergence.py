"""Whatever somebody writes into a declaration: a copy that has it is not written again."""

from __future__ import annotations

import json
import math
from datetime import UTC, date, datetime
from typing import Any

import orjson
import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from multikueue.adapters.declaration import Declaration
from multikueue.adapters.declared.compiling import DeclarationError, declared_kind
from multikueue.adapters.declared.patches import DeclaredPatch, Operation
from multikueue.adapters.declared.rules import FollowedFields
from multikueue.adapters.paths import FieldPath
from multikueue.core.model.adapter import Stamp
from multikueue.core.model.names import Json
from multikueue.core.model.objects import without_nulls
from multikueue.kube.kubernetes_yaml import KubernetesLoader

STAMP = Stamp(origin="here", workload="w", attempt="m")
_LETTERS = st.text("0189box_eE.+-:aFyntT2", min_size=1, max_size=7)
_WORDS = st.sampled_from(
    (
        "y",
        "off",
        "0o644",
        "08",
        "1e3",
        "0b11",
        "1_000",
        "22:22",
        "2026-01-01",
        "~",
        "1.5",
        "1e23",
        "-0.0",
        "12345678901234567e1",
    )
)
_SCALARS = st.one_of(_LETTERS, _WORDS, st.integers(-(1 << 70), 1 << 70).map(str), st.floats(allow_nan=False).map(repr))
_TEXTS = st.recursive(
    _SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(items)}]"),
        st.dictionaries(_SCALARS, inner, max_size=3).map(
            lambda items: "{" + ", ".join(f"{key}: {item}" for key, item in items.items()) + "}"
        ),
    ),
    max_leaves=6,
)
"""YAML as people write it into `value`."""


def patched(old: Any, patch: Any) -> Any:
    """A merge patch as an API server applies it (RFC 7386)."""
    if not isinstance(patch, dict):
        return patch
    result = dict(old) if isinstance(old, dict) else {}
    for key, value in patch.items():
        result.pop(key, None) if value is None else result.update({key: patched(result.get(key), value)})
    return result


def stored(value: Any) -> Any:
    """As an API server in Go gives it back: whole numbers have no fraction, rounded to what a double tells."""
    if isinstance(value, dict):
        return {key: stored(item) for key, item in value.items()}
    if isinstance(value, list):
        return [stored(item) for item in value]
    rounded = isinstance(value, float) or (type(value) is int and not -(1 << 63) <= value < 1 << 63)
    if not rounded or not float(value).is_integer() or abs(value) >= 1e21:
        return value
    return int(format(float(value), ".17g").partition("e")[0]) if abs(value) < 1e17 else _shortest(float(value))


def _shortest(value: float) -> int:
    digits, _, exponent = repr(value).partition("e")
    places = len(digits.partition(".")[2])
    return int(digits.replace(".", "") + "0" * (int(exponent) - places))


def read(value: Any) -> Any:
    """What a client reads of a value that was written: a whole number of more than 64 bits is a double there."""
    return orjson.loads(json.dumps(stored(value)))


def as_json(value: Any) -> str:
    """A value as a server shows it. Here `true` is not 1."""
    return json.dumps(without_nulls(read(value)), sort_keys=True)


@example(text="[{0: ~}]", before=None)  # a null in a list, which the patch leaves out
@example(text="y", before="1")
@example(text="{a: [0]}", before="{a: [off]}")
@given(text=_TEXTS, before=st.one_of(st.none(), _TEXTS))
def test_a_patched_or_followed_value_converges(text: str, before: str | None) -> None:
    """One write, and none after it: whether the value is patched in, or follows the manager's job."""
    try:
        value, old = (yaml.load(document, KubernetesLoader) if document else None for document in (text, before))
        step = Operation.parse({"op": "add", "path": "/spec/x", "value": value}, ("object", "remote"))
    except (yaml.YAMLError, ValueError):
        return
    patch = DeclaredPatch("syncPatches", (step,))
    local: Json = read({"metadata": {}, "spec": {"y": value}})
    remote: Json = read({"metadata": {"resourceVersion": "1"}, "spec": {"x": old, "y": old}})
    rule = FollowedFields((FieldPath(("spec", "y")),), patch)
    change = rule(local, remote, STAMP)
    after = read(orjson.loads(orjson.dumps(patched(remote, change or {}))))
    assert rule(local, after, STAMP) is None, (value, change)
    assert as_json(after["spec"].get("x")) == as_json(value), (old, change)
    if not isinstance(value, dict):  # of a followed object the copy keeps entries of its own
        assert as_json(after["spec"].get("y")) == as_json(value), (old, change)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (date(2026, 1, 1), "value is a date"),
        ({"a": [1, datetime(2026, 1, 1, tzinfo=UTC)]}, r"value\.a\[1\] is a datetime"),
        ({"a": {8080: "http"}}, r"value\.a has a key that is no text"),
        ((1, 2), "value is a tuple"),
        ({"a": math.inf}, r"value\.a is inf"),
        (math.nan, "value is nan"),
        (1 << 63, "value is 9223372036854775808, which API servers round"),
        ([1.2345678901234567e18], r"value\[0\] is 1\.2345678901234568e\+18, which API servers round"),
        ("\ud800", "value has half of a character"),
        (b"x", "value is a bytes"),
        ({1, 2}, "value is a set"),
    ],
)
@pytest.mark.parametrize("field", ["creation_patches", "sync_patches", "suspend_value"])
def test_what_cannot_be_sent_as_json_is_an_error_with_its_path(field: str, value: Any, message: str) -> None:
    """Before: no job of the kind was ever made, or each reconcile patched the copy."""
    given: Any = value if field == "suspend_value" else ({"op": "add", "path": "/spec/a", "value": value},)
    declaration = Declaration(name="Own.v1.example.com", suspend_path=".spec.stop", **{field: given})
    with pytest.raises(
        DeclarationError, match=message.replace("value", "it", 1) if field == "suspend_value" else message
    ):
        declared_kind(declaration)
