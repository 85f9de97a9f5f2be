"""Rules of CRDs have the functions that Kubernetes' libraries have."""

from __future__ import annotations

from typing import Any

import pytest

from multikueue.core.model.names import Json
from multikueue.sandbox.apiserver.validation.cel_rules import check_rules


@pytest.mark.parametrize(
    "rule",
    [
        "self.split('.').size() == 2",
        "self.lowerAscii() == 'a.b' && self.trim() == self",
        "self.replace('.', '-') == 'a-b' && self.substring(2) == 'b' && self.charAt(1) == '.'",
        "self.indexOf('b') == 2 && ['a', 'b'].indexOf('b') == 1",
        "[1, 2].sum() == 3 && [1, 2].isSorted() && ['a', 'b'].join('.') == self",
        "sets.contains(['a', 'b'], ['a']) && string(self == 'a.b') == 'true'",
    ],
)
def test_a_rule_that_holds_there_holds_here(rule: str) -> None:
    assert list(check_rules({"x-kubernetes-validations": [{"rule": rule}]}, "a.b")) == []
    assert list(check_rules({"x-kubernetes-validations": [{"rule": f"!({rule})"}]}, "a.b"))


@pytest.mark.parametrize(
    ("schema", "value", "rule"),
    [
        ({"format": "date-time"}, "2026-01-02T03:04:05Z", "self > timestamp('2025-01-01T00:00:00Z')"),
        ({"format": "date-time"}, "2026-01-02T03:04:05+01:00", "self.getFullYear() == 2026"),
        ({"format": "date"}, "2026-01-02", "self == timestamp('2026-01-02T00:00:00Z')"),
        ({"format": "duration"}, "1h30m", "self < duration('91m') && self.getMinutes() == 90"),
        ({"format": "byte"}, "YWI=", "self == b'ab'"),
        ({"type": "number"}, 1, "type(self) == double && self == 1.0"),
        ({"properties": {"namespace": {}}}, {"namespace": "a"}, "self.__namespace__ == 'a'"),
        ({"properties": {"x-y": {"format": "duration"}}}, {"x-y": "5s"}, "self.x__dash__y == duration('5s')"),
        ({"properties": {"a": {"format": "date-time"}, "b": {}}}, {"a": "2026-01-02T03:04:05Z", "b": 1}, "self.b == 1"),
        ({"items": {"format": "duration"}}, ["1s", "2m"], "self.all(d, d <= duration('2m'))"),
        ({"additionalProperties": {"type": "number"}}, {"a-b": 2}, "self['a-b'] == 2.0"),
    ],
)
def test_a_rule_sees_the_types_that_its_schema_says(schema: Json, value: Any, rule: str) -> None:
    """Texts of a format are times, and fields have names of CEL: 37 of 61 rules that hold there were refused."""
    assert list(check_rules({**schema, "x-kubernetes-validations": [{"rule": rule}]}, value)) == []
    assert list(check_rules({**schema, "x-kubernetes-validations": [{"rule": f"!({rule})"}]}, value))


def test_what_does_not_fit_its_format_stays_a_text() -> None:
    schema = {"format": "duration", "x-kubernetes-validations": [{"rule": "self == 'soon'"}]}
    assert list(check_rules(schema, "soon")) == []


SET = {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}
KEYED = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["name"],
    "items": {"type": "object", "properties": {"name": {"type": "string"}, "tags": SET}},
}
PLAIN = {"type": "array", "items": {"type": "string"}}


@pytest.mark.parametrize(
    ("schema", "old", "new", "same"),
    [
        (SET, ["a", "b"], ["b", "a"], True),
        (SET, ["a", "b"], ["b", "c"], False),
        (SET, ["a", "b"], ["b"], False),
        (
            KEYED,
            [{"name": "x"}, {"name": "y", "tags": ["1", "2"]}],
            [{"name": "y", "tags": ["2", "1"]}, {"name": "x"}],
            True,
        ),
        (KEYED, [{"name": "x"}, {"name": "y"}], [{"name": "y", "tags": ["1"]}, {"name": "x"}], False),
        (PLAIN, ["a", "b"], ["b", "a"], False),
    ],
)
def test_sets_and_lists_with_keys_have_no_order(schema: Json, old: Any, new: Any, same: bool) -> None:
    """So an immutable one may be written in another order, as by a client that sorts."""
    whole = {
        "type": "object",
        "properties": {"list": schema},
        "x-kubernetes-validations": [{"rule": "self.list == oldSelf.list", "message": "immutable"}],
    }
    assert bool([*check_rules(whole, {"list": new}, {"list": old})]) != same
