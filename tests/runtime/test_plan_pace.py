"""Which writes of a plan wait, as they come too often: the rest of it does not."""

from __future__ import annotations

import pytest

from multikueue.core.machinery.message_rate import AT_ONCE
from multikueue.core.model.kinds import JOB
from multikueue.core.model.names import ClusterName, ObjectKey
from multikueue.runtime.plan_pace import PlanPace
from tests.core.door import (
    MANAGER,
    AnnounceWorkload,
    ApplyStatus,
    DeleteWorkload,
    Effect,
    PatchJob,
    PatchJobStatus,
    PatchWorkload,
    Plan,
)

KEY, W1 = ObjectKey("default", "train"), ClusterName("w1")
STATUS = PatchJobStatus(JOB, KEY, {})
ANSWERS = [STATUS, PatchWorkload(W1, KEY, {}), PatchJob(W1, JOB, KEY, {})]
OWN = ApplyStatus(MANAGER, {}, "")


def exhausted(*effects: Effect) -> PlanPace:
    """After a hundred plans with these effects within a moment."""
    pace = PlanPace()
    for _ in range(100):
        pace.due(KEY, Plan(effects), 100.0)
    return pace


@pytest.mark.parametrize("answer", ANSWERS)
def test_what_answers_others_is_put_off_and_all_else_is_done(answer: Effect) -> None:
    rest = (DeleteWorkload(ClusterName("w2"), KEY, "uid"), AnnounceWorkload("Warning", "note"))
    decided = exhausted(answer).due(KEY, Plan((answer, *rest), look_again=50.0), 100.0)
    assert decided.effects == rest
    assert decided.look_again is not None
    assert 0 < decided.look_again <= 1.0


@pytest.mark.parametrize("answer", ANSWERS)
def test_the_first_of_them_are_done_at_once(answer: Effect) -> None:
    pace = PlanPace()
    done = [bool(pace.due(KEY, Plan((answer,)), 100.0).effects) for _ in range(100)]
    assert (sum(done), done[0]) == (AT_ONCE + 1, True)


@pytest.mark.parametrize("answer", ANSWERS)
def test_what_goes_with_a_write_of_ours_does_not_wait(answer: Effect) -> None:
    decided = exhausted(answer).due(KEY, Plan((answer, OWN)), 100.0)
    assert (decided.effects, decided.look_again) == ((answer, OWN), None)


def test_writes_that_go_with_others_do_not_put_off_the_next_for_longer_than_a_second() -> None:
    """The end of a job is such a write: what is kept of it is deleted after a while."""
    decided = exhausted(STATUS, OWN).due(KEY, Plan((STATUS,)), 100.0)
    assert decided.effects == ()
    assert decided.look_again is not None
    assert decided.look_again <= 1.0


def test_another_workload_and_one_that_comes_anew_have_budgets_of_their_own() -> None:
    pace = exhausted(STATUS)
    assert pace.due(ObjectKey("default", "other"), Plan((STATUS,)), 100.0).effects == (STATUS,)
    pace.forget(KEY)
    assert pace.due(KEY, Plan((STATUS,)), 100.0).effects == (STATUS,)
