"""What an administrator of a hub creates for the stories: queues, checks, Placements, labels and scores."""

from __future__ import annotations

from collections.abc import Mapping

from multikueue import KubeClient, ObjectKey
from multikueue.core.model.kinds import ADMISSION_CHECK, CLUSTER_QUEUE, LOCAL_QUEUE, NAMESPACE, RESOURCE_FLAVOR
from multikueue.core.model.labels import CONTROLLER_NAME
from multikueue.protocols import Writer
from multikueue.sandbox import setting_up
from multikueue.sandbox.objects import built
from multikueue.sandbox.ocm.kinds import MANAGED_CLUSTER, PLACEMENT, SCORE
from multikueue.sandbox.setting_up import KUEUE_NAMESPACE, ensure
from multikueued.demo.ocm.stories import GPUS, SCORES, STORIES, Story, score_of

PLACEMENT_CHECKS = "open-cluster-management.io/placement"
"""The controller of checks that stand for a Placement."""


async def set_up_worker(client: Writer, quota: Mapping[str, str]) -> None:
    """Create the queues of a worker: one ClusterQueue, and a LocalQueue of each story."""
    await setting_up.set_up_queues(client, quota)
    for story in STORIES:
        await ensure(client, LOCAL_QUEUE, setting_up.local_queue(name=story.name))


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
