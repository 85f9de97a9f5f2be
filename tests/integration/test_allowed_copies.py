"""A worker's namespaces take the copies of those that they name: API servers say so, by what `rbac worker` prints."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from typing import Any

import attrs
import pytest

from multikueue.core.model.kinds import EVENT, JOB, WORKLOAD
from multikueue.core.model.kinds import NAMESPACE as NAMESPACES
from multikueue.core.model.labels import ALLOW_FROM_ANNOTATION, FROM_ANNOTATION, QUEUE_LABEL
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import annotations_of
from multikueue.errors import Forbidden, Invalid, NotFound
from multikueue.kube import KubeClient
from multikueue.runtime.origin import Origin, coming_from
from multikueued.rbac.objects import Account, worker_objects
from multikueued.rbac.rules import ON_MANAGER
from tests.controlplane.access import service_account_subject
from tests.controlplane.interface import Cluster
from tests.controlplane.polling import poll_until
from tests.integration.daemon import SETTINGS
from tests.integration.fleet import Fleet, fleet, job
from tests.integration.permissions import grant_daemon
from tests.integration.planes import WORKER_USER, Planes, connection
from tests.integration.test_granting import resource_of
from tests.integration.view import NAMESPACE

pytestmark = [pytest.mark.real, pytest.mark.timeout(240), pytest.mark.asyncio(loop_scope="session")]

MANAGER = "prod-eu"
NAMED = attrs.evolve(SETTINGS, manager_name=MANAGER)
ACCOUNT = Account(service_account_subject(WORKER_USER)["namespace"], WORKER_USER)


@asynccontextmanager
async def protected(planes: Sequence[Cluster]) -> AsyncIterator[list[KubeClient]]:
    """Workers with the policy in force; return clients with the daemon's credentials there."""
    policy = [obj for obj in worker_objects(NAMED, "x", ACCOUNT, taking=True) if "Admission" in obj["kind"]]
    async with AsyncExitStack() as stack:
        clients = []
        for plane in planes:
            stack.push_async_callback(_withdraw, plane, policy)
            for obj in policy:
                await plane.admin.apply(obj)
            config = connection(plane.kubeconfig(WORKER_USER))
            client = await stack.enter_async_context(KubeClient(config, name=plane.name))
            refused = partial(_refuses, client)
            await poll_until(refused, seconds=60, otherwise="the policy is not in force after 60 s")
            clients.append(client)
        yield clients


async def _withdraw(plane: Cluster, policy: Sequence[Json]) -> None:
    async with KubeClient(connection(plane.kubeconfig()), name="admin") as admin:
        for obj in reversed(policy):
            with suppress(NotFound):
                await admin.delete(resource_of(obj), ObjectKey.of(obj))
        await allow(plane, None)


async def _refuses(client: KubeClient) -> bool:
    try:
        made = await client.create(JOB, job("probe"))
    except Invalid:
        return True
    await client.delete(JOB, ObjectKey.of(made))
    return False


async def allow(plane: Cluster, *origins: str | None) -> None:
    """What the owner of a worker's namespace does."""
    value = ",\n".join(filter(None, origins)) or None
    async with KubeClient(connection(plane.kubeconfig()), name="admin") as admin:
        patch = {"metadata": {"annotations": {ALLOW_FROM_ANNOTATION: value}}}
        await admin.merge_patch(NAMESPACES, ObjectKey("", NAMESPACE), patch)


async def note_once(real: Fleet, text: str) -> str:
    """Wait until an event on the manager says something; return it."""
    notes: list[str] = []

    async def look() -> bool:
        events = (await real.manager.client.list(EVENT, namespace=NAMESPACE)).items
        notes.extend(str(event["note"]) for event in events if text in str(event.get("note")))
        return bool(notes)

    await poll_until(look, seconds=60, otherwise=f"no event says {text}")
    return notes[0]


def _copy(name: str, origin: str, **more: Any) -> Json:
    return coming_from({**job(name), **more}, origin)


async def test_only_whom_the_namespace_names_may_have_copies_there(planes: Planes) -> None:
    """Neither another namespace, nor another manager, nor one that says nothing; what is there can be followed."""
    worker = planes.workers["worker1"]
    async with protected([worker]) as (client,):
        ours, others = f"{MANAGER}/team-a/u-1", ("", f"{MANAGER}/team-a/u-2", f"{MANAGER}/team-b/u-1", "b/team-a/u-1")
        await allow(worker, "b/team-a/u-1", ours)
        for origin in others:
            with pytest.raises(Invalid, match="takes no copies from"):
                await client.create(JOB, _copy("refused", origin))
        made = await poll_until_taken(client, _copy("taken", ours))
        key = ObjectKey.of(made)
        await allow(worker, None)
        await client.merge_patch(JOB, key, {"metadata": {"labels": {QUEUE_LABEL: "q"}}})
        with pytest.raises(Invalid, match="stays as it was"):
            await client.merge_patch(JOB, key, {"metadata": {"annotations": {FROM_ANNOTATION: others[1]}}})
        with pytest.raises(Invalid, match="takes no copies from"):
            await client.create(WORKLOAD, {**_workload(), "metadata": {"name": "x", "namespace": NAMESPACE}})
        with pytest.raises(Forbidden):
            await client.merge_patch(NAMESPACES, ObjectKey("", NAMESPACE), {"metadata": {"labels": {"a": "b"}}})
        await client.delete(JOB, key)


async def poll_until_taken(client: KubeClient, copy: Json) -> Json:
    """Create it, once the server knows what its namespace says now."""
    made: list[Json] = []

    async def taken() -> bool:
        try:
            made.append(await client.create(JOB, copy))
        except Invalid:
            return False
        return True

    await poll_until(taken, seconds=30, otherwise="it is refused for 30 s")
    return made[0]


def _workload() -> Json:
    pod_set = {"name": "main", "count": 1, "template": job("x")["spec"]["template"]}
    gvk = WORKLOAD.gvk
    return {"apiVersion": gvk.api_version, "kind": gvk.kind, "spec": {"podSets": [pod_set]}}


async def test_a_namespace_that_is_made_again_is_not_the_one_that_was_named(planes: Planes) -> None:
    """Who gets its name later does not get its place on workers."""
    worker, key = planes.workers["worker1"], ObjectKey("", "made-again")
    config = connection(planes.manager.kubeconfig())
    again: Json = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": key.name}}
    async with protected([worker]) as (client,), KubeClient(config, name="manager") as manager:

        async def gone() -> bool:
            with suppress(NotFound):
                return not await manager.get(NAMESPACES, key)
            return True

        origin = Origin(MANAGER, manager)
        await manager.create(NAMESPACES, again)
        first = await origin.of(key.name)
        await manager.delete(NAMESPACES, key)
        await poll_until(gone, seconds=60, otherwise="the namespace does not go")
        await manager.create(NAMESPACES, again)
        second = await origin.of(key.name)
        await allow(worker, first)
        await client.delete(JOB, ObjectKey.of(await poll_until_taken(client, _copy("of-the-first", first))))
        with pytest.raises(Invalid, match="takes no copies from"):
            await client.create(JOB, _copy("of-the-second", second))
        await manager.delete(NAMESPACES, key)


async def test_a_job_runs_where_its_namespace_is_named_and_the_refusal_is_told(planes: Planes) -> None:
    """Through the daemon: one worker takes it, the other's refusal is an event in the words of the policy."""
    await grant_daemon(planes.manager, ON_MANAGER["origin"])
    async with protected([*planes.workers.values()]), fleet(planes, settings=NAMED) as real:
        await real.submit("nowhere")
        note = await note_once(real, "takes no copies from")
        uid = (await real.manager.client.get(NAMESPACES, ObjectKey("", NAMESPACE)))["metadata"]["uid"]
        assert f"takes no copies from {MANAGER}/{NAMESPACE}/{uid}" in note
        assert not real.copies()

        await allow(planes.workers["worker2"], f"{MANAGER}/{NAMESPACE}/{uid}")
        forged = job("named")
        forged["metadata"]["annotations"] = {FROM_ANNOTATION: "a/b/c"}
        await real.manager.client.create(JOB, forged)
        assert await real.running("named") == "worker2"
        copy = real.workers["worker2"].get(JOB, "named") or {}
        assert annotations_of(copy)[FROM_ANNOTATION] == f"{MANAGER}/{NAMESPACE}/{uid}"
        await real.finish("named")
