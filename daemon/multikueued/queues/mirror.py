"""Makes the twin of a LocalQueue on a worker: the same namespace and name, and a ClusterQueue of the worker."""

from __future__ import annotations

import attrs

from multikueue.core.config.own_queues import unfit
from multikueue.core.model.kinds import ADMISSION_CHECK, CLUSTER_QUEUE, LOCAL_QUEUE, NAMESPACE
from multikueue.core.model.name_lists import listed, suggestion
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import name_of
from multikueue.errors import AlreadyExists
from multikueue.protocols import ApiClient, read
from multikueue.runtime.workers.cluster_identity import cluster_uid
from multikueued.exits import NOT_FOUND, CommandError
from multikueued.reading.manager_lists import cluster_of
from multikueued.reports.cluster_answers import cluster_answer
from multikueued.reports.objects import ManagerObjects
from multikueued.reports.worker_queues import leads_to
from multikueued.workers.objects import namespace_object, plain_object
from multikueued.workers.places import Say, make_namespace


@attrs.frozen
class Twin:
    """What is to be made."""

    key: ObjectKey
    cluster_queue: str
    """Of the worker; empty: the one of the same name as the manager's."""
    worker: str = ""
    """Its MultiKueueCluster, which may say how namespaces and queues are called there; empty: as here."""

    async def there(self, manager: ApiClient) -> ObjectKey:
        """The LocalQueue that is to be made.

        Raises:
            CommandError: there is no such worker, or it has no namespace for it.
        """
        if not self.worker:
            return self.key
        names = cluster_answer(await cluster_of(manager, self.worker)).names
        if why := names.why_none(self.key.namespace):
            raise CommandError(f'MultiKueueCluster "{self.worker}": {why}')
        return names.local_queue(self.key)


def twin_object(key: ObjectKey, cluster_queue: str) -> Json:
    """The LocalQueue itself."""
    return plain_object(LOCAL_QUEUE, key.name, {"clusterQueue": cluster_queue}, key.namespace)


async def planned(manager: ApiClient, worker: ApiClient, twin: Twin) -> list[Json]:
    """The objects that the worker lacks; none if the twin is there.

    Raises:
        CommandError: there is no such LocalQueue here, no such ClusterQueue there, or a twin that leads elsewhere.
    """
    here = await _target_here(manager, twin.key)
    key = await twin.there(manager)
    target = twin.cluster_queue or here
    twin_there = await read(worker, LOCAL_QUEUE, key)
    if twin_there is not None:
        leads = leads_to(twin_there)
        if twin.cluster_queue and leads != twin.cluster_queue:
            problem = f'LocalQueue "{key}" is there, and leads to ClusterQueue "{leads}"'
            raise CommandError(f"{problem}: that cannot be changed; delete it there first, if no job needs it")
        return []
    if await read(worker, CLUSTER_QUEUE, ObjectKey("", target)) is None:
        known = sorted(map(name_of, (await worker.list(CLUSTER_QUEUE)).items))
        there = f"there are {listed(known)}" if known else "there is none"
        problem = f'the worker has no ClusterQueue "{target}"{suggestion(target, known)}; {there}'
        raise CommandError(f"{problem}: name one with --cluster-queue, or make it: its quota is yours to decide")
    if key != twin.key and (why := await _why_unfit(manager, worker, target)):
        raise CommandError(f'ClusterQueue "{target}" cannot hold copies: {why}. Name another with --cluster-queue')
    made = [twin_object(key, target)]
    if await read(worker, NAMESPACE, ObjectKey("", key.namespace)) is None:
        made.insert(0, namespace_object(key.namespace))
    return made


async def mirror(manager: ApiClient, worker: ApiClient, twin: Twin, say: Say) -> None:
    """Make what the worker lacks. The same again changes nothing.

    Raises:
        CommandError: see `planned`.
    """
    lacking = await planned(manager, worker, twin)
    for obj in lacking:
        if obj["kind"] == "Namespace":
            await make_namespace(worker, name_of(obj))
            say(f"made namespace {name_of(obj)}")
            continue
        try:
            await worker.create(LOCAL_QUEUE, obj)
        except AlreadyExists:
            say(f"LocalQueue {ObjectKey.of(obj)} is there: somebody made it meanwhile")
        else:
            say(f"made LocalQueue {ObjectKey.of(obj)}, which leads to ClusterQueue {obj['spec']['clusterQueue']}")
    if not lacking:
        say(f"LocalQueue {await twin.there(manager)} is there: nothing to do")


async def _why_unfit(manager: ApiClient, worker: ApiClient, target: str) -> str:
    """Why a ClusterQueue cannot hold copies, if the worker is the manager itself; empty: it can."""
    if await cluster_uid(manager) != await cluster_uid(worker):
        return ""
    checks, queues = (await manager.list(ADMISSION_CHECK)).items, (await manager.list(CLUSTER_QUEUE)).items
    return unfit(queues, (), ManagerObjects(checks=tuple(checks)).our_checks).get(target, "")


async def _target_here(manager: ApiClient, key: ObjectKey) -> str:
    queue = await read(manager, LOCAL_QUEUE, key)
    if queue is None:
        here = sorted(map(name_of, (await manager.list(LOCAL_QUEUE, namespace=key.namespace)).items))
        there = f"; there are {listed(here)}" if here else ""
        missing = f'there is no LocalQueue "{key}" on the manager{suggestion(key.name, here)}{there}'
        raise CommandError(f"{missing}: jobs find their way by the name that it has here", NOT_FOUND)
    return leads_to(queue)
