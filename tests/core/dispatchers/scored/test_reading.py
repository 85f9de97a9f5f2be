"""Kueue's objects as values."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from multikueue.core.dispatchers.dispatcher import Known
from multikueue.core.dispatchers.scored import kueue_objects
from multikueue.core.dispatchers.scored.facts import Group, PodSet, ResourceRequest, Running
from multikueue.core.dispatchers.scored.starts import Waited
from multikueue.core.model.conditions import timestamp
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.shape import queue_flaw, workload_flaw
from tests.core.building import condition, workload
from tests.core.door import NOW
from tests.core.odd_shapes import ODD, paths, spoiled

GPU = ("a100", "nvidia.com/gpu")


def cluster_queue(name: str = "team", **more: Any) -> Json:
    resource = {"name": "nvidia.com/gpu", "nominalQuota": 8, "borrowingLimit": "2", "lendingLimit": 0}
    used = {"name": "nvidia.com/gpu", "total": "3"}
    spec = {
        "cohortName": "all",
        "resourceGroups": [
            {"coveredResources": ["nvidia.com/gpu"], "flavors": [{"name": "a100", "resources": [resource]}]}
        ],
    }
    return {
        "metadata": {"name": name, "uid": "12345678-9", "generation": 4},
        "spec": {**spec, **more},
        "status": {
            "conditions": [condition("Active")],
            "pendingWorkloads": 3,
            "flavorsReservation": [{"name": "a100", "resources": [used]}],
        },
    }


def cohort() -> Json:
    quota = [{"name": "nvidia.com/gpu", "nominalQuota": "1"}]
    group = {"coveredResources": ["nvidia.com/gpu"], "flavors": [{"name": "a100", "resources": quota}]}
    return {"metadata": {"name": "all"}, "spec": {"resourceGroups": [group]}}


def test_a_queue_and_its_cohort() -> None:
    queue = cluster_queue()
    facts = kueue_objects.queue_facts(kueue_objects.tree([queue], [cohort()]), queue, NOW, ours_pending=1)

    assert facts.groups == (Group(frozenset({"nvidia.com/gpu"}), ("a100",)),)
    assert (facts.free[GPU], facts.ceiling[GPU], facts.nominal[GPU]) == (6_000, 9_000, 8_000)
    assert (facts.active, facts.known, facts.generation) == (True, Known.YES, "12345678.4")
    assert (facts.others_pending, facts.others_since) == (2, NOW)
    assert not facts.has_checks


def test_cohorts_that_may_not_be_read() -> None:
    queue = cluster_queue()

    assert kueue_objects.tree([queue], None).available("team")[GPU] == 5_000


def test_others_are_counted_from_when_they_were_first_seen() -> None:
    queue = cluster_queue()
    tree = kueue_objects.tree([queue], [])
    first = kueue_objects.queue_facts(tree, queue, NOW)
    later = kueue_objects.queue_facts(tree, queue, NOW + timedelta(minutes=3), before=first)
    none = kueue_objects.queue_facts(tree, queue, NOW, ours_pending=3, before=first)
    again = kueue_objects.queue_facts(tree, queue, NOW + timedelta(minutes=3), before=none)

    assert [facts.others_since for facts in (later, none, again)] == [NOW, None, NOW + timedelta(minutes=3)]


@pytest.mark.parametrize(
    ("status", "ours", "shared"),
    [
        ({"pendingWorkloads": 0, "reservingWorkloads": 1}, 1, False),
        ({"pendingWorkloads": 0, "reservingWorkloads": 2}, 1, True),
        ({"pendingWorkloads": 1, "reservingWorkloads": 1}, 1, True),
        ({"pendingWorkloads": 0, "reservingWorkloads": 0}, 1, False),
        ({}, 0, False),
    ],
)
def test_a_queue_is_shared_while_jobs_of_others_run_or_wait_there(
    status: dict[str, Any], ours: int, shared: bool
) -> None:
    queue = cluster_queue()
    queue["status"] = {**queue["status"], "pendingWorkloads": 0, **status}
    copies, tree = [workload()] * ours, kueue_objects.tree([queue], [])
    first = kueue_objects.queue_facts(tree, queue, NOW, ours=copies)
    later = NOW + timedelta(minutes=1)

    assert kueue_objects.queue_facts(tree, queue, later, ours=copies, before=first).is_shared(later) is shared


@pytest.mark.parametrize(
    ("changes", "kept"),
    [({}, True), ({"generation": "another.1"}, False), ({"free": {GPU: 1}}, False), ({"free": {GPU: 90_000}}, True)],
)
def test_what_nodes_had_no_place_for_is_known_until_something_ends_there(changes: dict[str, Any], kept: bool) -> None:
    queue, unplaced = cluster_queue(), {ResourceRequest().shape: NOW}
    tree = kueue_objects.tree([queue], [])
    before = attrs.evolve(kueue_objects.queue_facts(tree, queue, NOW), unplaced=unplaced, **changes)

    assert kueue_objects.queue_facts(tree, queue, NOW, before=before).unplaced == (unplaced if kept else {})


def test_a_queue_with_more_flavors_than_a_status_lists_is_raced() -> None:
    flavors = [{"name": f"f{number}", "resources": []} for number in range(65)]
    queue = cluster_queue(resourceGroups=[{"coveredResources": ["cpu"], "flavors": flavors}])

    assert kueue_objects.queue_facts(kueue_objects.tree([queue], []), queue, NOW).known is Known.TOO_MANY


def test_a_queue_with_checks_of_its_own() -> None:
    queue = cluster_queue(admissionChecksStrategy={"admissionChecks": [{"name": "provision"}]})

    assert kueue_objects.queue_facts(kueue_objects.tree([queue], []), queue, NOW).has_checks


def test_what_a_workload_needs_is_what_the_manager_has_counted_and_the_least_of_a_range() -> None:
    pod_sets = [{"name": "head", "count": 1}, {"name": "workers", "count": 4, "minCount": 2}]
    assigned = [
        {"name": "head", "count": 1, "resourceUsage": {"cpu": "500m"}},
        {"name": "workers", "count": 4, "resourceUsage": {"cpu": "8", "nvidia.com/gpu": "4"}},
    ]
    workload = {"spec": {"podSets": pod_sets}, "status": {"admission": {"podSetAssignments": assigned}}}

    assert kueue_objects.request(workload) == ResourceRequest(
        (
            PodSet({"cpu": 500, "pods": 1_000}, 1),
            PodSet({"cpu": 4_000, "nvidia.com/gpu": 2_000, "pods": 2_000}, 2),
        )
    )


def test_without_quota_nobody_knows_what_it_needs() -> None:
    assert kueue_objects.request({"spec": {"podSets": [{"name": "main"}]}}) is None


def ran(*conditions: Json, **facts: Any) -> Json:
    made = workload(cluster="w1", check="Ready", reserved_at=timestamp(NOW - timedelta(minutes=9)), **facts)
    (placed,) = made["status"]["admission"]["podSetAssignments"]
    made["status"]["admission"]["podSetAssignments"] = [{**placed, "count": 2, "resourceUsage": {"cpu": "3"}}]
    made["status"]["conditions"] += conditions
    return made


def test_copies_with_quota_count_together_by_their_priority() -> None:
    plain = workload(assignments=[ASSIGNED], reserved_at=timestamp(NOW))
    urgent = {**plain, "spec": {**plain["spec"], "priority": 3}}

    assert kueue_objects.running([plain, urgent, plain]) == (
        Running(0, {("a100", "gpu"): 4_000}),
        Running(3, {("a100", "gpu"): 2_000}),
    )


def test_who_waits_and_who_has_waited() -> None:
    reserved, started = NOW - timedelta(minutes=9), NOW - timedelta(minutes=7)
    admitted, finished = condition("Admitted", at=timestamp(started)), condition("Finished", at=timestamp(NOW))
    running = ran(admitted)
    began = Waited(ObjectKey.of(running), "cq", (("cpu", 3_000), ("pods", 2_000)), reserved, started)

    assert kueue_objects.waited(running) == kueue_objects.waited(ran(admitted, finished)) == began
    assert kueue_objects.waited(ran()) == attrs.evolve(began, started=None)
    assert kueue_objects.waited(ran(finished)) is None
    assert kueue_objects.waited({"spec": {"podSets": [{"name": "main"}]}}) is None


ASSIGNED = {"name": "main", "count": 2, "flavors": {"gpu": "a100"}, "resourceUsage": {"gpu": "2"}}
QUEUE = cluster_queue(
    preemption={"withinClusterQueue": "Never", "reclaimWithinCohort": "Any"},
    admissionChecksStrategy={"admissionChecks": [{"name": "own"}]},
)
COHORT: Json = {"metadata": {"name": "all"}, "spec": {**cohort()["spec"], "parentName": "top"}, "status": {}}


@given(st.data(), st.sampled_from([QUEUE, COHORT]), ODD)
def test_queues_of_any_shape_that_is_let_in_can_be_read(data: st.DataObject, obj: Json, odd: object) -> None:
    """What raised here ended the daemon, and a worker's server answers what it likes."""
    path = data.draw(
        st.sampled_from([path for path in paths(obj) if path not in (("metadata",), ("metadata", "name"))])
    )
    shown = spoiled(obj, path, odd)
    if not queue_flaw(shown):
        queue, above = (QUEUE, shown) if obj is COHORT else (shown, COHORT)
        kueue_objects.queue_facts(kueue_objects.tree([queue, cluster_queue("other")], [above]), queue, NOW)


@given(st.data(), ODD)
def test_workloads_of_any_shape_that_is_let_in_can_be_read(data: st.DataObject, odd: object) -> None:
    obj = workload(assignments=[ASSIGNED])
    shown = spoiled(obj, data.draw(st.sampled_from([path for path in paths(obj) if path != ("metadata",)])), odd)
    if not workload_flaw(shown):
        kueue_objects.usage(shown)
        kueue_objects.request(shown)
        kueue_objects.queued_at(shown)
        kueue_objects.running([shown])
