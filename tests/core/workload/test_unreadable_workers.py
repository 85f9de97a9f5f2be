"""Workers that answer with more than may be read: unknown, and neither absent nor lost."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from multikueue.core.model.names import ClusterName, Json
from tests.core.building import EARLIER, copy_of, job, job_copy_of, snapshot, worker, workload
from tests.core.door import NOW, Lost, Opaque, Syncing, Unserved, Worker, decide
from tests.core.wording import in_words, words

TAKEN = workload(check="Ready", cluster="w1", nominated=("w1", "w2"))
HIDDEN: list[dict[str, Any]] = [
    {"reach": Opaque()},
    {"reach": Opaque(seen=False)},
    {"kind": Opaque()},
]


@pytest.mark.parametrize("facts", HIDDEN)
def test_what_it_runs_stays_with_it_and_no_time_runs_out(facts: dict[str, Any]) -> None:
    w1 = worker("w1", copy_of(TAKEN, admitted=True), job_copy_of(TAKEN), **facts)
    seen = snapshot(TAKEN, w1, worker("w2"))
    plan = decide(seen)
    assert in_words(seen, plan) == []
    assert plan.look_again == timedelta(minutes=15).total_seconds()


@pytest.mark.parametrize("quiet", [timedelta(minutes=14), timedelta(minutes=15)])
@pytest.mark.parametrize("local", [TAKEN, workload(evicted="Preempted", evictions=1)], ids=["runs", "evicted"])
def test_what_its_kueue_says_has_ended_there_ends_here_in_the_end(local: Json, quiet: timedelta) -> None:
    """Without the job's status, which may be unreadable for ever: nothing of it runs, and its quota is held here."""
    made = copy_of(TAKEN, admitted=True, finished="Succeeded")
    seen = snapshot(local, worker("w1", made, kind=Opaque()), worker("w2"), job=job(), quiet_for=quiet)
    plan, over = decide(seen), quiet == timedelta(minutes=15)
    assert any(word.startswith("finish") for word in in_words(seen, plan)) == over
    assert over or plan.look_again == timedelta(minutes=1).total_seconds()


def test_what_has_ended_where_nothing_is_recorded_any_more_is_not_sent_back() -> None:
    """It would run again: that its worker cannot be read does not tell that it never was there."""
    made = copy_of(TAKEN, admitted=True, finished="Succeeded")
    erased = workload(check="Ready", nominated=("w1", "w2"))
    seen = snapshot(erased, worker("w1", made, kind=Opaque()), worker("w2"), job=job(), quiet_for=timedelta(minutes=15))
    assert not any(word.startswith("retry") for word in words(seen))


@pytest.mark.parametrize("facts", HIDDEN)
def test_it_is_offered_nothing(facts: dict[str, Any]) -> None:
    local = workload(nominated=("w1", "w2"))
    seen = snapshot(local, worker("w1", **facts), worker("w2"))
    assert not any(" w1" in word for word in words(seen) if word.startswith("create"))


@pytest.mark.parametrize("facts", HIDDEN[:2])
def test_while_it_may_run_an_earlier_attempt_nobody_is_recorded(facts: dict[str, Any]) -> None:
    again = workload(nominated=("w1", "w2"), evictions=1)
    made = copy_of(again, admitted=True, attempt=EARLIER), job_copy_of(again, attempt=EARLIER)
    seen = snapshot(
        again, worker("w1", copy_of(again, admitted=True)), worker("w2", *made, **facts), last_worker=ClusterName("w2")
    )
    assert "record w1" not in words(seen)


@pytest.mark.parametrize(
    ("shown", "gone"),
    [
        (worker("w1", reach=Lost(NOW - timedelta(hours=1)), kind=Opaque()), True),
        (worker("w1", reach=Opaque(), kind=Unserved(timedelta(hours=1))), False),
        (worker("w1", reach=Opaque(), kind=Syncing()), False),
    ],
    ids=["lost after that", "workloads", "just started"],
)
def test_a_loss_counts_only_once_it_does_not_answer(shown: Worker, gone: bool) -> None:
    seen = snapshot(TAKEN, shown, worker("w2"))
    steps = words(seen)
    assert any(word.startswith("retry") for word in steps) == gone, steps
