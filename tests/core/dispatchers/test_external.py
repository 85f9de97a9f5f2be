"""Somebody else names the workers: the copies are where the names say, and nothing is said against them.

All at once: whom a Workload is offered to.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from multikueue.core.dispatchers.dispatcher import MAX_NOMINATIONS, AllAtOnce, External, Nomination
from multikueue.core.model.workloads import nominated
from tests.core.building import candidates, copy_of, job_copy_of, snapshot, worker, workload
from tests.core.door import MANAGER, NOW, ApplyStatus, CreateWorkload, Lost, Snapshot, decide
from tests.core.strategies import snapshots
from tests.core.wording import in_words
from tests.examples import examples


def words(seen: Snapshot) -> list[str]:
    return in_words(seen, decide(seen, External()))


def test_until_a_worker_is_named_nothing_is_created_or_written() -> None:
    """What the check says of it is all."""
    seen = snapshot(workload(said="Offered to no worker cluster"), worker("w1"), worker("w2"))
    assert words(seen) == []
    assert decide(seen, External()).look_again is None


def test_copies_are_made_where_the_names_say_and_removed_where_they_no_longer_do() -> None:
    local = workload(nominated=("w2", "w3"))
    seen = snapshot(local, worker("w1", copy_of(local)), worker("w2"), worker("w3", copy_of(local)))
    assert words(seen) == ["delete workload on w1", "create workload on w2"]


@pytest.mark.parametrize("name", ["unknown", "unconfigured", "lost"])
def test_an_unknown_name_is_ignored(name: str) -> None:
    """The others are offered it, and no error repeats (item 43). The name stays: it is not ours to take away."""
    workers = (
        worker("w1"),
        worker("lost", reach=Lost()),
        worker("unconfigured", configured=False),
    )
    seen = snapshot(workload(nominated=(name, "w1")), *workers)
    assert words(seen) == ["create workload on w1"]


def test_a_named_worker_that_has_left_the_config_loses_its_copy() -> None:
    """It could not win any more, and would hold quota for nothing."""
    local = workload(nominated=("w1", "w2"))
    seen = snapshot(local, worker("w1", copy_of(local)), worker("w2", copy_of(local), configured=False))
    assert words(seen) == ["delete workload on w2"]


def test_a_worker_whose_name_was_taken_away_as_it_admitted_does_not_win() -> None:
    local = workload(nominated=("w2",))
    seen = snapshot(local, worker("w1", copy_of(local, admitted=True)), worker("w2", copy_of(local)))
    assert words(seen) == ["delete workload on w1"]


def test_unless_it_has_the_job_by_then() -> None:
    """It runs there: taking it away would run it twice."""
    local = workload(nominated=("w2",))
    holder = worker("w1", copy_of(local, admitted=True), job_copy_of(local))
    seen = snapshot(local, holder, worker("w2", copy_of(local)))
    assert words(seen) == ["nominate w1", "delete workload on w2"]


def test_the_names_are_emptied_as_ours_when_a_worker_has_it() -> None:
    """Written by another field manager they would outlive an apply that leaves them out, and block clusterName."""
    local = workload(nominated=("w1",))
    seen = snapshot(local, worker("w1", copy_of(local, admitted=True), job_copy_of(local)))
    write = decide(seen, External()).effects[0]
    assert isinstance(write, ApplyStatus)
    assert write.object["status"]["clusterName"] == "w1"
    assert write.object["status"]["nominatedClusterNames"] == []


@settings(max_examples=examples(150), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(snapshots().filter(lambda seen: not seen.siblings))
def test_names_are_never_chosen_and_copies_never_made_elsewhere(seen: Snapshot) -> None:
    """Whatever the caches show: what we write of the names is a job's place, or nothing. (Groups go where they are.)"""
    decided = decide(seen, External())
    if not decided.row.startswith("pending: ") or seen.workload is None:
        return
    placed = {worker.name for worker in seen.workers if worker.jobs}
    for effect in decided.effects:
        if isinstance(effect, CreateWorkload):
            assert effect.cluster in nominated(seen.workload)
        if isinstance(effect, ApplyStatus) and effect.cluster == MANAGER:
            names = nominated(effect.object)
            assert names == nominated(seen.workload) or set(names) <= placed


names = st.lists(st.integers(0, 40).map(lambda number: f"w{number}"), unique=True)


def nominate(configured: list[str], available: list[str], nominated: list[str]) -> Nomination:
    return AllAtOnce().nominate(workload(), candidates(configured, available, nominated), NOW)


def test_all_that_can_be_reached_are_offered_it() -> None:
    """In an order that does not depend on who connected first, so that no write only reorders."""
    assert nominate(["w2", "w1", "w3"], ["w2", "w1"], []) == Nomination(("w1", "w2"), None)


def test_one_that_drops_stays_and_one_that_left_the_config_does_not() -> None:
    assert nominate(["w1", "w2"], ["w2"], ["w1", "gone"]).names == ("w1", "w2")


@given(names, names, names)
def test_only_workers_of_the_config_are_named_and_never_too_many(
    configured: list[str], available: list[str], nominated: list[str]
) -> None:
    """The API server refuses a longer list."""
    usable = [name for name in available if name in configured]
    chosen = nominate(configured, usable, nominated).names
    assert set(chosen) <= set(configured)
    assert len(chosen) <= MAX_NOMINATIONS
    assert len(chosen) == MAX_NOMINATIONS or set(usable) <= set(chosen)
    assert nominate(configured, usable, list(chosen)).names == chosen
