"""Whatever stands in an object on a worker: the plan does not raise, and what cannot be read is left alone."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import attrs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from multikueue.core.dispatchers.dispatcher import AllAtOnce
from multikueue.core.model.names import Json
from tests.core.building import EARLIER, copy_of, job_copy_of, snapshot, worker, workload
from tests.core.door import (
    NOW,
    SETTINGS,
    AnnounceWorkload,
    Connected,
    CreateJob,
    DeleteJob,
    Lost,
    NothingSent,
    Opaque,
    PatchJob,
    Plan,
    Snapshot,
    Unserved,
    Worker,
    decide,
    guarded_plan,
    hidden,
    those,
)
from tests.core.odd_shapes import as_read, odd, with_odd_objects
from tests.core.strategies import snapshots
from tests.core.wording import in_words, words
from tests.examples import examples

slow = settings(max_examples=examples(300), deadline=None, suppress_health_check=[HealthCheck.too_slow])
TAKEN = workload(check="Ready", cluster="w1", nominated=("w1", "w2"))
RUNNING = worker("w1", copy_of(TAKEN, admitted=True), job_copy_of(TAKEN))


BUSY = [
    snapshot(local, worker("w1", copy_of(local, admitted=True), job_copy_of(local)), worker("w2", copy_of(local)))
    for local in (
        TAKEN,
        workload(nominated=("w1", "w2")),
        workload(cluster="w1", nominated=("w1", "w2")),
        workload(cluster="w1", evicted="by hand", evictions=1),
        workload(quota=False, evictions=1),
        workload(finished="Succeeded", check="Ready", cluster="w1"),
        workload(deleting=True, check="Ready", cluster="w1"),
    )
]
"""A Workload in the stages of its life, with copies and a job."""


@slow
@given((st.sampled_from(BUSY) | snapshots()).flatmap(with_odd_objects))
def test_the_plan_never_raises_after_the_check(seen: Snapshot) -> None:
    read = attrs.evolve(seen, workers=tuple(map(as_read, seen.workers)))
    on_jobs = CreateJob | DeleteJob | PatchJob
    workers = {worker.name: worker for worker in read.workers}
    for effect in decide(read).effects:
        where = workers.get(effect.cluster)
        if where is not None and where.unreadable:
            assert isinstance(where.reach, Connected), "it touches an unreadable Workload"
            assert not isinstance(effect, on_jobs), "it touches an unreadable job"


@slow
@given(odd(copy_of(TAKEN, admitted=True)) | st.none(), odd(job_copy_of(TAKEN)))
def test_a_job_that_runs_is_left_alone_whatever_cannot_be_read(copy: Json | None, job: Json) -> None:
    """Neither deleted nor sent back nor finished."""
    seen = as_read(worker("w1", copy or copy_of(TAKEN, admitted=True), job))
    if seen.unreadable:
        decided = decide(snapshot(TAKEN, seen, worker("w2")))
        assert {type(effect) for effect in decided.effects} <= {AnnounceWorkload}, in_words(snapshot(TAKEN), decided)
        assert any(
            isinstance(effect, AnnounceWorkload) and "cannot be read" in effect.note for effect in decided.effects
        )


UNREADABLE = [
    pytest.param(lambda there: hidden(there, "Workload cannot be read"), id="Workload"),
    pytest.param(lambda there: hidden(there, "Job cannot be read", jobs_only=True), id="job"),
]


@pytest.mark.parametrize(
    "facts",
    [{"reach": Lost(NOW - timedelta(seconds=90))}, {"kind": Unserved(timedelta(seconds=90))}],
    ids=["lost", "not served"],
)
def test_out_of_sight_it_may_still_run_though_the_worker_was_seen_before(facts: Any) -> None:
    """That no job is known there tells nothing: it could not be read."""
    local = workload(nominated=("w2",), evictions=1)
    there = hidden(
        worker("w1", None, job_copy_of(local, attempt=EARLIER), **facts), "Job cannot be read", jobs_only=True
    )
    seen = snapshot(local, there, worker("w2", copy_of(local, admitted=True)), last_worker="w1")
    assert "record w2" not in words(seen)


@pytest.mark.parametrize("hide", UNREADABLE)
def test_the_recorded_worker_keeps_it_for_as_long_as_that_lasts(hide: Any) -> None:
    """Also where this process has sent no job: it may be there."""
    local = workload(cluster="w1", nominated=("w1",))
    there = hide(worker("w1", copy_of(local, admitted=True), creation=NothingSent()))
    assert words(snapshot(local, there, worker("w2"))) == ["warn"]


@pytest.mark.parametrize("hide", UNREADABLE)
def test_others_are_offered_it_and_win(hide: Any) -> None:
    local = workload(nominated=("w1", "w2"))
    seen = snapshot(local, hide(worker("w1", copy_of(local))), worker("w2", copy_of(local, admitted=True)))
    steps = words(seen)
    assert "record w2" in steps
    assert not any(word.endswith(" job on w1") for word in steps)


def test_while_its_last_job_may_run_unread_nobody_else_is_recorded() -> None:
    again = workload(nominated=("w1", "w2"), evictions=1)
    there = hidden(worker("w1", copy_of(again, admitted=True, attempt=EARLIER)), "Workload cannot be read")
    seen = snapshot(again, there, worker("w2", copy_of(again, admitted=True)), last_worker=there.name)
    assert "record w2" not in words(seen)


def test_while_nobody_else_takes_it_the_check_says_what_cannot_be_read() -> None:
    local = workload(nominated=())
    local["status"]["admissionChecks"][0]["message"] = ""
    seen = snapshot(local, hidden(worker("w1"), "Workload cannot be read: spec is a text"))
    (effect,) = [effect for effect in decide(seen).effects if not isinstance(effect, AnnounceWorkload)]
    assert "w1: Workload cannot be read: spec is a text" in str(effect)


@pytest.mark.parametrize("deleted", [False, True])
def test_a_workload_of_the_manager_that_cannot_be_read_is_not_gone(deleted: bool) -> None:
    seen = attrs.evolve(snapshot(None if deleted else TAKEN, RUNNING), unreadable="Workload cannot be read")
    assert words(seen) == ["warn"]


def test_a_job_of_the_manager_that_cannot_be_read_is_told_and_waited_for() -> None:
    seen = snapshot(TAKEN, RUNNING, job={}, unreadable_job='Job "train" cannot be read: deep')
    assert words(seen) == ["warn"]


class Raising(dict[str, Any]):
    """An object that nobody can ask anything: what the check of shapes does not know."""

    def get(self, *_: Any) -> Any:
        raise ZeroDivisionError("nobody expects it")


def guarded(seen: Snapshot) -> Plan:
    return guarded_plan(seen, NOW, SETTINGS, AllAtOnce())


def broken(there: Worker) -> Worker:
    """With a Workload copy that makes every plan raise."""
    return attrs.evolve(there, copy=Raising(there.copy or {}))


def test_a_plan_that_raises_is_made_without_the_workers_it_raises_for() -> None:
    local = workload(nominated=("w1", "w2", "w3"))
    workers = [worker(name, copy_of(local)) for name in ("w1", "w2", "w3")]
    sound = worker("w2", copy_of(local, admitted=True))
    seen = snapshot(local, broken(workers[0]), sound, broken(workers[2]))
    with pytest.raises(ZeroDivisionError):
        decide(seen)
    made = guarded(seen)
    assert sorted(made.left_out) == ["w1", "w3"]
    assert all(isinstance(error, ZeroDivisionError) for error in made.left_out.values())
    words = in_words(seen, made)
    assert words.count("warn") == 2
    assert "record w2" in words
    assert not any(word.endswith((" w1", " w3")) for word in words), "they are left alone"
    assert any("cannot be used" in effect.note for effect in those(AnnounceWorkload, made.effects))


class Incomparable(str):
    """A UID that cannot be compared with another such one."""

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Incomparable) and other is not self:
            raise ZeroDivisionError("nobody expects it")
        return super().__eq__(other)

    __hash__ = str.__hash__


def test_a_plan_that_raises_for_two_workers_together_is_made_without_one_of_them() -> None:
    """It raised again and again, and the Workload was held up everywhere."""
    local = workload(nominated=("w1", "w3"), evictions=1)
    two = [worker(name, copy_of(local, attempt=EARLIER, uid=Incomparable(f"of-{name}"))) for name in ("w1", "w2")]
    seen = snapshot(local, two[0], attrs.evolve(two[1], second_of="w1"), worker("w3", copy_of(local, admitted=True)))
    with pytest.raises(ZeroDivisionError):
        decide(seen)
    made = guarded(seen)
    assert list(made.left_out) == ["w2"]
    assert in_words(seen, made) == ["warn", "delete workload on w1", "warn"], "an earlier attempt may run on w2"


def test_what_runs_stays_on_a_worker_that_makes_the_plan_raise() -> None:
    made = guarded(snapshot(TAKEN, broken(RUNNING), worker("w2")))
    assert in_words(snapshot(TAKEN), made) == ["warn"]


def test_a_plan_that_does_not_raise_is_made_once() -> None:
    seen = snapshot(TAKEN, RUNNING)
    assert guarded(seen) == decide(seen)


@pytest.mark.parametrize("workers", [(), (RUNNING,)])
def test_a_plan_that_raises_without_any_worker_raises(workers: tuple[Worker, ...]) -> None:
    """Then the manager's objects are to blame, or we: the key is tried again with back-off."""
    with pytest.raises(ZeroDivisionError):
        guarded(snapshot(Raising(TAKEN), *workers))


def test_a_lost_worker_stays_lost_whatever_cannot_be_read() -> None:
    there = hidden(attrs.evolve(RUNNING, reach=Opaque()), "Workload cannot be read")
    assert there.reach == Opaque(seen=False)
    assert isinstance(decide(snapshot(TAKEN, there)), Plan)
