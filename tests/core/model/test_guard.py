"""Rules of a job kind that fail for one job: it is told, nothing is written on their word, and the rest goes on."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import attrs
import pytest

from multikueue.adapters import JobKind
from multikueue.core.model.adapter import JobAdapter, Stamp
from multikueue.core.model.guard import Guard
from multikueue.core.model.names import Json
from multikueue.core.workload.effects import Announce
from multikueue.core.workload.ending import KUEUE_GRACE
from multikueue.core.workload.snapshot import Snapshot
from multikueue.errors import RuleError
from tests.core.building import ADAPTER, NOW, copy_of, decide, job, job_copy_of, snapshot, worker, workload
from tests.core.wording import in_words

WHY = "externalFrameworks[0].finished: object.status.count: a number is not true or false"
WARNING = Announce("Warning", WHY)
ASSIGNED = workload(cluster="w1", check="Ready")


def _fail(*given: object) -> Any:
    del given
    raise RuleError(WHY)


def _status(local: Json, remote: Json, now: datetime) -> Json | None:
    raise RuleError(WHY)


def _copy(local: Json, made: Json, stamp: Stamp) -> Json:
    raise RuleError(WHY)


BROKEN: JobKind = attrs.evolve(
    ADAPTER, finished=_fail, status=_status, followed=_fail, stopped=_fail, prepared=_copy, workloads=_fail
)


def running(adapter: JobAdapter) -> Snapshot:
    """w1 runs the job; a copy was left on w2."""
    w1 = worker("w1", copy_of(ASSIGNED, admitted=True), job_copy_of(ASSIGNED))
    w2 = worker("w2", copy_of(ASSIGNED))
    return snapshot(ASSIGNED, w1, w2, job=job(suspended=False), adapter=adapter)


def test_what_fails_is_told_and_the_rest_is_done() -> None:
    """The status waits for a rule that works; the copy on the other worker does not."""
    seen = running(BROKEN)
    decided = decide(seen)

    assert decided.problems == (WHY,)
    assert in_words(seen, decided) == ["delete workload on w2", "warn"]
    assert decided.effects[-1] == WARNING


def test_a_kind_whose_rules_work_has_no_problems() -> None:
    assert decide(running(ADAPTER)).problems == ()


def test_a_job_whose_end_cannot_be_told_ends_with_its_workload() -> None:
    """The worker's Kueue knows the end; a rule that fails must not keep the manager's quota for ever."""
    finished = worker("w1", copy_of(ASSIGNED, admitted=True, finished="Succeeded"), job_copy_of(ASSIGNED))
    seen = attrs.evolve(running(BROKEN), workers=(finished,), quiet_for=KUEUE_GRACE)

    assert in_words(seen, decide(seen)) == ["finish Succeeded", "warn"]


def test_copies_are_removed_whatever_the_rules_say() -> None:
    gone = attrs.evolve(running(BROKEN), workload=None)
    assert in_words(gone, decide(gone)) == ["delete job on w1", "delete workload on w1", "delete workload on w2"]


def test_a_job_that_cannot_be_copied_is_rejected() -> None:
    """It can never run on a worker: its user is told why, and its quota goes to others."""
    local = workload(nominated=("w1",))
    seen = snapshot(local, worker("w1", copy_of(local, admitted=True)), adapter=BROKEN)

    assert in_words(seen, decide(seen)) == [f"rejected: The job cannot be copied: {WHY}", "delete workload on w1"]


def test_the_same_failure_is_told_once_in_a_decision() -> None:
    guard = Guard(BROKEN)
    assert guard.outcome(job()) is None
    assert guard.release_patch(job()) is None
    assert guard.expected_workloads(job()) == 1
    assert list(guard.problems) == [WHY]


def test_only_a_copy_cannot_be_done_without() -> None:
    with pytest.raises(RuleError, match="externalFrameworks"):
        Guard(BROKEN).copy(job(), Stamp("o", "w", "a"))


def _surprise(*given: object) -> Any:
    raise KeyError("s3cret")


@pytest.mark.parametrize(
    ("field", "told"),
    [("finished", "finished"), ("status", "status"), ("followed", "followed or resized"), ("stopped", "finished or")],
)
def test_whatever_else_a_rule_raises_is_told_by_its_type_alone(field: str, told: str) -> None:
    """The text of another package's error may hold what is in the object."""
    changed: dict[str, Any] = {field: _surprise}
    guard = Guard(attrs.evolve(ADAPTER, source="widgets", **changed))
    guard.outcome(job())
    guard.status_patch(job(), job(), NOW)
    guard.forward_patch(job(), job(), Stamp("o", "w", "a"))
    guard.release_patch(job())

    assert any(f"jobs.batch, from widgets: {told}" in problem for problem in guard.problems)
    assert all('raises KeyError for "team/train"' in problem for problem in guard.problems)
    assert "s3cret" not in str(guard.problems)


def test_a_copy_that_fails_in_whatever_way_rejects_the_job() -> None:
    local = workload(nominated=("w1",))
    broken = attrs.evolve(ADAPTER, sanitised=_surprise)
    seen = snapshot(local, worker("w1", copy_of(local, admitted=True)), adapter=broken)

    words = in_words(seen, decide(seen))
    assert words[0].startswith(
        "rejected: The job cannot be copied: the row for jobs.batch: sanitised or prepared raises"
    )


class Undelegated(JobKind):
    """A row that cannot tell who runs a job."""

    def not_delegated(self, job: Json, controller_name: str) -> str | None:
        raise KeyError("s3cret")


UNDELEGATED = Undelegated(**{field.name: getattr(ADAPTER, field.name) for field in attrs.fields(JobKind)})


def test_a_job_of_which_nobody_can_tell_who_runs_it_waits() -> None:
    """A copy could make it run twice, and a verdict end it."""
    local = workload(nominated=("w1",))
    decided = decide(snapshot(local, worker("w1", copy_of(local, admitted=True)), adapter=UNDELEGATED))

    assert decided.row == "delegation unknown"
    assert decided.effects == tuple(Announce("Warning", problem) for problem in decided.problems)
    assert len(decided.problems) == 1


def test_one_that_has_a_worker_is_followed_all_the_same() -> None:
    """It was told when the worker was chosen; a package that is replaced ends no job that runs."""
    seen = running(UNDELEGATED)
    decided = decide(seen)
    assert decided.row == "assigned"
    assert "delete job on w1" not in in_words(seen, decided)


def test_one_that_lost_its_quota_is_cleaned_up_all_the_same() -> None:
    local = workload(quota=False)
    seen = snapshot(local, worker("w1", copy_of(local)), adapter=UNDELEGATED)
    assert "delete workload on w1" in in_words(seen, decide(seen))
