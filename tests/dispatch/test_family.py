"""The family of small fleets, and requests that are late."""

from __future__ import annotations

import math

import pytest

from tests.dispatch.family import BY_NAME, FLEETS, SAMPLE, SCORED, Results, beside, fleets, geometric, medians
from tests.dispatch.load import GANG, Flavor, Job, Load, Worker
from tests.dispatch.manager import Settings
from tests.dispatch.policies import POLICIES
from tests.dispatch.simulation import simulate


def test_each_row_is_a_fleet_and_the_gates_sample_is_of_them() -> None:
    known = fleets()

    assert len(known) == len(FLEETS.read_text().splitlines()) - 1
    assert {*SAMPLE} <= known.keys()


@pytest.mark.parametrize("name", ["07", "24", "31"])
def test_a_fleet_is_drawn_as_its_row_says(name: str) -> None:
    fleet = fleets()[name]
    load, again = fleet.draw(0, 2_000), fleet.draw(0, 2_000)
    gangs = [job for job in load.jobs if job.kind == GANG]

    assert [job.submit for job in load.jobs] == [job.submit for job in again.jobs]
    assert [job.submit for job in load.jobs] != [job.submit for job in fleet.draw(1, 2_000).jobs]
    assert len(load.workers) == fleet.workers
    assert all(len(worker.flavors) == (fleet.flavors if fleet.mixed else 1) for worker in load.workers)
    assert bool(sum(len(worker.own) for worker in load.workers)) == fleet.own
    assert fleet.share / 2 < len(gangs) / len(load.jobs) < fleet.share * 2
    assert any(job.request[1] for job in load.jobs) == fleet.cpu


def test_where_requests_are_late_another_worker_than_the_first_by_name_wins() -> None:
    """It always won: AllAtOnce packed, and looked better with gangs than any real race."""
    jobs = tuple(Job(f"job-{i}", 60.0 * i, "tenant", (1, 0), 30.0) for i in range(20))
    load = Load(jobs, tuple(Worker(name, (Flavor("a100", 4, 0),), cost=cost) for name, cost in (("a", 1), ("b", 3))))

    def dear(delay: float) -> float:
        return simulate(load, POLICIES[BY_NAME], Settings(delay=(0.0, delay)))["cost"]

    assert dear(0.5) > 1.2 * dear(0.0)
    assert dear(0.0) == pytest.approx(20 * 30 / 3600, rel=0.01)


def test_a_fleet_counts_once_by_the_median_of_its_seeds() -> None:
    waits = {"00": (70, 70, 270), "01": (30, 30, 30)}
    results: Results = {}
    for fleet, means in waits.items():
        for seed, wait in enumerate(means):
            for policy, mean in ((BY_NAME, 20.0), (SCORED, float(wait))):
                shown = dict.fromkeys(("wait_p99", "gang_mean", "gang_p99", "own_p99"), None)
                results[f"{fleet} / {seed} / {policy} / 9"] = {**shown, "wait_mean": mean}

    assert len(beside(results, BY_NAME)["wait_mean"]["00"]) == 3
    assert medians(results, BY_NAME, "wait_mean") == {"00": 2.0, "01": 1.2}
    assert medians(results, BY_NAME, "gang_mean") == {}
    assert geometric([2.0, 0.5])[0] == 1.0
    assert math.isnan(geometric([])[0])
