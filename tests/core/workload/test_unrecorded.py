"""Our check is Ready and no worker is recorded: the worker that runs the job is found and recorded, and keeps it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import attrs
import pytest

from multikueue.core.model.labels import LAST_WORKER_ANNOTATION
from multikueue.core.model.names import ClusterName, Json
from multikueue.core.model.objects import clone, with_value
from tests.core.building import EARLIER, UNMARKED, copy_of, job_copy_of, snapshot, worker, workload
from tests.core.door import (
    NOW,
    ApplyStatus,
    Connecting,
    Lost,
    PatchWorkload,
    Unserved,
    Worker,
    decide,
    notes,
    those,
)
from tests.core.wording import in_words, words

LOCAL = workload(check="Ready")
NOMINATED = workload(check="Ready", nominated=("w1",))
RECORDED = workload(check="Ready", cluster="w1")


def running(name: str, local: Json = LOCAL, *, attempt: str | None = None) -> Worker:
    """A worker that runs the job."""
    copied = copy_of(local, admitted=True, owned=True, attempt=attempt)
    return worker(name, copied, job_copy_of(local, attempt=attempt))


@pytest.mark.parametrize("attempt", [None, UNMARKED], ids=["ours", "of the built-in controller"])
def test_the_worker_that_runs_it_is_nominated_and_then_recorded(attempt: str | None) -> None:
    assert words(snapshot(LOCAL, worker("w2"), running("w1", attempt=attempt))) == ["nominate w1"]
    seen = snapshot(NOMINATED, worker("w2"), running("w1", NOMINATED, attempt=attempt))
    assert words(seen) == ["admit on w1 as Ready", "tell", "count cq w1"]


def test_a_loser_that_still_has_its_workload_copy_is_not_taken_for_it() -> None:
    seen = snapshot(NOMINATED, worker("w2", copy_of(NOMINATED, admitted=True)), running("w1", NOMINATED))
    assert words(seen) == ["admit on w1 as Ready", "tell", "count cq w1"]


def test_without_a_job_the_one_workload_copy_counts() -> None:
    seen = snapshot(NOMINATED, worker("w1", copy_of(NOMINATED, admitted=True)), worker("w2"))
    assert words(seen) == ["admit on w1 as Ready", "tell", "count cq w1"]


@pytest.mark.parametrize("hidden", [Lost(NOW - timedelta(minutes=10)), Connecting()], ids=["lost", "connecting"])
def test_while_a_configured_worker_cannot_be_seen_nothing_is_recorded_and_nothing_removed(
    hidden: Lost | Connecting,
) -> None:
    seen = snapshot(LOCAL, running("w1"), worker("w2", reach=hidden))
    decided = decide(seen)
    assert in_words(seen, decided)[-1] == "warn"
    assert not any("delete" in word or "retry" in word for word in in_words(seen, decided))
    assert decided.look_again == (300 if isinstance(hidden, Lost) else 60)
    warnings = notes(decided)
    assert warnings == ['No admitting cluster is recorded: worker cluster "w2" cannot be seen and may have it']


def test_what_is_waited_for_is_in_the_checks_message_and_written_once() -> None:
    seen = snapshot(LOCAL, running("w1"), worker("w2", reach=Connecting()))
    noted = with_value(LOCAL, ("metadata", "annotations", LAST_WORKER_ANNOTATION), "w1")
    assert not any(isinstance(effect, ApplyStatus) for effect in decide(seen).effects), "one write at a time"
    (first, _) = decide(snapshot(noted, running("w1", noted), worker("w2", reach=Connecting()))).effects
    message = 'No admitting cluster is recorded: worker cluster "w2" cannot be seen and may have it'
    placed = clone(noted)
    placed["status"]["admissionChecks"][0]["message"] = message
    again = snapshot(placed, running("w1", placed), worker("w2", reach=Connecting()))
    assert message in str(first)
    assert words(again) == ["warn"]


def test_a_worker_that_is_lost_for_too_long_is_not_waited_for() -> None:
    seen = snapshot(NOMINATED, running("w1", NOMINATED), worker("w2", reach=Lost(NOW - timedelta(minutes=15))))
    assert words(seen) == ["admit on w1 as Ready", "tell", "count cq w1"]


def test_a_worker_that_is_not_configured_is_waited_for_only_while_nobody_else_has_it() -> None:
    """It may have been taken out of the config while the job ran there, by a process that is gone."""
    lost = worker("w2", reach=Lost(NOW), configured=False)
    seen = snapshot(NOMINATED, running("w1", NOMINATED), lost)
    assert words(seen) == ["admit on w1 as Ready", "tell", "count cq w1"]
    seen = snapshot(NOMINATED, worker("w1"), lost)
    message = 'No admitting cluster is recorded: worker cluster "w2" cannot be seen and may have it'
    assert words(seen) == [f"say {message}", "warn"]
    back = attrs.evolve(running("w2", NOMINATED), configured=False)
    assert words(snapshot(NOMINATED, worker("w1"), back)) == ["nominate w2"]


def test_of_several_that_run_it_none_is_chosen_and_a_person_is_asked() -> None:
    seen = snapshot(LOCAL, running("w1"), running("w2"))
    decided = decide(seen)
    warnings = notes(decided)
    assert warnings == [
        'No admitting cluster is recorded: worker clusters "w1" and "w2" have it: remove it from all but one'
    ]
    assert not any("delete" in word or "retry" in word for word in in_words(seen, decided))


@pytest.mark.parametrize(
    "there",
    [
        worker("w1"),
        worker("w1", copy_of(LOCAL, admitted=True, attempt=EARLIER)),
        worker("w1", copy_of(LOCAL, attempt=UNMARKED)),
    ],
    ids=["nothing", "an earlier attempt's", "an unmarked one that runs nothing"],
)
def test_where_no_worker_has_it_it_is_retried(there: Worker) -> None:
    seen = snapshot(LOCAL, there)
    base = "Admission check is Ready but no admitting cluster is recorded; this is unexpected, please report it"
    assert words(seen)[0] == f"retry: {base}"


def test_the_worker_that_had_it_last_is_noted_while_it_is_waited_for() -> None:
    """Its MultiKueueCluster is gone: after a restart nothing else would name it (simulation, seed 31041)."""
    gone = worker("w1", configured=False, removed=True, reach=Lost(NOW - timedelta(minutes=1), seen=False))
    seen = snapshot(LOCAL, worker("w2"), gone, last_worker=ClusterName("w1"))
    noted = those(PatchWorkload, decide(seen).effects)
    assert [effect.patch["metadata"]["annotations"] for effect in noted] == [{LAST_WORKER_ANNOTATION: "w1"}]


@pytest.mark.parametrize("facts", [{}, {"reach": Lost(NOW - timedelta(minutes=1), seen=False)}])
def test_a_recorded_worker_is_noted_once_its_cluster_is_deleted(facts: dict[str, Any]) -> None:
    """It is evicted while no process runs: the record is erased, and nobody lists that worker (seed 2567)."""
    gone = attrs.evolve(running("w1", RECORDED), configured=False, removed=True, **facts)
    noted = those(PatchWorkload, decide(snapshot(RECORDED, gone, worker("w2"))).effects)
    assert [effect.patch["metadata"]["annotations"] for effect in noted] == [{LAST_WORKER_ANNOTATION: "w1"}]
    assert not those(PatchWorkload, decide(snapshot(RECORDED, running("w1", RECORDED), worker("w2"))).effects)


def test_the_worker_that_has_it_is_noted_while_another_is_waited_for() -> None:
    """It may be removed, and the next leader know nothing of it (seed 760734: a second job was begun)."""
    seen = snapshot(LOCAL, running("w1"), worker("w2", reach=Connecting()))
    noted = those(PatchWorkload, decide(seen).effects)
    assert [effect.patch["metadata"]["annotations"] for effect in noted] == [{LAST_WORKER_ANNOTATION: "w1"}]

    local = with_value(LOCAL, ("metadata", "annotations", LAST_WORKER_ANNOTATION), "w1")
    again = snapshot(local, running("w1", local), worker("w2", reach=Connecting()))
    assert not those(PatchWorkload, decide(again).effects)
    removed = worker("w1", configured=False, reach=Lost(NOW - timedelta(seconds=1), seen=False), removed=True)
    left = snapshot(local, removed, worker("w2"))
    assert not any("delete" in word or "retry" in word for word in words(left))


def test_what_was_out_of_sight_for_too_long_is_not_taken_before_it_is_sent_back() -> None:
    """Its kind is not served there, so nobody sees whether it runs (seed 751669): the eviction removes it."""
    copied = copy_of(LOCAL, admitted=True, owned=True)
    hidden = worker("w1", copied, job_copy_of(LOCAL), kind=Unserved(timedelta(hours=1)))
    seen = snapshot(LOCAL, hidden, worker("w2"))
    assert [word.split(":")[0] for word in words(seen)] == ["retry"]


def test_where_it_is_only_offered_nothing_runs_and_it_is_retried() -> None:
    offered = [worker(name, copy_of(LOCAL, admitted=True)) for name in ("w1", "w2")]
    seen = snapshot(LOCAL, *offered)
    assert words(seen)[0].startswith("retry: Admission check is Ready but")


def test_a_job_that_has_gone_by_now_was_there() -> None:
    """It ended, and its TTL has passed: its Workload copy tells how."""
    ended = worker("w1", copy_of(NOMINATED, admitted=True, owned=True, finished="Succeeded"))
    seen = snapshot(NOMINATED, ended, worker("w2", copy_of(NOMINATED, admitted=True)))
    assert words(seen)[0] == "admit on w1 as Ready"


def test_a_removed_worker_that_was_recorded_keeps_the_job_it_has() -> None:
    """It is drained; another worker that is not configured has no claim."""
    drained = attrs.evolve(running("w1", NOMINATED), configured=False)
    seen = snapshot(NOMINATED, drained, worker("w2"), last_worker="w1")
    assert words(seen)[0] == "admit on w1 as Ready"
    unmarked = attrs.evolve(running("w1", NOMINATED, attempt=UNMARKED), configured=False)
    seen = snapshot(NOMINATED, unmarked, worker("w2"), last_worker="w2")
    assert words(seen)[0].startswith("retry")
