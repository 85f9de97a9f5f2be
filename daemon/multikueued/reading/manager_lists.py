"""Reads what reports are made of from the manager: some lists, at once."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Final

import anyio

from multikueue.adapters import AVAILABLE
from multikueue.core.model.kinds import (
    ADMISSION_CHECK,
    CLUSTER_QUEUE,
    CONFIG_MAP,
    CORE_EVENT,
    EVENT,
    JOB,
    LEASE,
    LOCAL_QUEUE,
    MULTIKUEUE_CLUSTER,
    MULTIKUEUE_CONFIG,
    WORKLOAD,
)
from multikueue.core.model.name_lists import instead
from multikueue.core.model.names import GVK, Json, ObjectKey, Resource
from multikueue.core.model.objects import name_of
from multikueue.core.model.workloads import has_members, owner
from multikueue.errors import ApiError, Forbidden, NotFound
from multikueue.protocols import Reader, read
from multikueued.clusters import ClusterClient
from multikueued.exits import NOT_FOUND, CommandError
from multikueued.reports.events import EventReport, as_new_event, event_reports
from multikueued.reports.jobs import JobFilter
from multikueued.reports.objects import ManagerObjects
from multikueued.reports.published import LABEL as FINDINGS_LABEL
from multikueued.reports.published import NAME as FINDINGS
from multikueued.reports.published import merged
from multikueued.reports.typenames import resource_of
from multikueued.settings.config import Settings

LEASE_NAME = Settings().name


async def read_lease(client: Reader, namespace: str) -> Json | None:
    """The daemon's Lease; None if there is none, or if it may not be read.

    Raises:
        ApiError: the manager does not answer.
    """
    with contextlib.suppress(NotFound, Forbidden):
        return await client.get(LEASE, ObjectKey(namespace, LEASE_NAME))
    return None


async def read_findings(client: Reader, namespace: str) -> Json | None:
    """What the daemon has published of workers; None if it has not, or if it may not be read.

    The name is one of its settings, so it is found by its label. Who may not list ConfigMaps may perhaps read the one
    of the usual name; so it is with what a former version of the daemon has published.

    Args:
        client: of the manager.
        namespace: the daemon's.

    Raises:
        ApiError: the manager does not answer.
    """
    with contextlib.suppress(Forbidden):
        if listed := (await client.list(CONFIG_MAP, namespace=namespace, label_selector=FINDINGS_LABEL)).items:
            return merged(sorted(listed, key=lambda config_map: (name_of(config_map) != FINDINGS, name_of(config_map))))
    with contextlib.suppress(NotFound, Forbidden):
        return await client.get(CONFIG_MAP, ObjectKey(namespace, FINDINGS))
    return None


def _is_forbidden(_: Resource, error: ApiError) -> bool:
    return isinstance(error, Forbidden)


async def read_objects(
    client: Reader,
    namespace: str = "",
    daemon_namespace: str = "",
    *,
    lenient: bool = False,
    noted: Callable[[Resource, ApiError], bool] = _is_forbidden,
) -> ManagerObjects:
    """Read the manager's objects.

    Args:
        client: of the manager.
        namespace: of Workloads and LocalQueues; empty: all.
        daemon_namespace: where the Lease and what the daemon publishes are; empty: it does not matter.
        lenient: whether what may not be listed is noted as unread, instead of an error.
        noted: whether that holds of an error too, if `lenient`.

    Raises:
        ApiError: one of the lists cannot be read.
    """
    fields = dict[str, Any]()
    unread, errors = set[Resource](), list[ApiError]()

    async def read_list(field: str, resource: Resource) -> None:
        try:
            where = namespace if resource.namespaced else ""
            fields[field] = tuple((await client.list(resource, namespace=where)).items)
        except ApiError as error:
            if lenient and noted(resource, error):
                unread.add(resource)
            else:
                errors.append(error)

    async def read_one(field: str, read_it: Callable[[Reader, str], Awaitable[Json | None]]) -> None:
        try:
            fields[field] = await read_it(client, daemon_namespace)
        except ApiError as error:
            errors.append(error)

    async with anyio.create_task_group() as tasks:
        for resource, (field, _) in _LISTS.items():
            tasks.start_soon(read_list, field, resource)
        if daemon_namespace:
            tasks.start_soon(read_one, "lease", read_lease)
            tasks.start_soon(read_one, "findings", read_findings)
    if errors:  # one is enough for people
        raise errors[0]
    return ManagerObjects(**fields, unread=frozenset(unread), daemon_namespace=daemon_namespace)


_LISTS: Final = {
    WORKLOAD: ("workloads", "Workloads"),
    LOCAL_QUEUE: ("local_queues", "LocalQueues"),
    CLUSTER_QUEUE: ("cluster_queues", "ClusterQueues"),
    ADMISSION_CHECK: ("checks", "checks"),
    MULTIKUEUE_CONFIG: ("configs", "configs"),
    MULTIKUEUE_CLUSTER: ("clusters", "workers"),
}
"""The field of `ManagerObjects`; and a word, so that all that may not be listed fits in a line of a terminal."""


async def cluster_of(client: Reader, worker: str) -> Json:
    """The MultiKueueCluster of a worker.

    Raises:
        CommandError: there is none; it says which may be meant.
        ApiError: it may not be read.
    """
    cluster = await read(client, MULTIKUEUE_CLUSTER, ObjectKey("", worker))
    if cluster is not None:
        return cluster
    known = map(name_of, (await client.list(MULTIKUEUE_CLUSTER)).items)
    raise CommandError(f'there is no MultiKueueCluster "{worker}" on the manager{instead(worker, known)}', NOT_FOUND)


async def queue_names(client: Reader, namespace: str) -> dict[Resource, list[str]]:
    """The names of the LocalQueues of a namespace, of all if it is empty, and of the ClusterQueues; by kind, those that
    may be listed."""
    names: dict[Resource, list[str]] = {}
    for resource, within in ((LOCAL_QUEUE, namespace), (CLUSTER_QUEUE, "")):
        with contextlib.suppress(Forbidden):
            names[resource] = [name_of(queue) for queue in (await client.list(resource, namespace=within)).items]
    return names


async def check_names(client: Reader, chosen: JobFilter) -> None:
    """Look whether there are the worker and the queue of which nothing was listed, where that may be read.

    Raises:
        CommandError: there is none of that name; it says which may be meant.
        ApiError: the manager does not answer.
    """
    if chosen.worker:
        with contextlib.suppress(Forbidden):
            await cluster_of(client, chosen.worker)
    if chosen.queue:
        named = await queue_names(client, chosen.namespace)
        known = {name for names in named.values() for name in names}
        if len(named) == 2 and chosen.queue not in known:
            where = f" in namespace {chosen.namespace}" if chosen.namespace else ""
            missing = f'there is no LocalQueue "{chosen.queue}"{where}, and no ClusterQueue of that name'
            raise CommandError(f"{missing}{instead(chosen.queue, known)}", NOT_FOUND)


def not_checked(objects: ManagerObjects, *more: str) -> tuple[str, ...]:
    """What may not be read, in one line; none if all may.

    Args:
        objects: of the manager.
        more: what else may not be read.
    """
    if not objects.unread:
        return ()
    lacking = ", ".join([*(word for resource, (_, word) in _LISTS.items() if resource in objects.unread), *more])
    ask = ""
    if WORKLOAD in objects.unread:
        ask = ": which worker has a job, and why it waits, shows the role of a viewer (multikueue rbac user)"
    return (f"you may not read {lacking}{ask}",)


async def jobs_of_all_kinds(client: Reader, namespace: str, selector: str = "") -> list[Json]:
    """The jobs of all built-in kinds that the manager serves, and that may be listed.

    Raises:
        Forbidden: none may be.
        ApiError: the manager does not answer, or the selector is none.
    """
    jobs: dict[Resource, Sequence[Json]] = {}
    refused: list[Forbidden] = []

    async def read(resource: Resource) -> None:
        with contextlib.suppress(NotFound):
            try:
                listed = (await client.list(resource, namespace=namespace, label_selector=selector)).items
            except Forbidden as error:
                refused.append(error)
            else:
                jobs[resource] = [*map(resource.object, listed)]

    async with anyio.create_task_group() as tasks:
        for kind in AVAILABLE:
            tasks.start_soon(read, kind.resource)
    if refused and not jobs:
        raise next((error for error in refused if JOB.qualified in str(error)), refused[0])
    return [job for listed in jobs.values() for job in listed]


async def job_resource(client: ClusterClient, gvk: GVK) -> Resource | None:
    """The resource of a job kind; None if the manager does not serve it."""
    known = resource_of(gvk.kind.lower())
    if known is not None and known.gvk == gvk:
        return known
    served = await client.discover(gvk)
    return Resource(gvk, served.plural) if served is not None else None


async def job_behind(client: ClusterClient, workload: Json) -> Json | None:
    """The job behind a Workload; None if there is none.

    Raises:
        Forbidden: it may not be read.
    """
    job_owner = owner(workload)
    if job_owner is None or has_members(workload):
        return None
    resource = await job_resource(client, job_owner.gvk)
    key = ObjectKey(ObjectKey.of(workload).namespace, job_owner.name)
    return await read(client, resource, key) if resource is not None else None


async def events_of(client: Reader, about: Sequence[Json]) -> tuple[EventReport, ...]:
    """The events about objects of one namespace.

    Raises:
        ApiError: they cannot be read.
    """
    namespace = ObjectKey.of(about[0]).namespace if about else ""
    try:
        return event_reports((await client.list(EVENT, namespace=namespace)).items, about)
    except Forbidden as error:  # the role `view` shows the very same events under their former group alone
        try:
            listed = (await client.list(CORE_EVENT, namespace=namespace)).items
        except (Forbidden, NotFound):
            raise error from None
        return event_reports(map(as_new_event, listed), about)


async def workloads_of_labelled_jobs(
    client: ClusterClient, workloads: Iterable[Json], selector: str, namespace: str
) -> list[Json]:
    """The Workloads whose jobs have labels that a selector takes.

    Kueue copies few labels of a job to its Workload, so the jobs themselves are asked, one list for each kind.
    """
    owners = [(workload, job_owner) for workload in workloads if (job_owner := owner(workload)) is not None]
    taken: set[tuple[GVK, ObjectKey]] = set()
    for gvk in sorted({job_owner.gvk for _, job_owner in owners}):
        if (resource := await job_resource(client, gvk)) is not None:
            listed = await client.list(resource, namespace=namespace, label_selector=selector)
            taken.update((gvk, ObjectKey.of(job)) for job in listed.items)
    return [
        workload
        for workload, job_owner in owners
        if (job_owner.gvk, ObjectKey(ObjectKey.of(workload).namespace, job_owner.name)) in taken
    ]
