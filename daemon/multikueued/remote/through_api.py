"""Logs through the manager's own API, as `multikueue api-server` serves it: without any credentials of a worker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import attrs

from multikueue.core.model.names import ObjectKey
from multikueue.kube import KubeClient
from multikueue.kube.http.requests import LogQuery
from multikueue.kube.log_stream import LogLine, at_once
from multikueued.api_answers import END, NOTE, REMOTE_JOB
from multikueued.exits import FINDING, NOT_REACHABLE, USAGE, CommandError
from multikueued.reading.asked import Asked
from multikueued.remote.log_output import NEWLINE, LogSelection
from multikueued.reports.remedies.remedy import is_name
from multikueued.reports.typenames import JobName

PATIENCE: Final = 60.0
"""Seconds until the answer begins: the server may have to wait for a worker itself."""
IDLE: Final = 86_400.0
"""Seconds of silence: a job may say nothing for long, and the server bounds the time itself."""


@attrs.define
class Output:
    """Shows lines, and knows whether there was any."""

    show: Callable[[str], None]
    any: bool = False

    def __call__(self, text: str) -> None:
        """Show a line."""
        self.any = True
        self.show(text)


async def logs_through_api(manager: KubeClient, asked: Asked, wanted: LogSelection, *, follow: bool) -> None:
    """Show the logs of a job.

    Raises:
        CommandError: the API is not there, or the log ends early.
        ApiError: the manager refuses, or there is no such job.
    """
    key = ObjectKey(asked.target.namespace, _api_name(asked.job))
    if await manager.discover(REMOTE_JOB.gvk) is None:
        not_served = f"the manager at {asked.target.config.server} does not serve {REMOTE_JOB}"
        raise CommandError(f"{not_served}: ask an operator to run multikueue api-server there", NOT_REACHABLE)
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

    def show(line: LogLine) -> None:
        if line.time or not line.text.startswith(NOTE):
            text = line.text + NEWLINE * line.is_whole
            wanted.show(f"{line.time} {text}" if wanted.timestamps and line.time else text)
        elif (note := line.text.removeprefix(NOTE)).startswith(END):
            ends.append(note)
        else:
            wanted.tell(note)

    await manager.pod_log(key, query, show, on_open=at_once, resource=REMOTE_JOB, idle=IDLE)
    if ends:
        raise CommandError(ends[-1], FINDING)


def _api_name(job: str) -> str:
    """The name by which the API knows a job: `TYPE.NAME`, or `TYPE.GROUP:NAME`.

    Raises:
        CommandError: it has no TYPE.
    """
    wanted = JobName.parse(job)
    if not wanted.type or not is_name(wanted.name):
        raise CommandError(
            f'"{job}" names no job, and multikueue api-server needs its TYPE: write TYPE/NAME, as job/train-1', USAGE
        )
    return f"{wanted.type}{':' if '.' in wanted.type else '.'}{wanted.name}"
