"""Clusters that come and go while jobs run: nothing runs twice, and nothing is believed too early."""

from __future__ import annotations

import pytest

from multikueue.core.inventory.settings import Policy
from multikueue.core.model.conditions import new_condition
from multikueue.core.model.names import Json
from tests.core.inventory.ground import (
    FOREIGN,
    NOW,
    Hub,
    decision,
    hub,
    placement,
    set_condition,
    worker,
    workload,
)

CLUSTERS = [f"c{number}" for number in range(6)]


def ready(ground: Hub, name: str = "new") -> str:
    """What our entry on a Workload that waits becomes."""
    ground.workloads[name] = workload(name)
    ground.settle()
    return ground.state(name)


def test_a_cluster_that_is_not_selected_leaves_at_once_where_we_dispatch() -> None:
    """The third story of OCM's guide: new jobs go to the new cluster, the running one stays."""
    ground = hub("c2", "c3")
    ground.select("c2")
    ground.workloads = {"old": workload("old", cluster="c2", state="Ready", Admitted=True)}
    ground.select("c3")
    assert ground.listed() == ["c3"]
    assert "no longer selected, and still running jobs: c2" in ground.said()[2]
    assert (ready(ground), ground.state("old")) == ("Ready", "Ready")


def test_beside_another_controller_it_stays_until_its_jobs_have_ended() -> None:
    """§0.2: dropping it makes the other controller run the job again elsewhere."""
    ground = hub("c2", "c3", controller=FOREIGN)
    ground.select("c2")
    ground.workloads = {"old": workload("old", cluster="c2", state="Ready", Admitted=True)}
    ground.select("c3")
    assert ground.listed() == ["c3", "c2"]
    assert ready(ground) == "Pending"
    assert "no longer lists c2" in ground.workloads["new"]["status"]["admissionChecks"][1]["message"]
    set_condition(ground.workloads["old"], "Finished", True)
    plan = ground.step()
    assert ground.listed() == ["c3", "c2"]  # the other controller removes its copies now
    assert plan.look_again is not None
    ground.later(plan.look_again)
    ground.step()
    assert ground.listed() == ["c3"]
    plan = ground.step()
    assert ground.state("new") == "Pending"  # the other controller's cache has to show it first
    assert plan.look_again is not None
    ground.later(plan.look_again)
    ground.step()
    assert ground.state("new") == "Ready"


def test_a_restart_in_the_middle_of_a_drain_changes_nothing() -> None:
    ground = hub("c2", "c3", controller=FOREIGN)
    ground.select("c2")
    ground.workloads = {"old": workload("old", cluster="c2", state="Ready")}
    ground.select("c3")
    ground.memory.clear()
    assert ground.settled() == ["c3", "c2"]
    ground.workloads = {}
    ground.memory.clear()
    ground.step()
    assert ground.listed() == ["c3", "c2"]  # nobody knows when the last one left
    ground.later(61)
    ground.step()
    assert ground.listed() == ["c3"]


def test_after_a_restart_what_has_been_empty_is_empty() -> None:
    """The config is kept as it was; nothing new is let through to clusters that nobody selects."""
    ground = hub("c1", "c2")
    ground.settle()
    ground.decide()
    ground.step()
    ground.after(61)
    assert ground.said()[1] == "NoClustersAvailable"
    ground.memory.clear()
    ground.workloads = {"new": workload("new")}
    ground.settle()
    assert (ground.said()[1], ground.listed(), ground.state("new")) == ("NoClustersAvailable", ["c1", "c2"], "Pending")


def test_a_workload_that_is_offered_there_holds_it_beside_another_controller() -> None:
    """That controller may give it the job at this moment."""
    ground = hub("c2", "c3", controller=FOREIGN)
    ground.settle()
    ground.workloads = {"offered": workload("offered", offered=("c2", "c3"), state="Ready")}
    ground.select("c3")
    assert ground.listed() == ["c3", "c2"]
    ours = hub("c2", "c3")
    ours.settle()
    ours.workloads = {"offered": workload("offered", offered=("c2", "c3"), state="Ready")}
    ours.decide("c3")
    ours.settle()
    assert ours.listed() == ["c3"]


def test_a_workload_that_we_keep_from_being_offered_holds_nothing() -> None:
    """A dispatcher of a user's own nominates as soon as there is quota; the Workload waits for the cluster to leave."""
    ground = hub("c2", "c3", controller=FOREIGN)
    ground.workloads = {"old": workload("old", cluster="c2", state="Ready", Admitted=True)}
    ground.settle()
    ground.decide("c3")
    ground.workloads |= {"new": workload("new", offered=("c2",))}
    ground.settle()
    assert (ground.listed(), ground.state("new")) == (["c3", "c2"], "Pending")
    set_condition(ground.workloads["old"], "Finished", True)
    ground.settle()
    ground.after(61)
    assert ground.listed() == ["c3"]
    ground.after(3)
    assert ground.state("new") == "Ready"


def test_a_workload_that_was_told_ready_holds_what_is_listed() -> None:
    """Beside another controller, which is about to offer it to what it has seen in the list."""
    ground = hub("c2", "c3", controller=FOREIGN)
    ground.later(5)
    ground.workloads = {"w": workload("w", state="Ready")}
    ground.settle()
    ground.select("c3")
    assert ground.listed() == ["c3", "c2"]
    ground.workloads = {"w": workload("w", state="Ready", offered=("c3",))}
    ground.settle()
    ground.after(61)
    assert ground.listed() == ["c3"]


def test_a_missing_multikueue_check_counts_as_somebody_elses() -> None:
    """It is being made again, and whoever it is for has jobs there."""
    ground = hub("c2", "c3")
    ground.settle()
    ground.workloads = {"old": workload("old", cluster="c2", state="Ready")}
    del ground.checks["mk"]
    ground.select("c3")
    assert ground.listed() == ["c3", "c2"]


def test_a_cluster_that_somebody_takes_off_the_list_by_hand_is_put_back() -> None:
    """What runs there would run again elsewhere."""
    ground = hub("c2", "c3", controller=FOREIGN)
    ground.settle()
    ground.workloads = {"old": workload("old", cluster="c2", state="Ready")}
    ground.select("c3")
    ground.configs["p"]["spec"]["clusters"] = ["c3"]
    assert ground.settled() == ["c3", "c2"]


def test_evict_sends_back_what_is_only_offered_beside_another_controller() -> None:
    """It would keep the cluster listed for as long as nobody takes it."""
    ground = hub("c2", "c3", controller=FOREIGN, policy=Policy.EVICT)
    ground.settle()
    ground.workloads = {
        "there": workload("there", offered=("c2", "c3"), state="Ready"),
        "elsewhere": workload("elsewhere", offered=("c3",), state="Ready"),
    }
    ground.select("c3")
    assert (ground.state("there"), ground.state("elsewhere")) == ("Retry", "Ready")


def test_evict_sends_back_first_and_drops_then() -> None:
    ground = hub("c2", "c3", controller=FOREIGN, policy=Policy.EVICT)
    ground.settle()
    ground.workloads = {
        "old": workload("old", cluster="c2", state="Ready", Admitted=True),
        "stays": workload("stays", cluster="c3", state="Ready", Admitted=True),
    }
    ground.select("c3")
    assert (ground.state("old"), ground.state("stays")) == ("Retry", "Ready")
    assert ground.listed() == ["c3", "c2"]
    ground.workloads["old"] = workload("old", QuotaReserved=False)
    assert ground.settled() == ["c3", "c2"]
    ground.after(61)
    assert ground.listed() == ["c3"]


def test_immediate_drops_at_once() -> None:
    ground = hub("c2", "c3", controller=FOREIGN, policy=Policy.IMMEDIATE)
    ground.settle()
    ground.workloads = {"old": workload("old", cluster="c2", state="Ready")}
    ground.select("c3")
    assert ground.listed() == ["c3"]


def test_an_empty_decision_is_believed_after_a_minute_and_keeps_the_config() -> None:
    """§0.3 and W4: deleting it leaves running jobs alone."""
    ground = hub(*CLUSTERS)
    ground.settle()
    ground.workloads = {"old": workload("old", cluster="c1", state="Ready", Admitted=True)}
    ground.decide()
    plan = ground.step()
    assert (ground.said()[0], plan.look_again) == ("True", 60)
    ground.later(59)
    ground.step()
    assert ground.said()[0] == "True"
    ground.after(1)
    assert ground.said()[:2] == ("False", "NoClustersAvailable")
    assert ground.said()[2].startswith("No clusters available for placement p")
    assert ground.listed() == CLUSTERS
    assert (ready(ground), ground.state("old")) == ("Pending", "Ready")


def test_a_placement_that_never_had_clusters() -> None:
    ground = hub()
    ground.settle()
    assert ground.said() == ("False", "NoClustersAvailable", ground.said()[2])
    assert ground.listed() is None


def test_a_moment_without_clusters_is_not_noticed() -> None:
    ground = hub(*CLUSTERS)
    ground.settle()
    for _ in range(20):
        ground.decide()
        ground.step()
        ground.later(30)
        ground.decide(*CLUSTERS)
        ground.step()
        ground.later(30)
    assert ground.listed() == CLUSTERS
    assert ground.said()[0] == "True"
    assert sum("ClustersChanged" in event for event in ground.events) == 1


@pytest.mark.parametrize(("left", "at_once"), [(5, True), (3, True), (2, False), (1, False)])
def test_a_shrink_by_more_than_half_has_to_last(left: int, at_once: bool) -> None:
    ground = hub(*CLUSTERS)
    ground.settle()
    ground.select(*CLUSTERS[:left])
    assert (ground.listed() == CLUSTERS[:left]) is at_once
    ground.after(60)
    assert ground.listed() == CLUSTERS[:left]


def test_other_clusters_of_the_same_number_are_no_shrink() -> None:
    ground = hub("a", "b")
    ground.settle()
    ground.select("c", "d")
    assert ground.listed() == ["c", "d"]


def test_a_typo_in_the_placement_changes_nothing() -> None:
    """OCM empties the decision of a Placement that it cannot read."""
    ground = hub("a", "b")
    ground.settle()
    ground.decide()
    bad = new_condition("PlacementMisconfigured", True, "Misconfigured", "bad toleration", now=NOW)
    assert ground.placement is not None
    ground.placement["status"]["conditions"].append(bad)
    ground.settle()
    ground.after(3600)
    assert ground.listed() == ["a", "b"]
    assert ground.said()[0] == "True"
    assert "Placement p is misconfigured: bad toleration" in ground.said()[2]
    assert ready(ground) == "Ready"


def test_decisions_that_are_replaced_one_by_one() -> None:
    ground = hub("a", "b", "c", "d")
    group: Json = {"decisionGroupIndex": 0, "decisions": ["p-decision-1", "p-decision-2"]}
    ground.placement = placement(numberOfSelectedClusters=4, decisionGroups=[group])
    ground.decisions = [decision("a", "b"), decision("c", "d", number=2)]
    assert ground.settled() == ["a", "b", "c", "d"]
    ground.decisions = [decision("a", "b")]  # the second is about to be made again
    assert ground.settled() == ["a", "b", "c", "d"]
    assert "PlacementDecision p-decision-2 is not there" in ground.said()[2]
    ground.decisions = [decision("a", "b"), decision("c", number=2)]  # the status has not followed yet
    assert ground.settled() == ["a", "b", "c", "d"]
    ground.placement = placement(numberOfSelectedClusters=3, decisionGroups=[group])
    assert ground.settled() == ["a", "b", "c"]


def test_the_check_is_ready_only_where_a_cluster_is_active() -> None:
    """§0.1: without Ready nothing ever runs."""
    ground = hub("a", "b")
    ground.clusters = {"a": worker("a", active=False)}
    assert ready(ground) == "Pending"
    assert "No cluster of MultiKueueConfig p is active" in str(ground.workloads["new"]["status"])
    ground.clusters["b"] = worker("b")
    ground.settle()
    assert ground.state("new") == "Ready"
    ground.clusters = {}
    ground.settle()
    assert ground.state("new") == "Ready"


@pytest.mark.parametrize(
    "odd",
    [
        {"QuotaReserved": False},
        {"Evicted": True},
        {"Finished": True},
    ],
)
def test_workloads_that_kueue_does_not_ask_about_are_left_alone(odd: dict[str, bool]) -> None:
    ground = hub("a")
    ground.workloads = {"w": workload("w", state="Pending", cluster="", offered=(), **odd)}
    ground.settle()
    assert ground.state("w") == "Pending"


def test_a_workload_that_another_check_has_rejected_waits() -> None:
    ground = hub("a")
    ground.workloads = {"w": workload("w")}
    ground.workloads["w"]["status"]["admissionChecks"][0]["state"] = "Rejected"
    ground.settle()
    assert ground.state("w") == "Pending"


def test_what_runs_already_becomes_ready_whatever_holds_up_others() -> None:
    """Under the addon nobody had made it Ready, and a check that is added to a queue begins Pending."""
    ground = hub("c2", "c3", controller=FOREIGN)
    ground.settle()
    ground.workloads = {"old": workload("old", cluster="c2")}
    ground.decide("c3")
    assert (ready(ground), ground.state("old")) == ("Pending", "Ready")


def test_our_entry_alone_is_written() -> None:
    ground = hub("a")
    ground.workloads = {"w": workload("w")}
    ground.settle()
    entry = ground.workloads["w"]["status"]["admissionChecks"][1]
    assert set(entry) == {"name", "state", "message", "lastTransitionTime"}
    assert ground.workloads["w"]["status"]["admissionChecks"][0] == {"name": "mk", "state": "Pending"}
