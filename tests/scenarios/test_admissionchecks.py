"""Appendix D, AC: when the AdmissionCheck can be relied on, and in which words it says so."""

from __future__ import annotations

import pytest

from multikueue.core.model.conditions import condition
from multikueue.core.model.kinds import ADMISSION_CHECK, MULTIKUEUE_CLUSTER
from multikueue.core.model.names import Json, ObjectKey
from multikueue.sandbox.setting_up import CHECK
from tests.scenarios.fleet import Fleet, Scenario

PREFIX = "Cannot load the AdmissionChecks parameters: "


async def _says_for_parameters(fleet: Fleet, parameters: Json | None, expected: str) -> None:
    await fleet.manager.api.merge_patch(ADMISSION_CHECK, ObjectKey("", CHECK), {"spec": {"parameters": parameters}})
    await fleet.until(lambda: fleet.check_active() == ("False", "BadConfig", PREFIX + expected))


async def test_no_params(scenario: Scenario) -> None:
    """A check without parameters says that it has none."""
    async with scenario() as fleet:
        await _says_for_parameters(fleet, None, "missing parameters reference")


@pytest.mark.decisive
async def test_wrong_group_and_wrong_kind(scenario: Scenario) -> None:
    """A check that refers to something else says to what."""
    async with scenario() as fleet:
        wrong_group = {"apiGroup": "example.com", "kind": "MultiKueueConfig", "name": CHECK}
        expected = 'wrong group "example.com", expecting "kueue.x-k8s.io": bad parameters reference'
        await _says_for_parameters(fleet, wrong_group, expected)

        wrong_kind = {"apiGroup": "kueue.x-k8s.io", "kind": "Config", "name": CHECK}
        expected = 'wrong kind "Config", expecting "MultiKueueConfig": bad parameters reference'
        await _says_for_parameters(fleet, wrong_kind, expected)


@pytest.mark.decisive
async def test_missing_config(scenario: Scenario) -> None:
    """A check whose config is deleted says that there is none of that name."""
    async with scenario() as fleet:
        await fleet.delete_config()

        expected = PREFIX + 'MultiKueueConfig.kueue.x-k8s.io "multikueue" not found'
        await fleet.until(lambda: fleet.check_active() == ("False", "BadConfig", expected))


@pytest.mark.decisive
async def test_all_active_clusters(scenario: Scenario) -> None:
    """A check whose workers are all connected is active."""
    async with scenario() as fleet:
        await fleet.until(lambda: fleet.check_active() == ("True", "Active", "The admission check is active"))


async def test_missing_cluster(scenario: Scenario) -> None:
    """One of the clusters listed does not exist: the check works with the others and names it."""
    async with scenario() as fleet:
        await fleet.manager.api.delete(MULTIKUEUE_CLUSTER, ObjectKey("", "worker2"))

        expected = ("True", "SomeActiveClusters", "Missing clusters: [worker2]")
        await fleet.until(lambda: fleet.check_active() == expected)


@pytest.mark.decisive
async def test_foreign_controller_name_is_left_alone(scenario: Scenario) -> None:
    """A check of another controller gets no condition from us."""
    async with scenario() as fleet:
        name = ObjectKey("", "provisioning")
        spec = {"controllerName": "kueue.x-k8s.io/provisioning-request"}
        check = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "AdmissionCheck", "metadata": {"name": name.name}}
        await fleet.manager.api.create(ADMISSION_CHECK, {**check, "spec": spec})

        await fleet.rest(60)

        assert condition(fleet.manager.find(ADMISSION_CHECK, name) or {}, "Active") is None
