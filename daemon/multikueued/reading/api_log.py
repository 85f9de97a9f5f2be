"""The log of a job through the manager's own API, as `multikueue api-server` serves it."""

from __future__ import annotations

from typing import Final

from multikueue.core.model.names import ObjectKey
from multikueue.errors import ApiError
from multikueue.kube import KubeClient
from multikueue.kube.http.requests import LogQuery
from multikueue.kube.log_stream import LogLine, at_once
from multikueued.api_answers import END, NOTE, REMOTE_JOB
from multikueued.exits import FINDING, NOT_REACHABLE, CommandError
from multikueued.reading.log_output import NEWLINE, LogSelection

IDLE: Final = 86_400.0
"""Seconds of silence: a job may say nothing for long, and the server bounds the time itself."""


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
