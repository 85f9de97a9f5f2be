"""The manager's own nodes first, on real servers: full, overflow to a worker, free again. Each job runs once."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Final

import attrs
import pytest

from multikueue.core.dispatchers.scored.profile import SCORED, Profile, Weights
from multikueue.core.model.kinds import (
    CLUSTER_QUEUE,
    JOB,
    LOCAL_QUEUE,
    MULTIKUEUE_CLUSTER,
    MULTIKUEUE_CONFIG,
    SECRET,
    WORKLOAD,
)
from multikueue.core.model.kinds import NAMESPACE as NAMESPACES
from multikueue.core.model.labels import NAMESPACES_ANNOTATION, ORIGIN_LABEL
from multikueue.core.model.names import ClusterName, Json, ObjectKey
from multikueue.core.model.objects import dig, labels_of
from multikueue.core.model.quantities import thousandths
from multikueue.core.model.workloads import checks, cluster_name, nominated
from multikueue.runtime.loop import utc_now
from multikueue.sandbox.setting_up import (
    CHECK,
    FLAVOR,
    LOCAL_QUEUE_NAME,
    cluster,
    cluster_queue,
    kubeconfig_secret,
    local_queue,
    namespace,
)
from multikueued.rbac.rules import on_worker
from multikueued.settings.config import DispatcherSettings
from tests.controlplane.polling import poll_until
from tests.integration.daemon import SETTINGS
from tests.integration.fleet import Fleet, fleet
from tests.integration.planes import WORKER_USER, Planes
from tests.integration.view import NAMESPACE

pytestmark = [pytest.mark.real, pytest.mark.timeout(240), pytest.mark.asyncio(loop_scope="session")]

LOCAL: Final = "local"
USER: Final = "local-worker"
IMAGE: Final = "local-default"
"""Where copies of what is in `default` are on the manager."""
MAPPED: Final = {NAMESPACES_ANNOTATION: json.dumps({NAMESPACE: IMAGE})}
LOCAL_FIRST: Final = Profile(preference="place=local:100", weights=Weights(preference=500))
LOCAL_SETTINGS: Final = attrs.evolve(
    SETTINGS, dispatcher=DispatcherSettings(name=SCORED, profiles={"default": LOCAL_FIRST})
)


@asynccontextmanager
async def local_first(planes: Planes) -> AsyncIterator[Fleet]:
    """A manager with room for one job, which is preferred, and two workers."""
    rules = on_worker(LOCAL_SETTINGS)
    await planes.manager.service_account(USER, rules)
    for worker in planes.workers.values():
        await worker.grant(WORKER_USER, rules)
    async with fleet(planes, daemon=False, settings=LOCAL_SETTINGS) as real:
        client, made = real.manager.client, cluster(LOCAL)
        made["metadata"] |= {"labels": {"place": "local"}, "annotations": MAPPED}
        for resource, obj in (
            (NAMESPACES, namespace(IMAGE)),
            (CLUSTER_QUEUE, cluster_queue({"cpu": "1", "memory": "16Gi"}, name="local-pool")),
            (LOCAL_QUEUE, local_queue(IMAGE, LOCAL_QUEUE_NAME, "local-pool")),
            (SECRET, kubeconfig_secret(LOCAL, planes.manager.kubeconfig(USER))),
            (MULTIKUEUE_CLUSTER, made),
        ):
            await client.create(resource, obj)
        listed = {"spec": {"clusters": [LOCAL, *planes.workers]}}
        await client.merge_patch(MULTIKUEUE_CONFIG, ObjectKey("", CHECK), listed)
        try:
            real.daemon.start()
            await real.daemon.connected()
            yield real
        finally:
            for job in real.manager.all(JOB):
                await client.delete(JOB, ObjectKey.of(job), propagation="Background")
            await real.changes.until(lambda: not copies(real), otherwise="copies are left on the manager")
            await client.delete(LOCAL_QUEUE, ObjectKey(IMAGE, LOCAL_QUEUE_NAME))
            await client.delete(NAMESPACES, ObjectKey("", IMAGE))


def copies(real: Fleet) -> list[Json]:
    """What of ours is on the manager."""
    found = [one for kind in (WORKLOAD, JOB) for one in real.manager.all(kind)]
    return [one for one in found if ORIGIN_LABEL in labels_of(one)]


async def has_room(real: Fleet) -> bool:
    """Whether the dispatcher knows that the manager has room again, by its figures and by what it has offered."""
    rooms, place = real.daemon.manager._rooms, (ClusterName(LOCAL), "local-pool")
    assert rooms is not None
    free = rooms.ledger.net(ObjectKey(NAMESPACE, "any"), place, utc_now()) or {}
    return free.get((FLAVOR, "cpu"), 0) == thousandths("1")


async def test_local_first_overflow_to_a_worker_and_local_again(planes: Planes) -> None:
    async with local_first(planes) as real:
        await real.submit("first")
        assert await real.running("first") == LOCAL
        assert {one["metadata"]["namespace"] for one in copies(real)} == {IMAGE}
        await real.submit("second")
        assert await real.running("second") in planes.workers
        await real.finish("first")
        await poll_until(partial(has_room, real), seconds=40, otherwise="the dispatcher sees no room on the manager")
        await real.submit("third")
        assert await real.running("third") == LOCAL
        (copy,) = (one for one in copies(real) if one["kind"] == WORKLOAD.gvk.kind)
        assert (checks(copy), nominated(copy), cluster_name(copy)) == ([], (), None)

        # Names that are not apart any more: nothing new, and what runs is followed to its end.
        await real.manager.client.merge_patch(
            MULTIKUEUE_CLUSTER, ObjectKey("", LOCAL), {"metadata": {"annotations": {NAMESPACES_ANNOTATION: None}}}
        )
        told = await real.active(LOCAL, status=False)
        assert told["reason"] == "UnusableNames"
        assert NAMESPACES_ANNOTATION in told["message"]
        await real.finish("third")
        await real.submit("fourth")
        assert await real.running("fourth") in planes.workers
        assert [len(real.ran_on(name)) for name in ("first", "second", "third", "fourth")] == [1, 1, 1, 1]
        assert dig(real.manager.get(JOB, "first"), "metadata", "namespace") == NAMESPACE
