"""Finds the job that a command is about."""

from __future__ import annotations

import attrs

from multikueue.core.model.kinds import WORKLOAD
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import name_of
from multikueue.core.model.workloads import is_finished
from multikueue.errors import Forbidden, NotFound
from multikueued.clusters import ClusterClient
from multikueued.exits import NOT_FOUND, USAGE, CommandError
from multikueued.reading.asked import Asked
from multikueued.reading.manager_lists import job_behind, not_checked, read_objects
from multikueued.reports.jobs_alone import job_alone
from multikueued.reports.objects import ManagerObjects
from multikueued.reports.remedies.remedy import is_name
from multikueued.reports.typenames import JobName, matching, meant, resource_of, suggestions


@attrs.frozen
class ManagerJob:
    """A job that was asked for, as it stands on the manager."""

    name: str
    """TYPE/NAME."""
    objects: ManagerObjects
    workload: Json | None
    """None: Kueue has none for it."""
    object: Json | None
    """The job itself; None: there is none, or it may not be read."""
    unread: tuple[str, ...] = ()
    """What could not be read, in words."""
    others: tuple[str, ...] = ()
    """The other Workloads of the job that have not ended (LeaderWorkerSets have several), as `workload/NAME`."""

    @property
    def namespace(self) -> str:
        """Of the job."""
        return ObjectKey.of(self.about[0]).namespace

    @property
    def about(self) -> list[Json]:
        """What events are about: the job and its Workload."""
        return [obj for obj in (self.workload, self.object) if obj is not None]


async def find_job(client: ClusterClient, asked: Asked) -> ManagerJob:
    """Find a job by TYPE/NAME, by NAME if no other has it, or by workload/NAME.

    Raises:
        CommandError: there is none, or there are several.
        ApiError: the manager cannot be read.
    """
    text, namespace, wanted = asked.job, asked.target.namespace, JobName.parse(asked.job)
    if not is_name(wanted.name):
        raise CommandError(f'"{text}" names no job: write TYPE/NAME, as job/train-1', USAGE)
    objects = await read_objects(client, namespace, asked.target.daemon_namespace, lenient=True)
    matches = matching(wanted, objects.workloads)
    names = meant(matches)
    if len(names) > 1:
        raise CommandError(f'"{text}" is the name of several jobs: say which of {", ".join(names)}', USAGE)
    if matches:
        going = (name_of(workload) for workload in matches[1:] if not is_finished(workload))
        return attrs.evolve(
            await _with_job(client, names[0], objects, matches[0]), others=tuple(f"workload/{name}" for name in going)
        )
    typed = attrs.evolve(wanted, type=wanted.type or "job")  # a NAME alone is taken for that of a Job
    job = await job_named(client, typed, namespace, lenient=WORKLOAD not in objects.unread)
    if job is not None:
        return ManagerJob(job_alone(job).job, objects, None, job, not_checked(objects))
    hint = suggestions(wanted, await _everywhere(client) or objects.workloads, namespace)
    raise CommandError(f"there is no {wanted} in namespace {namespace}{f': {hint}' if hint else ''}", NOT_FOUND)


async def _with_job(client: ClusterClient, name: str, objects: ManagerObjects, workload: Json) -> ManagerJob:
    unread = [*not_checked(objects, *([] if objects.lease is not None else ["Lease"]))]
    if objects.lease is None and not unread:
        unread = ["whether the daemon runs: there is no Lease, or you may not get it"]
    try:
        return ManagerJob(name, objects, workload, await job_behind(client, workload), tuple(unread))
    except Forbidden:
        return ManagerJob(name, objects, workload, None, (*unread, f"the job itself: you may not get {name}"))


async def _everywhere(client: ClusterClient) -> tuple[Json, ...]:
    """The Workloads of all namespaces, for a hint; none if they may not be listed."""
    try:
        return tuple((await client.list(WORKLOAD)).items)
    except Forbidden:
        return ()


async def job_named(client: ClusterClient, wanted: JobName, namespace: str, *, lenient: bool) -> Json | None:
    """The job itself, with its kind; None: it is no one object, or is not there.

    Args:
        client: of the manager.
        wanted: with a type.
        namespace: the job's.
        lenient: whether one that may not be read is None, too.

    Raises:
        Forbidden: it may not be read.
    """
    resource = resource_of(wanted.type)
    if resource is None:
        return None
    try:
        job = await client.get(resource, ObjectKey(namespace, wanted.name))
    except NotFound:
        return None
    except Forbidden:
        if not lenient:
            raise
        return None
    return resource.object(job)
