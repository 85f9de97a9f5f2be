"""Makes the control planes as they were at first: what a test left, or broke when it failed, is nobody else's matter.

That is done before a test and not after it: so it is done by somebody whom no failure has hit, nothing runs there any
more that would make things anew, and the failure of a test is all that is told of it.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final

import aiohttp
import anyio

from multikueue.core.model.kinds import (
    ADMISSION_CHECK,
    CLUSTER_PROFILE,
    CLUSTER_QUEUE,
    COHORT,
    EVENT,
    LEASE,
    LOCAL_QUEUE,
    MULTIKUEUE_CLUSTER,
    MULTIKUEUE_CONFIG,
    MUTATING_WEBHOOKS,
    RESOURCE_FLAVOR,
    SECRET,
    WORKLOAD,
    WORKLOAD_PRIORITY_CLASS,
)
from multikueue.core.model.names import GVK, Json, ObjectKey, Resource
from multikueue.errors import NotFound
from multikueue.kube import KubeClient
from multikueue.sandbox import kinds
from multikueue.sandbox.setting_up import KUEUE_NAMESPACE
from tests.controlplane.errors import NotReady
from tests.controlplane.interface import Cluster
from tests.integration.permissions import WORKER_RULES, grant_daemon, make_marks_secret, withdraw_optional_permissions
from tests.integration.planes import WORKER_USER, Planes, connection
from tests.integration.view import NAMESPACE, POD

_JOBS: Final = [kind.resource for kind in kinds.AVAILABLE if kind.resource != POD]
_REPLICA_SET: Final = Resource(GVK("apps", "v1", "ReplicaSet"), "replicasets")
EMPTIED: Final = (
    MUTATING_WEBHOOKS,
    *_JOBS,
    _REPLICA_SET,
    POD,  # after all that makes some
    WORKLOAD,
    LOCAL_QUEUE,
    CLUSTER_QUEUE,
    COHORT,
    RESOURCE_FLAVOR,
    WORKLOAD_PRIORITY_CLASS,
    ADMISSION_CHECK,
    MULTIKUEUE_CONFIG,
    MULTIKUEUE_CLUSTER,
    CLUSTER_PROFILE,
    SECRET,
    LEASE,
    EVENT,
)
"""All kinds of objects that tests make, and what they run makes."""
_IN_KUEUES_NAMESPACE: Final = (CLUSTER_PROFILE, SECRET, LEASE)
_ANSWERS_WITHIN = 5.0  # seconds; an API server that is well takes a hundredth of that
_GONE_WITHIN = 40.0  # seconds; what controllers do about it takes one


async def as_at_first(planes: Planes) -> None:
    """Have all API servers answer, with none of the objects tests make, and with the users' first rights and tokens.

    Raises:
        NotReady: something comes back again and again.
        ControlPlaneError: a server cannot be started again.
    """
    async with anyio.create_task_group() as tasks:
        for plane in planes.all:
            tasks.start_soon(_clear, plane)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(grant_daemon, planes.manager, [])
        tasks.start_soon(withdraw_optional_permissions, planes.manager)
        tasks.start_soon(make_marks_secret, planes.manager)
        for worker in planes.workers.values():
            tasks.start_soon(worker.service_account, WORKER_USER, WORKER_RULES)


async def objects(client: KubeClient, resource: Resource) -> list[Json]:
    """What there is of a kind, where tests make it; nothing if the server does not know the kind."""
    where = KUEUE_NAMESPACE if resource in _IN_KUEUES_NAMESPACE else NAMESPACE if resource.namespaced else ""
    try:
        return (await client.list(resource, namespace=where)).items
    except NotFound:
        return []


async def _clear(plane: Cluster) -> None:
    if not await _answers(plane):
        await plane.restart_apiserver()
    left: list[str] = []
    with anyio.move_on_after(_GONE_WITHIN):
        async with KubeClient(connection(plane.kubeconfig()), name=plane.name) as client:
            while True:  # until there is nothing: controllers may make something while they are being stopped
                left_over = [(kind, obj) for kind in EMPTIED for obj in await objects(client, kind)]
                if not left_over:
                    return
                left = [await _removed(client, kind, obj) for kind, obj in left_over]
    raise NotReady(f"{plane.name} still has {', '.join(left)} after {_GONE_WITHIN:g} s")


async def _answers(plane: Cluster) -> bool:
    with anyio.move_on_after(_ANSWERS_WITHIN), suppress(aiohttp.ClientError):
        return (await plane.admin.send("GET", "/readyz")).status == 200
    return False


async def _removed(client: KubeClient, resource: Resource, obj: Json) -> str:
    """Remove an object, whoever holds it; return what it was."""
    key = ObjectKey.of(obj)
    with suppress(NotFound):
        if obj["metadata"].get("finalizers"):
            await client.merge_patch(resource, key, {"metadata": {"finalizers": None}})
        await client.delete(resource, key, propagation="Background", grace=0)  # nobody plays the pods' kubelets now
    return f"{resource.gvk.kind} {key}"
