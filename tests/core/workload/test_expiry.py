"""A job of the manager that says when it goes after its end: it is deleted, where we are asked to heed that."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import attrs
import pytest

from multikueue.adapters import SafeAdapter
from multikueue.adapters.rules import CopyRules, TimeToLive
from multikueue.core.model.conditions import timestamp
from multikueue.core.model.names import Json
from multikueue.core.model.objects import with_value
from tests.core.building import ADAPTER, JOB_NAME, copy_of, job, job_copy_of, snapshot, worker, workload
from tests.core.door import MANAGER, NOW, SETTINGS, DeleteJob, Lost, Syncing, Worker, decide, those
from tests.core.wording import in_words

TTL = ("spec", "ttlSecondsAfterFinished")
HEEDING = SafeAdapter(
    attrs.evolve(
        ADAPTER,
        copies=CopyRules(time_to_live=TimeToLive(seconds=TTL, completed=("status", "completionTime"))),
        deletes_expired=True,
    )
)
LOCAL = workload(cluster="w1", check="Ready")
MINUTE = timedelta(minutes=1)


def ended(*, ago: timedelta = MINUTE, seconds: int | None = 30, **metadata: Any) -> Json:
    """A job that ended so long ago, and stays for so many seconds."""
    conditions = [{"type": kind, "status": "True"} for kind in ("SuccessCriteriaMet", "Complete")]
    status = {"succeeded": 1, "completionTime": timestamp(NOW - ago), "conditions": conditions}
    made = job(suspended=False, status=status)
    made["metadata"] |= metadata
    return made if seconds is None else with_value(made, TTL, seconds)


def finished(ago: timedelta = MINUTE) -> Json:
    """Its Workload, by the manager's clock."""
    made = workload(finished="Succeeded", cluster="w1", check="Ready")
    made["status"]["conditions"][-1]["lastTransitionTime"] = timestamp(NOW - ago)
    return made


def decided(*workers: Worker, of: Json | None = None, shown: Json | None = None, **facts: Any) -> list[str]:
    """What is done, and in how many seconds it is looked at again."""
    seen = snapshot(of or finished(), *workers, job=shown or ended(), adapter=facts.pop("adapter", HEEDING), **facts)
    decided = decide(seen)
    return [*in_words(seen, decided), *([f"again in {decided.look_again:.0f} s"] if decided.look_again else [])]


GONE = ["delete job on "]
"""On the manager, whose name is empty."""


def test_it_is_deleted_when_its_time_is_over_and_no_version_but_the_one_that_was_seen() -> None:
    """Whoever has made it anew, or changed its mind on the time, keeps it."""
    plan = decide(snapshot(finished(), worker("w1"), job=ended(), adapter=HEEDING))
    (deletion,) = those(DeleteJob, plan.effects)
    assert (deletion.cluster, deletion.key.name, deletion.propagation) == (MANAGER, JOB_NAME, "Background")
    assert (deletion.uid, deletion.version) == ("uid-of-job", "rv-uid-of-job")
    assert deletion.note == "Its job is deleted: its time to live is over"
    assert plan.effects == (deletion,), "it is told once it is done"


@pytest.mark.parametrize(
    ("here", "there", "expected"),
    [
        (timedelta(seconds=20), MINUTE, ["again in 10 s"]),
        (MINUTE, timedelta(seconds=20), ["again in 10 s"]),
        (MINUTE, -MINUTE, ["again in 90 s"]),
        (timedelta(seconds=30), timedelta(seconds=30), GONE),
        (timedelta(seconds=30), timedelta(days=9), GONE),
    ],
    ids=["seen late", "ended late", "the worker's clock is ahead", "on time", "the worker's clock is behind"],
)
def test_the_later_of_its_end_there_and_its_workloads_here_counts(
    here: timedelta, there: timedelta, expected: list[str]
) -> None:
    """What the job shows is its worker's time: rather too late than too early."""
    assert decided(worker("w1"), of=finished(here), shown=ended(ago=there)) == expected


def test_its_copies_go_first_and_stay_as_long_as_is_promised() -> None:
    copies = copy_of(LOCAL, admitted=True, finished="Succeeded"), job_copy_of(LOCAL, status=ended()["status"])
    assert decided(worker("w1", *copies)) == ["delete job on w1", "delete workload on w1", "again in 120 s"]
    seen = snapshot(finished(), worker("w1", *copies), job=ended(), adapter=HEEDING)
    kept = decide(seen, settings=attrs.evolve(SETTINGS, finished_retention=timedelta(hours=1)))
    assert (in_words(seen, kept), kept.look_again) == ([], 120.0)


def test_so_do_those_that_others_were_offered() -> None:
    assert decided(worker("w1"), worker("w2", copy_of(LOCAL))) == ["delete workload on w2", "again in 120 s"]


@pytest.mark.parametrize(
    "there",
    [{"reach": Lost(NOW)}, {"reach": Lost(NOW, seen=False)}, {"kind": Syncing()}],
    ids=["lost", "never seen", "its jobs are not read yet"],
)
def test_nothing_is_deleted_while_its_worker_is_out_of_sight(there: dict[str, Any]) -> None:
    """Its last status may be to come, and what is kept there may be kept still."""
    assert decided(worker("w1", **there)) == ["again in 120 s"], "no event of a finished Workload tells when it is back"


@pytest.mark.parametrize(("hours", "again"), [(1, "again in 892 s"), (24, "again in 21592 s")])
def test_the_longer_its_worker_is_out_of_sight_the_more_rarely_it_is_planned(hours: int, again: str) -> None:
    """Any number of jobs may wait for one worker's return."""
    ago = timedelta(hours=hours)
    assert decided(worker("w1", reach=Lost(NOW)), of=finished(ago), shown=ended(ago=ago)) == [again]


def test_a_worker_that_is_gone_or_was_none_of_its_holds_up_nothing() -> None:
    assert decided(worker("w2", reach=Lost(NOW))) == GONE


@pytest.mark.parametrize(
    "shown",
    [
        ended(seconds=None),
        ended(ownerReferences=[{"apiVersion": "v1", "kind": "Pipeline", "name": "p", "uid": "u", "controller": True}]),
        ended(ownerReferences=[{"apiVersion": "v1", "kind": "Pipeline", "name": "p", "uid": "u"}]),
        ended(deletionTimestamp=timestamp(NOW), finalizers=["example.com/slow"]),
        with_value(ended(), ("spec", "managedBy"), "kubernetes.io/job-controller"),
        with_value(ended(), ("status", "conditions"), []),
        with_value(ended(), ("status", "completionTime"), None),
        with_value(ended(), TTL, "soon"),
    ],
    ids=["no time", "controlled", "owned", "goes", "not delegated", "no end", "no time of its end", "no number"],
)
def test_what_is_not_ours_to_delete_stays(shown: Json) -> None:
    assert "delete job on " not in decided(worker("w1"), shown=shown)


def test_a_workload_that_has_not_finished_keeps_its_job() -> None:
    assert "delete job on " not in decided(worker("w1"), of=LOCAL)


def test_nobody_deletes_a_job_unless_that_is_set() -> None:
    """Nor by a time that the kind's own controller deletes something else by."""
    off = attrs.evolve(HEEDING.row, deletes_expired=False)
    of_parts = attrs.evolve(HEEDING.row, copies=CopyRules(time_to_live=TimeToLive(seconds=TTL)))
    assert [decided(worker("w1"), adapter=row) for row in (off, of_parts)] == [[], []]
