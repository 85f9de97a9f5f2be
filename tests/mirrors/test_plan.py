"""What is done about one pod and its mirror: a row for each case."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import attrs
import pytest

from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import dig
from multikueued.mirrors.mirror import mirror_body, mirror_status
from multikueued.mirrors.plan import Create, Delete, PatchStatus, Refuse, Seen, plan
from multikueued.mirrors.tally import Held, Pace, Places
from tests.mirrors.objects import manager_job, run, shown, worker_pod

LOST = datetime(2026, 11, 28, 9, 0, tzinfo=UTC)
POD = shown()
ENDED = shown(worker_pod(phase="Succeeded"))
LIKE: Json = {**mirror_body(POD, run(), "multikueue"), "status": mirror_status(POD) | {"qosClass": "BestEffort"}}
LIKE["metadata"]["uid"] = "mirror-uid"
OTHER: Json = {"metadata": {"namespace": "team-a", "name": "train-0-abcde", "uid": "other"}}
GOING: Json = {**LIKE, "metadata": {**LIKE["metadata"], "deletionTimestamp": "2026-11-28T10:00:00Z"}}
WAITING: Json = {**GOING, "metadata": {**GOING["metadata"], "deletionGracePeriodSeconds": 600}}
HELD: Json = {**GOING, "metadata": {**GOING["metadata"], "deletionGracePeriodSeconds": 0, "finalizers": ["a.com/b"]}}
CASCADES: Json = {**HELD, "metadata": {**HELD["metadata"], "finalizers": ["foregroundDeletion"]}}
ORPHANS: Json = {**HELD, "metadata": {**HELD["metadata"], "finalizers": ["a.com/b", "orphan"]}}
DELETED = manager_job()
DELETED["metadata"]["deletionTimestamp"] = "2026-11-28T10:00:00Z"

NEW = Seen(POD, run(), current=True, mirror=None, job_gone=False, in_the_way=None)
OLD = attrs.evolve(NEW, mirror=LIKE)


def now(seen: Seen, **changes: Any) -> Seen:
    """The same with something else."""
    return attrs.evolve(seen, **changes)


@pytest.mark.parametrize(
    ("seen", "step"),
    [
        pytest.param(NEW, Create, id="a pod of the attempt that counts"),
        pytest.param(now(NEW, current=False), None, id="one of another attempt, or that only asks"),
        pytest.param(now(NEW, run=None), None, id="nobody's"),
        pytest.param(now(NEW, run=run(DELETED)), None, id="of a job that is being deleted"),
        pytest.param(now(NEW, held=True), None, id="refused, or removed by somebody, as it is"),
        pytest.param(now(NEW, room="too many"), Refuse, id="too many"),
        pytest.param(now(NEW, in_the_way=OTHER), Delete, id="a mirror of an earlier attempt has its name"),
        pytest.param(
            now(NEW, in_the_way=OTHER, current=False), None, id="which is not that of the attempt that counts"
        ),
        pytest.param(now(NEW, pod=None, unseen=True), None, id="a worker that cannot be seen"),
        pytest.param(OLD, None, id="as it should be"),
        pytest.param(now(OLD, proven=False), PatchStatus, id="without its proof"),
        pytest.param(now(OLD, pod=shown(worker_pod(message="m"))), PatchStatus, id="another status"),
        pytest.param(now(OLD, pod=shown(worker_pod(message="m")), held=True), None, id="a status that was refused"),
        pytest.param(now(OLD, mirror=GOING, pod=None), None, id="it goes, or somebody's finalizer holds it"),
        pytest.param(now(OLD, mirror=WAITING), Delete, id="somebody has deleted it with a grace"),
        pytest.param(now(OLD, mirror=WAITING, unseen=True), Delete, id="the same, of a worker that cannot be seen"),
        pytest.param(now(OLD, mirror=HELD), None, id="somebody's finalizer holds it"),
        pytest.param(now(OLD, mirror=CASCADES), Delete, id="it waits for what somebody has it own"),
        pytest.param(now(OLD, mirror=ORPHANS), Delete, id="or until these are orphans"),
        pytest.param(now(OLD, pod=None), Delete, id="the pod is gone"),
        pytest.param(now(OLD, job_gone=True), Delete, id="the job was deleted with orphan"),
        pytest.param(now(OLD, pod=ENDED), PatchStatus, id="it has ended, and its attempt counts: logs can be read"),
        pytest.param(now(OLD, pod=ENDED, current=False), Delete, id="it has ended, and its attempt is over"),
        pytest.param(now(OLD, current=False), None, id="it is being stopped"),
        pytest.param(now(OLD, run=None), None, id="its copy is gone, or cannot be seen"),
        pytest.param(now(OLD, run=None, pod=ENDED), PatchStatus, id="likewise, and it has ended"),
        pytest.param(now(OLD, pod=None, unseen=True), None, id="a worker that connects"),
        pytest.param(now(OLD, pod=None, unseen=True, lost_since=LOST), PatchStatus, id="a worker out of reach"),
    ],
)
def test_a_step(seen: Seen, step: type | None) -> None:
    planned = plan(seen, "multikueue")
    assert (None if planned is None else type(planned)) == step


def test_a_status_is_compared_with_the_live_one() -> None:
    wrong = {**LIKE, "status": {**LIKE["status"], "phase": "Failed", "reason": "NodeLost"}}
    step = plan(now(OLD, mirror=wrong), "multikueue")
    assert isinstance(step, PatchStatus)
    assert step.status == {"phase": "Running", "reason": None}


def test_what_was_told_of_a_lost_worker_is_taken_back() -> None:
    lost = plan(now(OLD, pod=None, unseen=True, lost_since=LOST), "multikueue")
    assert isinstance(lost, PatchStatus)
    away = {**LIKE, "status": {**LIKE["status"], **lost.status}}
    back = plan(now(OLD, mirror=away), "multikueue")
    assert isinstance(back, PatchStatus)
    assert [condition["type"] for condition in back.status["conditions"]] == ["Ready"]
    assert dig(back.status, "phase") is None


def test_places_are_counted_in_all_and_for_each_job() -> None:
    places = Places(most=3, most_of_job=2)
    for name in ("a", "b", "b"):
        places.add(ObjectKey("ns", name), "one")
    assert len(places) == 2
    assert "maxPodsPerJob: 2" in places.lack("one")
    assert places.lack("two") == ""
    places.add(ObjectKey("ns", "c"), "two")
    assert "maxPods: 3" in places.lack("two")
    places.remove(ObjectKey("ns", "a"))
    places.remove(ObjectKey("ns", "unknown"))
    assert places.lack("one") == ""


def test_what_is_held_is_so_until_the_status_changes() -> None:
    held = Held()
    held.hold("pod", "status")
    assert held.holds("pod", lambda: "status", 1e9)
    assert not held.holds("pod", lambda: "another", 0.0)
    assert not held.holds("other", lambda: "status", 0.0)
    held.hold("pod", "status", until=10.0)
    assert [held.holds("pod", lambda: "status", now) for now in (9.0, 10.0)] == [True, False]
    held.forget("pod")
    assert len(held) == 0


def test_turns_are_farther_apart_while_others_are_busy() -> None:
    pace = Pace(0.5)
    assert [pace.wait(10.0, 5), pace.wait(10.0), pace.wait(10.0)] == [0.0, 2.5, 3.0]


def test_turns_are_so_far_apart() -> None:
    pace = Pace(0.5)
    assert [pace.wait(10.0), pace.wait(10.0), pace.wait(10.2), pace.wait(20.0)] == [0.0, 0.5, 0.8000000000000007, 0.0]
