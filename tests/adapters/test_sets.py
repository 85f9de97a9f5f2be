"""StatefulSets and LeaderWorkerSets: jobs whose pods Kueue holds by gates, and whose Workloads it names by itself."""

from __future__ import annotations

import pytest

from multikueue.adapters import JobKind
from multikueue.adapters.sets import MAX_NAMES
from multikueue.core.model.names import Json
from multikueue.core.model.objects import with_value
from tests.adapters.kinds import NOW, STAMP, a_job, row

STATEFUL, LEADER = row("StatefulSet"), row("LeaderWorkerSet")


def lws(replicas: int | None, uid: str = "manager-uid-123") -> Json:
    """One called as in Kueue's own tests."""
    made = a_job(LEADER)
    made["metadata"] |= {"name": "lws1", "uid": uid}
    return made if replicas is None else with_value(made, ("spec", "replicas"), replicas)


def test_their_copies_note_whose_they_are_made_of() -> None:
    """The worker's Kueue derives the names of the Workloads from that UID."""
    for kind in (STATEFUL, LEADER):
        annotations = kind.copy(a_job(kind), STAMP)["metadata"]["annotations"]
        assert annotations["kueue.x-k8s.io/multikueue-origin-uid"] == "uid-1"


def test_the_copy_of_a_leader_worker_set_is_found_by_the_names_kueue_derives() -> None:
    """One per replica (a vector of Kueue's own code); it names none itself."""
    made = LEADER.copy(lws(2), STAMP)
    assert LEADER.carriers_of(made)[0] == "leaderworkerset-lws1-0-3d2bb"
    assert len(LEADER.carriers_of(made)) == 2
    assert "kueue.x-k8s.io/prebuilt-workload-name" not in made["metadata"]["labels"]
    assert STATEFUL.carriers_of(STATEFUL.copy(a_job(STATEFUL), STAMP)) == ("wl",)


def test_long_names_are_found_in_both_lengths() -> None:
    """Which of the two Kueue uses is a feature gate there."""
    made = LEADER.copy(with_value(lws(1), ("metadata", "name"), "l" * 60), STAMP)
    assert sorted(len(name) for name in LEADER.carriers_of(made)) == [63, len("leaderworkerset-") + 62 + 6]


def test_a_copy_that_does_not_say_where_it_comes_from_belongs_to_nobody() -> None:
    """Somebody changed it."""
    made = LEADER.copy(lws(2), STAMP)
    made["metadata"]["annotations"] = {}
    assert LEADER.carriers_of(made) == ()


def test_scaling_a_set_beyond_reason_stops_nobody_else() -> None:
    """All names of a million replicas take six seconds and a gigabyte, with each event."""
    made = with_value(LEADER.copy(a_job(LEADER), STAMP), ("spec", "replicas"), 1_000_000)
    assert len(LEADER.carriers_of(made)) <= 2 * MAX_NAMES
    assert LEADER.membership.workloads(made) == 1_000_000


@pytest.mark.parametrize(("replicas", "expected"), [(None, 2), (1, 1), (0, 0), (5, 5), (-1, 0), (10**9, 10**6)])
def test_it_has_as_many_workloads_as_replicas(replicas: int | None, expected: int) -> None:
    """Kueue looks after a million at most."""
    assert LEADER.membership.workloads(lws(replicas)) == expected


def test_one_that_does_not_say_how_many_has_one() -> None:
    """The API's default."""
    made = lws(None)
    del made["spec"]["replicas"]
    assert LEADER.membership.workloads(made) == 1


def test_the_copy_follows_the_number_of_replicas() -> None:
    """adapters.md H3: Kueue's controller makes Workloads for new replicas, and never the replicas."""
    remote = lws(2, uid="uid-of-copy")
    assert LEADER.forward_patch(lws(3), remote, STAMP) == {"metadata": {"uid": "uid-of-copy"}, "spec": {"replicas": 3}}
    assert LEADER.forward_patch(lws(2), remote, STAMP) is None


def test_a_stateful_set_is_made_once() -> None:
    """Kueue lets it be scaled to 0 and back only; then its Workload goes and comes, and the copy with it."""
    remote = with_value(a_job(STATEFUL), ("spec", "replicas"), 7)
    assert STATEFUL.forward_patch(a_job(STATEFUL), remote, STAMP) is None


@pytest.mark.parametrize("kind", [STATEFUL, LEADER], ids=lambda kind: kind.resource.gvk.kind)
def test_their_status_is_the_managers_own(kind: JobKind) -> None:
    """Its controllers count the gated pods, and would write over whatever we write there."""
    assert kind.status_patch(a_job(kind), a_job(kind, {"readyReplicas": 2}), NOW) is None
