"""Small fleets: what each policy must show at any size."""

from __future__ import annotations

import attrs
import pytest

from tests.dispatch.fleet import Wanted, draw
from tests.dispatch.load import Flavor, Job, Load, Worker
from tests.dispatch.manager import Settings
from tests.dispatch.measures import Measures
from tests.dispatch.policies import POLICIES
from tests.dispatch.simulation import simulate

SMALL = Wanted(workers=5, jobs=300, load=0.7)


def run(policy: str, wanted: Wanted = SMALL, seed: int = 1) -> Measures:
    return simulate(draw(wanted, seed), POLICIES[policy], Settings())


def hour(name: str, submit: float = 0.0, gpus: int = 4, priority: int = 0) -> Job:
    return Job(name, submit, "tenant", (gpus, 0), 3600.0, priority=priority)


def workers(*names: str) -> tuple[Worker, ...]:
    return tuple(Worker(name, (Flavor("a100", 4, 0),)) for name in names)


@pytest.mark.parametrize("policy", POLICIES)
def test_the_same_seed_gives_the_same_measures_and_another_one_others(policy: str) -> None:
    first, second, other = run(policy), run(policy), run(policy, seed=2)

    assert repr(first) == repr(second)
    assert first != other
    assert first["unfinished"] == 0


def test_all_at_once_asks_everybody_and_takes_back_from_all_but_one() -> None:
    assert run("all-at-once")["requests"] == 2 * SMALL.workers


def test_incremental_asks_three_first() -> None:
    load = Load((hour("job"),), workers("a", "b", "c", "d"))

    assert simulate(load, POLICIES["incremental"], Settings())["requests"] == 6


def test_a_copy_is_as_old_as_its_offer_or_as_its_job() -> None:
    """The young job is offered first, to the only worker that the other one is offered to in the second round."""
    load = Load((hour("running"), hour("old", 1), hour("young", 2)), workers("a"))

    for policy in POLICIES:
        waits = simulate(load, POLICIES[policy], Settings(unlimited=True))
        assert waits["unfinished"] == 0
        assert waits["wait_p90"] >= 7000


def test_what_a_broken_worker_evicts_comes_back_to_it_until_it_is_given_up() -> None:
    """As it is asked first, and admits as fast as the others."""
    load = Load((hour("job"),), (attrs.evolve(workers("a")[0], broken=True), *workers("b")))

    measures = simulate(load, POLICIES["all-at-once"], Settings(requeues=3))

    assert (measures["unfinished"], measures["evictions"]) == (1, 4)


@pytest.mark.parametrize("policy", POLICIES)
def test_a_job_of_a_lost_worker_runs_again_elsewhere(policy: str) -> None:
    load = Load((hour("job"),), (attrs.evolve(workers("a")[0], lost=(60.0, 7200.0)), *workers("b")))
    for first in (load, attrs.evolve(load, workers=load.workers[::-1])):
        assert simulate(first, POLICIES[policy], Settings())["makespan_h"] < 1.5


@pytest.mark.parametrize("policy", POLICIES)
def test_a_job_of_a_workers_own_users_that_waits_until_ours_have_ended_counts(policy: str) -> None:
    """It was left out: the longer they waited, the shorter their waits were."""
    ours = (hour("first", gpus=2), hour("second", 1800, gpus=2))
    load = Load(ours, (attrs.evolve(workers("a")[0], own=(hour("own", 60), hour("next", 60))),))

    assert simulate(load, POLICIES[policy], Settings())["own_p99"] >= 8000


@pytest.mark.parametrize("policy", POLICIES)
def test_an_urgent_job_preempts(policy: str) -> None:
    load = Load((hour("job"), hour("urgent", 600.0, priority=1)), workers("a"))

    measures = simulate(load, POLICIES[policy], Settings(unlimited=True))

    assert (measures["preemptions"], measures["unfinished"]) == (1, 0)


def test_when_a_job_starts_is_told_once_enough_of_its_size_have_started() -> None:
    """Two always wait: each for about two hours."""
    first = [hour(f"first-{i}") for i in range(3)]
    load = Load((*first, *(hour(f"job-{i}", 3600.0 * i + i * 7 % 10 * 60) for i in range(1, 60))), workers("a"))

    measures = simulate(load, POLICIES["scored"], Settings(unlimited=True))

    assert 20 <= measures["interval_told"] <= 40
    assert measures["interval_right"] >= 0.7
    assert measures["interval_width"] < 1800
    assert simulate(load, POLICIES["all-at-once"], Settings(unlimited=True))["interval_told"] == 0


def test_room_in_a_flavor_that_a_job_cannot_use_is_none() -> None:
    """Each worker has room in its other flavor all the time, and is not asked before that of the job is free."""
    both = (Flavor("t4", 4, 0), Flavor("a100", 4, 0))
    jobs = [attrs.evolve(hour(f"job-{i}", i), model="a100") for i in range(4)]
    load = Load(tuple(jobs), (Worker("a", both), Worker("b", both)))

    measures = simulate(load, POLICIES["scored"], Settings(unlimited=True))

    assert (measures["unfinished"], measures["requests"]) == (0, 2)
    assert measures["makespan_h"] < 2.1
