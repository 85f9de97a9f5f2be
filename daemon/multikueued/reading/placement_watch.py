"""Follows a job from worker to worker: the manager's Workload says where it is."""

from __future__ import annotations

import anyio
import attrs

from multikueue.core.model import workloads
from multikueue.errors import ApiError
from multikueued.exits import NOT_FOUND, CommandError
from multikueued.reading.log_output import LogSelection, LogShower, Position
from multikueued.reading.placed_job import PlacedJob
from multikueued.reading.pod_lookup import JobLocator, UnplacedJob, WorkerPods


@attrs.define(eq=False)
class Follower:
    """Shows the logs of a job wherever it is, until it has ended."""

    places: JobLocator
    wanted: LogSelection
    _positions: dict[str, Position] = attrs.field(factory=dict, init=False)
    _worker: str = attrs.field(default="", init=False)
    """Where it was last."""
    _over: bool = attrs.field(default=False, init=False)
    """Whether it has ended, or is gone."""
    _told: str = attrs.field(default="", init=False)
    _looks: int = attrs.field(default=0, init=False)
    """How often it was asked where the job goes on."""

    async def run(self) -> None:
        """Follow the job.

        Raises:
            CommandError: there is no such job, or a worker cannot be asked.
            ApiError: the manager cannot be read.
        """
        while (sought := await self._next_place()) is not None:
            if self._worker and self._worker != sought.worker:
                self.wanted.tell(f'{sought.job} has moved from worker cluster "{self._worker}" to "{sought.worker}"')
            self._worker = sought.worker
            async with self.places.client(sought.worker) as client:
                pods, late = WorkerPods(client, sought), self._looks > 1
                shower = LogShower(pods, self.wanted, self._positions, lambda: self._over, is_late=late)
                if await self._follow_there(shower):
                    return

    async def _follow_there(self, shower: LogShower) -> bool:
        """Show what comes from one worker; returns whether the job is over."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._watch, shower.pods, tasks.cancel_scope)
            await shower.follow()
            tasks.cancel_scope.cancel()
        return self._over

    async def _next_place(self) -> PlacedJob | None:
        """Wait until a worker has the job; None: it is over."""
        while True:
            job = await self.places.look()
            self._looks += 1
            if isinstance(job, PlacedJob):
                self._over = workloads.is_finished(job.workload)
                return job
            if job.ended:
                if not self._worker:
                    raise job.no_pods()
                return None
            self._say(f"{job.job}: {job.why}")
            await anyio.sleep(self.wanted.every)

    async def _watch(self, pods: WorkerPods, scope: anyio.CancelScope) -> None:
        """Look at the manager until another worker has the job; notes when it is over."""
        while not self._over:
            await anyio.sleep(self.wanted.every)
            try:
                job = await self.places.look()
            except CommandError as error:
                if error.exit_code != NOT_FOUND:
                    raise
                self._over = True  # it was deleted
                return
            except ApiError as error:
                self._say(f"{self.places.words(error)}; trying again")
                continue
            if isinstance(job, UnplacedJob):
                self._over = job.ended or not job.known
                self._say(f'{job.job} has left worker cluster "{self._worker}": {job.why}')
            elif job.worker != self._worker:
                scope.cancel()
                return
            else:
                self._over = workloads.is_finished(job.workload)
                pods.sought = job

    def _say(self, text: str) -> None:
        if text != self._told:
            self._told = text
            self.wanted.tell(text)


async def show_logs(places: JobLocator, wanted: LogSelection, *, follow: bool) -> None:
    """Show the logs of a job's pods, to their end; with `follow` to the job's.

    Raises:
        CommandError: there is no such job, it has no pods, or a worker cannot be asked.
        ApiError: the manager cannot be read.
    """
    wanted = attrs.evolve(wanted, words=places.worker_words)
    if follow:
        await Follower(places, wanted).run()
        return
    async with places.pods_of(await places.placed()) as pods:
        await LogShower(pods, wanted).show()
