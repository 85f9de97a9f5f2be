"""Strategic merge patches: which lists merge, by which key, and in which order."""

from __future__ import annotations

from typing import Any

import pytest

from multikueue.core.model.names import Json
from multikueue.sandbox.apiserver.apply.strategic import strategic_patch
from multikueue.sandbox.apiserver.kinds.builtin_schemas import builtin_schema

POD = builtin_schema("", "v1", "Pod")


def named(*names: str) -> list[Json]:
    return [{"name": name} for name in names]


def patched(containers: list[Json], patch: list[Any], **more: Any) -> list[str]:
    spec = strategic_patch(POD, {"spec": {"containers": containers}}, {"spec": {"containers": patch, **more}})["spec"]
    return [item["name"] for item in spec["containers"]]


@pytest.mark.parametrize(
    ("before", "patch", "after"),
    [
        (["a"], ["b", "a"], ["b", "a"]),
        (["a", "b"], ["b"], ["a", "b"]),
        (["a", "b"], ["a"], ["a", "b"]),
        (["a", "b", "c"], ["c", "a"], ["b", "c", "a"]),
        (["a"], ["b"], ["b", "a"]),
    ],
)
def test_patched_items_keep_the_order_of_the_patch(before: list[str], patch: list[str], after: list[str]) -> None:
    """And the others stay in front of what they were in front of."""
    assert patched(named(*before), named(*patch)) == after


def test_items_are_merged_by_their_key() -> None:
    """So that a patch of one container's image needs only its name."""
    live = {"spec": {"containers": [{"name": "a", "image": "x", "command": ["c"]}]}}
    patched = strategic_patch(POD, live, {"spec": {"containers": [{"name": "a", "image": "y"}]}})
    assert patched["spec"]["containers"] == [{"name": "a", "image": "y", "command": ["c"]}]
    assert live["spec"]["containers"][0]["image"] == "x"


def test_directives() -> None:
    """Items are deleted, lists replaced and ordered by what the patch says."""
    assert patched(named("a", "b"), [{"$patch": "delete", "name": "a"}]) == ["b"]
    assert patched(named("a", "b"), [{"$patch": "replace"}, {"name": "c"}]) == ["c"]
    order = {"$setElementOrder/containers": named("b", "a")}
    assert patched(named("a", "b"), [], **order) == ["b", "a"]


def test_finalizers_are_a_set_and_plain_lists_are_replaced() -> None:
    """As the schema says, field by field."""
    live = {"metadata": {"finalizers": ["a"]}, "spec": {"tolerations": [{"key": "k"}]}}
    patch = {"metadata": {"finalizers": ["b"]}, "spec": {"tolerations": [{"key": "l"}]}}
    patched = strategic_patch(POD, live, patch)
    assert sorted(patched["metadata"]["finalizers"]) == ["a", "b"]
    assert patched["spec"]["tolerations"] == [{"key": "l"}]


def test_single_values_of_a_set_are_deleted() -> None:
    """The directive that kubectl sends for finalizers."""
    live = {"metadata": {"finalizers": ["a", "b"]}}
    patched = strategic_patch(POD, live, {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]}})
    assert patched["metadata"]["finalizers"] == ["b"]
