"""Inventories: ClusterProfiles by label, and nothing of OCM."""

from __future__ import annotations

from typing import Final

import pytest

from multikueue.core.inventory.names import INVENTORY_LABEL
from tests.core.inventory.ground import FOREIGN, OURS, Hub, multikueue_check, worker, workload

EVENTS_ARE_KEPT: Final = 3600
"""Seconds, by API servers."""


def inventory(*profiles: str, controller: str = OURS) -> Hub:
    ground = Hub(profiles=set(profiles))
    ground.checks = {"mk": multikueue_check("inv", controller)}
    return ground


def test_profiles_become_workers_and_a_config() -> None:
    ground = inventory("b", "a")
    ground.stock()
    ground.stock()
    assert ground.listed("inv") == ["a", "b"]
    assert ground.clusters["a"]["spec"] == {"clusterSource": {"clusterProfileRef": {"name": "a"}}}
    assert ground.configs["inv"]["metadata"]["labels"] == {INVENTORY_LABEL: "inv"}
    assert ground.stock().effects == ()


def test_a_worker_stays_until_its_last_workload_has_ended() -> None:
    ground = inventory("a", "b")
    ground.stock()
    ground.workloads = {"w": workload("w", cluster="b", state="Ready")}
    ground.profiles = {"a"}
    ground.stock()
    ground.stock()
    assert (ground.listed("inv"), sorted(ground.clusters)) == (["a"], ["a", "b"])
    ground.workloads = {}
    ground.stock()
    assert sorted(ground.clusters) == ["a"]


def test_beside_another_controller_it_stays_listed_as_well() -> None:
    ground = inventory("a", "b", controller=FOREIGN)
    ground.stock()
    ground.workloads = {"w": workload("w", cluster="a", state="Ready")}
    ground.profiles = {"b"}
    ground.stock()
    ground.stock()
    assert (ground.listed("inv"), sorted(ground.clusters)) == (["b", "a"], ["a", "b"])


def test_a_worker_of_somebody_else_is_left_alone() -> None:
    ground = inventory("a", "b", "c")
    by_hand = worker("c")
    by_hand["spec"]["clusterSource"] = {"clusterProfileRef": {"name": "c"}}
    ground.clusters = {"a": worker("a"), "c": by_hand}
    ground.stock()
    ground.stock()
    assert ground.listed("inv") == ["b", "c"]
    assert ground.clusters["a"]["spec"] == {"clusterSource": {}}
    assert [event for event in ground.events if "leads elsewhere" in event] == [
        "Warning Conflict: A MultiKueueCluster of this name leads elsewhere, so it is left out: a"
    ]
    ground.profiles = set()
    for _ in range(3):
        ground.stock()
        ground.later(61)
    assert sorted(ground.clusters) == ["a", "b", "c"]


def test_a_worker_of_ours_that_somebody_changed_is_mended() -> None:
    ground = inventory("a")
    ground.stock()
    ground.clusters["a"]["spec"]["clusterSource"] = {"kubeConfig": {"location": "x"}}
    ground.stock()
    assert ground.clusters["a"]["spec"]["clusterSource"] == {"clusterProfileRef": {"name": "a"}}


def test_a_config_of_somebody_else_is_left_alone() -> None:
    ground = inventory("a")
    config = {"metadata": {"name": "inv", "uid": "u", "resourceVersion": "1"}, "spec": {"clusters": ["x"]}}
    ground.configs = {"inv": config}
    for _ in range(3):
        ground.stock()
    assert ground.listed("inv") == ["x"]
    assert len(ground.events) == 1


@pytest.mark.parametrize("foreign_config", [True, False])
def test_what_stays_wrong_is_told_again_before_its_event_is_gone(*, foreign_config: bool) -> None:
    """No condition has it: after an hour nobody would have said any more why a cluster gets nothing."""
    ground = inventory("a", "b")
    if foreign_config:
        config = {"metadata": {"name": "inv", "uid": "u", "resourceVersion": "1"}, "spec": {"clusters": ["x"]}}
        ground.configs = {"inv": config}
    else:
        ground.clusters = {"a": worker("a")}
        ground.stock()
    ground.events.clear()
    for told in range(1, 4):
        again = ground.stock().look_again
        assert (len(ground.events), len(set(ground.events))) == (told, 1)
        assert again is not None
        assert 60 < again < EVENTS_ARE_KEPT
        ground.later(again / 2)
        ground.stock()
        assert len(ground.events) == told
        ground.later(again / 2)


def test_no_profile_for_a_moment_changes_nothing() -> None:
    ground = inventory("a", "b")
    ground.stock()
    ground.stock()
    ground.profiles = set()
    assert ground.stock().look_again == 60
    ground.later(60)
    ground.stock()
    assert ground.listed("inv") == ["a", "b"]
    assert sorted(ground.clusters) == ["a", "b"]
