"""Fields that an older API server has dropped."""

from __future__ import annotations

from typing import Any

import pytest

from multikueue.core.model.dropped import dropped_fields, told_dropped, topology_of
from multikueue.core.model.names import GVK, Resource

JOBSETS = Resource(GVK("jobset.x-k8s.io", "v1alpha2", "JobSet"), "jobsets")


@pytest.mark.parametrize(
    ("sent", "stored", "missing"),
    [
        ({"a": 1}, {"a": 1, "defaulted": 2}, ()),
        ({"a": 1, "b": {"c": 2}}, {"a": 1}, (".spec.b",)),
        ({"b": {"c": 2, "d": 3}}, {"b": {"d": 3}}, (".spec.b.c",)),
        ({"a": 1}, {"a": 2}, ()),
        ({"a": 0, "b": False, "c": [], "d": {}, "e": None, "f": ""}, {}, ()),
        ({"list": [{"a": 1}, {"b": 2}]}, {"list": [{"a": 1}, {}]}, (".spec.list[1].b",)),
        ({"list": [{"a": 1}]}, {"list": [{}, {}]}, ()),
        ({"a": {"b": 1}}, {"a": "text"}, ()),
    ],
    ids=["kept", "a part", "inside", "changed", "empty", "in a list", "another list", "another type"],
)
def test_a_field_that_had_a_value_and_is_gone_was_dropped(
    sent: dict[str, Any], stored: dict[str, Any], missing: tuple[str, ...]
) -> None:
    """What the server fills in, changes, or leaves out because it is empty is its own business."""
    assert dropped_fields({"spec": sent}, {"spec": stored}) == missing


def test_nothing_is_said_of_objects_without_a_spec_or_of_their_metadata() -> None:
    assert dropped_fields({"metadata": {"labels": {"a": "b"}}}, {"metadata": {}}) == ()


def test_the_user_reads_what_is_missing_and_where_and_a_long_list_is_cut() -> None:
    sent = {"metadata": {"name": "j"}, "spec": {f"f{number}": 1 for number in range(7)}}
    told = told_dropped("w1", JOBSETS, sent, {"spec": {}})
    assert told == (
        'worker cluster "w1" has left .spec.f0, .spec.f1, .spec.f2, .spec.f3, .spec.f4 and 2 more out of JobSet "j", '
        "which runs there without: its API of JobSet is older than the manager's, or a webhook there removes them"
    )
    assert told_dropped("w1", JOBSETS, sent, sent) == ""


def test_of_a_workload_only_how_its_pods_are_placed_is_of_interest() -> None:
    """The rest of its templates a worker has from the job."""
    pod_set = {"name": "main", "template": {"spec": {"new": 1}}, "topologyRequest": {"required": "rack"}}
    sent = {"metadata": {"name": "w"}, "spec": {"preemptionGates": [{"name": "g"}], "podSets": [pod_set]}}
    stored = {"spec": {"podSets": [{"name": "main", "template": {}}]}}
    assert dropped_fields(topology_of(sent), stored) == (".spec.podSets[0].topologyRequest",)
    without = {**sent, "spec": {"podSets": [{"name": "main"}]}}
    assert dropped_fields(topology_of(without), stored) == ()
