"""A job that waits says so in the words of its kind's controller, which `managedBy` turns off on the manager.

Without them `kubectl get job` calls it Running for hours.
"""

from __future__ import annotations

import pytest

from multikueue.core.model.names import Json
from tests.core.building import SUSPENDED, condition, copy_of, job, job_copy_of, snapshot, worker, workload
from tests.core.door import MANAGER, PatchJobStatus, Plan, Snapshot, decide

OFFERED = workload(nominated=("w1",))
EVICTED = workload(quota=False, evictions=1)


def said(decided: Plan) -> list[Json]:
    """The conditions that a decision gives the manager's job, in its own time."""
    return [effect.patch["status"]["conditions"][0] for effect in decided.telling if isinstance(effect, PatchJobStatus)]


@pytest.mark.parametrize(
    ("seen", "row"),
    [
        (snapshot(workload(quota=False), worker("w1"), job=job()), "no quota: released"),
        (
            snapshot(EVICTED, worker("w1"), job=job(status={"conditions": [condition("Suspended", status=False)]})),
            "no quota: released",
        ),
        (snapshot(OFFERED, worker("w1", copy_of(OFFERED)), job=job()), "pending: offer"),
    ],
    ids=["no quota: released", "stopped", "offered"],
)
def test_it_says_that_it_is_suspended(seen: Snapshot, row: str) -> None:
    """Kueue puts our check on its Workload before that gets quota; the write may wait its turn."""
    decided = decide(seen)
    assert decided.row == row
    assert not [effect for effect in decided.effects if effect.cluster == MANAGER]
    (words,) = said(decided)
    assert (words["type"], words["status"], words["reason"]) == ("Suspended", "True", "JobSuspended")


@pytest.mark.parametrize(
    "seen",
    [
        snapshot(workload(quota=False), worker("w1"), job=job(status={"conditions": [SUSPENDED]})),
        snapshot(workload(quota=False), worker("w1"), job=job(suspended=False)),
        snapshot(workload(quota=False), worker("w1"), job=job(managed_by=None)),
        snapshot(workload(quota=False), worker("w1"), job=job(), check=None),
        snapshot(workload(), worker("w1"), job=job()),
    ],
    ids=["said", "not suspended", "run by its own controller", "not ours", "nominated in the same plan"],
)
def test_nothing_is_said(seen: Snapshot) -> None:
    """Of several writes on the manager one is sent at a time, and the status of other people's jobs is theirs."""
    assert said(decide(seen)) == []


def test_once_a_worker_has_it_the_words_go_with_what_its_copy_says() -> None:
    """Where none were said before: no write more than there ever was."""
    recorded = workload(cluster="w1")
    runs = worker("w1", copy_of(recorded, admitted=True), job_copy_of(recorded, suspended=False))
    decided = decide(snapshot(recorded, runs, job=job()))
    assert said(decided) == []
    again = decide(snapshot(workload(cluster="w1", check="Ready"), runs, job=job()))
    (write,) = [effect for effect in again.effects if isinstance(effect, PatchJobStatus)]
    assert write.patch["status"]["conditions"][0]["reason"] == "JobSuspended"
