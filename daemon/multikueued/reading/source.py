"""What stands on the manager, for who asks: a command asks a `Source`, and does not know which one it has."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

import attrs

from multikueue.core.model.names import Json
from multikueued.reading.asked import Asked
from multikueued.reading.log_output import LogSelection
from multikueued.reading.pods import PodList
from multikueued.reports.events import EventReport
from multikueued.reports.explanation import Explanation
from multikueued.reports.jobs import JobFilter, JobReport
from multikueued.reports.unqueued import Unqueued


@attrs.frozen
class JobsWanted:
    """Which jobs are listed."""

    chosen: JobFilter
    selector: str = ""
    """Of their labels."""
    user_label: str = ""
    """The label that names a job's user."""
    now: datetime | None = None
    """The wall clock, to say why jobs are where they are, too; None: their names are enough."""
    daemon_namespace: str = ""
    """For that."""
    places: bool = False
    """Whether to tell places in queues and starts as well."""


@attrs.frozen
class JobList:
    """What `multikueue get jobs -o json` prints."""

    jobs: tuple[JobReport, ...]
    not_checked: tuple[str, ...] = ()
    """What could not be read, and so says nothing."""


@attrs.frozen
class Explained:
    """An explanation, and what of the job was read for it."""

    made: Explanation | Unqueued
    workload: Json | None = None
    job: Json | None = None


class Source(Protocol):
    """What stands on the manager. Each question is answered by None where the source does not know the job."""

    async def jobs(self, wanted: JobsWanted) -> JobList | None:
        """The jobs, what needs somebody first."""

    async def explanation(self, asked: Asked, now: datetime) -> Explained | None:
        """Why a job is where it is."""

    async def events(self, asked: Asked) -> tuple[EventReport, ...] | None:
        """The events about a job and its Workload, in the order of time."""

    async def pods(self, asked: Asked) -> PodList | None:
        """The pods of a job on its worker.

        Raises:
            CommandError: no worker has it, or the worker cannot be asked.
        """

    async def logs(self, asked: Asked, wanted: LogSelection, *, follow: bool) -> bool | None:
        """Show the logs of a job's pods, to their end; True: they were shown. Raises as `pods`."""
