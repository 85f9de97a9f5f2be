"""Structural schemas: pruning, defaults, validation, CEL rules."""

from __future__ import annotations

from typing import Any

import pytest

from multikueue.core.model.names import Json
from multikueue.sandbox.apiserver.validation.cel_rules import _fields_used, _judge, check_rules
from multikueue.sandbox.apiserver.validation.schema_defaulting import drop_nulls, fill_defaults, prune
from multikueue.sandbox.apiserver.validation.schema_validation import compile_pattern, validate


def fields(**properties: Json) -> Json:
    return {"type": "object", "properties": properties}


def test_undeclared_fields_are_pruned_and_reported() -> None:
    """At every depth, lists included; what is preserved stays."""
    schema = fields(
        a=fields(b={"type": "string"}),
        free={"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        items={"type": "array", "items": fields(c={"type": "string"})},
    )
    value = {"a": {"b": "x", "z": 1}, "free": {"k": 1}, "items": [{"c": "y", "z": 1}], "z": 1}
    unknown: list[str] = []
    prune(schema, value, unknown)
    assert value == {"a": {"b": "x"}, "free": {"k": 1}, "items": [{"c": "y"}]}
    assert sorted(unknown) == ["a.z", "items[0].z", "z"]


def test_defaults_are_filled_in_below_defaults() -> None:
    """A default object gets the defaults of its fields, and a null that means nothing gives way."""
    schema = fields(a={**fields(b={"type": "integer", "default": 3}), "default": {}}, c={"type": "string"})
    value: Json = {"c": None}
    drop_nulls(schema, value)
    fill_defaults(schema, value)
    assert value == {"a": {"b": 3}}


def test_defaults_are_not_shared() -> None:
    """Changing one object's default does not change the schema."""
    schema = fields(a={"type": "array", "items": {"type": "string"}, "default": []})
    first: Json = {}
    fill_defaults(schema, first)
    first["a"].append("x")
    second: Json = {}
    fill_defaults(schema, second)
    assert second == {"a": []}


@pytest.mark.parametrize(
    ("schema", "value", "reason"),
    [
        ({"type": "integer"}, "x", "FieldValueTypeInvalid"),
        ({"type": "integer"}, True, "FieldValueTypeInvalid"),
        ({"type": "integer", "minimum": 1}, 0, "FieldValueInvalid"),
        ({"type": "integer", "maximum": 1, "exclusiveMaximum": True}, 1, "FieldValueInvalid"),
        ({"type": "integer", "multipleOf": 2}, 3, "FieldValueInvalid"),
        ({"type": "number", "multipleOf": 0.1}, 0.25, "FieldValueInvalid"),
        ({"type": "number", "multipleOf": 0.1}, 1e308, "FieldValueInvalid"),
        ({"type": "string", "enum": ["a"]}, "b", "FieldValueNotSupported"),
        ({"type": "string", "maxLength": 1}, "bb", "FieldValueTooLong"),
        ({"type": "string", "pattern": "^a$"}, "b", "FieldValueInvalid"),
        ({"type": "string", "format": "date-time"}, "today", "FieldValueInvalid"),
        ({"type": "array", "maxItems": 1}, [1, 2], "FieldValueTooMany"),
        ({"type": "array", "x-kubernetes-list-type": "set"}, ["a", "a"], "FieldValueDuplicate"),
        ({"type": "object", "required": ["a"]}, {}, "FieldValueRequired"),
        ({"type": "string"}, None, "FieldValueTypeInvalid"),
        ({"x-kubernetes-int-or-string": True}, 1.5, "FieldValueTypeInvalid"),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, [], "FieldValueInvalid"),
    ],
)
def test_each_rule_refuses_with_its_reason(schema: Json, value: Any, reason: str) -> None:
    """Clients tell causes apart by these reasons."""
    assert [cause.reason for cause in validate(schema, value, ".f")] == [reason]


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "integer"}, 3.0),
        ({"type": "number"}, 3),
        ({"type": "number", "multipleOf": 0.1}, 0.3),
        ({"type": "number", "multipleOf": 0.1}, 0.0),
        ({"type": "number", "multipleOf": 1.5}, 1),
        ({"x-kubernetes-int-or-string": True}, "50%"),
        ({"type": "string", "nullable": True}, None),
        ({"oneOf": [{"type": "string"}, {"type": "integer"}]}, 1),
    ],
)
def test_what_fits_is_accepted(schema: Json, value: Any) -> None:
    """The server is not stricter than it must be."""
    assert not list(validate(schema, value))


def test_a_whole_number_is_no_multiple_of_a_fraction() -> None:
    """As API servers have it (findings/tenths-of-a-number.sh): 1.0 is ten tenths, and 1 is refused."""
    schema = fields(share={"type": "number", "multipleOf": 0.1})
    assert not list(validate(schema, {"share": 1.0}))
    (cause,) = validate(schema, {"share": 1})
    assert cause.message == "Invalid value: 0: factor MultipleOf declared for share must be positive: 0"


def test_patterns_of_re2_work_in_python() -> None:
    """Kueue's AdmissionCheck has a flag in the middle of a pattern, which Python refuses."""
    assert compile_pattern("^(?i)[a-z]+$").search("ABC")


def test_transition_rules_judge_changes_only() -> None:
    """A new object has no old self, and a value that stays is not judged again."""
    schema = fields(a={"x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "fixed"}]})
    assert not list(check_rules(schema, {"a": 1}))
    assert not list(check_rules(schema, {"a": 1}, {"a": 1}))
    (cause,) = check_rules(schema, {"a": 2}, {"a": 1})
    assert (cause.field, cause.message) == ("a", "Invalid value: 2: fixed")


def test_items_of_a_keyed_list_have_an_old_self() -> None:
    """They are found by key, wherever they moved."""
    rule = {"rule": "self.v == oldSelf.v", "message": "fixed"}
    item = {**fields(k={"type": "string"}, v={"type": "string"}), "x-kubernetes-validations": [rule]}
    schema = {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["k"],
        "items": item,
    }
    old = [{"k": "a", "v": "1"}, {"k": "b", "v": "1"}]
    assert not list(check_rules(schema, [{"k": "b", "v": "1"}, {"k": "c", "v": "9"}], old))
    assert len(list(check_rules(schema, [{"k": "b", "v": "2"}], old))) == 1


def test_a_rule_is_not_evaluated_again_for_fields_that_it_does_not_read() -> None:
    """What it looks at in the items of a list: their other fields change often, such as the times of conditions."""
    condition = fields(type={"type": "string"}, status={"type": "string"}, message={"type": "string"})
    rule = (
        "has(self.conditions) && self.conditions.exists(c, c.type == 'A' && c.status == 'True') ? self.count > 0 : true"
    )
    schema = fields(conditions={"type": "array", "items": condition}, count={"type": "integer"})
    schema["x-kubernetes-validations"] = [{"rule": rule, "message": "nothing"}]

    def judged(count: int, **said: str) -> list[str]:
        value = {"conditions": [{"type": "B"}, {"type": "A", **said}], "count": count}
        return [cause.message for cause in check_rules(schema, value)]

    assert judged(1, status="True", message="first") == []
    before = _judge.cache_info().misses
    assert judged(1, status="True", message="second") == []
    assert _judge.cache_info().misses == before
    assert judged(0, status="True", message="second") == ['Invalid value: "object": nothing']
    assert judged(0, status="False") == []


@pytest.mark.parametrize(
    "rule",
    [
        "self.items.exists(c, c == {'a': 1})",
        "self.items.all(c, size(c) == 1)",
        "self.items == self.items.filter(c, c.a == 1) && self.items[0].b == 2",
        "self.items.filter(c, c.a == 1).all(d, d.b == 2)",
    ],
)
def test_a_rule_that_looks_at_whole_items_gets_them(rule: str) -> None:
    """What it reads cannot be told by their fields' names."""
    assert _fields_used(rule, "self") == {"items": None}


def test_a_rule_that_cannot_be_evaluated_does_not_hold() -> None:
    """An error in a rule refuses the object instead of letting it pass."""
    schema = {"x-kubernetes-validations": [{"rule": "self.missing > 1"}]}
    assert len(list(check_rules(schema, {"a": 1}))) == 1
