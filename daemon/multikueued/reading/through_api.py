"""The manager as its API `remote.multikueue.dev` tells it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Final

import anyio
import attrs

from multikueue.core.model.kinds import WORKLOAD
from multikueue.core.model.names import GVK, Json, ObjectKey, Resource
from multikueue.core.model.objects import dig
from multikueue.errors import ApiError, Forbidden, NotFound
from multikueue.kube import ClientOptions, KubeClient
from multikueue.kube.http.requests import LogQuery
from multikueue.kube.log_stream import LogLine, at_once
from multikueued.api_answers import END, GROUP, NOTE, REMOTE_JOB, VERSION
from multikueued.clusters import ClusterClient
from multikueued.exits import FINDING, NOT_REACHABLE, USAGE, CommandError
from multikueued.few_at_a_time import few_at_a_time
from multikueued.reading.asked import Asked
from multikueued.reading.job_lookup import job_named
from multikueued.reading.log_output import NEWLINE, LogSelection
from multikueued.reading.pod_lookup import UnplacedJob
from multikueued.reading.pods import PodList
from multikueued.reading.source import Explained, JobList, JobsWanted
from multikueued.reading.structured import read_as
from multikueued.reports.events import EventReport
from multikueued.reports.explanation import Explanation, with_job
from multikueued.reports.jobs import JobReport, in_place
from multikueued.reports.remedies.remedy import is_name
from multikueued.reports.typenames import WORKLOAD_TYPE, JobName, is_called
from multikueued.reports.waiting_jobs import HELD_UP, with_causes

LOGS: Final = ClientOptions(deadline=60.0, connection_wait=10.0)
"""Until an answer begins: the server may have to wait for a worker itself."""
IDLE: Final = 86_400.0
"""Seconds of silence: a job may say nothing for long, and the server bounds the time itself."""
CAUSES: Final = Resource(GVK(GROUP, VERSION, "Causes"), "causes")
CAUSES_WITHIN: Final = 5.0
"""Seconds for all causes together."""
AT_ONCE: Final = 3
"""Requests at the same time, each about a namespace: the API bounds those of one person."""
MOST_NAMESPACES: Final = 20
"""Namespaces of which causes are asked for, each by a request."""
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
        chosen = [report for report in listed if wanted.chosen.takes(report)]
        known, unread = await self._causes(chosen) if wanted.now is not None else ({}, ())
        return JobList(in_place(with_causes(chosen, known)), unread)

    async def _causes(self, jobs: Iterable[JobReport]) -> tuple[dict[ObjectKey, str], tuple[str, ...]]:
        """What keeps jobs from running, as far as the API may be asked and answers soon; and where that is not known.
        The list stands without it."""
        wanted = sorted({job.namespace for job in jobs if job.state in HELD_UP})
        known, unread = dict[ObjectKey, str](), [*wanted]

        async def read(where: str, namespaces: Sequence[str]) -> None:
            listed = (await self.client.list(CAUSES, namespace=where)).items
            known.update((ObjectKey.of(entry), str(entry.get("why") or "")) for entry in listed)
            unread[:] = [namespace for namespace in unread if namespace not in namespaces]

        async def read_one(namespace: str) -> None:
            try:
                await read(namespace, (namespace,))
            except (Forbidden, NotFound):  # the role, or the server, is of an earlier version
                unread.remove(namespace)
            except ApiError:
                return

        with anyio.move_on_after(CAUSES_WITHIN):
            if len(wanted) > 1:
                with suppress(ApiError):
                    await read("", wanted)  # who may ask for all of them
            await few_at_a_time(AT_ONCE, read_one, unread[:MOST_NAMESPACES])
        return known, (f"causes of jobs in {', '.join(unread)}",) if unread else ()

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
            raise read_as(UnplacedJob, answer).no_pods()
        return read_as(PodList, answer) if answer is not None else None

    async def logs(self, asked: Asked, wanted: LogSelection, *, follow: bool) -> bool | None:
        """See `Source`. A job that is TYPE/NAME is asked for as it is: that needs no permission to list jobs."""
        name = JobName.parse(asked.job)
        if not is_name(name.name):
            return None
        key = ObjectKey(asked.target.namespace, f"{name.type}{':' if '.' in name.type else '.'}{name.name}")
        if name.type in ("", WORKLOAD_TYPE):
            if (job := await self.find(asked.job, asked.target.namespace)) is None:
                return None
            key = ObjectKey.of(job)
        async with KubeClient(asked.target.config, name="manager", options=LOGS) as client:
            await show_log(client, key, wanted, follow=follow)
        return True

    async def all_jobs(self, namespace: str) -> tuple[JobReport, ...]:
        """The jobs of a namespace; empty: of all in which the caller may list them.

        Raises:
            ApiError: the API is not there, or refuses.
        """
        return tuple(map(report_of, await self._list(namespace)))

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
        await few_at_a_time(AT_ONCE, read, names)
        return jobs


@attrs.frozen
class _Events:
    items: tuple[EventReport, ...]


def report_of(job: Json) -> JobReport:
    """A job of the API as a line."""
    metadata, status = job["metadata"], job["status"]
    own = {"namespace": metadata["namespace"], "created": metadata.get("creationTimestamp")}
    return read_as(JobReport, {**status, **own, "worker": status.get("cluster", "")})


def _is_meant(wanted: JobName, job: Json) -> bool:
    kind, _, name = str(dig(job, "status", "job") or "").partition("/")
    if dig(job, "status", "workload") == wanted.name and is_called(wanted.type, WORKLOAD.gvk.kind.lower()):
        return True
    return name == wanted.name and is_called(wanted.type, kind)


async def show_log(manager: KubeClient, job: ObjectKey, wanted: LogSelection, *, follow: bool) -> None:
    """Show the log of a job, by its name in the API.

    Raises:
        CommandError: the log ends early.
        ApiError: the manager refuses, or there is no such job; nothing has been shown.
    """
    query = LogQuery(
        wanted.container,
        follow,
        wanted.since_seconds,
        tail=wanted.tail,
        all_pods=wanted.all_pods,
        pod=wanted.pod,
        previous=wanted.previous,
    )
    ends: list[str] = []
    begun = False

    def show(line: LogLine) -> None:
        nonlocal begun
        if line.time or not line.text.startswith(NOTE):
            begun, text = True, line.text + NEWLINE * line.is_whole
            wanted.show(f"{line.time} {text}" if wanted.timestamps and line.time else text)
        elif (note := line.text.removeprefix(NOTE)).startswith(END):
            ends.append(note)
        else:
            wanted.tell(note)

    try:
        await manager.pod_log(job, query, show, on_open=at_once, resource=REMOTE_JOB, idle=IDLE)
    except ApiError as error:
        if not begun:
            raise
        raise CommandError(f"the log ends early: {error}", NOT_REACHABLE) from error
    if ends:
        raise CommandError(ends[-1], FINDING)
