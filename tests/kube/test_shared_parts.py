"""Equal parts of objects are kept once, and no object shows it."""

from __future__ import annotations

from typing import Any
from unittest import mock

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from multikueue.core.model.names import Json
from multikueue.kube.informers import shared_parts
from multikueue.kube.informers.shared_parts import DEPTH, SharedParts

LEAVES = st.none() | st.booleans() | st.integers(0, 2) | st.sampled_from(["", "a", "1"]) | st.just(1.0)
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
)
OBJECTS = st.lists(st.fixed_dictionaries({"spec": VALUES, "status": VALUES, "metadata": st.just({})}), max_size=6)


def workload(name: str, generation: int = 1, **requests: Any) -> Json:
    template = {"metadata": {"labels": {"job": name}}, "spec": {"containers": [{"resources": {"requests": requests}}]}}
    metadata = {"name": name, "generation": generation, "labels": {"team": "a"}}
    return {"metadata": metadata, "spec": {"podSets": [{"name": "main", "template": template}]}}


def pod(obj: Json) -> Json:
    pod_spec: Json = obj["spec"]["podSets"][0]["template"]["spec"]
    return pod_spec


def stored(parts: SharedParts, *objects: Json) -> tuple[Json, ...]:
    for obj in objects:
        parts.share(obj, None)
    return objects


def test_equal_parts_of_two_objects_are_one() -> None:
    first, second = stored(SharedParts(), workload("one", cpu="1"), workload("other", cpu="1"))

    assert pod(first) is pod(second)
    assert first["metadata"]["labels"] is second["metadata"]["labels"]
    assert first["spec"]["podSets"][0]["template"] is not second["spec"]["podSets"][0]["template"]


def test_where_the_whole_differs_its_parts_may_be_equal() -> None:
    first, second = workload("one", cpu="1"), workload("other", cpu="1")
    pod(second)["nodeName"] = "n1"
    stored(SharedParts(), first, second)

    assert pod(first) is not pod(second)
    assert pod(first)["containers"] is pod(second)["containers"]


@pytest.mark.parametrize(("first", "second"), [(1, True), (1, 1.0), (0, False), ("1", 1), (None, {})])
def test_what_is_written_differently_is_not_equal(first: Any, second: Any) -> None:
    stored_first, stored_second = stored(SharedParts(), workload("one", cpu=first), workload("other", cpu=second))

    assert pod(stored_first) is not pod(stored_second)
    assert pod(stored_second)["containers"][0]["resources"]["requests"]["cpu"] is second


@given(OBJECTS)
def test_no_object_shows_that_it_shares(objects: list[Json]) -> None:
    before = [orjson.dumps(obj) for obj in objects]

    for parts in (SharedParts(), SharedParts(kept_bytes=300)):
        stored(parts, *objects)
        assert [orjson.dumps(obj) for obj in objects] == before


def test_an_update_keeps_the_spec_of_the_version_before() -> None:
    parts = SharedParts()
    (before,) = stored(parts, workload("one", cpu="1"))
    after = workload("one", cpu="1")

    parts.share(after, before)

    assert after["spec"] is before["spec"]


@pytest.mark.parametrize("after", [workload("one", 2, cpu=True), workload("one", 0, cpu=1), workload("one", cpu=2)])
def test_an_update_with_another_spec_has_its_own(after: Json) -> None:
    parts = SharedParts()
    (before,) = stored(parts, workload("one", after["metadata"]["generation"] % 2, cpu=1))
    encoded = orjson.dumps(after)

    parts.share(after, before)

    assert after["spec"] is not before["spec"]
    assert orjson.dumps(after) == encoded


def test_another_object_of_the_same_name_has_a_spec_of_its_own() -> None:
    """Python takes true for 1, and both are of generation 1."""
    parts = SharedParts()
    (before,) = stored(parts, workload("one", cpu=1))
    after = workload("one", cpu=True)
    after["metadata"]["uid"] = "another"

    parts.share(after, before)

    assert after["spec"] is not before["spec"]


def test_what_is_known_has_a_bound() -> None:
    parts = SharedParts(kept_bytes=5_000)

    stored(parts, *(workload(f"job-{number}", cpu=str(number)) for number in range(1_000)))

    assert parts._bytes <= 5_000
    assert len(parts._parts) <= 25


def test_an_object_that_is_larger_than_the_bound_is_stored() -> None:
    (large,) = stored(SharedParts(kept_bytes=1_000), workload("one", cpu="1" * 2_000))

    assert pod(large)["containers"][0]["resources"]["requests"] == {"cpu": "1" * 2_000}


@pytest.mark.parametrize("depth", [DEPTH, 200, 900])
def test_parts_far_down_are_left_alone(depth: int) -> None:
    parts, (first, second) = SharedParts(), (nested(depth), nested(depth))

    stored(parts, first, second)
    parts.share(again := nested(depth), first)

    assert {level(obj, depth) for obj in (first, second, again)} == {depth}
    assert len(parts._parts) <= DEPTH + 2


def test_numbers_that_cannot_be_written_are_left_alone() -> None:
    first, second = stored(SharedParts(), workload("one", cpu=2**70), workload("other", cpu=2**70))

    assert pod(first) == pod(second)


def nested(depth: int) -> Json:
    value: Json = {}
    for _ in range(depth):
        value = {"in": value}
    return {"metadata": {"name": "deep", "generation": 1}, "spec": value}


def level(obj: Json, most: int) -> int:
    depth, value = 0, obj["spec"]
    while value and depth < most:
        depth, value = depth + 1, value["in"]
    return depth


def test_an_object_of_very_many_parts_costs_no_more_than_a_large_job(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever creates an object decides how many there are."""
    dumped: list[object] = []

    def dumps(value: object) -> bytes:
        dumped.append(value)
        return repr(value).encode()

    monkeypatch.setattr(shared_parts, "orjson", mock.Mock(dumps=dumps))
    SharedParts().share({"metadata": {"name": "a"}, "spec": {"lists": [[number] for number in range(50_000)]}}, None)
    assert len(dumped) == shared_parts.MAX_PARTS
