"""The order of clusters: by score, and rewritten for a real change only."""

from __future__ import annotations

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from multikueue.core.inventory.ranking import Scores, due_in, has_turned, rank, score, weights
from multikueue.core.model.conditions import timestamp
from multikueue.core.model.names import Json
from tests.core.inventory.ground import NOW, Hub, hub, workload

GPU = ("resource-usage-score", "gpuClusterAvailable")
NAMES = ["a", "b", "c"]


def wants(*configured: tuple[str, str, int]) -> Json:
    """A Placement's spec with these scores and weights."""
    listed = [
        {"scoreCoordinate": {"type": "AddOn", "addOn": {"resourceName": resource, "scoreName": name}}, "weight": weight}
        for resource, name, weight in configured
    ]
    built_in = {"scoreCoordinate": {"type": "BuiltIn", "builtIn": "Steady"}, "weight": 5}
    return {"prioritizerPolicy": {"configurations": [built_in, *listed]}}


def reported(value: int, until: float | None = None) -> Json:
    """An AddOnPlacementScore; `until` seconds from now it expires."""
    status: Json = {"scores": [{"name": GPU[1], "value": value}]}
    return {"status": status | ({"validUntil": timestamp(NOW + timedelta(seconds=until))} if until else {})}


def scored(**points: int) -> Hub:
    """A hub whose Placement weighs free GPUs."""
    ground = hub(*points)
    assert ground.placement is not None
    ground.placement["spec"] = wants((*GPU, 1))
    report(ground, **points)
    return ground


def report(ground: Hub, **points: int) -> None:
    """What the addon of each cluster says now."""
    ground.scores = {(name, GPU[0]): reported(value) for name, value in points.items()}


def test_scores_of_the_decision_come_first() -> None:
    scores = score(NAMES, {"a": 10, "c": 90}, {GPU: 1}, {("b", GPU[0]): reported(100)}, NOW)
    assert rank(NAMES, scores) == ("c", "a", "b")
    assert scores.unknown == ("b",)


def test_weights_of_the_placement_count() -> None:
    weighted = weights({"spec": wants((*GPU, 3), ("r", "mem", -1))})
    assert weighted == {GPU: 3, ("r", "mem"): -1}
    both = {"status": {"scores": [{"name": "mem", "value": 40}]}}
    points = score(["a"], {}, weighted, {("a", GPU[0]): reported(80), ("a", "r"): both}, NOW).points
    assert points == {"a": (3 * 80 - 40) / 4}


def test_missing_and_expired_scores_are_last() -> None:
    """W21: for OCM they count as 0, which is better than a truthful -70."""
    values = {("a", GPU[0]): reported(-70, 60), ("b", GPU[0]): reported(100, -1), ("d", GPU[0]): reported(-100)}
    scores = score(["a", "b", "c", "d"], {}, {GPU: 1}, values, NOW)
    assert rank(["a", "b", "c", "d"], scores) == ("a", "d", "b", "c")
    assert (scores.unknown, scores.look_again) == (("b", "c"), 60)


def test_without_scores_names_decide() -> None:
    assert rank(["b", "a"], score(["b", "a"], {}, {}, {}, NOW)) == ("a", "b")


def test_the_order_follows_scores_by_ten_points_and_every_five_minutes() -> None:
    ground = scored(a=0, b=-50)
    assert ground.settled() == ["a", "b"]
    report(ground, a=0, b=9)
    ground.later(600)
    assert (ground.step().skipped, ground.step().skipped) == (True, False)
    assert ground.listed() == ["a", "b"]
    report(ground, a=0, b=10)
    assert ground.settled() == ["b", "a"]
    report(ground, a=100, b=10)
    plan = ground.settle()
    assert (ground.listed(), plan.look_again) == (["b", "a"], 300)
    ground.after(300)
    assert ground.listed() == ["a", "b"]


def test_the_wait_outlasts_a_restart() -> None:
    ground = scored(a=0, b=50)
    ground.settle()
    ground.memory.clear()
    report(ground, a=100, b=50)
    assert ground.settled() == ["b", "a"]


def test_scores_without_a_place_are_told() -> None:
    ground = scored(a=0, b=50)
    del ground.scores["a", GPU[0]]
    ground.settle()
    assert "without a score, so last: a" in ground.said()[2]


def test_of_many_without_a_score_the_first_are_named() -> None:
    """A Placement of a thousand clusters: the API server takes no message of more than 32 KiB."""
    ground = scored(**dict.fromkeys((f"c{number:03}" for number in range(200)), 0))
    ground.scores.clear()
    ground.settle()
    assert "without a score, so last: c000, c001, c002, c003, c004 and 195 more" in ground.said()[2]


def test_a_new_cluster_comes_in_by_rank() -> None:
    ground = scored(a=0, b=50)
    ground.settle()
    ground.decide("a", "b", "c")
    assert ground.placement is not None
    ground.placement["spec"] = wants((*GPU, 1))
    report(ground, a=0, b=50, c=30)
    ground.workloads = {"w": workload("w")}
    assert ground.settled() == ["b", "c", "a"]


def test_a_cluster_that_has_just_been_selected_stays_for_a_while() -> None:
    """W20: with one cluster by score the choice may change every minute."""
    ground = hub("a", "b", min_dwell=timedelta(minutes=10))
    ground.select("a")
    first, seen = len(ground.writes), set[str]()
    for minute in range(60):
        ground.later(60)
        ground.select("ab"[minute % 2])
        seen.update(ground.listed() or ())
    written = [effect for effect in ground.writes[first:] if "spec" in getattr(effect, "patch", {})]
    assert len(written) <= 2 * len(seen) * 60 / 10  # each comes and goes once in ten minutes at most
    ground.decide("b")
    plan = ground.settle()
    assert plan.look_again is not None
    ground.after(600)
    assert ground.listed() == ["b"]


def test_a_restart_makes_it_stay_no_shorter() -> None:
    """The process that knew since when it is selected is gone, and the Placement has chosen another one meanwhile."""
    ground = hub("a", "b", min_dwell=timedelta(minutes=10))
    ground.select("a")
    ground.later(60)
    ground.memory.clear()
    ground.select("b")
    assert sorted(ground.listed() or ()) == ["a", "b"]
    ground.after(600)
    assert ground.listed() == ["b"]


def test_a_cluster_that_only_dwells_is_told_with_the_time_at_which_it_goes() -> None:
    """It gets new jobs, and whoever has deselected it saw no reason why."""
    ground = hub("a", "b", min_dwell=timedelta(minutes=10))
    ground.select("a")
    joined = ground.now
    ground.later(60)
    ground.select("b")
    told = f"not selected any more, and listed for ocm.minDwell: a (until {timestamp(joined + timedelta(minutes=10))})"
    assert told in ground.said()[2]
    ground.select("a", "b")
    assert "minDwell" not in ground.said()[2]
    ground.select("b")
    ground.after(600)
    assert (ground.listed(), "minDwell" in ground.said()[2]) == (["b"], False)


def test_a_cluster_that_was_detached_does_not_dwell() -> None:
    """It was listed for the rest of its time, without a MultiKueueCluster: nobody could make one."""
    ground = hub("a", "b", min_dwell=timedelta(minutes=10))
    ground.select("a", "b")
    del ground.clusters["a"]
    ground.select("b")
    assert ground.listed() == ["b"]


def test_an_empty_selection_does_not_dwell() -> None:
    ground = hub("a", min_dwell=timedelta(hours=10))
    ground.settle()
    ground.select()
    ground.after(60)
    assert ground.said()[1] == "NoClustersAvailable"


def test_a_clock_that_was_set_back_delays_no_order() -> None:
    assert due_in(NOW + timedelta(days=1), NOW, timedelta(minutes=5)) == 0
    assert due_in(None, NOW, timedelta(minutes=5)) == 0
    assert due_in(NOW, NOW, timedelta(minutes=5)) == 300


@given(st.dictionaries(st.sampled_from("abcdef"), st.integers(-100, 100)), st.permutations("abcdef"))
def test_the_rank_does_not_depend_on_the_order_of_what_is_read(points: dict[str, int], names: list[str]) -> None:
    """W10."""
    scores = Scores({name: float(value) for name, value in points.items()})
    assert rank(names, scores) == rank(sorted(names), scores)
    assert not has_turned(rank(names, scores), scores, 10)


@given(st.lists(st.lists(st.integers(-100, 100), min_size=3, max_size=3), max_size=60))
def test_scores_that_move_every_minute_are_written_every_five(moves: list[list[int]]) -> None:
    ground = scored(a=0, b=0, c=0)
    ground.settle()
    first = len(ground.writes)
    for move in moves:
        ground.later(60)
        report(ground, **dict(zip(NAMES, move, strict=True)))
        ground.step()
        ground.step()
    written = [effect for effect in ground.writes[first:] if "spec" in getattr(effect, "patch", {})]
    assert len(written) <= len(moves) / 5 + 1
