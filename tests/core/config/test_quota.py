"""Manager quota automation: Kueue's KEP-9988, and what a worker that cannot be reached counts for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from multikueue.core.config.quota import (
    CONDITION,
    Amounts,
    Automation,
    WorkerQueues,
    automate,
    check_names,
    listed_workers,
    offered,
)
from multikueue.core.model.conditions import condition
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.quantities import Quantity
from multikueue.core.model.second_names import SecondName, second_name_status
from tests.core.building import condition as a_condition
from tests.core.door import NOW

AUTOMATED: Json = {"spec": {"clusters": ["w1", "w2"], "quotaManagement": "Automated"}}
KEY = ObjectKey("team", "lq")


def flavor(name: str = "default", **amounts: str) -> Json:
    return {"name": name, "resources": [{"name": key, "nominalQuota": value} for key, value in amounts.items()]}


def queue(*flavors: Json, conditions: list[Json] | None = None) -> Json:
    """A ClusterQueue with one resource group."""
    flavors = flavors or (flavor(cpu="1", memory="1Gi"),)
    covered = [entry["name"] for entry in flavors[0]["resources"]]
    group = {"coveredResources": covered, "flavors": list(flavors)}
    return {
        "metadata": {"generation": 3},
        "spec": {"resourceGroups": [group]},
        "status": {"conditions": conditions or []},
    }


def read(amounts: Mapping[str, str]) -> Amounts:
    return {resource: Quantity.parse(text) for resource, text in amounts.items()}


def result(
    cluster_queue: Json, *workers: Mapping[str, str] | None, config: Json | None = AUTOMATED, check: str | None = "mk"
) -> Automation:
    return automate(cluster_queue, check, config, [None if worker is None else read(worker) for worker in workers], NOW)


def verdict(automation: Automation) -> tuple[str, str, str]:
    entry = condition({"status": {"conditions": automation.conditions}}, CONDITION)
    assert entry is not None
    assert entry["observedGeneration"] == 3
    return entry["status"], entry["reason"], entry["message"]


def amounts(automation: Automation) -> dict[str, Any]:
    assert automation.resource_groups is not None
    (group,) = automation.resource_groups
    (only,) = group["flavors"]
    return {entry["name"]: entry["nominalQuota"] for entry in only["resources"]}


class TestListedWorkers:
    @staticmethod
    def listed(*names: str, **firsts: str) -> list[str]:
        """Of these, where some are second names of others."""
        config: Json = {**AUTOMATED, "spec": {**AUTOMATED["spec"], "clusters": [*names]}}
        said = {name: second_name_status({}, SecondName(first, "u"), NOW) for name, first in firsts.items()}
        return listed_workers(config, {name: {"status": {"conditions": [entry]}} for name, entry in said.items()})

    def test_a_cluster_counts_once_whatever_it_is_called(self) -> None:
        assert self.listed("w2", "w1", "w3", w2="w1") == ["w1", "w3"]
        assert self.listed("w1", "w2", w2="w1") == ["w1"]

    def test_it_counts_by_a_second_name_where_no_other_is_listed(self) -> None:
        assert self.listed("w2", "w3", "w4", w2="w1", w4="w1") == ["w2", "w3"]


class TestSums:
    def test_the_quota_is_the_sum_of_the_workers(self) -> None:
        done = result(queue(), {"cpu": "4", "memory": "1Gi"}, {"cpu": "1500m", "memory": "3Gi"})
        assert amounts(done) == {"cpu": "5500m", "memory": "4Gi"}
        assert verdict(done) == (
            "True",
            "QuotaAutomated",
            "ClusterQueue quota is automatically managed based on MultiKueue workers.",
        )

    def test_what_no_worker_has_is_zero_and_limits_are_dropped(self) -> None:
        cluster_queue = queue(flavor(cpu="1", memory="1Gi"))
        cluster_queue["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0]["borrowingLimit"] = "3"
        done = result(cluster_queue, {"cpu": "1"})
        assert amounts(done) == {"cpu": "1", "memory": "0"}
        assert done.resource_groups is not None
        assert "borrowingLimit" not in str(done.resource_groups)

    def test_limits_alone_are_dropped_too(self) -> None:
        cluster_queue = queue(flavor(cpu="1"))
        cluster_queue["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0]["lendingLimit"] = "0"
        assert amounts(result(cluster_queue, {"cpu": "1"})) == {"cpu": "1"}

    def test_equal_amounts_are_not_written_again_however_they_are_spelled(self) -> None:
        cluster_queue = queue(flavor(cpu="1000m", memory="1024Mi"))
        first = result(cluster_queue, {"cpu": "1", "memory": "1Gi"})
        assert first.resource_groups is None
        cluster_queue["status"]["conditions"] = first.conditions
        assert result(cluster_queue, {"cpu": "1", "memory": "1Gi"}) == Automation()

    @pytest.mark.parametrize(
        ("parts", "total"),
        [
            (["2G", "3G"], "5G"),
            (["5G"], "5G"),
            (["1Gi", "512Mi"], "1536Mi"),
            (["0", "2Gi", "2G"], "4050277Ki"),
            (["2Gi", "2147483648"], "4Gi"),
        ],
    )
    def test_a_sum_is_written_as_its_parts_are(self, parts: list[str], total: str) -> None:
        """`5G` in bytes with a binary suffix would be `5000000000`: right, but nobody wrote that."""
        cluster_queue = queue(flavor(memory="1"))
        assert amounts(result(cluster_queue, *({"memory": part} for part in parts))) == {"memory": total}

    def test_a_sum_is_no_more_than_kueue_counts(self) -> None:
        """A hundred queues with 10E each came to `1000E`, which Kubernetes writes as `1`."""
        queues = [{"cpu": "5P", "memory": "10E"}] * 100
        wanted = {"cpu": "1P", "memory": "1E"}
        written = result(queue(), *queues)
        assert amounts(written) == wanted
        assert result(queue(flavor(**wanted)), *queues).resource_groups is None

    def test_everything_else_about_the_queue_stays(self) -> None:
        cluster_queue = queue(conditions=[a_condition("Active")])
        done = result(cluster_queue, {"cpu": "2"})
        assert done.conditions is not None
        assert [entry["type"] for entry in done.conditions] == ["Active", CONDITION]
        assert done.resource_groups is not None
        assert done.resource_groups[0]["coveredResources"] == ["cpu", "memory"]
        assert done.resource_groups[0]["flavors"][0]["name"] == "default"


class TestUnknownWorkers:
    def test_while_one_is_unknown_nothing_is_taken_away(self) -> None:
        """After a restart nothing is known for a moment; quota that is lowered then would stop what runs."""
        cluster_queue = queue(flavor(cpu="8", memory="1Gi"))
        assert amounts(result(cluster_queue, None, {"cpu": "1", "memory": "2Gi"})) == {"cpu": "8", "memory": "2Gi"}
        assert result(cluster_queue, None, None).resource_groups is None

    def test_a_worker_that_has_nothing_counts_as_nothing(self) -> None:
        cluster_queue = queue(flavor(cpu="8"))
        assert amounts(result(cluster_queue, {}, {"cpu": "1"})) == {"cpu": "1"}


class TestRefusals:
    def test_a_queue_without_our_check_says_nothing(self) -> None:
        """What an earlier check had us say is taken back."""
        present = [a_condition("Active"), a_condition(CONDITION)]
        assert result(queue(conditions=present), check=None).conditions == [present[0]]
        assert result(queue(conditions=present[:1]), check=None) == Automation()

    def test_a_missing_config(self) -> None:
        assert verdict(result(queue(), config=None)) == (
            "False",
            "UnsupportedConfiguration",
            "The referenced MultiKueueConfig was not found.",
        )

    @pytest.mark.parametrize("spec", [{}, {"quotaManagement": "Manual"}])
    def test_manual_is_the_default(self, spec: Json) -> None:
        done = result(queue(), {"cpu": "1"}, config={"spec": spec})
        message = "MultiKueue manager quota automation has not been requested."
        assert (verdict(done), done.resource_groups) == (("False", "NotRequested", message), None)

    @pytest.mark.parametrize("groups", [0, 2, "two flavors"])
    def test_one_group_with_one_flavor_is_needed(self, groups: object) -> None:
        cluster_queue = queue(flavor("a", cpu="1"), flavor("b", cpu="1")) if groups == "two flavors" else queue()
        if isinstance(groups, int):
            cluster_queue["spec"]["resourceGroups"] *= groups
        done = result(cluster_queue, {"cpu": "1"})
        message = "Quota automation requires that the manager-side ClusterQueue has exactly one ResourceFlavor"
        assert (verdict(done), done.resource_groups) == (("False", "UnsupportedConfiguration", message), None)

    def test_resources_the_manager_does_not_cover_are_named(self) -> None:
        done = result(queue(), {"cpu": "1", "b": "1"}, {"a": "0"})
        message = "manager-side coveredResources is missing resources configured on workers: [a b]"
        assert (verdict(done), done.resource_groups) == (("False", "UnsupportedConfiguration", message), None)


class TestOffers:
    def test_queues_belong_together_by_the_names_of_their_local_queues(self) -> None:
        """Each ClusterQueue counts once, with all of its groups and flavors, whatever it is called."""
        mine = queue(flavor("a", cpu="1"), flavor("b", cpu="500m"))
        mine["spec"]["resourceGroups"].append({"coveredResources": ["gpu"], "flavors": [flavor(gpu="2")]})
        worker = WorkerQueues(
            [(KEY, "mine"), (ObjectKey("team", "lq2"), "mine"), (ObjectKey("other", "lq"), "theirs"), (KEY, "gone")],
            {"mine": mine, "theirs": queue(flavor(cpu="100"))},
        )
        wanted = frozenset({KEY, ObjectKey("team", "lq2")})
        assert offered(wanted, worker) == read({"cpu": "1500m", "gpu": "2"})
        assert offered(frozenset(), worker) == {}

    def test_the_checks_of_a_queue_are_read_in_its_order(self) -> None:
        strategy = {"admissionChecks": [{"name": "b"}, {"name": "a", "onFlavors": ["x"]}]}
        assert check_names({"spec": {"admissionChecksStrategy": strategy}}) == ["b", "a"]
        assert check_names({"spec": {}}) == []
