"""What is kept of large objects."""

from __future__ import annotations

import weakref
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from multikueue.core.model.copies import spec_digests
from multikueue.core.model.names import Json
from multikueue.core.model.slimmed import (
    LARGE,
    LEFT,
    Slimmer,
    is_slimmed,
    job_slimmer,
    size_noted,
    small_part,
    workload_slimmer,
)
from tests.core.building import workload

ANY = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=400),
    lambda inner: st.lists(inner, max_size=40) | st.dictionaries(st.text(max_size=20), inner, max_size=40),
    max_leaves=200,
)


@given(ANY)
def test_what_is_left_is_small_and_of_the_same_type(value: Any) -> None:
    left = small_part(value)
    assert type(left) is type(value)
    assert len(orjson.dumps(left)) <= 3 * LEFT
    if len(orjson.dumps(value)) <= LEFT and isinstance(value, dict):
        assert left == value


def large(**metadata: Any) -> Json:
    made = workload()
    container = {"name": "c", "resources": {"requests": {"cpu": "2"}}, "env": [{"name": "A", "value": "x" * LARGE}]}
    made["spec"]["podSets"] = [{"name": "main", "count": 3, "template": {"spec": {"containers": [container]}}}]
    made["metadata"] |= metadata
    return made


def test_what_decisions_read_of_a_large_workload_stays() -> None:
    whole = large()
    slim = workload_slimmer()(whole, 2 * LARGE)
    assert is_slimmed(slim)
    assert size_noted(slim) == 2 * LARGE
    assert spec_digests(slim) == spec_digests(whole)
    (pod_set,) = slim["spec"]["podSets"]
    assert (pod_set["name"], pod_set["count"]) == ("main", 3)
    assert pod_set["template"]["spec"]["containers"][0]["resources"] == {"requests": {"cpu": "2"}}
    assert slim["status"] == whole["status"]
    assert len(orjson.dumps(slim)) < LARGE


def test_a_small_one_stays_as_it_is() -> None:
    made = workload()
    assert workload_slimmer()(made, LARGE) is made


def test_a_change_of_the_status_takes_the_spec_that_was_left_before() -> None:
    slimmer = workload_slimmer()
    first, second = (slimmer(large(uid="u", generation=1), 2 * LARGE) for _ in range(2))
    third = slimmer(large(uid="u", generation=2), 2 * LARGE)
    assert second["spec"] is first["spec"]
    assert third["spec"] is not first["spec"]


class Spec(dict[str, Any]):
    """A spec that can be seen to go."""


@pytest.mark.parametrize("slimmer", [workload_slimmer(), job_slimmer()])
def test_nothing_keeps_the_spec_of_what_was_slimmed(slimmer: Slimmer) -> None:
    """A cache of digests by object kept the specs of a thousand Workloads, of 1.2 MB each."""
    whole = large()
    whole["spec"] = spec = Spec(whole["spec"])
    seen = weakref.ref(spec)
    slim = slimmer(whole, 2 * LARGE)
    del whole, spec
    assert is_slimmed(slim)
    assert seen() is None


def test_annotations_that_decisions_read_stay() -> None:
    names = {"multikueue.dev/a": "x" * 999, "kueue.x-k8s.io/b": "y" * 999, "example.com/c": "z" * 999, "d": "short"}
    slim = job_slimmer()(large(annotations=names), 2 * LARGE)
    assert set(slim["metadata"]["annotations"]) == {"multikueue.dev/a", "kueue.x-k8s.io/b", "d"}
