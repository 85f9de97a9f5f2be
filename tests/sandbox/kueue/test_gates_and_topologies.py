"""Preemption gates and delayed topologies, as the small Kueue handles them; the trace is that of a real one."""

from __future__ import annotations

from datetime import UTC, datetime

import attrs

from multikueue.core.model.conditions import condition, is_true
from multikueue.core.model.labels import CONTROLLER_NAME
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import dig
from multikueue.sandbox.kueue.gates import BLOCKED, blocked, is_gated, unblocked, with_gates
from multikueue.sandbox.kueue.scheduling.cycle import Candidate, Holder, Pass, Rules, schedule
from multikueue.sandbox.kueue.scheduling.podsets import PodSetRequest
from multikueue.sandbox.kueue.scheduling.quota import Quota
from multikueue.sandbox.kueue.scheduling.topologies import is_awaited, is_delayed_by, located
from multikueue.sandbox.kueue.statuses import reserved, synced_admitted
from tests.sandbox.kueue.objects import cluster_queue

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SINCE = "2026-01-01T00:00:00Z"
GATED: Json = {"spec": {"preemptionGates": [{"name": "g"}]}}
ASKING: Json = {"spec": {"podSets": [{"name": "main", "count": 2, "topologyRequest": {"required": "rack"}}]}}
ASSIGNED: list[Json] = [{"name": "main", "count": 2}]
WANTS = Candidate(ObjectKey("default", "wants"), 1, SINCE, (PodSetRequest("main", 1, (("cpu", 1000), ("pods", 1000))),))


def one_pass(*candidates: Candidate) -> Pass:
    """One CPU, which somebody of lower priority has."""
    holder = Holder(ObjectKey("default", "has"), 0, SINCE, {("default", "cpu"): 1000})
    return schedule(Quota.of(cluster_queue(cpu="1")), Rules(preemption="LowerPriority"), candidates, [holder])


def test_a_gated_workload_takes_nobodys_place_and_is_said_to_be_blocked() -> None:
    shut = attrs.evolve(WANTS, gated=True)
    other = attrs.evolve(shut, key=ObjectKey("default", "wants-too"))
    result = one_pass(shut, other)
    assert (result.preempted, result.blocked) == ((), (shut, other))
    ((winner, _),) = one_pass(WANTS).preempted
    assert winner == WANTS


def test_a_gate_is_closed_until_it_is_opened() -> None:
    """Kueue keeps a position for each gate of the spec, and for no other."""
    known = with_gates(GATED, NOW)
    assert dig(known, "status", "preemptionGates")[0]["position"] == "Closed"
    assert is_gated(known)
    assert with_gates(known, NOW) is known
    known["status"]["preemptionGates"][0]["position"] = "Open"
    assert not is_gated(known)
    assert with_gates({**known, "spec": {}}, NOW)["status"]["preemptionGates"] == []


def test_blocked_is_told_once_and_is_over_with_the_quota() -> None:
    gated = blocked(GATED, NOW)
    assert (condition(gated, BLOCKED) or {})["reason"] == "PreemptionGated"
    assert blocked(gated, NOW) is gated
    assert not is_true(unblocked(gated, NOW), BLOCKED)
    assert unblocked(GATED, NOW) is GATED


def test_the_manager_delays_a_topology_and_admits_when_it_is_ready() -> None:
    pod_sets = located(ASKING, ASSIGNED, delayed=True)
    assert pod_sets == [{"name": "main", "count": 2, "delayedTopologyRequest": "Pending"}]
    waiting = reserved(ASKING, "cq", pod_sets, NOW)
    assert is_awaited(waiting)
    assert not is_true(waiting, "Admitted")
    waiting["status"]["admission"]["podSetAssignments"][0]["delayedTopologyRequest"] = "Ready"
    assert is_true(synced_admitted(waiting, NOW), "Admitted")


def test_a_worker_places_the_pods_with_their_quota() -> None:
    (placed,) = located(ASKING, ASSIGNED, delayed=False)
    assert placed["topologyAssignment"]["slices"][0]["podCounts"] == {"universal": 2}
    assert is_true(reserved(ASKING, "cq", [placed], NOW), "Admitted")
    assert located({"spec": {"podSets": [{"name": "main"}]}}, ASSIGNED, delayed=True) == ASSIGNED


def test_only_the_check_of_multikueue_delays() -> None:
    assert is_delayed_by([None, {"spec": {"controllerName": CONTROLLER_NAME}}])
    assert not is_delayed_by([None, {"spec": {"controllerName": "example.com/other"}}])
