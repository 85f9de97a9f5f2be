"""The daemon's part of the placement check: permissions, metrics, and what the settings choose."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import anyio
import pytest

from multikueue.core.effects import ConfigStatistics
from multikueue.core.inventory.settings import Adopt, PlacementSettings, Policy
from multikueue.core.model.kinds import ADMISSION_CHECK
from multikueue.core.model.names import ObjectKey
from multikueue.errors import SettingsError
from multikueue.runtime.inventory.service import Inventory
from multikueue.sandbox.apiserver import Fault, Refuse
from multikueued.metrics.hooks import Metrics
from multikueued.rbac.rules import in_namespace, on_manager
from multikueued.settings.config import Settings
from multikueued.settings.dispatcher import placement_options
from multikueued.settings.file import parse, parse_settings
from tests.integration.permissions import NotGranted, chart_objects, chart_rules, granted
from tests.runtime.fleet import until
from tests.runtime.inventory.placing import PLACED, Hub

BOTH = """
ocm: {enabled: true, policy: Evict, adopt: 2024}
inventory:
- {selector: "accelerator=nvidia-tesla-t4", config: gpus}
"""
SINCE = datetime(2026, 1, 1, tzinfo=UTC)


def enforce(hub: Hub) -> Fault:
    """Refuse what the chart does not grant with both settings, as RBAC does."""
    more = [rule for role in chart_objects("rbac-placement.yaml") for rule in role.get("rules", [])]
    refused = NotGranted(user="multikueue", granted=granted([*chart_rules(), *more]))
    return hub.fleet.manager.faults.add(Refuse(403), on=refused)


def test_the_settings_choose_what_is_filled() -> None:
    options = placement_options(parse_settings(BOTH + "namespace: ns\ncontrollerName: example.com/ours\n"))
    ours = "example.com/ours"
    assert options.checks == PlacementSettings(Policy.EVICT, Adopt.RECIPE_2024, ours)
    assert options.inventories == (
        Inventory("accelerator=nvidia-tesla-t4", "gpus", PlacementSettings(dispatched_as=ours)),
    )
    assert options.namespace == "ns"
    assert not placement_options(Settings()).wanted


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("ocm: {policy: Drop}", 'ocm.policy: "Drop" is not one of Drain, Evict, Immediate'),
        ("ocm: {adopt: 2023}", 'ocm.adopt: "2023" is not one of none, addon, 2024'),
        ("inventory: [{selector: 'a=b=c', config: x}]", 'inventory[0].selector: "a=b=c" is not a label selector'),
        ("inventory: [{selector: a, config: A}]", 'inventory[0].config: "A" cannot be the name of a MultiKueueConfig'),
        ("inventory: [{config: x}]", "inventory[0].selector: it is missing"),
        ("inventory: [{selector: a, config: x}, {selector: b, config: x}]", 'two entries fill the config "x"'),
    ],
)
def test_bad_settings_say_what_and_where(text: str, what: str) -> None:
    with pytest.raises(SettingsError) as caught:
        parse_settings(text)
    assert what in str(caught.value)


def test_scores_mean_something_to_one_dispatcher_only() -> None:
    """The daemon says so when it starts."""
    text = "ocm: {enabled: true}\n"
    (remark,) = parse(text, source="x").remarks
    assert (remark.setting, "in no order" in remark.why) == ("ocm", True)
    best_first = "dispatcher: {name: kueue.x-k8s.io/multikueue-dispatcher-incremental}\n"
    assert parse(text + best_first, source="x").remarks == ()


@pytest.mark.parametrize("text", ["a=b", "a==b,c!=d", "!a", "a", "x.io/a in (b, c),d notin (e)", "a=b, c=d", "a="])
def test_selectors_are_those_of_kubectl(text: str) -> None:
    settings = parse_settings(f"inventory: [{{selector: '{text}', config: x}}]")
    assert settings.inventory[0].selector == text


def test_a_role_has_only_what_its_settings_need() -> None:
    plain, both = Settings(), parse_settings(BOTH)
    assert ("kueue.x-k8s.io", "multikueueconfigs") in granted(on_manager(plain))
    assert granted(on_manager(plain))["kueue.x-k8s.io", "multikueueconfigs"] == {"list", "watch"}
    group = "cluster.open-cluster-management.io"
    assert (group, "placements") not in granted(in_namespace(plain))
    assert granted(in_namespace(both))[group, "placements"] == {"list", "watch"}


@pytest.mark.looptime
async def test_the_permissions_are_enough_for_a_placement_check() -> None:
    """From a decision to a running job, its move, and the end of the check."""
    hub = await Hub.of("c1", "c2")
    refused = enforce(hub)
    async with hub.fleet.kueues(), hub.running(hub.manager(PlacementSettings(Policy.EVICT))):
        await hub.decide("c1")
        await hub.fleet.submit()
        await until(hub.fleet.running_on)
        await hub.decide("c2")

        async def moved() -> bool:
            return await hub.state("job") == ("Ready", "c2")

        await until(moved)
        await hub.admin.delete(ADMISSION_CHECK, ObjectKey("", PLACED))
        await anyio.sleep(30)
    assert refused.hits == 0


@pytest.mark.looptime
async def test_the_permissions_are_enough_for_an_inventory() -> None:
    hub = await Hub.of("c1")
    refused = enforce(hub)
    async with hub.running(hub.manager(None, Inventory("gpu=yes", "gpus"))):
        await hub.profile("p1", gpu="yes")

        async def filled() -> bool:
            return await hub.listed("gpus") == ["p1"]

        await until(filled)
    assert refused.hits == 0


def served(metrics: Metrics) -> dict[str, float]:
    """The samples of placement metrics about a config, by name."""
    samples = (sample for metric in metrics.snapshot().collect() for sample in metric.samples)
    kept = (sample for sample in samples if sample.labels.get("config") == "p" and not sample.name.endswith("_created"))
    return {sample.name.removeprefix("multikueue_placement_"): sample.value for sample in kept}


def test_the_metrics_of_a_config() -> None:
    """W15."""
    metrics = Metrics("leader")
    metrics.placements.filled("p", ConfigStatistics(3, 2, 1, SINCE))
    metrics.placements.put_off("p")
    assert served(metrics) == {
        "selected_clusters": 3,
        "listed_clusters": 2,
        "draining_clusters": 1,
        "decision_timestamp_seconds": SINCE.timestamp(),
        "skipped_writes_total": 1,
    }
    metrics.placements.filled("p", ConfigStatistics(2, 2, 0, SINCE + timedelta(seconds=5)))
    assert served(metrics)["selected_clusters"] == 2
    metrics.ended()
    assert served(metrics) == {"skipped_writes_total": 1}
    metrics.placements.released("p")
    assert served(metrics) == {}
