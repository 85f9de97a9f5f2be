"""Of several workers that a Workload could go to, which is the best."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from multikueue.core.dispatchers.scored.job_annotations import PREFERENCE
from multikueue.core.dispatchers.scored.penalties import FAULT
from multikueue.core.dispatchers.scored.score import COST, SPEED
from multikueue.core.model.conditions import timestamp
from multikueue.core.model.labels import PLACEMENTS_ANNOTATION
from tests.core.building import NOW
from tests.core.dispatchers.scored.pending import pending, queue


@pytest.mark.parametrize("name", ["w1", "w2", "w3"])
@pytest.mark.parametrize(
    ("changes", "asked"),
    [
        ({"annotations": {COST: "0.5"}}, {}),
        ({"annotations": {COST: "0"}}, {}),
        ({"annotations": {SPEED: "2"}}, {}),
        ({"labels": {"region": "eu"}}, {PREFERENCE: "region=eu:100"}),
        ({"queue": queue(16)}, {}),
    ],
)
def test_the_cheap_the_fast_the_preferred_and_the_empty_worker_win(
    name: str, changes: dict[str, Any], asked: dict[str, str]
) -> None:
    waiting = pending({"w1": queue(), "w2": queue(), "w3": queue()}, annotations=asked)
    waiting.change(name, **changes)

    assert waiting.ask().names == (name,)


@pytest.mark.parametrize("cost", ["1e-320", "1e308", "nan", "-1", "", "\u0662", "dear"])
@pytest.mark.parametrize("speed", ["1e-320", "1e308", "inf", "0", "fast"])
def test_no_cost_and_no_speed_keeps_jobs_away(cost: str, speed: str) -> None:
    """One worker with an absurd pair held the jobs of all: a price of 0 was divided by."""
    waiting = pending({"w1": queue(), "w2": queue()})
    waiting.change("w1", annotations={COST: cost, SPEED: speed})

    assert len(waiting.ask().names) == 1


def test_a_worker_is_compared_with_those_that_are_as_sure() -> None:
    """The cheapest has no room: beside it 10 and 20 would be almost the same, and the emptier of them the best."""
    waiting = pending({"cheap": queue(0), "dear": queue(6), "dearest": queue(16)})
    for name, cost in (("cheap", "1"), ("dear", "10"), ("dearest", "20")):
        waiting.change(name, annotations={COST: cost})

    assert waiting.ask().names == ("dear",)


@pytest.mark.parametrize(("fault", "names"), [({}, ("w2",)), ({"fault": "worker"}, ("w1",))])
def test_where_it_has_run_is_best_unless_that_worker_was_at_fault(
    fault: dict[str, str], names: tuple[str, ...]
) -> None:
    asked = {PLACEMENTS_ANNOTATION: json.dumps([{"worker": "w2", "until": timestamp(NOW), **fault}])}

    assert pending({"w1": queue(8), "w2": queue(7)}, annotations=asked).ask().names == names


def test_where_it_failed_it_goes_back_after_an_hour_if_the_other_has_no_room_until_then() -> None:
    failed = {"worker": "w2", "until": timestamp(NOW), "fault": FAULT}
    waiting = pending({"w1": queue(0), "w2": queue(7)}, annotations={PLACEMENTS_ANNOTATION: json.dumps([failed])})
    answer = waiting.ask()

    assert (answer.names, answer.look_again) == ((), 3600.0)
    assert waiting.ask(3600.0).names == ("w2",)


def test_a_worker_with_a_penalty_is_the_last_of_its_tier() -> None:
    until = NOW + timedelta(hours=1)
    waiting = pending({"w1": queue(16, penalized_until=until), "w2": queue(4)})

    assert waiting.ask().names == ("w2",)
    assert pending({"w1": queue(penalized_until=until), "w2": queue(0)}).ask().names == ("w1",)
