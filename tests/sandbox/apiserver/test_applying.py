"""Server-side apply and field ownership."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multikueue.core.model.names import Json
from multikueue.sandbox.apiserver.apply.fieldsets import from_fields_v1, to_fields_v1
from multikueue.sandbox.apiserver.apply.managedfields import Write
from multikueue.sandbox.apiserver.apply.ownership import apply_config
from multikueue.sandbox.apiserver.apply.typed_values import fields_of
from multikueue.sandbox.apiserver.kinds.builtin_schemas import metadata_schema, reader
from multikueue.sandbox.apiserver.status_errors import StatusError

KEYED: Json = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["name"],
    "items": {"type": "object", "properties": {"name": {"type": "string"}, "state": {"type": "string"}}},
}
SCHEMA: Json = {
    "type": "object",
    "properties": {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": metadata_schema(),
        "spec": {
            "type": "object",
            "properties": {
                "a": {"type": "string"},
                "b": {"type": "string"},
                "checks": KEYED,
                "atoms": {"type": "array", "items": {"type": "string"}},
                "tags": {
                    "type": "array",
                    "x-kubernetes-list-type": "set",
                    "items": {"type": "string"},
                },
            },
        },
    },
}


SHAPE = reader().read(SCHEMA)
EMPTY: Json = {"apiVersion": "g/v1", "kind": "K"}


def config(**spec: Any) -> Json:
    return {"apiVersion": "g/v1", "kind": "K", "metadata": {"name": "x"}, "spec": spec}


def applied(live: Json | None, manager: str, *, force: bool = False, **spec: Any) -> Json:
    write = Write(manager, "g/v1", "", "2026-01-01T00:00:00Z")
    return apply_config(SHAPE, EMPTY, live or EMPTY, config(**spec), write, force=force)


def test_what_a_manager_no_longer_applies_goes() -> None:
    """Declarative removal: that is what apply is for."""
    live = applied(None, "m", a="1", b="2")
    assert applied(live, "m", a="1")["spec"] == {"a": "1"}


def test_what_another_manager_applies_too_stays() -> None:
    """A field is removed only with its last owner."""
    live = applied(applied(None, "m", a="1", b="2"), "n", b="2")
    assert applied(live, "m", a="1")["spec"] == {"a": "1", "b": "2"}


def test_another_value_for_a_foreign_field_is_a_conflict() -> None:
    """The message names the owner and the field, because a person has to decide."""
    live = applied(None, "m", a="1")
    with pytest.raises(StatusError) as caught:
        applied(live, "n", a="2")
    assert caught.value.code == 409
    assert 'conflict with "m": .spec.a' in caught.value.message


def test_the_same_value_is_shared() -> None:
    """Agreement is no conflict, and both own the field."""
    live = applied(applied(None, "m", a="1"), "n", a="1")
    assert sorted(line["manager"] for line in live["metadata"]["managedFields"]) == ["m", "n"]


def test_force_takes_over() -> None:
    """The former owner loses the field, so its next apply does not remove it."""
    live = applied(applied(None, "m", a="1", b="1"), "n", force=True, a="2")
    assert applied(live, "m", b="1")["spec"] == {"a": "2", "b": "1"}


def test_lists_with_keys_merge_item_by_item() -> None:
    """Two controllers keep their own entries of one list, as admission checks do."""
    live = applied(None, "m", checks=[{"name": "x", "state": "Ready"}])
    live = applied(live, "n", checks=[{"name": "y", "state": "Pending"}])
    live = applied(live, "m", checks=[])
    assert live["spec"]["checks"] == [{"name": "y", "state": "Pending"}]


def test_sets_are_joined_and_plain_lists_replaced() -> None:
    """As their list types say."""
    live = applied(applied(None, "m", tags=["x"], atoms=["p"]), "n", force=True, tags=["y"], atoms=["q"])
    assert live["spec"] == {"tags": ["x", "y"], "atoms": ["q"]}


def test_a_repeated_apply_changes_nothing() -> None:
    """So that it causes no write, and no watch event."""
    live = applied(None, "m", a="1", checks=[{"name": "x"}])
    assert applied(live, "m", a="1", checks=[{"name": "x"}]) == live


SPECS = st.fixed_dictionaries(
    {},
    optional={
        "a": st.sampled_from(["1", "2"]),
        "b": st.sampled_from(["1", "2"]),
        "tags": st.lists(st.sampled_from(["x", "y", "z"]), unique=True),
        "checks": st.lists(
            st.sampled_from([{"name": "x"}, {"name": "y", "state": "s"}]),
            unique_by=str,
        ),
    },
)


@given(SPECS, SPECS)
def test_a_lone_manager_gets_what_it_applies(first: Json, second: Json) -> None:
    """Whatever it applied before, only the last configuration counts (empty containers may disappear)."""
    live = applied(applied(None, "m", **first), "m", **second)
    wanted = {key: value for key, value in second.items() if value}
    spec = {key: value for key, value in (live.get("spec") or {}).items() if value}
    for key in ("tags", "checks"):
        for side in (wanted, spec):
            if key in side:
                side[key] = sorted(side[key], key=str)
    assert spec == wanted


@given(SPECS)
def test_fields_v1_reads_back_as_written(spec: Json) -> None:
    """Ownership survives being stored."""
    paths = fields_of(SHAPE, {"spec": spec})
    assert from_fields_v1(to_fields_v1(paths)) == paths
