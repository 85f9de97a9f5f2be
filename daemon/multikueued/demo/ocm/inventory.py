"""What an administrator of a hub creates for the stories: queues, checks, Placements, labels and scores."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Final

import anyio
import attrs

from multikueue import Controller, Informer, KubeClient, NotFound, ObjectKey
from multikueue.core.machinery.action import Action
from multikueue.core.model.kinds import ADMISSION_CHECK, CLUSTER_QUEUE, LOCAL_QUEUE, NAMESPACE, RESOURCE_FLAVOR
from multikueue.core.model.labels import CONTROLLER_NAME
from multikueue.protocols import ApiClient, Writer
from multikueue.sandbox import setting_up
from multikueue.sandbox.objects import built
from multikueue.sandbox.ocm.kinds import (
    CLUSTER_GROUP,
    DECISION,
    GLOBAL_SET,
    MANAGED_CLUSTER,
    PLACEMENT,
    PLACEMENT_LABEL,
    SCORE,
)
from multikueue.sandbox.ocm.placing import clusters_of
from multikueue.sandbox.setting_up import KUEUE_NAMESPACE, ensure
from multikueued.demo.ocm.stories import GPUS, SCORES, STORIES, Story, score_of

PLACEMENT_CHECKS = "open-cluster-management.io/placement"
"""The controller of checks that stand for a Placement."""


_TOLERATED: Final = ("unreachable", "unavailable")
QUEUES: Final = built(
    PLACEMENT,
    "multikueue-queues",
    KUEUE_NAMESPACE,
    spec={
        "clusterSets": [GLOBAL_SET],
        "tolerations": [{"key": f"{CLUSTER_GROUP}/{taint}", "operator": "Exists"} for taint in _TOLERATED],
    },
)
"""Where the queues are: on all clusters, whatever the dispatch selects; that of docs/examples/queues-on-spokes.yaml."""


@attrs.define(eq=False)
class QueuesOnSpokes:
    """Brings the LocalQueues of the stories to the clusters that `QUEUES` selects, and takes them from the others.

    OCM's ManifestWorkReplicaSet does so; whoever binds it to a Placement of the dispatch loses queues under jobs.
    """

    hub: ApiClient
    spokes: Mapping[str, Writer]

    async def run(self) -> None:
        """Follow the Placement, until cancelled."""
        controller = Controller("queues", self)
        label = f"{PLACEMENT_LABEL}={QUEUES['metadata']['name']}"
        decisions = Informer(
            self.hub, DECISION, label_selector=label, on_change=lambda key, _, new: controller.enqueue(key)
        )
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(decisions.run)
            await controller.run()

    async def reconcile(self, key: ObjectKey) -> Action:
        """Bring all clusters in line with a PlacementDecision."""
        selected = clusters_of(await self.hub.get(DECISION, key))
        for name, spoke in self.spokes.items():
            for story in STORIES:
                queue = setting_up.local_queue(name=story.name)
                if name in selected:
                    await ensure(spoke, LOCAL_QUEUE, queue)
                else:
                    with suppress(NotFound):
                        await spoke.delete(LOCAL_QUEUE, ObjectKey.of(queue))
        return Action.done()


async def set_up_hub(client: Writer, quota: Mapping[str, str]) -> None:
    """Create what the manager needs for each story: a queue with two checks, that of MultiKueue and the Placement's."""
    await ensure(client, NAMESPACE, setting_up.namespace("default"))
    await ensure(client, RESOURCE_FLAVOR, setting_up.resource_flavor())
    for story in STORIES:
        name = story.name
        dispatched = setting_up.admission_check(CONTROLLER_NAME, f"{name}-multikueue", named=name)
        placed = setting_up.admission_check(PLACEMENT_CHECKS, f"{name}-placement", PLACEMENT, name)
        checks = [check["metadata"]["name"] for check in (dispatched, placed)]
        await ensure(client, ADMISSION_CHECK, dispatched)
        await ensure(client, ADMISSION_CHECK, placed)
        await ensure(client, CLUSTER_QUEUE, setting_up.cluster_queue(quota, checks, name))
        await ensure(client, LOCAL_QUEUE, setting_up.local_queue(name=name, of=name))
    await ensure(client, LOCAL_QUEUE, setting_up.local_queue(of=STORIES[0].name))  # for the samples of --keep
    await ensure(client, PLACEMENT, QUEUES)


async def tell(client: KubeClient, story: Story) -> None:
    """Create the labels, the scores and the Placement of a story."""
    for name, labels in story.labels.items():
        await client.merge_patch(MANAGED_CLUSTER, ObjectKey("", name), {"metadata": {"labels": dict(labels)}})
    await report_gpus(client, story.gpus)
    await ensure(client, PLACEMENT, built(PLACEMENT, story.name, KUEUE_NAMESPACE, spec=dict(story.placement)))


async def report_gpus(client: KubeClient, gpus: Mapping[str, int]) -> None:
    """Write the scores of clusters, as the addon that counts their resources does."""
    for cluster, free in gpus.items():
        await ensure(client, SCORE, built(SCORE, SCORES, cluster))
        status = {"scores": [{"name": GPUS, "value": score_of(free)}]}
        await client.merge_patch(SCORE, ObjectKey(cluster, SCORES), {"status": status}, subresource="status")


HELD: Final = "cluster.open-cluster-management.io/api-resource-cleanup"
"""OCM's own finalizer: it stays while its agents tidy up on the cluster."""


async def detach(client: KubeClient, cluster: str) -> None:
    """Delete a ManagedCluster that OCM holds, so that it stays until `let_go`."""
    key = ObjectKey("", cluster)
    await client.merge_patch(MANAGED_CLUSTER, key, {"metadata": {"finalizers": [HELD]}})
    await client.delete(MANAGED_CLUSTER, key)


async def let_go(client: KubeClient, cluster: str) -> None:
    """Nothing holds it any more."""
    await client.merge_patch(MANAGED_CLUSTER, ObjectKey("", cluster), {"metadata": {"finalizers": None}})
