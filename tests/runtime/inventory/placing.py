"""A hub for tests of the placement check: OCM's kinds, and a scheduler that decides what a test tells it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import attrs

from multikueue.core.inventory.names import PLACEMENT_LABEL
from multikueue.core.inventory.settings import PLACEMENT_CONTROLLER, PlacementSettings
from multikueue.core.model.conditions import condition, new_condition
from multikueue.core.model.kinds import (
    ADDON_PLACEMENT_SCORE,
    ADMISSION_CHECK,
    CLUSTER_PROFILE,
    CLUSTER_QUEUE,
    MULTIKUEUE_CLUSTER,
    MULTIKUEUE_CONFIG,
    NAMESPACE,
    PLACEMENT,
    PLACEMENT_DECISION,
    WORKLOAD,
)
from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.core.model.workloads import check
from multikueue.errors import AlreadyExists, NotFound
from multikueue.protocols import ApiClient, PlacementHook
from multikueue.runtime.inventory.service import Inventory, PlacementOptions
from multikueue.runtime.inventory_part import InventoryOptions
from multikueue.runtime.manager import Manager
from multikueue.sandbox.crds import install_ocm
from multikueue.sandbox.setting_up import CHECK, CLUSTER_QUEUE_NAME, KUEUE_NAMESPACE
from tests.runtime.fleet import Fleet, now

SCORE = "resource-usage-score"
PLACED = "placed"
"""The name of the placement check."""


def bare(resource: Resource, name: str, namespace: str = "", **fields: Any) -> Json:
    """An object with what every one has."""
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": resource.gvk.api_version, "kind": resource.gvk.kind, "metadata": metadata, **fields}


def placement_check(name: str = PLACED, **parameters: Any) -> Json:
    """The AdmissionCheck of OCM's guide."""
    wanted = {"apiGroup": PLACEMENT.gvk.group, "kind": "Placement", "name": CHECK, **parameters}
    return bare(ADMISSION_CHECK, name, spec={"controllerName": PLACEMENT_CONTROLLER, "parameters": wanted})


async def set_up(client: ApiClient) -> None:
    """What OCM's guide has an administrator create, where the MultiKueue check is there: its config is to be filled."""
    await client.delete(MULTIKUEUE_CONFIG, ObjectKey("", CHECK))
    strategy = {"admissionChecks": [{"name": CHECK}, {"name": PLACED}]}
    patch = {"spec": {"admissionChecksStrategy": strategy}}
    await client.merge_patch(CLUSTER_QUEUE, ObjectKey("", CLUSTER_QUEUE_NAME), patch)
    await client.create(ADMISSION_CHECK, placement_check())


async def decide(client: ApiClient, *names: str, number: int = 1) -> None:
    """OCM decides: the decision with this number first, then the Placement's status."""
    key = ObjectKey(KUEUE_NAMESPACE, f"{CHECK}-decision-{number}")
    placement = await client.get(PLACEMENT, ObjectKey(KUEUE_NAMESPACE, CHECK))
    owner = {"apiVersion": placement["apiVersion"], "kind": "Placement", "controller": True}
    owner |= {"name": CHECK, "uid": placement["metadata"]["uid"]}
    made = bare(PLACEMENT_DECISION, key.name, KUEUE_NAMESPACE)
    made["metadata"] |= {"labels": {PLACEMENT_LABEL: CHECK}, "ownerReferences": [owner]}
    with suppress(AlreadyExists):
        await client.create(PLACEMENT_DECISION, made)
    listed = [{"clusterName": name, "reason": ""} for name in sorted(names)]
    await client.merge_patch(PLACEMENT_DECISION, key, {"status": {"decisions": listed}}, subresource="status")
    group = {"decisionGroupIndex": 0, "decisions": [key.name], "clusterCount": len(names)}
    met = new_condition("PlacementSatisfied", bool(names), "All", "", now=now())
    status = {"numberOfSelectedClusters": len(names), "decisionGroups": [group], "conditions": [met]}
    await client.merge_patch(PLACEMENT, ObjectKey(KUEUE_NAMESPACE, CHECK), {"status": status}, subresource="status")


@attrs.define(eq=False)
class Hub:
    """A fleet whose config is filled by a Placement of the config's name."""

    fleet: Fleet

    @classmethod
    async def of(cls, *workers: str, ocm: bool = True) -> Hub:
        """A hub with these workers, both checks on its queue, and a Placement that has selected nothing yet."""
        made = cls(Fleet.of(*workers))
        if ocm:
            install_ocm(made.fleet.manager.registry)
        await made.fleet.connect()
        await set_up(made.admin)
        if ocm:
            await made.admin.create(PLACEMENT, bare(PLACEMENT, CHECK, KUEUE_NAMESPACE, spec={}))
        return made

    @property
    def admin(self) -> Any:
        """The manager's administrator."""
        return self.fleet.admin

    def manager(
        self,
        settings: PlacementSettings | None = None,
        *inventories: Inventory,
        hook: PlacementHook | None = None,
        **more: Any,
    ) -> Manager:
        """A manager that fills configs."""
        checks = settings if inventories else settings or PlacementSettings()
        options = InventoryOptions(PlacementOptions(checks, inventories), hook)
        return attrs.evolve(self.fleet.build(**more), parts=[options.part])

    @asynccontextmanager
    async def running(self, manager: Manager | None = None) -> AsyncIterator[Manager]:
        """Run a manager meanwhile."""
        async with self.fleet.running(manager or self.manager()) as running:
            yield running

    async def decide(self, *names: str) -> None:
        """OCM decides."""
        await decide(self.admin, *names)

    async def weigh(self, name: str) -> None:
        """The Placement ranks clusters by a score of the addon `resource-usage-score`."""
        coordinate = {"type": "AddOn", "addOn": {"resourceName": SCORE, "scoreName": name}}
        spec = {"prioritizerPolicy": {"configurations": [{"scoreCoordinate": coordinate, "weight": 1}]}}
        await self.admin.merge_patch(PLACEMENT, ObjectKey(KUEUE_NAMESPACE, CHECK), {"spec": spec})

    async def report(self, name: str, **points: int) -> None:
        """The addon reports a score of each cluster."""
        for cluster, value in points.items():
            with suppress(AlreadyExists):
                await self.admin.create(NAMESPACE, bare(NAMESPACE, cluster))
                await self.admin.create(ADDON_PLACEMENT_SCORE, bare(ADDON_PLACEMENT_SCORE, SCORE, cluster))
            patch = {"status": {"scores": [{"name": name, "value": value}]}}
            key = ObjectKey(cluster, SCORE)
            await self.admin.merge_patch(ADDON_PLACEMENT_SCORE, key, patch, subresource="status")

    async def queue(self, job: str) -> None:
        """Kueue gives a job quota; nobody does anything more about it."""
        template = {"spec": {"containers": [{"name": "c", "image": "x"}], "restartPolicy": "Never"}}
        spec = {"queueName": "user-queue", "podSets": [{"name": "main", "count": 1, "template": template}]}
        made = bare(WORKLOAD, f"job-{job}", "default", spec=spec)
        made["metadata"]["ownerReferences"] = [{"apiVersion": "batch/v1", "kind": "Job", "name": job, "uid": "1"}]
        key = ObjectKey.of(await self.admin.create(WORKLOAD, made))
        reserved = new_condition("QuotaReserved", True, "QuotaReserved", "", now=now())
        since = reserved["lastTransitionTime"]
        entry = {"name": PLACED, "state": "Pending", "message": "", "lastTransitionTime": since}
        status = {"conditions": [reserved], "admissionChecks": [entry]}
        await self.admin.merge_patch(WORKLOAD, key, {"status": status}, subresource="status")

    async def profile(self, name: str, **labels: str) -> None:
        """Somebody registers a cluster."""
        made = bare(CLUSTER_PROFILE, name, KUEUE_NAMESPACE, spec={"clusterManager": {"name": "x"}})
        made["metadata"]["labels"] = labels
        await self.admin.create(CLUSTER_PROFILE, made)

    async def listed(self, name: str = CHECK) -> list[str] | None:
        """What the config lists."""
        try:
            listed: list[str] = (await self.admin.get(MULTIKUEUE_CONFIG, ObjectKey("", name)))["spec"]["clusters"]
        except NotFound:
            return None
        return listed

    async def workers(self) -> list[str]:
        """The MultiKueueClusters."""
        return [cluster["metadata"]["name"] for cluster in (await self.admin.list(MULTIKUEUE_CLUSTER)).items]

    async def said(self, name: str = PLACED) -> tuple[str, str, str]:
        """The Active condition of the placement check."""
        active = condition(await self.admin.get(ADMISSION_CHECK, ObjectKey("", name)), "Active") or {}
        return active.get("status", ""), active.get("reason", ""), active.get("message", "")

    async def state(self, job: str) -> tuple[str, str]:
        """The state of our check on the Workload of a job, and the worker that has it."""
        for workload in (await self.admin.list(WORKLOAD)).items:
            if any(owner["name"] == job for owner in workload["metadata"].get("ownerReferences") or []):
                entry = check(workload, PLACED) or {}
                return str(entry.get("state")), str(workload["status"].get("clusterName") or "")
        return "", ""
