"""The manager as its API `remote.multikueue.dev` tells it."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

import anyio
import attrs

from multikueue.core.model.conditions import parse_timestamp
from multikueue.core.model.kinds import WORKLOAD
from multikueue.core.model.names import GVK, Json, ObjectKey, Resource
from multikueue.core.model.objects import dig
from multikueue.errors import Forbidden
from multikueued.api_answers import GROUP, REMOTE_JOB, VERSION
from multikueued.clusters import ClusterClient
from multikueued.exits import NOT_FOUND, USAGE, CommandError
from multikueued.reading.asked import Asked
from multikueued.reading.job_lookup import job_named
from multikueued.reading.pod_lookup import UnplacedJob
from multikueued.reading.pods import PodList
from multikueued.reading.source import Explained, JobList, JobsWanted
from multikueued.reading.structured import read_as
from multikueued.reports.events import EventReport
from multikueued.reports.explanation import Explanation, with_job
from multikueued.reports.jobs import JobReport, JobState, in_place
from multikueued.reports.typenames import JobName, is_called

NAMESPACES: Final = Resource(GVK(GROUP, VERSION, "RemoteNamespace"), "remotenamespaces", namespaced=False)


@attrs.frozen
class ThroughApi:
    """Implements `Source` with what the API answers to who runs a command."""

    client: ClusterClient

    async def jobs(self, wanted: JobsWanted) -> JobList | None:
        """See `Source`; it does not know labels of jobs."""
        if wanted.selector or wanted.user_label:
            return None
        listed = await self.all_jobs(wanted.chosen.namespace)
        return JobList(in_place(report for report in listed if wanted.chosen.takes(report)))

    async def explanation(self, asked: Asked, now: datetime) -> Explained | None:
        """See `Source`."""
        if (answer := await self._part(asked, "explain")) is None:
            return None
        made = read_as(Explanation, answer)
        # which the API does not read
        behind = await job_named(self.client, JobName.parse(made.job.job), asked.target.namespace, lenient=True)
        return Explained(made if behind is None else with_job(made, behind, now), job=behind)

    async def events(self, asked: Asked) -> tuple[EventReport, ...] | None:
        """See `Source`."""
        answer = await self._part(asked, "events")
        return read_as(_Events, answer).items if answer is not None else None

    async def pods(self, asked: Asked) -> PodList | None:
        """See `Source`."""
        answer = await self._part(asked, "pods")
        if answer is not None and "pods" not in answer:
            none = read_as(UnplacedJob, answer)
            raise CommandError(f"{none.job} has no pods: {none.why}", NOT_FOUND)
        return read_as(PodList, answer) if answer is not None else None

    async def all_jobs(self, namespace: str) -> tuple[JobReport, ...]:
        """The jobs of a namespace; empty: of all in which the caller may list them.

        Raises:
            ApiError: the API is not there, or refuses.
        """
        return tuple(map(_report, await self._list(namespace)))

    async def find(self, text: str, namespace: str) -> Json | None:
        """The RemoteJob of a job that is named as for `explain`; None: the API does not know it.

        Raises:
            CommandError: several are meant.
            ApiError: as for `all_jobs`.
        """
        wanted = JobName.parse(text)
        listed = await self._list(namespace)
        meant = {str(dig(job, "status", "job")): job for job in listed if _is_meant(wanted, job)}
        if len(meant) > 1:
            raise CommandError(f'"{text}" is the name of several jobs: say which of {", ".join(sorted(meant))}', USAGE)
        return next(iter(meant.values()), None)

    async def _part(self, asked: Asked, part: str) -> Json | None:
        """A subresource of a RemoteJob, the report that it is made of, as JSON; None: the API does not know the job."""
        job = await self.find(asked.job, asked.target.namespace)
        return await self.client.part(REMOTE_JOB, ObjectKey.of(job), part) if job is not None else None

    async def _list(self, namespace: str) -> list[Json]:
        try:
            return [*(await self.client.list(REMOTE_JOB, namespace=namespace)).items]
        except Forbidden:
            if namespace:
                raise
        jobs: list[Json] = []

        async def read(name: str) -> None:
            jobs.extend((await self.client.list(REMOTE_JOB, namespace=name)).items)

        names = [ObjectKey.of(namespace).name for namespace in (await self.client.list(NAMESPACES)).items]
        async with anyio.create_task_group() as tasks:
            for name in names:
                tasks.start_soon(read, name)
        return jobs


@attrs.frozen
class _Events:
    items: tuple[EventReport, ...]


def _report(job: Json) -> JobReport:
    """A job of the API as a line."""
    status: dict[str, Any] = job["status"]
    return JobReport(
        job=str(status.get("job") or ""),
        namespace=ObjectKey.of(job).namespace,
        state=read_as(JobState, status.get("state")),
        worker=str(status.get("cluster") or ""),
        offered_to=tuple(status.get("offeredTo") or ()),
        queue=str(status.get("queue") or ""),
        cluster_queue=str(status.get("clusterQueue") or ""),
        workload=str(status.get("workload") or ""),
        user="",
        created=parse_timestamp(dig(job, "metadata", "creationTimestamp")),
        since=parse_timestamp(status.get("since")),
        reason=str(status.get("reason") or ""),
    )


def _is_meant(wanted: JobName, job: Json) -> bool:
    kind, _, name = str(dig(job, "status", "job") or "").partition("/")
    if dig(job, "status", "workload") == wanted.name and is_called(wanted.type, WORKLOAD.gvk.kind.lower()):
        return True
    return name == wanted.name and is_called(wanted.type, kind)
