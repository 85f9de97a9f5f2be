"""Topology-aware scheduling: the manager waits until the worker has placed the pods, and is told when it has."""

from __future__ import annotations

import pytest

from multikueue.core.model.labels import ADMISSION_MANAGER
from multikueue.core.model.names import Json
from tests.core.building import WorkloadFacts, copy_of, job, job_copy_of, snapshot, worker, workload
from tests.core.door import ApplyStatus, decide, sole
from tests.core.wording import in_words

TOPOLOGY: Json = {"levels": ["rack"], "domains": [{"values": ["r1"], "count": 1}]}
AWAITED: list[Json] = [
    {"name": "main", "count": 1, "delayedTopologyRequest": "Pending"},
    {"name": "side", "count": 2, "flavors": {"cpu": "f"}},
]
PLACED: list[Json] = [{"name": "main", "count": 1, "topologyAssignment": TOPOLOGY}, {"name": "side", "count": 2}]
OFFERED: WorkloadFacts = {"nominated": ("w1",), "assignments": AWAITED}
ASSIGNED: WorkloadFacts = {"cluster": "w1", "check": "Ready", "assignments": AWAITED}


def test_ready_and_the_topology_are_one_write() -> None:
    """Kueue admits the Workload at once: Ready alone would leave it waiting for one more round."""
    local = workload(**OFFERED)
    seen = snapshot(local, worker("w1", copy_of(local, admitted=True, assignments=PLACED), job_copy_of(local)))
    decided = decide(seen)
    assert in_words(seen, decided) == ["admit on w1 as Ready", "tell", "count cq w1"]
    (write, *_) = decided.effects
    assert isinstance(write, ApplyStatus)
    ready = {"name": "main", "count": 1, "delayedTopologyRequest": "Ready"}
    assert write.object["status"]["admission"] == {"clusterQueue": "cq", "podSetAssignments": [ready, AWAITED[1]]}


def test_a_topology_that_comes_later_is_told_alone() -> None:
    """The worker may admit first and place the pods then; the check stays as it is."""
    local = workload(**ASSIGNED)
    copy = copy_of(local, admitted=True, assignments=PLACED)
    seen = snapshot(local, worker("w1", copy, job_copy_of(local)), job=job(suspended=False, status={"active": 1}))
    write = sole(ApplyStatus, decide(seen).effects)
    assert write.field_manager == ADMISSION_MANAGER
    assert write.object["status"]["admissionChecks"] == local["status"]["admissionChecks"]
    assert write.object["status"]["admission"]["podSetAssignments"][0]["delayedTopologyRequest"] == "Ready"


@pytest.mark.parametrize(
    ("here", "there"),
    [
        (AWAITED, AWAITED[1:]),
        (AWAITED, [{"name": "main", "count": 1}]),
        ([{"name": "main", "count": 1}], PLACED),
        ([{"name": "main", "count": 1, "delayedTopologyRequest": "Ready"}], PLACED),
    ],
    ids=["no such pod set", "not placed yet", "not awaited", "told before"],
)
def test_what_is_not_awaited_or_not_placed_costs_no_write(here: list[Json], there: list[Json]) -> None:
    """The built-in controller writes on every pass; a fleet that does not use topologies pays nothing here."""
    local = workload(cluster="w1", check="Ready", assignments=here)
    copy = copy_of(local, admitted=True, assignments=there)
    seen = snapshot(local, worker("w1", copy, job_copy_of(local)), job=job(suspended=False, status={"active": 1}))
    assert decide(seen).effects == ()
