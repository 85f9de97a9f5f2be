"""Nobody gets a job that another worker may have, though it is not to be seen there."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import attrs
import pytest

from multikueue.core.workload.effects import Plan
from multikueue.core.workload.snapshot import Worker
from tests.core.building import ADAPTER, EARLIER, NOW, copy_of, decide, job_copy_of, snapshot, worker, workload
from tests.core.wording import in_words

OFFERED = workload(nominated=("w1", "w2"))
W1_JOB = ["create job on w1"]
TIMEOUT = timedelta(minutes=15)


def beside(other: Worker, **facts: Any) -> tuple[list[str], Plan]:
    """What is done if w1 has admitted it, and it was offered to `other` as well."""
    seen = snapshot(OFFERED, worker("w1", copy_of(OFFERED, admitted=True)), other, **facts)
    decided = decide(seen)
    return in_words(seen, decided), decided


def lost(**ago: float) -> dict[str, Any]:
    """Since when it is lost."""
    return {"reachable": False, "lost_since": NOW - timedelta(**ago)}


class TestAfterAStart:
    """What an earlier manager left on a worker, only that worker can tell."""

    def unheard(self, running_for: float, **facts: Any) -> tuple[list[str], Plan]:
        """What is done beside a w2 that this process has not heard in the seconds it has been running."""
        unknown = worker("w2", **{"reachable": False, "known": False, **facts})
        return beside(unknown, running_for=timedelta(seconds=running_for))

    def test_a_worker_that_is_about_to_answer_is_waited_for(self) -> None:
        """Its job was made by a manager that was stopped before it could record the worker (simulation, seed 2908)."""
        words, decided = self.unheard(5, awaited=True)
        assert words == []
        assert decided.look_again == 55

    def test_one_that_has_failed_is_given_time_for_another_attempt(self) -> None:
        """Its API server may answer 500 once, or its proxy be restarted with us."""
        assert self.unheard(20, **lost(seconds=10))[0] == []

    def test_so_is_one_that_answers_but_does_not_list_the_kind(self) -> None:
        """An API server that has just started says 404 and 403 for a moment."""
        assert self.unheard(20, reachable=True, serves_kind=False)[0] == []

    def test_a_clock_that_was_ahead_makes_nobody_wait_longer(self) -> None:
        assert self.unheard(50, lost_since=NOW + timedelta(hours=2))[1].look_again == 10

    def test_one_that_never_answers_holds_nobody_up(self) -> None:
        """Not even one whose kubeconfig is never read, which is neither lost nor there."""
        assert self.unheard(60, awaited=True)[0] == W1_JOB
        assert self.unheard(60, reachable=True, serves_kind=False)[0] == W1_JOB

    def test_nor_one_that_was_lost_before_the_start(self) -> None:
        assert self.unheard(1, **lost(minutes=1))[0] == W1_JOB

    def test_but_that_one_may_be_back_and_is_asked_first(self) -> None:
        assert self.unheard(1, awaited=True, **lost(minutes=5))[0] == []

    def test_one_that_was_never_offered_it_cannot_have_it(self) -> None:
        """What is submitted after the restart does not wait."""
        local = workload(nominated=("w1",))
        unknown = worker("w2", reachable=False, known=False, awaited=True)
        seen = snapshot(local, worker("w1", copy_of(local, admitted=True)), unknown, running_for=timedelta(0))
        assert in_words(seen, decide(seen)) == W1_JOB

    def test_whoever_is_seen_to_have_it_keeps_it_at_once(self) -> None:
        unknown = worker("w2", reachable=False, known=False, awaited=True)
        first = worker("w1", copy_of(OFFERED, admitted=True), job_copy_of(OFFERED))
        seen = snapshot(OFFERED, first, unknown, running_for=timedelta(0))
        assert in_words(seen, decide(seen))[0] == "admit on w1 as Ready"

    def test_it_stays_offered_to_one_that_has_left_the_config_meanwhile(self) -> None:
        """Where it was offered is all that tells who may have it."""
        removed = worker("w2", reachable=False, known=False, awaited=True, configured=False)
        seen = snapshot(OFFERED, worker("w1", copy_of(OFFERED)), removed, running_for=timedelta(0))
        assert in_words(seen, decide(seen)) == []
        later = attrs.evolve(seen, running_for=timedelta(minutes=1))
        assert in_words(later, decide(later)) == ["nominate w1"]


class TestOutOfSight:
    """What was seen on a worker before it dropped is there still."""

    def test_one_whose_jobs_are_known_holds_nobody_up(self) -> None:
        assert beside(worker("w2", copy_of(OFFERED, admitted=True), **lost(seconds=1)))[0] == W1_JOB

    def test_whoever_had_it_keeps_it_as_if_it_had_been_recorded_in_time(self) -> None:
        """Its link broke while the manager's API server refused to record it."""
        other = worker("w2", copy_of(OFFERED, admitted=True), job_copy_of(OFFERED), **lost(seconds=1))
        words, _ = beside(other)
        assert words[0] == "admit on w2 as Ready"
        assert words[-1] == "delete workload on w1"

    def test_also_if_only_its_jobs_cannot_be_seen_any_more(self) -> None:
        other = worker("w2", copy_of(OFFERED, admitted=True), job_copy_of(OFFERED), serves_kind=False)
        words, _ = beside(other)
        assert words[0] == "admit on w2 as Ready"
        assert words[-1] == "delete workload on w1"

    def test_a_job_that_was_being_stopped_there_is_waited_for_as_long_as_a_lost_one(self) -> None:
        """Its Kueue may have started it again, unseen."""
        other = worker("w2", copy_of(OFFERED, admitted=True, evicted=True), job_copy_of(OFFERED), **lost(minutes=5))
        words, decided = beside(other)
        assert words == []
        assert decided.look_again == 600
        assert beside(attrs.evolve(other, **lost(minutes=15)))[0] == W1_JOB

    def test_a_leftover_on_a_worker_in_sight_is_not_the_job(self) -> None:
        """It arrived late, of an attempt that is over; the one out of reach has this attempt's."""
        first = worker("w1", copy_of(OFFERED, admitted=True), job_copy_of(OFFERED, attempt=EARLIER))
        other = worker("w2", copy_of(OFFERED, admitted=True), job_copy_of(OFFERED), **lost(seconds=1))
        seen = snapshot(OFFERED, first, other)
        assert in_words(seen, decide(seen))[0] == "admit on w2 as Ready"

    def test_one_of_an_earlier_attempt_is_waited_for_too(self) -> None:
        """Kinds whose status stays on the worker free their quota before anybody knows that they have stopped."""
        sets = attrs.evolve(ADAPTER, status=attrs.evolve(ADAPTER.status, rule=None))
        stale = worker("w2", copy_of(OFFERED, attempt=EARLIER), job_copy_of(OFFERED, attempt=EARLIER))
        words, decided = beside(attrs.evolve(stale, **lost(minutes=5)), adapter=sets)
        assert (words, decided.look_again) == ([], 600)
        assert beside(attrs.evolve(stale, **lost(minutes=15)), adapter=sets)[0] == W1_JOB

    @pytest.mark.parametrize("ends", [False, True], ids=["its stop is known", "it has ended"])
    def test_but_not_where_it_cannot_go_on(self, ends: bool) -> None:
        status = {"conditions": [{"type": "Complete", "status": "True"}]} if ends else {"active": 1}
        job = job_copy_of(OFFERED, attempt=EARLIER, status=status)
        other = worker("w2", copy_of(OFFERED, attempt=EARLIER), job, **lost(minutes=5))
        assert (
            beside(
                other,
                adapter=attrs.evolve(ADAPTER, status=attrs.evolve(ADAPTER.status, rule=None)) if ends else ADAPTER,
            )[0]
            == W1_JOB
        )


class TestUnanswered:
    """The connection broke while the job was being created: it may be there or not."""

    def test_a_worker_in_sight_soon_shows_whether_it_is(self) -> None:
        words, decided = beside(worker("w2", copy_of(OFFERED), unsure_for=timedelta(seconds=3)))
        assert words == []
        assert decided.look_again == 7
        settled, _ = beside(worker("w2", copy_of(OFFERED), unsure_for=timedelta(seconds=10)))
        assert settled == [*W1_JOB, "delete workload on w2"]

    def test_one_out_of_reach_keeps_it_as_long_as_an_assigned_one_would(self) -> None:
        gone = worker("w2", copy_of(OFFERED, admitted=True), unsure_for=timedelta(minutes=5), **lost(minutes=5))
        words, decided = beside(gone)
        assert words == []
        assert decided.look_again == 600
        assert beside(attrs.evolve(gone, unsure_for=TIMEOUT))[0] == W1_JOB

    def test_the_worker_itself_is_asked_again_at_once(self) -> None:
        first = worker("w1", copy_of(OFFERED, admitted=True), unsure_for=timedelta(seconds=1))
        seen = snapshot(OFFERED, first)
        assert in_words(seen, decide(seen)) == W1_JOB
