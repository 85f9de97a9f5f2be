"""Which earlier runs a Workload waits for, for programs: beside the check's message, in the same write."""

from __future__ import annotations

from datetime import timedelta

import attrs
import pytest

from multikueue.core.model.check_message import Message
from multikueue.core.model.conditions import condition, conditions, is_true, timestamp
from multikueue.core.model.labels import FOREGROUND_FINALIZER
from multikueue.core.model.names import Json
from multikueue.core.model.objects import with_value
from multikueue.core.model.workloads import check
from tests.core.applying import carry_out
from tests.core.building import CHECK, EARLIER, job_copy_of, snapshot, worker, workload
from tests.core.door import (
    NOW,
    SETTINGS,
    WAITS,
    ApplyStatus,
    DeleteJob,
    EarlierRun,
    Snapshot,
    decide,
    earlier_run_condition,
    earlier_runs_in,
    sole,
)

MINUTE = timedelta(minutes=1)
RUN = EarlierRun("w1", "Job", "train", "uid-left", NOW, NOW + MINUTE, ("example.com/slow",))


def waiting(quiet: timedelta = timedelta(0)) -> Snapshot:
    """It has quota again, and w1 still has the job of before, deleted just now and held by a finalizer."""
    local = workload(evictions=1)
    job = job_copy_of(local, attempt=EARLIER, uid="uid-left", deleting=True)
    held = [FOREGROUND_FINALIZER, "example.com/slow"]
    job = with_value(with_value(job, ("metadata", "finalizers"), held), ("metadata", "deletionTimestamp"), stamp())
    return snapshot(local, worker("w1", None, job), worker("w2"), quiet_for=quiet)


def stamp() -> str:
    return timestamp(NOW)


def told_by(seen: Snapshot) -> Json:
    after = carry_out(seen, decide(seen))
    assert after.workload is not None
    return after.workload


def waited_for(workload: Json) -> tuple[EarlierRun, ...]:
    """As the Workload says it beside the message of our check."""
    return earlier_runs_in(workload, str((check(workload, CHECK) or {}).get("message") or ""))


def test_what_is_waited_for_is_written_with_the_message() -> None:
    """The pods have Kubernetes' 30 s, and a minute."""
    waits = told_by(waiting())
    assert waited_for(waits) == (
        EarlierRun("w1", "Job", "train", "uid-left", NOW, NOW + timedelta(seconds=90), ("example.com/slow",)),
    )
    assert not waited_for(waits)[0].is_overdue(NOW + timedelta(seconds=89))
    assert waited_for(waits)[0].is_overdue(NOW + timedelta(seconds=90))


def test_what_stands_behind_the_words_of_the_check_changes_nothing() -> None:
    """A setting that is missing is told there, and a worker that is out of sight."""
    waits = told_by(waiting())
    entry = check(waits, CHECK) or {}
    message = Message(entry["message"], ("w1: cannot be seen",)).render()
    assert earlier_runs_in(waits, message) == waited_for(waits) != ()
    assert earlier_runs_in(waits, "Offered to w1") == ()


def test_it_is_written_once() -> None:
    """What somebody else has begun to delete gets one deletion more, and no second one."""
    after = carry_out(seen := waiting(), decide(seen))
    sole(DeleteJob, (again := decide(after)).effects)
    assert decide(carry_out(after, again)).effects == ()


def test_it_has_one_owner() -> None:
    """What two field managers have applied, and one takes away, is left in pieces that no server accepts again."""
    decided = (decide(waiting()), decide(waiting(timedelta(minutes=10))))
    writes = [effect for plan in decided for effect in plan.effects if isinstance(effect, ApplyStatus)]
    owners = {effect.field_manager for effect in writes if condition(effect.object, WAITS) is not None}
    assert owners == {SETTINGS.controller_name}


def test_it_goes_when_nothing_is_waited_for() -> None:
    waits = told_by(waiting())
    over = snapshot(waits, worker("w1"), worker("w2"))
    assert condition(told_by(over), WAITS) is None


def test_so_does_it_of_one_that_has_no_quota_meanwhile() -> None:
    """It waits in its queue, and not for a run that is gone."""
    told = conditions(told_by(waiting()))
    queued = workload(evictions=1, quota=False)
    queued["status"]["conditions"] += [entry for entry in told if entry["type"] == WAITS]
    assert condition(told_by(snapshot(queued, worker("w1"), worker("w2"))), WAITS) is None


def test_one_that_was_sent_back_waits_for_it_all_the_same() -> None:
    """While it has no quota, its job should not look as if it waited for nothing else."""
    waits = told_by(waiting())
    later = attrs.evolve(waiting(timedelta(hours=1)), workload=waits)
    back = told_by(later)
    assert is_true(back, "Evicted")
    assert [run.uid for run in waited_for(back)] == ["uid-left"]


def holding(text: str, reason: str = "EarlierRun") -> Json:
    entry = {"type": WAITS, "status": "True", "reason": reason, "message": text}
    return {"status": {"admissionChecks": [{"name": CHECK, "message": "words"}], "conditions": [entry]}}


@pytest.mark.parametrize("text", ["", "no JSON", "[]", "1", '{"runs": {}}', '{"runs": ["x"], "tried": -1}'])
def test_what_cannot_be_read_is_unknown(text: str) -> None:
    assert waited_for(holding(text)) == ()
    assert earlier_runs_in({}, "words") == ()
    assert earlier_runs_in({}, "") == ()


def test_it_counts_beside_its_message_alone_and_has_at_most_two_kilobytes() -> None:
    entry = earlier_run_condition([RUN] * 50, "words", NOW)
    assert 1800 < len(entry["message"]) <= 2048
    runs = waited_for(holding(entry["message"]))
    assert set(runs) == {RUN}
    assert 5 < len(runs) < 50
    other = earlier_run_condition([RUN], "other words", NOW)
    assert waited_for(holding(other["message"])) == ()
    assert waited_for(holding(entry["message"], "SomethingElse")) == ()
