"""After a restart: nobody gets a job that a worker may have which has said nothing yet."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from multikueue.core.effects import Plan
from tests.core.building import NOW, copy_of, decide, job_copy_of, snapshot, worker, workload
from tests.core.wording import in_words

OFFERED = workload(nominated=("w1", "w2"))
W1_JOB = ["create job on w1"]


def beside(**facts: Any) -> tuple[list[str], Plan]:
    """What is done if w1 has admitted it, and w2, which it was offered to as well, is not known."""
    unknown = worker("w2", **{"reachable": False, "known": False, **facts})
    seen = snapshot(OFFERED, worker("w1", copy_of(OFFERED, admitted=True)), unknown)
    decided = decide(seen)
    return in_words(seen, decided), decided


def lost(**ago: float) -> dict[str, Any]:
    """Since when it is lost."""
    return {"lost_since": NOW - timedelta(**ago)}


def test_a_worker_that_is_about_to_answer_is_waited_for() -> None:
    """Its job was made by a manager that was stopped before it could record the worker (simulation, seed 2908)."""
    words, decided = beside(awaited=True)
    assert words == []
    assert decided.look_again == 30


def test_one_that_has_just_failed_is_given_time_for_another_attempt() -> None:
    """Its API server may answer 500 once, or its proxy be restarted with us."""
    words, decided = beside(**lost(seconds=10))
    assert words == []
    assert decided.look_again == 20


def test_one_that_stays_away_holds_nobody_up() -> None:
    """Also if it was lost before the restart."""
    assert beside(**lost(seconds=30))[0] == W1_JOB
    assert beside(**lost(hours=1))[0] == W1_JOB


def test_one_whose_jobs_are_known_holds_nobody_up() -> None:
    """It is not a restart: what was there when it dropped is remembered."""
    assert beside(known=True, **lost(seconds=1))[0] == W1_JOB


def test_one_that_does_not_serve_the_kind_holds_nobody_up() -> None:
    assert beside(reachable=True, serves_kind=False)[0] == W1_JOB


def test_one_that_was_never_offered_it_cannot_have_it() -> None:
    """What is submitted after the restart does not wait."""
    local = workload(nominated=("w1",))
    unknown = worker("w2", reachable=False, known=False, awaited=True)
    seen = snapshot(local, worker("w1", copy_of(local, admitted=True)), unknown)
    assert in_words(seen, decide(seen)) == W1_JOB


def test_whoever_is_seen_to_have_it_keeps_it_at_once() -> None:
    unknown = worker("w2", reachable=False, known=False, awaited=True)
    seen = snapshot(OFFERED, worker("w1", copy_of(OFFERED, admitted=True), job_copy_of(OFFERED)), unknown)
    assert in_words(seen, decide(seen))[0] == "admit on w1 as Ready"
