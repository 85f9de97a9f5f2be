"""The manager's API `remote.multikueue.dev`: what the commands read of jobs where it is served, and else themselves.

Discovery decides, and then the first answer: whoever may not use it, or asks for what it does not know, is answered
with what he may read himself.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Final, TypeVar

import anyio
import attrs

from multikueue.core.model.conditions import parse_timestamp
from multikueue.core.model.kinds import WORKLOAD
from multikueue.core.model.names import GVK, Json, ObjectKey, Resource
from multikueue.core.model.objects import dig
from multikueue.errors import ApiError, DeadlineExceeded, Forbidden, NotFound, ServerFault, TooManyRequests
from multikueued.api_answers import GROUP, REMOTE_JOB, VERSION
from multikueued.clusters import ClusterClient
from multikueued.commands.exits import NOT_FOUND, USAGE, CommandError
from multikueued.commands.structured import read_as
from multikueued.reports.jobs import JobReport, JobState
from multikueued.reports.typenames import JobName, is_called

R = TypeVar("R")

NAMESPACES: Final = Resource(GVK(GROUP, VERSION, "RemoteNamespace"), "remotenamespaces", namespaced=False)
ELSEWHERE: Final = (Forbidden, NotFound, ServerFault, TooManyRequests, DeadlineExceeded)
"""Answers after which it is tried without the API."""


@attrs.frozen
class RemoteApi:
    """Reads the API with the rights of who runs a command."""

    client: ClusterClient

    async def jobs(self, namespace: str) -> tuple[JobReport, ...]:
        """The jobs of a namespace; empty: of all in which the caller may list them.

        Raises:
            ApiError: the API is not there, or refuses.
        """
        return tuple(map(_report, await self._list(namespace)))

    async def find(self, text: str, namespace: str) -> Json | None:
        """The RemoteJob of a job that is named as for `explain`; None: the API does not know it.

        Raises:
            CommandError: several are meant.
            ApiError: as for `jobs`.
        """
        wanted = JobName.parse(text)
        listed = await self._list(namespace)
        found = {str(dig(one, "status", "job")): one for one in listed if _is_meant(wanted, one)}
        if len(found) > 1:
            raise CommandError(f'"{text}" is the name of several jobs: say which of {", ".join(sorted(found))}', USAGE)
        return next(iter(found.values()), None)

    async def part(self, job: Json, part: str) -> Json:
        """A subresource of a RemoteJob: the report that it is made of, as JSON.

        Raises:
            ApiError: as for `jobs`.
        """
        return await self.client.part(REMOTE_JOB, ObjectKey.of(job), part)

    async def _list(self, namespace: str) -> list[Json]:
        try:
            return [*(await self.client.list(REMOTE_JOB, namespace=namespace)).items]
        except Forbidden:
            if namespace:
                raise
        found: list[Json] = []

        async def read(name: str) -> None:
            found.extend((await self.client.list(REMOTE_JOB, namespace=name)).items)

        names = [ObjectKey.of(one).name for one in (await self.client.list(NAMESPACES)).items]
        async with anyio.create_task_group() as tasks:
            for name in names:
                tasks.start_soon(read, name)
        return found


async def is_served(client: ClusterClient) -> bool:
    """Whether the manager has the API."""
    try:
        return await client.discover(REMOTE_JOB.gvk) is not None
    except ApiError:
        return False


async def api_first(
    client: ClusterClient, ask: Callable[[RemoteApi], Awaitable[R | None]], otherwise: Callable[[], Awaitable[R]]
) -> R:
    """What the API answers; without it, or where it does not know, what the caller may read himself.

    Args:
        client: of the manager.
        ask: None: it does not know the job.
        otherwise: reads with the caller's own rights.
    """
    refused: ApiError | None = None
    if await is_served(client):
        try:
            if (found := await ask(RemoteApi(client))) is not None:
                return found
        except ELSEWHERE as error:
            refused = error
    try:
        return await otherwise()
    except (CommandError, Forbidden) as error:
        may_not = any(isinstance(one, Forbidden) for one in _causes(error))
        if refused is None or isinstance(refused, Forbidden) or not may_not:
            raise
        if isinstance(refused, NotFound):  # the API is served, and knows what is not there
            raise CommandError(refused.said or str(refused), NOT_FOUND) from refused
        raise refused from error


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__


def _report(one: Json) -> JobReport:
    """A job of the API as a line."""
    status: dict[str, Any] = one["status"]
    return JobReport(
        job=str(status.get("job") or ""),
        namespace=ObjectKey.of(one).namespace,
        state=read_as(JobState, status.get("state")),
        worker=str(status.get("cluster") or ""),
        offered_to=tuple(status.get("offeredTo") or ()),
        queue=str(status.get("queue") or ""),
        cluster_queue=str(status.get("clusterQueue") or ""),
        workload=str(status.get("workload") or ""),
        user="",
        created=parse_timestamp(dig(one, "metadata", "creationTimestamp")),
        since=parse_timestamp(status.get("since")),
        reason=str(status.get("reason") or ""),
    )


def _is_meant(wanted: JobName, one: Json) -> bool:
    kind, _, name = str(dig(one, "status", "job") or "").partition("/")
    if dig(one, "status", "workload") == wanted.name and is_called(wanted.type, WORKLOAD.gvk.kind.lower()):
        return True
    return name == wanted.name and is_called(wanted.type, kind)
