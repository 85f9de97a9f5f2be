"""OCM's Placement on a real server: the decisions are played, all else is as it will be."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import attrs
import pytest

from multikueue.core.inventory.settings import PLACEMENT_CONTROLLER
from multikueue.core.model.conditions import condition
from multikueue.core.model.kinds import (
    ADMISSION_CHECK,
    CUSTOM_RESOURCE_DEFINITION,
    MULTIKUEUE_CONFIG,
    OCM_GROUP,
    PLACEMENT,
    PLACEMENT_DECISION,
    WORKLOAD,
)
from multikueue.core.model.names import ObjectKey
from multikueue.core.model.objects import dig
from multikueue.core.model.workloads import check_state, cluster_name
from multikueue.errors import NotFound
from multikueue.kube import KubeClient
from multikueue.sandbox.setting_up import CHECK, KUEUE_NAMESPACE
from multikueued.settings.inventory import OcmSettings
from tests.controlplane.crds import establish, read
from tests.controlplane.polling import poll_until
from tests.data.files import OCM_CRDS
from tests.integration.daemon import SETTINGS
from tests.integration.fleet import Fleet, fleet
from tests.integration.permissions import chart_objects
from tests.integration.planes import Planes
from tests.runtime.inventory.placing import PLACED, bare, decide, set_up

pytestmark = [pytest.mark.real, pytest.mark.timeout(240), pytest.mark.asyncio(loop_scope="session")]


WITH_OCM = attrs.evolve(SETTINGS, ocm=OcmSettings(enabled=True))


@attrs.frozen
class Hub:
    """A fleet whose config a Placement fills."""

    real: Fleet

    @property
    def client(self) -> KubeClient:
        """The manager's administrator."""
        client = self.real.manager.client
        assert isinstance(client, KubeClient)
        return client

    async def lists(self, *names: str) -> None:
        """Wait until the config lists these."""

        async def holds() -> bool:
            try:
                config = await self.client.get(MULTIKUEUE_CONFIG, ObjectKey("", CHECK))
            except NotFound:
                return not names
            return bool(dig(config, "spec", "clusters") == list(names))

        await poll_until(holds, seconds=20, otherwise=f"the config does not list {names}: {await self.said()}")

    async def says(self, reason: str, words: str = "", seconds: float = 20) -> None:
        """Wait until the check says so."""

        async def holds() -> bool:
            reason_and_message = await self.said()
            return reason_and_message[0] == reason and words in reason_and_message[1]

        await poll_until(holds, seconds=seconds, otherwise=f"the check does not say {reason} {words}")

    async def said(self) -> tuple[str, str]:
        """What the check says."""
        active = condition(await self.client.get(ADMISSION_CHECK, ObjectKey("", PLACED)), "Active") or {}
        return active.get("reason", ""), active.get("message", "")


@asynccontextmanager
async def hub(planes: Planes) -> AsyncIterator[Hub]:
    """A hub with OCM's definitions, the rules of the chart, a Placement, and the daemon."""
    for obj in chart_objects("rbac-placement.yaml"):
        await planes.manager.admin.apply(obj)
    definitions = [crd for crd in read(OCM_CRDS) if crd["spec"]["group"] == OCM_GROUP]
    await establish(planes.manager.admin, definitions)
    async with fleet(planes, daemon=False, settings=WITH_OCM) as real:
        made = Hub(real)
        await forget(made)
        await set_up(made.client)
        await made.client.create(PLACEMENT, bare(PLACEMENT, CHECK, KUEUE_NAMESPACE, spec={}))
        real.daemon.start()
        yield made


async def forget(made: Hub) -> None:
    """Remove what an earlier test has left of OCM's objects."""
    for resource in (PLACEMENT_DECISION, PLACEMENT):
        for item in (await made.client.list(resource)).items:
            await made.client.delete(resource, ObjectKey.of(item))


async def test_the_stories_of_the_guide(planes: Planes) -> None:
    """All clusters; one of them; the other one while a job runs on the first."""
    async with hub(planes) as made:
        await made.says("PlacementDecisionError", "not scheduled yet")
        await decide(made.client, "worker1", "worker2")
        await made.lists("worker1", "worker2")
        await decide(made.client, "worker2")
        await made.lists("worker2")
        await made.real.submit("first")
        assert await made.real.running("first") == "worker2"
        await decide(made.client, "worker1")
        await made.lists("worker1")
        await made.real.submit("second")
        assert await made.real.running("second") == "worker1"
        assert await made.real.running("first") == "worker2"
        for job in ("first", "second"):
            made.real.kubelet.end(job, "Succeeded")
            await made.real.ended(job)
        await made.real.cleaned()
        assert (made.real.ran_on("first"), made.real.ran_on("second")) == (["worker2"], ["worker1"])


async def test_our_entry_leaves_all_others_alone(planes: Planes) -> None:
    """Server-side apply of one entry, forced: Kueue's manager owns it as well."""
    async with hub(planes) as made:
        await decide(made.client, "worker1")
        await made.real.submit("job")
        await made.real.running("job")
        (workload,) = (await made.client.list(WORKLOAD)).items
        read_again = await made.client.get(WORKLOAD, ObjectKey.of(workload))
        assert check_state(read_again, PLACED) == check_state(read_again, CHECK) == "Ready"
        assert cluster_name(read_again) == "worker1"
        mine = [entry for entry in read_again["metadata"]["managedFields"] if entry["manager"] == PLACEMENT_CONTROLLER]
        (fields,) = [entry["fieldsV1"]["f:status"]["f:admissionChecks"] for entry in mine]
        assert list(fields) == [f'k:{{"name":"{PLACED}"}}']


async def test_definitions_that_go_delete_nothing(planes: Planes) -> None:
    """OCM is uninstalled, and everything of it with it."""
    async with hub(planes) as made:
        await decide(made.client, "worker1")
        await made.lists("worker1")
        for kind in (PLACEMENT_DECISION, PLACEMENT):
            await made.client.delete(CUSTOM_RESOURCE_DEFINITION, ObjectKey("", kind.qualified))
        await made.says("PlacementNotFound", seconds=60)
        await made.lists("worker1")
