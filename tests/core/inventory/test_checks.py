"""The placement check: what it says, and what it writes for a Placement's decision."""

from __future__ import annotations

from datetime import timedelta

import pytest

from multikueue.core.effects import Create
from multikueue.core.inventory.names import ADDON_FINALIZER, CONFIG_LABEL, FINALIZER, KUEUE_FINALIZER
from multikueue.core.inventory.settings import Adopt
from multikueue.core.model.conditions import condition
from multikueue.core.model.labels import CORDON_ANNOTATION
from multikueue.core.model.names import Json
from multikueue.core.model.second_names import Because, SecondName, second_name_status
from tests.core.applying import merged
from tests.core.inventory.ground import (
    FOREIGN,
    NOW,
    decision,
    hub,
    multikueue_check,
    placement,
    placement_check,
    terminating,
    worker,
    workload,
)

MADE = "MultiKueueConfig p is generated successfully"


def config(*clusters: str, **metadata: object) -> Json:
    shown: Json = {"name": "p", "uid": "uid-cfg", "resourceVersion": "1", **metadata}
    return {"metadata": shown, "spec": {"clusters": list(clusters)}}


def test_a_decision_becomes_a_config_and_the_check_says_so() -> None:
    ground = hub("b", "a")
    assert ground.settled() == ["a", "b"]
    assert ground.said() == ("True", "Active", f"{MADE}; clusters: a, b")
    assert (condition(ground.checks["placed"], "Active") or {})["observedGeneration"] == 2
    assert ground.configs["p"]["metadata"]["ownerReferences"][0]["uid"] == "uid-placed"
    assert ground.checks["placed"]["metadata"]["finalizers"] == [FINALIZER]


def test_changes_of_the_set_are_told() -> None:
    ground = hub("a", "b")
    ground.settle()
    ground.select("a", "c")
    assert ground.events == [
        "Normal ClustersChanged: MultiKueueConfig p: +a +b",
        "Normal ClustersChanged: MultiKueueConfig p: +c -b",
    ]


def test_the_figures_of_the_metrics() -> None:
    ground = hub("a", "b")
    ground.settle()
    ground.workloads = {"w": workload("w", cluster="b")}
    ground.select("a")
    ground.later(30)
    statistics = ground.step().statistics
    assert statistics is not None
    assert (statistics.selected, statistics.listed, statistics.draining, statistics.since) == (
        1,
        1,
        1,
        ground.now - timedelta(seconds=30),
    )


@pytest.mark.parametrize(
    ("parameters", "what"),
    [
        (None, "spec.parameters is missing"),
        ({}, "spec.parameters is missing"),
        ({"apiGroup": "x", "kind": "Placement", "name": "p"}, 'spec.parameters.apiGroup is "x"'),
        (
            {"apiGroup": "cluster.open-cluster-management.io", "kind": "ManagedCluster", "name": "p"},
            "parameters.kind is",
        ),
        ({"apiGroup": "cluster.open-cluster-management.io", "kind": "Placement", "name": "a.b"}, "without dots"),
        ({"apiGroup": "cluster.open-cluster-management.io", "kind": "Placement"}, 'spec.parameters.name is ""'),
        ("p", "spec.parameters is missing"),
    ],
)
def test_bad_parameters_are_one_condition_and_nothing_is_deleted(parameters: object, what: str) -> None:
    """§0.8: one such check did not only fail, the others were not reconciled either."""
    ground = hub("a")
    ground.settle()
    ground.checks["placed"]["spec"]["parameters"] = parameters
    ground.settle()
    assert ground.said()[:2] == ("False", "BadParameters")
    assert what in ground.said()[2]
    assert ground.listed() == ["a"]


def test_a_check_without_parameters_leaves_others_alone() -> None:
    ground = hub("a")
    ground.checks["bad"] = placement_check("bad")
    del ground.checks["bad"]["spec"]["parameters"]
    ground.settle("bad")
    ground.settle()
    assert ground.said("bad")[1] == "BadParameters"
    assert ground.said()[1] == "Active"


def test_a_placement_that_does_not_exist() -> None:
    ground = hub("a")
    ground.settle()
    ground.placement = None
    ground.workloads = {"w": workload("w")}
    ground.settle()
    assert ground.said() == ("False", "PlacementNotFound", "Placement p not found")
    assert ground.listed() == ["a"]
    assert ground.state("w") == "Pending"


@pytest.mark.parametrize("adopt", [Adopt.NONE, Adopt.ADDON])
def test_a_config_is_to_be_taken_over_only_where_that_is_done(adopt: Adopt) -> None:
    """The setting leaves what another Placement fills, and was advised for that, too, where it was on already."""
    ground = hub("a", adopt=adopt)
    ground.configs["p"] = merged(config("theirs"), {"metadata": {"labels": {CONFIG_LABEL: "other"}}})
    ground.settle()
    assert ground.said()[1] == "Conflict"
    assert "ocm.adopt" not in ground.said()[2]
    ground = hub("a")
    ground.configs["p"] = config("theirs")
    ground.settle()
    assert "have it taken over by ocm.adopt: addon" in ground.said()[2]


def test_a_config_of_somebody_else_is_left_alone() -> None:
    """§0.4 and W7: the addon takes it over, and later deletes it."""
    ground = hub("a")
    ground.configs["p"] = config("theirs")
    ground.settle()
    assert ground.said()[1] == "Conflict"
    assert ground.listed() == ["theirs"]
    assert ground.checks["placed"]["metadata"]["finalizers"] == []


def test_more_fields_of_a_config_survive() -> None:
    ground = hub("a")
    ground.settle()
    ground.configs["p"]["spec"]["quotaManagement"] = "Automated"
    ground.select("a", "b")
    assert ground.configs["p"]["spec"] == {"clusters": ["a", "b"], "quotaManagement": "Automated"}
    del ground.configs["p"]
    ground.settle()
    assert ground.configs["p"]["spec"] == {"clusters": ["a", "b"], "quotaManagement": "Automated"}


def test_what_others_change_is_mended() -> None:
    """W14."""
    ground = hub("a", "b")
    ground.settle()
    ground.configs["p"] = merged(ground.configs["p"], {"spec": {"clusters": ["x"]}})
    ground.configs["p"]["metadata"]["ownerReferences"] = []
    assert ground.settled() == ["a", "b"]
    assert ground.configs["p"]["metadata"]["ownerReferences"]


def test_no_write_without_a_change() -> None:
    """§0.6: eight touches without a change gave six generations."""
    ground = hub("c", "a", "b")
    ground.settle()
    written = len(ground.writes)
    for seconds in range(8):
        ground.later(seconds)
        ground.step()
    assert len(ground.writes) == written


def test_21_clusters_are_20_and_the_check_says_how_many_are_left_out() -> None:
    """§0.7: for the addon that is an error for ever."""
    names = [f"c{number:02}" for number in range(23)]
    ground = hub(*names)
    ground.workloads = {"w": workload("w", cluster="c22")}
    assert ground.settled() == [*names[:19], "c22"]
    assert "3 more are selected than the config can list" in ground.said()[2]
    assert ground.said()[0] == "True"


def test_of_more_than_20_those_that_can_be_workers_find_a_place_first() -> None:
    """A hundred clusters without an agent, first by name, took the places of three workers: nothing was admitted."""
    ground = hub(*(f"a-{number:03}" for number in range(24)), "w1", "w2", "w3")
    for name in ("a-022", "w2"):
        ground.clusters[name] = worker(name, active=False)
    for number in range(22):
        del ground.clusters[f"a-{number:03}"]
    listed = ground.settled()
    assert listed is not None
    assert {"a-022", "a-023", "w1", "w2", "w3"} <= set(listed)
    assert listed == sorted(listed)
    assert listed[:2] == ["a-000", "a-001"]
    assert len(listed) == 20


@pytest.mark.parametrize("held", ["cordoned", "a second name"])
def test_one_that_gets_nothing_new_has_the_place_of_none_that_does(held: str) -> None:
    """Of more than 20 a cordoned one kept its place, though it was Active and idle, and another got no job at all."""
    ground = hub(*(f"a-{number:03}" for number in range(20)), "w1")
    if held == "cordoned":
        ground.clusters["a-003"]["metadata"]["annotations"] = {CORDON_ANNOTATION: "for repair"}
    else:
        second = SecondName("a-000", "uid", Because.SAME_CLUSTER)
        noted = second_name_status(ground.clusters["a-003"], second, NOW)
        ground.clusters["a-003"]["status"]["conditions"].append(noted)
    listed = ground.settled()
    assert listed is not None
    assert "w1" in listed
    assert "a-003" not in listed
    assert len(listed) == 20


def test_two_checks_share_a_config_and_the_last_takes_it_along() -> None:
    """§0.5: deleting either deleted it under the other."""
    ground = hub("a")
    ground.checks["second"] = placement_check("second")
    ground.settle()
    ground.settle("second")
    assert len(ground.configs["p"]["metadata"]["ownerReferences"]) == 2
    assert "shared with placed" in ground.said("second")[2]
    ground.checks["placed"] = terminating(ground.checks["placed"])
    ground.step()
    assert [owner["name"] for owner in ground.configs["p"]["metadata"]["ownerReferences"]] == ["second"]
    ground.step()
    assert "placed" not in ground.checks
    ground.settle("second")
    assert ground.said("second")[2] == f"{MADE}; clusters: a"
    ground.checks["second"] = terminating(ground.checks["second"])
    ground.step("second")
    ground.step("second")
    assert ground.configs == {}
    assert "second" not in ground.checks


def test_a_check_in_use_keeps_its_config() -> None:
    """W8: Kueue holds a check that a queue uses."""
    ground = hub("a")
    ground.settle()
    check = terminating(ground.checks["placed"])
    ground.checks["placed"] = merged(check, {"metadata": {"finalizers": [FINALIZER, KUEUE_FINALIZER]}})
    assert ground.step().effects == ()
    ground.checks["placed"] = merged(check, {"metadata": {"finalizers": [FINALIZER]}})
    for busy in (workload("w", cluster="a"), workload("w", offered=("a",), state="Ready")):
        ground.workloads = {"w": busy}
        assert ground.step().effects == ()
    assert ground.listed() == ["a"]
    ground.workloads = {}
    ground.step()
    assert ground.listed() is None
    ground.step()
    assert "placed" not in ground.checks


def test_another_placement_gives_the_former_config_up_once_nothing_runs() -> None:
    """W9: it stayed for ever."""
    ground = hub("a")
    ground.settle()
    ground.workloads = {"w": workload("w", cluster="a")}
    ground.checks["placed"]["spec"]["parameters"]["name"] = "q"
    ground.decisions, ground.placement = [decision("b", of="q")], placement("q", numberOfSelectedClusters=1)
    ground.settle()
    # Somebody else may follow that job by the new config, once the other check names it as well.
    assert (ground.listed("q"), ground.listed("p")) == (["b", "a"], ["a"])
    ground.workloads = {}
    ground.settle()
    ground.after(61)
    assert (ground.listed("q"), ground.listed("p")) == (["b"], None)


def test_another_placement_is_believed_at_once() -> None:
    """What the former one had selected says nothing about it."""
    ground = hub("a", "b", "c", "d")
    ground.settle()
    ground.checks["placed"]["spec"]["parameters"]["name"] = "q"
    ground.decisions, ground.placement = [decision("b", of="q")], placement("q", numberOfSelectedClusters=1)
    ground.settle()
    assert ground.listed("q") == ["b"]


def test_only_the_eldest_of_two_checks_writes_the_list() -> None:
    """They may have seen different moments of the decision."""
    ground = hub("a")
    ground.checks["second"] = placement_check("second")
    ground.settle("second")
    assert ground.listed() is None
    ground.settle()
    ground.decide("a", "b")
    ground.settle("second")
    assert ground.listed() == ["a"]
    assert ground.settled() == ["a", "b"]


def test_a_check_that_the_addon_has_writes_nothing_and_the_next_does() -> None:
    ground = hub("a")
    ground.checks["placed"]["metadata"]["finalizers"] = [ADDON_FINALIZER]
    ground.checks["second"] = placement_check("second")
    ground.settle("second")
    assert ground.listed() == ["a"]


def test_beside_the_addon_nothing_is_written() -> None:
    ground = hub("a")
    ground.checks["placed"]["metadata"]["finalizers"] = [ADDON_FINALIZER]
    ground.workloads = {"w": workload("w")}
    ground.settle()
    conflict = condition(ground.checks["placed"], "PlacementConflict") or {}
    assert (conflict["status"], conflict["reason"]) == ("True", "Conflict")
    assert condition(ground.checks["placed"], "Active") is None
    assert ground.listed() is None
    assert "message" not in ground.workloads["w"]["status"]["admissionChecks"][1]


def test_what_the_addon_has_made_is_taken_over() -> None:
    ground = hub("a", "b", adopt=Adopt.ADDON)
    ground.checks["placed"]["metadata"]["finalizers"] = [ADDON_FINALIZER, KUEUE_FINALIZER]
    ground.configs["p"] = config("b", "a")
    ground.workloads = {"w": workload("w", cluster="a")}
    ground.settle()
    assert ground.checks["placed"]["metadata"]["finalizers"] == [KUEUE_FINALIZER, FINALIZER]
    assert ground.configs["p"]["metadata"]["uid"] == "uid-cfg"
    assert ground.configs["p"]["metadata"]["labels"] == {CONFIG_LABEL: "p"}
    assert ground.said()[1] == "Active"


def test_a_check_that_the_addon_has_left_behind_can_be_deleted() -> None:
    """Nobody else takes its finalizer off. What it has made is not known to be anybody's, and stays."""
    ground = hub("a", adopt=Adopt.ADDON)
    ground.configs["p"] = config("a")
    check = terminating(ground.checks["placed"])
    ground.checks["placed"] = merged(check, {"metadata": {"finalizers": [ADDON_FINALIZER]}})
    ground.step()
    assert "placed" not in ground.checks
    assert ground.listed() == ["a"]


def test_an_addon_that_still_runs_is_noticed_while_it_is_taken_over() -> None:
    """It puts its finalizer back. One that is uninstalled leaves it beside ours: every check that had seen both stayed
    in conflict."""
    ground = hub("a", adopt=Adopt.ADDON)
    ground.settle()
    ground.checks["placed"]["metadata"]["finalizers"].append(ADDON_FINALIZER)
    ground.settle()
    assert ground.checks["placed"]["metadata"]["finalizers"] == [FINALIZER]
    assert condition(ground.checks["placed"], "PlacementConflict") is None
    ground.checks["placed"]["metadata"]["finalizers"].append(ADDON_FINALIZER)
    ground.select("a", "b")
    assert ground.listed() == ["a"]
    assert condition(ground.checks["placed"], "PlacementConflict") is not None
    ground.decide("a")
    ground.checks["placed"]["metadata"]["finalizers"] = [FINALIZER]
    ground.settle()
    assert condition(ground.checks["placed"], "PlacementConflict") is None


def test_workers_of_the_recipe_of_2024_keep_their_names() -> None:
    ground = hub("a", "b", adopt=Adopt.RECIPE_2024)
    ground.clusters = {"p-a": worker("p-a"), "b": worker("b")}
    ground.configs["p"] = config("p-a")
    ground.workloads = {"w": workload("w", cluster="p-a")}
    assert ground.settled() == ["b", "p-a"]
    assert ground.configs["p"]["metadata"]["uid"] == "uid-cfg"


def test_a_config_of_an_inventory_is_not_adopted() -> None:
    ground = hub("a", adopt=Adopt.ADDON)
    ground.configs["p"] = config("x", labels={"multikueue.dev/inventory": "p"})
    ground.settle()
    assert ground.said()[1] == "Conflict"


def test_a_config_that_is_made_names_no_field_of_others() -> None:
    ground = hub("a", controller=FOREIGN)
    ground.step()
    (made,) = [effect for effect in ground.look().effects if isinstance(effect, Create)]
    assert set(made.object["spec"]) == {"clusters"}


def test_a_deleted_config_is_made_again_with_what_runs() -> None:
    ground = hub("a", "b", controller=FOREIGN)
    ground.settle()
    ground.workloads = {"w": workload("w", cluster="b")}
    ground.select("a")
    del ground.configs["p"]
    ground.memory.clear()  # a new process
    assert ground.settled() == ["a", "b"]


def test_a_check_of_another_config_does_not_hold_it() -> None:
    ground = hub("a", "b", controller=FOREIGN)
    ground.checks["mk"] = multikueue_check("other", FOREIGN)
    assert ground.settled() == ["a", "b"]


def test_a_hub_that_is_selected_is_no_worker() -> None:
    """A config that listed it waited for a MultiKueueCluster that nobody makes."""
    ground = hub("a")
    ground.select("a", "local-cluster")
    assert ground.settled() == ["a"]
    assert "the hub itself (local-cluster) is selected and left out" in ground.said()[2]
    ground.clusters["local-cluster"] = worker("local-cluster")
    assert ground.settled() == ["a", "local-cluster"]
    assert "local-cluster)" not in ground.said()[2]
