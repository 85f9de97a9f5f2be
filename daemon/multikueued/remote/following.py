"""Follows a job from worker to worker: the manager's Workload says where it is."""

from __future__ import annotations

from functools import partial
from typing import Final

import anyio
import attrs

from multikueue.core.model import workloads
from multikueue.errors import ApiError
from multikueued.commands.exits import NOT_FOUND, CommandError, for_people
from multikueued.commands.finding import Found
from multikueued.commands.reading import Manager
from multikueued.remote.finding import Asked, WorkerPods, look_up, why_nowhere
from multikueued.remote.reaching import worker_client
from multikueued.remote.sought import Sought
from multikueued.remote.streaming import LogShower, Position, Wanted
from multikueued.reports.jobs import JobState, state_of

LOOK: Final = 2.0
"""Seconds between two looks at the manager's Workload."""


@attrs.define(eq=False)
class Follower:
    """Shows the logs of a job wherever it is, until it has ended."""

    manager: Manager
    asked: Asked
    wanted: Wanted
    _positions: dict[str, Position] = attrs.field(factory=dict, init=False)
    _worker: str = attrs.field(default="", init=False)
    """Where it was last."""
    _over: bool = attrs.field(default=False, init=False)
    """Whether it has ended, or is gone."""
    _told: str = attrs.field(default="", init=False)

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
            async with worker_client(self.manager, sought.worker, self.asked.target.daemon_namespace) as client:
                shower = LogShower(WorkerPods(client, sought), self.wanted, self._positions, lambda: self._over)
                if await self._follow_there(shower):
                    return

    async def _follow_there(self, shower: LogShower) -> bool:
        """Show what comes from one worker; returns whether the job is over."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._watch, shower.pods, tasks.cancel_scope)
            await shower.follow()
            tasks.cancel_scope.cancel()
        return self._over

    async def _next_place(self) -> Sought | None:
        """Wait until a worker has the job; None: it is over."""
        while True:
            found = await look_up(self.manager, self.asked)
            if isinstance(found, Sought):
                self._over = workloads.is_finished(found.workload)
                return found
            if found.workload is not None and _has_ended(found):
                if not self._worker:
                    raise CommandError(f"{found.name} has no logs: {why_nowhere(found)}", NOT_FOUND)
                return None
            self._say(f"{found.name}: {why_nowhere(found)}")
            await anyio.sleep(LOOK)

    async def _watch(self, pods: WorkerPods, scope: anyio.CancelScope) -> None:
        """Look at the manager until another worker has the job; notes when it is over."""
        look = partial(look_up, self.manager, self.asked)
        while not self._over:
            await anyio.sleep(LOOK)
            try:
                found = await look()
            except CommandError:  # it was deleted
                self._over = True
                return
            except ApiError as error:
                if not error.retryable:
                    with for_people(self.asked.target.config.server):
                        raise
                self._say(f"the manager does not answer ({error}); trying again")
                continue
            if isinstance(found, Found):
                self._over = found.workload is None or _has_ended(found)
                self._say(f'{found.name} has left worker cluster "{self._worker}": {why_nowhere(found)}')
            elif found.worker != self._worker:
                scope.cancel()
                return
            else:
                self._over = workloads.is_finished(found.workload)
                pods.sought = found

    def _say(self, text: str) -> None:
        if text != self._told:
            self._told = text
            self.wanted.tell(text)


def _has_ended(found: Found) -> bool:
    assert found.workload is not None, "asked of Workloads only"
    return state_of(found.workload, found.objects) in (JobState.FINISHED, JobState.FAILED)
