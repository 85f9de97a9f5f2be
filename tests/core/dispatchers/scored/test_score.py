"""Of several workers that a Workload could go to, which is the best.

The settings of profiles: what is read, and what is refused with its path.
"""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from multikueue.core.dispatchers.scored.job_annotations import PREFERENCE
from multikueue.core.dispatchers.scored.profile import Hold, Profile, Then, Weights, parse_profile, parse_profiles
from multikueue.core.dispatchers.scored.score import COST, SPEED
from multikueue.core.model.conditions import timestamp
from multikueue.core.model.labels import PLACEMENTS_ANNOTATION
from multikueue.core.model.placements import FAULT
from tests.core.dispatchers.scored.pending import GPU, pending, queue
from tests.core.door import NOW


@pytest.mark.parametrize("name", ["w1", "w2", "w3"])
@pytest.mark.parametrize(
    ("changes", "asked"),
    [
        ({"annotations": {COST: "0.5"}}, {}),
        ({"annotations": {COST: "0"}}, {}),
        ({"annotations": {SPEED: "2"}}, {}),
        ({"labels": {"region": "eu"}}, {PREFERENCE: "region=eu:100"}),
    ],
)
def test_the_cheap_the_fast_and_the_preferred_worker_win(
    name: str, changes: dict[str, Any], asked: dict[str, str]
) -> None:
    waiting = pending({"w1": queue(), "w2": queue(), "w3": queue()}, annotations=asked)
    waiting.change(name, **changes)

    assert waiting.ask().names == (name,)


@pytest.mark.parametrize("names", [("w1", "w2", "w3"), ("w3", "w1", "w2")])
def test_equal_workers_are_filled_in_the_configs_order(names: tuple[str, ...]) -> None:
    """Jobs that were spread left no worker empty enough for one that needs a whole one: such jobs waited for days."""
    free = dict.fromkeys(names, 16) | {names[0]: 3, names[1]: 5}

    assert pending({name: queue(amount) for name, amount in free.items()}).ask().names == (names[1],)


@pytest.mark.parametrize(("gpus", "names"), [(4, ("second",)), (6, ("first",))])
def test_own_room_comes_before_borrowed(gpus: int, names: tuple[str, ...]) -> None:
    """What is borrowed is taken back when its lenders need it. Where it would borrow anywhere, the order counts."""
    lent = {"borrowable": {GPU: 5}}

    assert pending({"first": queue(8, **lent), "second": queue(9, **lent)}, gpus=gpus).ask().names == names


@pytest.mark.parametrize(
    ("shared", "name"),
    [
        ({"w1": 60}, "w2"),
        ({"w1": 59}, "w1"),  # for a moment ours look like jobs of others
        ({"w1": 60, "w2": 60}, "w1"),  # the last is for what needs a whole one
        ({"w1": 60, "w2": 60, "w3": 60}, "w1"),
    ],
)
def test_of_equal_workers_those_that_others_use_come_after_those_that_nobody_else_does(
    shared: dict[str, int], name: str
) -> None:
    """Their users waited for room that ours could have had elsewhere."""
    since = {worker: {"shared_since": NOW - timedelta(seconds=seconds)} for worker, seconds in shared.items()}

    assert pending({worker: queue(8, **since.get(worker, {})) for worker in ("w1", "w2", "w3")}).ask().names == (name,)


@pytest.mark.parametrize(("known", "names"), [({}, ("w1",)), ({"has_checks": True}, ("w2",))])
def test_jobs_of_others_that_wait_count_only_where_quota_says_nothing(
    known: dict[str, Any], names: tuple[str, ...]
) -> None:
    """There is room for this one, and none for them. While they counted, small jobs went to the next worker, and none
    stayed empty for a gang: one fleet waited for 9.5 times as long as with AllAtOnce."""
    others = {"others_pending": 3, "others_since": NOW - timedelta(hours=1)}

    assert pending({"w1": queue(8, **others, **known), "w2": queue(8, **known)}).ask().names[:1] == names


def test_the_score_of_what_stays_free_is_accepted_and_counts_for_nothing() -> None:
    profile = parse_profile({"scores": {"quota": 1000}}, "p")

    assert pending({"w1": queue(4), "w2": queue(16)}, profile=profile).ask().names == ("w1",)


@pytest.mark.parametrize("cost", ["1e-320", "1e308", "nan", "-1", "", "\u0662", "dear"])
@pytest.mark.parametrize("speed", ["1e-320", "1e308", "inf", "0", "fast"])
def test_no_cost_and_no_speed_keeps_jobs_away(cost: str, speed: str) -> None:
    """One worker with an absurd pair held the jobs of all: a price of 0 was divided by."""
    waiting = pending({"w1": queue(), "w2": queue()})
    waiting.change("w1", annotations={COST: cost, SPEED: speed})

    assert len(waiting.ask().names) == 1


def test_a_worker_is_compared_with_those_that_are_as_sure() -> None:
    """The cheapest has no room: beside it 10 and 20 would be almost the same, and the first of them the best."""
    waiting = pending({"cheap": queue(0), "dearest": queue(16), "dear": queue(6)})
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

    assert answer.names == ()
    assert (waiting.ask(1800.0).names, waiting.ask(1799.0).names) == ((), ())
    assert waiting.ask(1.0).names == ("w2",)


def test_a_worker_with_a_penalty_is_the_last_of_its_tier() -> None:
    until = NOW + timedelta(hours=1)
    waiting = pending({"w1": queue(16, penalized_until=until), "w2": queue(4)})

    assert waiting.ask().names == ("w2",)
    assert pending({"w1": queue(penalized_until=until), "w2": queue(0)}).ask().names == ("w1",)


def test_a_profile_says_only_what_differs() -> None:
    profile = parse_profile(
        {
            "offer": {"candidates": 2, "retry": "1m30s"},
            "hold": "never",
            "scores": {"cost": 70},
            "preference": {"place=local": 100, "region=eu": 10},
            "giveUp": {"after": "1h", "then": "Deactivate"},
        },
        "p",
    )

    assert profile == Profile(
        candidates=2,
        retry=timedelta(seconds=90),
        hold=Hold.NEVER,
        weights=Weights(cost=70),
        preference="place=local:100,region=eu:10",
        give_up_after=timedelta(hours=1),
        then=Then.DEACTIVATE,
    )


def test_there_is_always_a_default() -> None:
    assert parse_profiles(None) == {"default": Profile()}
    assert parse_profiles({"x": {}, "default": {"hold": "never"}})["default"].hold is Hold.NEVER


@pytest.mark.parametrize(
    ("value", "where"),
    [
        ([], "p is not an object"),
        ({"offers": {}}, "p.offers is not known"),
        ({"offer": {"retry": "14s"}}, "p.offer.retry is 14s: at least 15s"),
        ({"offer": {"retry": 15}}, "p.offer.retry is 15"),
        ({"offer": {"candidates": 0}}, "p.offer.candidates is 0"),
        ({"offer": {"most": 21}}, "p.offer.most is 21"),
        ({"offer": {"most": True}}, "p.offer.most is True"),
        ({"offer": {"candidates": 4}}, "p.offer.candidates is 4: no more than most, 3"),
        ({"hold": "ever"}, "p.hold is 'ever'"),
        ({"hold": {}}, "p.hold is {}"),
        ({"scores": {"luck": 1}}, "p.scores.luck is not known"),
        ({"scores": {"cost": -1}}, "p.scores.cost is -1"),
        ({"scores": {"cost": float("nan")}}, "p.scores.cost is nan"),
        ({"preference": ["place=local"]}, "p.preference is not an object"),
        ({"preference": {"place": 100}}, "p.preference has 'place': 100"),
        ({"preference": {"place=local": 101}}, "p.preference has 'place=local': 101"),
        ({"preference": {"place=local": "x"}}, "p.preference has 'place=local': 'x'"),
        ({"giveUp": {"after": "0s"}}, "p.giveUp.after is '0s'"),
        ({"giveUp": {"after": "59s"}}, "p.giveUp.after is 59s: at least 60s"),
        ({"giveUp": {"then": "None"}}, "p.giveUp.then is 'None'"),
    ],
)
def test_what_is_wrong_is_told_with_its_path(value: Any, where: str) -> None:
    with pytest.raises(ValueError, match="^" + where.replace("[", r"\[").replace("{", r"\{").replace(".", r"\.")):
        parse_profile(value, "p")
