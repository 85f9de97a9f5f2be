"""Queues of a worker that take nothing for a while: its ClusterQueue is stopped, or its LocalQueue is gone."""

from __future__ import annotations

import contextlib

import anyio

from multikueue.core.model.kinds import CLUSTER_QUEUE, LOCAL_QUEUE
from multikueue.core.model.names import ObjectKey
from multikueue.errors import ApiError
from multikueue.sandbox.setting_up import CLUSTER_QUEUE_NAME, LOCAL_QUEUE_NAME, local_queue
from tests.simulation.scene import Scene


async def shut_a_queue(scene: Scene) -> None:
    """What runs there goes on. Only where the dispatcher looks at queues: others offer, and wait until it is back."""
    worker, choosing = scene.worker(), scene.world.choosing
    if choosing is None or worker.name in choosing.shut:
        return
    choosing.shut[worker.name] = anyio.current_time()
    stopped = scene.dice.random() < 0.5
    scene.note(f"{'ClusterQueue' if stopped else 'LocalQueue'} of {worker.name}")
    key = ObjectKey("", CLUSTER_QUEUE_NAME)
    if stopped:
        await worker.api.merge_patch(CLUSTER_QUEUE, key, {"spec": {"stopPolicy": "Hold"}})
    else:
        await worker.api.delete(LOCAL_QUEUE, ObjectKey("default", LOCAL_QUEUE_NAME))
    await anyio.sleep(scene.seconds(40.0, 150.0))
    with contextlib.suppress(ApiError):
        if stopped:
            await worker.api.merge_patch(CLUSTER_QUEUE, key, {"spec": {"stopPolicy": None}})
        else:
            await worker.api.create(LOCAL_QUEUE, local_queue())
    del choosing.shut[worker.name]
