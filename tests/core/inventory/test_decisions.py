"""PlacementDecisions: their union, found by label and owner."""

from __future__ import annotations

from multikueue.core.inventory.names import PLACEMENT_LABEL, SCHEDULING_DISABLED
from multikueue.core.inventory.selection import Decision, Unconfirmed, accept, placements_of, read_decision
from multikueue.core.inventory.settings import PlacementSettings
from multikueue.core.model.conditions import new_condition
from multikueue.core.model.names import Json
from tests.core.inventory.ground import NOW, decision, placement

INDEX = "cluster.open-cluster-management.io/decision-group-index"
GRACE = PlacementSettings().grace


def group_of(*decisions: str, clusters: int) -> Json:
    """What the status of a Placement tells of a group."""
    return {"decisionGroupIndex": 0, "decisions": list(decisions), "clusterCount": clusters}


def test_gaps_missing_labels_and_empty_names() -> None:
    """W12: the addon failed on a missing index, lost clusters behind a gap, and listed the empty name."""
    listed = [
        decision("a", "", number=1, labels={PLACEMENT_LABEL: "p", INDEX: "0"}),
        decision("b", "a", number=2, labels={PLACEMENT_LABEL: "p", INDEX: "2"}),
        decision("c", number=3, labels={PLACEMENT_LABEL: "p"}),
        decision("d", number=4, labels={PLACEMENT_LABEL: "p", INDEX: "garbled"}),
    ]
    assert read_decision(placement(), listed) == Decision(frozenset("abcd"))


def test_a_decision_is_found_by_its_owner_alone() -> None:
    assert read_decision(placement(), [decision("a", labels={})]).names == {"a"}
    assert list(placements_of(decision("a", labels={}))) == ["p"]
    assert list(placements_of(decision("a"))) == ["p"]


def test_a_decision_is_found_by_its_label_alone() -> None:
    made = decision("a")
    del made["metadata"]["ownerReferences"]
    assert read_decision(placement(), [made]).names == {"a"}


def test_decisions_of_others_do_not_count() -> None:
    former = decision("a")
    former["metadata"]["ownerReferences"][0]["uid"] = "of a Placement of this name that was deleted"
    assert read_decision(placement(), [former, decision("b", of="q")]).names == frozenset()


def test_a_decision_that_is_being_deleted_does_not_count() -> None:
    going = decision("a")
    going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert read_decision(placement(), [going, decision("b", number=2)]).names == {"b"}


def test_what_is_no_whole_answer() -> None:
    group = {"decisions": ["p-decision-1", "p-decision-2"]}
    bad = new_condition("PlacementMisconfigured", True, "X", "why", now=NOW)
    decided = {
        "not scheduled yet": read_decision(placement(), []),
        "p-decision-2 is not there": read_decision(placement(decisionGroups=[group]), [decision("a")]),
        "has selected 2 clusters": read_decision(placement(numberOfSelectedClusters=2), [decision("a")]),
        "is misconfigured: why": read_decision(placement(conditions=[bad]), [decision()]),
    }
    assert [words for words, decision in decided.items() if words not in decision.problem] == []


def test_a_cluster_that_moves_between_decisions_is_in_both_for_a_moment() -> None:
    """Two groups become two others; the union has as many clusters as the status told before (seed 750094)."""
    before = placement(numberOfSelectedClusters=2, decisionGroups=[group_of("p-decision-1", clusters=2)])
    begun = [decision("b", "c"), decision(number=2)]
    assert "does not tell of PlacementDecision p-decision-2 yet" in read_decision(before, begun).problem

    groups = [group_of("p-decision-1", clusters=2), group_of("p-decision-2", clusters=1)]
    moving = [decision("a", "b"), decision("a", number=2)]
    decided = read_decision(placement(numberOfSelectedClusters=2, decisionGroups=groups), moving)
    assert decided.problem == "the decisions of Placement p name a cluster twice"
    decided = read_decision(placement(numberOfSelectedClusters=3, decisionGroups=groups), moving)
    assert decided.problem == "Placement p has selected 3 clusters, and its decisions name 2"

    moved = [decision("a"), decision("b", "c", number=2)]
    decided = read_decision(placement(numberOfSelectedClusters=3, decisionGroups=groups), moved)
    assert decided.problem == "a group of Placement p has 2 clusters, but its decisions name 1"

    whole = [decision("a", "b"), decision("c", number=2)]
    assert not read_decision(placement(numberOfSelectedClusters=3, decisionGroups=groups), whole).problem


def test_a_group_of_many_clusters_has_several_decisions() -> None:
    groups = [group_of("p-decision-1", "p-decision-2", clusters=3)]
    placed = placement(numberOfSelectedClusters=3, decisionGroups=groups)
    assert read_decision(placed, [decision("a", "b"), decision("c", number=2)]) == Decision(frozenset("abc"))


def test_another_scheduler_need_not_write_the_status() -> None:
    placed = placement(numberOfSelectedClusters=0)
    placed["metadata"]["annotations"] = {SCHEDULING_DISABLED: "true"}
    assert read_decision(placed, [decision("a")]) == Decision(frozenset("a"))


def test_a_doubt_begins_anew_with_another_decision() -> None:
    before = frozenset("abcdef")
    first = accept(Decision(frozenset()), before, None, NOW, GRACE)
    assert first.unconfirmed == Unconfirmed(frozenset(), NOW)
    later = accept(Decision(frozenset("a")), before, first.unconfirmed, NOW + GRACE, GRACE)
    assert (later.names, later.look_again) == (before, 60)
    held = accept(Decision(frozenset("a")), before, later.unconfirmed, NOW + 2 * GRACE, GRACE)
    assert held.names == frozenset("a")


def test_a_moment_that_is_no_whole_answer_ends_a_doubt() -> None:
    before = frozenset("abcdef")
    first = accept(Decision(frozenset()), before, None, NOW, GRACE)
    between = accept(Decision(frozenset(), problem="x"), before, first.unconfirmed, NOW + GRACE, GRACE)
    assert (between.names, between.unconfirmed) == (before, None)
