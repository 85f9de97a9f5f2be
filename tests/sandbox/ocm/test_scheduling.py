"""Which clusters a Placement gets: what its documentation says, as values."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from multikueue.core.model.conditions import timestamp
from multikueue.core.model.names import Json
from multikueue.sandbox.ocm.kinds import GROUP_INDEX_LABEL, GROUP_NAME_LABEL, PLACEMENT_LABEL, SET_LABEL
from multikueue.sandbox.ocm.scheduling.deciding import Decided, Inventory, decide

NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
GLOBAL = frozenset({"global"})


def cluster(
    name: str, cluster_set: str = "spoke", *, taints: Any = (), claims: Json | None = None, **labels: str
) -> Json:
    status = {"clusterClaims": [{"name": key, "value": value} for key, value in (claims or {}).items()]}
    metadata = {"name": name, "labels": {SET_LABEL: cluster_set, **labels}}
    return {"metadata": metadata, "spec": {"taints": list(taints)}, "status": status}


def chosen(spec: Json, *clusters: Json, now: datetime = NOW, **around: Any) -> Decided:
    inventory = Inventory(clusters, **{"bound": GLOBAL, **around})
    return decide({"metadata": {"name": "p", "namespace": "ns"}, "spec": spec}, inventory, now)


def said(decided: Decided, kind: str = "PlacementSatisfied") -> tuple[str, str]:
    decided_condition = next(condition for condition in decided.conditions if condition["type"] == kind)
    return decided_condition["status"], decided_condition["reason"]


def score(cluster_name: str, value: int, until: datetime | None = None) -> tuple[tuple[str, str], Json]:
    status: Json = {"scores": [{"name": "gpuClusterAvailable", "value": value}]}
    if until is not None:
        status["validUntil"] = timestamp(until)
    return (cluster_name, "resource-usage-score"), {"status": status}


ADDON = {"type": "AddOn", "addOn": {"resourceName": "resource-usage-score", "scoreName": "gpuClusterAvailable"}}
MOST_GPUS: Json = {
    "numberOfClusters": 1,
    "prioritizerPolicy": {"mode": "Exact", "configurations": [{"scoreCoordinate": ADDON, "weight": 1}]},
}


def selector(**kinds: Any) -> Json:
    return {"predicates": [{"requiredClusterSelector": kinds}]}


@pytest.mark.parametrize(
    ("bound", "asked", "clusters", "reason"),
    [
        ((), [], ("a",), "NoManagedClusterSetBindings"),
        (("other",), ["spoke"], ("a",), "NoIntersection"),
        (("other",), [], ("a",), "AllManagedClusterSetsEmpty"),
        (("spoke",), [], ("a",), "AllDecisionsScheduled"),
        (("global",), ["global"], ("a",), "AllDecisionsScheduled"),
    ],
)
def test_a_cluster_is_chosen_only_from_sets_bound_to_the_namespace(
    bound: tuple[str, ...], asked: list[str], clusters: tuple[str, ...], reason: str
) -> None:
    decided = chosen({"clusterSets": asked}, *map(cluster, clusters), bound=frozenset(bound))
    assert said(decided)[1] == reason
    assert decided.clusters == (["a"] if reason == "AllDecisionsScheduled" else [])


def test_a_cluster_that_is_being_deleted_is_not_chosen() -> None:
    going = cluster("a")
    going["metadata"]["deletionTimestamp"] = timestamp(NOW)
    assert chosen({}, going, cluster("b")).clusters == ["b"]


@pytest.mark.parametrize(
    ("kinds", "names"),
    [
        ({"labelSelector": {"matchLabels": {"accelerator": "nvidia-tesla-t4"}}}, ["a"]),
        ({"labelSelector": {"matchExpressions": [{"key": "accelerator", "operator": "Exists"}]}}, ["a", "b"]),
        ({"labelSelector": {"matchExpressions": [{"key": "accelerator", "operator": "DoesNotExist"}]}}, ["c"]),
        (
            {"labelSelector": {"matchExpressions": [{"key": "accelerator", "operator": "In", "values": ["a100"]}]}},
            ["b"],
        ),
        (
            {"labelSelector": {"matchExpressions": [{"key": "accelerator", "operator": "NotIn", "values": ["a100"]}]}},
            ["a", "c"],
        ),
        ({"claimSelector": {"matchExpressions": [{"key": "region", "operator": "In", "values": ["eu"]}]}}, ["b"]),
        ({"celSelector": {"celExpressions": ["managedCluster.metadata.labels['accelerator'] == 'a100'"]}}, ["b"]),
        ({"celSelector": {"celExpressions": ["managedCluster.metadata.name != 'a'"]}}, ["b", "c"]),
    ],
)
def test_predicates_select_by_labels_claims_and_cel(kinds: Json, names: list[str]) -> None:
    clusters = (
        cluster("a", accelerator="nvidia-tesla-t4"),
        cluster("b", accelerator="a100", claims={"region": "eu"}),
        cluster("c"),
    )
    assert chosen(selector(**kinds), *clusters).clusters == names


def test_one_predicate_is_enough_and_all_of_its_selectors_have_to_hold() -> None:
    both = {"labelSelector": {"matchLabels": {"x": "1"}}, "celSelector": {"celExpressions": ["false"]}}
    other = {"labelSelector": {"matchLabels": {"y": "1"}}}
    spec = {"predicates": [{"requiredClusterSelector": both}, {"requiredClusterSelector": other}]}
    assert chosen(spec, cluster("a", x="1"), cluster("b", y="1")).clusters == ["b"]


def test_nothing_that_matches_is_told() -> None:
    assert said(chosen(selector(labelSelector={"matchLabels": {"no": "such"}}), cluster("a")))[1] == (
        "NoManagedClusterMatched"
    )


def taint(effect: str = "NoSelect", ago: float = 0.0) -> Json:
    return {"key": "gpu", "value": "", "effect": effect, "timeAdded": timestamp(NOW - timedelta(seconds=ago))}


@pytest.mark.parametrize(
    ("effect", "tolerations", "before", "selected"),
    [
        ("NoSelect", [], False, False),
        ("NoSelect", [], True, False),
        ("NoSelect", [{"key": "gpu", "operator": "Exists"}], False, True),
        ("NoSelect", [{"key": "gpu"}], False, True),
        ("NoSelect", [{"key": "gpu", "value": "other"}], False, False),
        ("NoSelect", [{"operator": "Exists"}], False, True),
        ("NoSelect", [{"key": "gpu", "operator": "Exists", "effect": "NoSelectIfNew"}], False, False),
        ("PreferNoSelect", [], False, True),
        ("NoSelectIfNew", [], False, False),
        ("NoSelectIfNew", [], True, True),
    ],
)
def test_taints_keep_clusters_away_unless_tolerated(
    effect: str, tolerations: list[Json], before: bool, selected: bool
) -> None:
    decided = chosen(
        {"tolerations": tolerations}, cluster("a", taints=[taint(effect)]), chosen=frozenset({"a"} if before else ())
    )
    assert decided.clusters == (["a"] if selected else [])


def test_a_toleration_may_end() -> None:
    spec = {"tolerations": [{"key": "gpu", "operator": "Exists", "tolerationSeconds": 60}]}
    early, late = (cluster("a", taints=[taint(ago=seconds)]) for seconds in (59, 60))
    assert chosen(spec, early).until == NOW + timedelta(seconds=1)
    assert (chosen(spec, early).clusters, chosen(spec, late).clusters) == (["a"], [])


@pytest.mark.parametrize(
    "spec",
    [
        {"tolerations": [{"value": "x"}]},
        {"tolerations": [{"key": "x", "operator": "Exists", "value": "y"}]},
        selector(labelSelector={"matchExpressions": [{"key": "x", "operator": "in", "values": ["y"]}]}),
        selector(celSelector={"celExpressions": ["managedCluster.("]}),
        {"prioritizerPolicy": {"configurations": [{"scoreCoordinate": {"type": "BuiltIn", "builtIn": "Steddy"}}]}},
    ],
)
def test_a_typo_empties_the_decision(spec: Json) -> None:
    decided = chosen(spec, cluster("a"), chosen=frozenset({"a"}))
    assert decided.clusters == []
    assert [part.name for part in decided.slices] == ["p-decision-1"]
    assert said(decided, "PlacementMisconfigured") == ("True", "Misconfigured")
    assert said(decided) == ("False", "NotAllDecisionsScheduled")


def test_the_most_free_gpus_win_and_what_is_not_reported_beats_what_is_bad() -> None:
    """A missing score counts 0, and so does one that is over: OCM's rule, which ours has to live with."""
    clusters = [cluster(name) for name in ("a", "b", "c")]
    assert chosen(MOST_GPUS, *clusters, scores=dict([score("a", -80), score("b", -70)])).clusters == ["c"]
    everyone = [score("a", -80), score("b", -70), score("c", -100)]
    assert chosen(MOST_GPUS, *clusters, scores=dict(everyone)).clusters == ["b"]
    over = [score("a", -80), score("b", -70), score("c", -100, NOW)]
    assert chosen(MOST_GPUS, *clusters, scores=dict(over)).clusters == ["c"]


def test_what_was_chosen_is_kept_unless_only_scores_count() -> None:
    """Steady is worth 100 points in the mode Additive; in Exact there is no damping at all."""
    clusters, scores = [cluster("a"), cluster("b")], dict([score("a", -80), score("b", -70)])
    additive = {**MOST_GPUS, "prioritizerPolicy": {**MOST_GPUS["prioritizerPolicy"], "mode": "Additive"}}
    assert chosen(additive, *clusters, scores=scores, chosen=frozenset({"a"})).clusters == ["a"]
    assert chosen(MOST_GPUS, *clusters, scores=scores, chosen=frozenset({"a"})).clusters == ["b"]


def test_clusters_that_others_have_chosen_are_chosen_last() -> None:
    decided = chosen({"numberOfClusters": 1}, cluster("a"), cluster("b"), taken=Counter(a=2, b=1))
    assert decided.clusters == ["b"]


def test_weights_turn_scores_around_and_equal_ones_go_by_name() -> None:
    scores = dict([score("a", -80), score("b", -70)])
    policy = {"mode": "Exact", "configurations": [{"scoreCoordinate": ADDON, "weight": -1}]}
    spec = {"numberOfClusters": 1, "prioritizerPolicy": policy}
    assert chosen(spec, cluster("b"), cluster("a"), scores=scores).clusters == ["a"]
    assert chosen({"numberOfClusters": 1}, cluster("b"), cluster("a")).clusters == ["a"]


def test_what_has_more_to_allocate_wins() -> None:
    small, large = cluster("a"), cluster("b")
    small["status"]["allocatable"], large["status"]["allocatable"] = {"cpu": "4"}, {"cpu": "8500m"}
    built_in = {"type": "BuiltIn", "builtIn": "ResourceAllocatableCPU"}
    policy = {"mode": "Exact", "configurations": [{"scoreCoordinate": built_in, "weight": 2}]}
    assert chosen({"numberOfClusters": 1, "prioritizerPolicy": policy}, small, large).clusters == ["b"]


def test_too_few_clusters_are_told() -> None:
    decided = chosen({"numberOfClusters": 3}, cluster("a"))
    assert decided.clusters == ["a"]
    assert said(decided) == ("False", "NotAllDecisionsScheduled")


def test_the_order_of_scores_is_lost_in_a_decision() -> None:
    scores = dict([score("a", -80), score("b", -70)])
    decided = chosen({**MOST_GPUS, "numberOfClusters": 2}, cluster("a"), cluster("b"), scores=scores)
    assert decided.clusters == ["a", "b"]


def test_a_decision_is_cut_into_slices_of_100_and_an_empty_one_has_a_slice_as_well() -> None:
    many = chosen({}, *(cluster(f"c{number:03}") for number in range(201)))
    assert [(part.name, len(part.clusters)) for part in many.slices] == [
        ("p-decision-1", 100),
        ("p-decision-2", 100),
        ("p-decision-3", 1),
    ]
    empty = chosen({})
    assert [(part.name, part.clusters) for part in empty.slices] == [("p-decision-1", ())]
    assert empty.slices[0].labels("p") == {PLACEMENT_LABEL: "p", GROUP_INDEX_LABEL: "0", GROUP_NAME_LABEL: ""}
    assert empty.status() == {
        "numberOfSelectedClusters": 0,
        "decisionGroups": [
            {"decisionGroupIndex": 0, "decisionGroupName": "", "decisions": ["p-decision-1"], "clusterCount": 0}
        ],
    }


@pytest.mark.parametrize(("size", "parts"), [(2, [2, 1]), ("50%", [2, 1]), ("100%", [3])])
def test_groups_are_cut_and_what_no_group_has_comes_last(size: int | str, parts: list[int]) -> None:
    canary = {"groupName": "canary", "groupClusterSelector": {"labelSelector": {"matchLabels": {"canary": "yes"}}}}
    strategy = {"groupStrategy": {"clustersPerDecisionGroup": size, "decisionGroups": [canary]}}
    clusters = [cluster("z", canary="yes"), *(cluster(name) for name in ("a", "b", "c"))]
    decided = chosen({"decisionStrategy": strategy}, *clusters)
    first = decided.slices[0]
    assert (first.group, first.index, first.name) == ("canary", 0, "p-decision-1")
    assert [len(part.clusters) for part in decided.slices[1:]] == parts
    assert [part.index for part in decided.slices] == list(range(len(parts) + 1))
