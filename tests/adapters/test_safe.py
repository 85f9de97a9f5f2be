"""Rules that fail for one job: it is told, nothing is written on their word, and the rest goes on."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import attrs
import pytest

from multikueue.adapters import CopyRules, JobKind, Membership, SafeAdapter, StatusRules, SyncRules
from multikueue.adapters.safe import MAX_NOTED, Problems
from multikueue.core.model.adapter import Stamp
from multikueue.core.model.names import Json, ObjectKey
from multikueue.errors import RuleError
from tests.core.building import ADAPTER, copy_of, job, job_copy_of, snapshot, worker, workload
from tests.core.door import FINISHING, NOW, AnnounceWorkload, Snapshot, decide, those
from tests.core.wording import in_words

WHY = "externalFrameworks[0].finished: object.status.count: a number is not true or false"
WARNING = AnnounceWorkload("Warning", WHY, on_job=True)
ASSIGNED = workload(cluster="w1", check="Ready")


def _fail(*given: object) -> Any:
    del given
    raise RuleError(WHY)


def _status(local: Json, remote: Json, now: datetime) -> Json | None:
    raise RuleError(WHY)


def _copy(local: Json, made: Json, stamp: Stamp) -> Json:
    raise RuleError(WHY)


BROKEN: JobKind = attrs.evolve(
    ADAPTER,
    copies=CopyRules(prepared=_copy),
    status=StatusRules(rule=_status, finished=_fail, stopped=_fail),
    sync=SyncRules(followed=_fail),
    membership=Membership(workloads=_fail),
)


def running(adapter: JobKind) -> Snapshot:
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
    """The worker's Kueue knows the end. Another version of the job would tell no more: it is not waited for."""
    finished = worker("w1", copy_of(ASSIGNED, admitted=True, finished="Succeeded"), job_copy_of(ASSIGNED))
    seen = attrs.evolve(running(BROKEN), workers=(finished,), quiet_for=FINISHING)

    assert in_words(seen, decide(seen)) == ["finish Succeeded", "warn"]


def test_copies_are_removed_whatever_the_rules_say() -> None:
    gone = attrs.evolve(running(BROKEN), workload=None)
    removed = ["stop on w1", "delete job on w1 unless it is stopped", "delete workload on w2"]
    assert in_words(gone, decide(gone)) == removed


def test_a_job_that_cannot_be_copied_is_rejected() -> None:
    """It can never run on a worker: its user is told why, and its quota goes to others."""
    local = workload(nominated=("w1",))
    seen = snapshot(local, worker("w1", copy_of(local, admitted=True)), adapter=BROKEN)

    told = [f"rejected: The job cannot be copied: {WHY}", "delete workload on w1", "warn"]
    assert in_words(seen, decide(seen)) == told


def test_the_same_failure_is_told_once_and_logged_once() -> None:
    safe = SafeAdapter(BROKEN)
    assert safe.outcome(job()) is None
    assert safe.release_patch(job()) is None
    assert safe.expected_workloads(job()) == 1
    assert safe.problems_of(job()) == (WHY,)
    assert safe.problems.unlogged() == [(ObjectKey.of(job()), WHY)]
    assert safe.problems.unlogged() == []


def test_only_a_copy_cannot_be_done_without() -> None:
    with pytest.raises(RuleError, match="externalFrameworks"):
        SafeAdapter(BROKEN).copy(job(), Stamp("o", "w", "a"))


def _surprise(*given: object) -> Any:
    raise KeyError("s3cret")


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"status": StatusRules(finished=_surprise)}, "finished"),
        ({"status": StatusRules(rule=_surprise)}, "status"),
        ({"sync": SyncRules(followed=_surprise)}, "followed or resized"),
        ({"status": StatusRules(stopped=_surprise)}, "finished, active or stopped"),
    ],
    ids=["finished", "status", "followed", "stopped"],
)
def test_whatever_else_a_rule_raises_is_told_by_its_type_alone(changed: dict[str, Any], words: str) -> None:
    """The text of another package's error may hold what is in the object."""
    safe = SafeAdapter(attrs.evolve(ADAPTER, source="widgets", **changed))
    safe.outcome(job())
    safe.status_patch(job(), job(), NOW)
    safe.forward_patch(job(), job(), Stamp("o", "w", "a"))
    safe.release_patch(job())

    problems = safe.problems_of(job())
    assert any(f"jobs.batch, from widgets: {words}" in problem for problem in problems)
    assert all('raises KeyError for "team/train"' in problem for problem in problems)
    assert "s3cret" not in str((problems, safe.problems.unlogged()))


@pytest.mark.parametrize("answer", [True, False, "Succeeded", ("Succeeded", "done"), {}, 0], ids=repr)
def test_an_end_is_an_outcome_and_nothing_else(answer: Any) -> None:
    """A rule that said False of each job that runs had all of them taken for ended."""
    of_one = StatusRules(finished=lambda job: answer)
    safe = SafeAdapter(attrs.evolve(ADAPTER, source="widgets", status=of_one))
    assert safe.outcome(job()) is None
    assert safe.outcome_of([job()]) is None
    assert safe.settled_end(job()) is None
    assert safe.release_patch(job()) is None
    why = f"finished answers with {type(answer).__name__}, and not with a multikueue.adapters.Outcome or None"
    assert safe.problems_of(job()) == (f"the row for jobs.batch, from widgets: {why}",)

    together = SafeAdapter(attrs.evolve(ADAPTER, status=StatusRules(all_finished=lambda jobs: answer)))
    assert together.outcome_of([job()]) is None
    assert "all_finished answers with" in together.problems_of(job())[0]
    settled = SafeAdapter(attrs.evolve(ADAPTER, status=StatusRules(settled=lambda job: answer)))
    assert settled.settled_end(job()) is None
    assert "settled answers with" in settled.problems_of(job())[0]


def test_a_copy_that_fails_in_whatever_way_rejects_the_job() -> None:
    local = workload(nominated=("w1",))
    broken = attrs.evolve(ADAPTER, copies=CopyRules(sanitised=_surprise))
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
    warnings = those(AnnounceWorkload, decided.effects)
    assert warnings == [AnnounceWorkload("Warning", problem, on_job=True) for problem in decided.problems]
    assert "delete" not in in_words(snapshot(local, adapter=UNDELEGATED), decided)
    assert len(decided.problems) == 1


def test_one_that_has_a_worker_is_followed_all_the_same() -> None:
    """It was told when the worker was chosen; a package that is replaced ends no job that runs."""
    seen = running(UNDELEGATED)
    decided = decide(seen)
    assert decided.row == "recorded: follow"
    assert "delete job on w1" not in in_words(seen, decided)


def test_one_that_lost_its_quota_is_cleaned_up_all_the_same() -> None:
    local = workload(quota=False)
    seen = snapshot(local, worker("w1", copy_of(local)), adapter=UNDELEGATED)
    assert "delete workload on w1" in in_words(seen, decide(seen))


def version(number: int, uid: str = "u") -> Json:
    """An object as it is after so many changes."""
    return {"metadata": {"name": "j", "namespace": "ns", "uid": uid, "resourceVersion": str(number)}}


class TestProblems:
    """What is noted of an object, and for how long."""

    def test_they_are_of_the_object_as_it_was_when_it_failed(self) -> None:
        """A later version may be right; and one that fails in the same way is no news."""
        problems = Problems()
        problems.note(version(1), "finished", "a")
        assert problems.of(version(1)) == ("a",)
        assert problems.of(version(2)) == ()

        problems.note(version(2), "finished", "a")
        assert problems.of(version(2)) == ("a",)
        assert problems.unlogged() == [(ObjectKey("ns", "j"), "a")]

    def test_a_function_that_works_again_takes_back_its_own_only(self) -> None:
        problems = Problems()
        problems.note(version(1), "finished", "a")
        problems.note(version(1), "carriers", "b")
        problems.clear(version(1), "finished")
        assert problems.of(version(1)) == ("b",)

    def test_one_that_fails_again_after_it_worked_is_logged_again(self) -> None:
        problems = Problems()
        for _ in range(2):
            problems.note(version(1), "finished", "a")
            problems.clear(version(1), "finished")
        assert len(problems.unlogged()) == 2

    def test_an_object_of_the_same_name_on_another_cluster_has_its_own(self) -> None:
        problems = Problems()
        problems.note(version(1, "here"), "finished", "a")
        assert problems.of(version(1, "there")) == ()

    def test_an_object_that_is_gone_has_none(self) -> None:
        problems = Problems()
        problems.note(version(1), "finished", "a")
        problems.forget(version(2))
        assert problems.of(version(1)) == ()

    def test_an_object_that_is_not_stored_yet_is_logged_each_time_and_never_kept(self) -> None:
        """The webhook sees such: there is nothing by which to tell one from the next."""
        problems = Problems()
        problems.note({"metadata": {}}, "delegation", "a")
        problems.note({"metadata": {}}, "delegation", "a")
        assert len(problems.unlogged()) == 2
        assert problems.of({"metadata": {}}) == ()

    def test_they_do_not_fill_the_memory(self) -> None:
        """Objects of a cluster that is given up are never seen to go."""
        problems = Problems()
        for number in range(MAX_NOTED + 1):
            problems.note(version(1, str(number)), "finished", "a")
        assert problems.of(version(1, "0")) == ()
        assert problems.of(version(1, "1")) == problems.of(version(1, str(MAX_NOTED))) == ("a",)
        assert len(problems.unlogged()) == MAX_NOTED
