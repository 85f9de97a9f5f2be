"""The whole of it: OCM decides, the placement check fills the config, spokes become workers, jobs run there."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import pytest

from multikueue.core.inventory.names import ADDON_FINALIZER, FINALIZER, MANAGED_CLUSTER, MANAGED_SERVICE_ACCOUNT
from multikueue.core.model.conditions import is_true
from multikueue.core.model.kinds import ADMISSION_CHECK, CLUSTER_QUEUE, JOB, MULTIKUEUE_CONFIG, PLACEMENT
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import dig
from multikueue.runtime.manager import Manager
from multikueue.sandbox.apiserver import Fault, Refuse
from multikueue.sandbox.setting_up import CHECK, CLUSTER_QUEUE_NAME, KUEUE_NAMESPACE, admission_check
from multikueued.rbac import spokes
from multikueued.rbac.rules import in_namespace, on_manager
from multikueued.run.ocm_workers import profile_settings, spoke_settings
from multikueued.settings.config import Settings
from multikueued.settings.dispatcher import placement_options
from multikueued.settings.file import parse_settings
from tests.integration.permissions import NotGranted, granted
from tests.runtime.fleet import until
from tests.runtime.inventory.hub import GRANTING, USER, Hub, hub
from tests.runtime.inventory.test_spokes import LEFT

pytestmark = pytest.mark.looptime

SOURCES = pytest.mark.parametrize("source", ["clusterProfile", pytest.param("kubeconfig", marks=pytest.mark.gate)])
PLACED = "placed"
"""The placement check."""


def settings_of(source: str, **more: str) -> Settings:
    """The daemon's settings."""
    adopt = more.get("adopt", "none")
    return parse_settings(
        f"""
        namespace: {KUEUE_NAMESPACE}
        ocm:
          enabled: true
          adopt: {adopt}
          clusters: {{source: {source}}}
          clusterPermissions: {{enabled: true}}
        """
    )


def enforce(on: Hub, settings: Settings) -> list[Fault]:
    """Refuse what `multikueue rbac manager` does not grant."""
    own = granted([*on_manager(settings), *in_namespace(settings)])
    faults = on.server.faults
    return [
        faults.add(Refuse(403), on=NotGranted(user=USER, granted=own)),
        faults.add(Refuse(403), on=NotGranted(user=GRANTING, granted=granted(spokes.GRANTING))),
    ]


@asynccontextmanager
async def placed(on: Hub, settings: Settings) -> AsyncIterator[Manager]:
    """A manager with these settings, as the daemon builds it, and the guide's checks."""
    spokes = spoke_settings(settings)
    assert spokes is not None
    manager = on.build(spokes, placement=placement_options(settings), profiles=profile_settings(settings))
    parameters = {"apiGroup": PLACEMENT.gvk.group, "kind": PLACEMENT.gvk.kind, "name": CHECK}
    check = {**admission_check("open-cluster-management.io/placement"), "metadata": {"name": PLACED}}
    check["spec"]["parameters"] = parameters
    await on.admin.create(ADMISSION_CHECK, check)
    await on.admin.create(ADMISSION_CHECK, admission_check())
    both = [{"name": CHECK}, {"name": PLACED}]
    queue = {"spec": {"admissionChecksStrategy": {"admissionChecks": both}}}
    await on.admin.merge_patch(CLUSTER_QUEUE, ObjectKey("", CLUSTER_QUEUE_NAME), queue)
    await on.admin.create(PLACEMENT, _placement())
    async with anyio.create_task_group() as tasks:
        await tasks.start(manager.run)
        yield manager
        tasks.cancel_scope.cancel()


def _placement() -> Json:
    selector = {"labelSelector": {"matchLabels": {"gpu": "yes"}}}
    return {
        "apiVersion": PLACEMENT.gvk.api_version,
        "kind": "Placement",
        "metadata": {"name": CHECK, "namespace": KUEUE_NAMESPACE},
        "spec": {"predicates": [{"requiredClusterSelector": selector}]},
    }


async def label(on: Hub, name: str, value: str | None) -> None:
    """Label a ManagedCluster."""
    await on.admin.merge_patch(MANAGED_CLUSTER, ObjectKey("", name), {"metadata": {"labels": {"gpu": value}}})


@SOURCES
async def test_clusters_are_chosen_by_label_and_nobody_writes_kubeconfigs(source: str) -> None:
    """A job stays where it runs when its cluster loses the label; the next one goes to the other cluster. The
    permissions that are printed are enough, and a role that a spoke was not given is not needed."""
    settings = settings_of(source)
    async with hub("c1", "c2") as on:
        refusals = enforce(on, settings)
        async with placed(on, settings):
            await label(on, "c1", "yes")
            await until(on.is_active)
            await on.submit("one")
            await until(on.runs)
            first = await on.runs()
            assert [*first] == ["c1"]
            await label(on, "c1", None)
            await label(on, "c2", "yes")
            await until(lambda: on.is_active("c2"))
            await on.submit("two")

            async def both() -> bool:
                return [*await on.runs()] == ["c1", "c2"]

            await until(both, within=300)
            assert (await on.runs())["c1"] == first["c1"]
            assert await on.is_active("c1")
            await anyio.sleep(LEFT)
            assert await on.is_active("c1")  # its job is still there
            await on.admin.delete(JOB, ObjectKey("default", "one"))

            async def left() -> bool:
                return await on.parts("c1") == {}

            await until(left, within=LEFT)
            config = await on.admin.get(MULTIKUEUE_CONFIG, ObjectKey("", CHECK))
            assert dig(config, "spec", "clusters") == ["c2"]
            assert is_true(await on.admin.get(ADMISSION_CHECK, ObjectKey("", PLACED)), "Active")
        assert [fault.hits for fault in refusals] == [0, 0]
        assert on.tokens != []


@pytest.mark.parametrize("adopt", ["none", "addon"])
async def test_beside_a_running_addon_nothing_is_written(adopt: str) -> None:
    """It makes accounts for all clusters under the same names: two writers would undo each other's work for ever."""
    async with hub("c1") as on, placed(on, settings_of("clusterProfile", adopt=adopt)):
        await label(on, "c1", "yes")
        await until(on.is_active)
        marked = {"metadata": {"finalizers": [FINALIZER, ADDON_FINALIZER]}}
        for _ in range(2):  # it still runs, and puts it back
            await on.admin.merge_patch(ADMISSION_CHECK, ObjectKey("", PLACED), marked)
            await anyio.sleep(5)
        rotation = {"spec": {"rotation": {"validity": "8640h"}}}
        await on.admin.merge_patch(MANAGED_SERVICE_ACCOUNT, ObjectKey("c1", "multikueue"), rotation)
        await anyio.sleep(LEFT)
        assert (await on.parts())["account"]["spec"]["rotation"]["validity"] == "8640h"
        assert await on.is_active()
        alone = {"metadata": {"finalizers": [FINALIZER]}}
        await on.admin.merge_patch(ADMISSION_CHECK, ObjectKey("", PLACED), alone)

        async def mended() -> bool:
            return bool((await on.parts())["account"]["spec"]["rotation"]["validity"] == "168h0m0s")

        await until(mended)
