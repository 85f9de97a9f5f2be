"""What an earlier Kueue on a worker lacks.

Fields that an older API server has dropped.
"""

from __future__ import annotations

from typing import Any

import pytest

from multikueue.core.model.names import GVK, Resource
from multikueue.core.model.worker_kueue import (
    CONSTRAINTS,
    GATES,
    Version,
    WorkerKueue,
    dropped_fields,
    told_dropped,
    topology_of,
    version_of,
)


@pytest.mark.parametrize(
    ("image", "version"),
    [
        ("registry.k8s.io/kueue/kueue:v0.17.3", (0, 17)),
        ("us-central1-docker.pkg.dev/k8s-staging-images/kueue/kueue:v0.20.0-devel-377-gff69552e79", (0, 20)),
        ("mirror.example.com:5000/kueue:0.15.0@sha256:abc", (0, 15)),
        ("mirror.example.com:5000/kueue:main", None),
        ("registry.k8s.io/kueue/kueue@sha256:0.15", None),
        ("", None),
        ("kueue:v99999999999999999999.1", None),
    ],
)
def test_the_version_is_that_of_the_image(image: str, version: Version | None) -> None:
    assert version_of(image) == version


def test_what_is_not_known_is_no_fault() -> None:
    assert WorkerKueue().lacks == ()
    assert WorkerKueue((0, 18), read=True).lacks == ()


def test_what_an_older_one_lacks_is_said_with_what_follows() -> None:
    """A version without gates is older than those that read names from annotations."""
    gates, constraints, names = WorkerKueue(None, frozenset({GATES, CONSTRAINTS}), read=True).lacks
    assert (gates.split()[0], constraints.split()[0], names.split()[0]) == (GATES, CONSTRAINTS, "names")
    assert WorkerKueue((0, 17), read=True).lacks == (names,)


def test_a_field_that_an_answer_lacks_is_missing() -> None:
    """Others are of no consequence here."""
    dropped = (".spec.preemptionGates", ".spec.podSets[3].topologyRequest.podsetSliceRequiredTopologyConstraints")
    assert WorkerKueue().without((*dropped, ".spec.podSets[0].minCount")).missing == {GATES, CONSTRAINTS}


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
    text = told_dropped("w1", JOBSETS, sent, {"spec": {}})
    assert text == (
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
