"""The job runner: kube-controller-manager's Job controller and a kubelet, as far as a Job's status shows them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import anyio
import anyio.abc
import attrs

from multikueue.core.action import Action
from multikueue.core.kinds import JOB
from multikueue.core.names import Json, ObjectKey
from multikueue.core.objects import uid
from multikueue.kube.caching import ObjectCache
from multikueue.protocols import ApiClient
from multikueue.runtime.controller import Controller
from multikueue.sandbox.jobs.deciding import Run, decide_run
from multikueue.sandbox.jobs.options import Fate, RunnerOptions, fate
from multikueue.sandbox.kueue.effects import Note, Replace, Step
from multikueue.sandbox.kueue.newest import Newest
from multikueue.sandbox.kueue.performing import Performer, typed
from multikueue.sandbox.kueue.recording import Recorder


def _utc_now() -> datetime:
    return datetime.now(UTC)


@attrs.define(eq=False)
class JobRunner:
    """Runs the Jobs of one API server: their status goes from started to ended on the loop's clock.

    It leaves alone Jobs that `spec.managedBy` gives to somebody else, and queued ones until Kueue has started them
    (`deciding.is_held`). It never changes a spec.
    """

    client: ApiClient
    """Its writes should be known to the server as `kube-controller-manager`'s."""
    seed: int = attrs.field(default=0, kw_only=True)
    """Of the dice: the same seed lets the same jobs run for the same times."""
    clock: Callable[[], datetime] = attrs.field(default=_utc_now, kw_only=True)
    """The wall clock that goes into statuses."""
    options: RunnerOptions = attrs.field(factory=RunnerOptions, kw_only=True)
    concurrency: int = attrs.field(default=8, kw_only=True)
    events: bool = attrs.field(default=True, kw_only=True)
    """Whether to write Event objects."""
    _jobs: Newest = attrs.field(factory=Newest, init=False)
    _runs: dict[str, Run] = attrs.field(factory=dict, init=False)
    """By the Job's UID."""
    _starts: dict[str, int] = attrs.field(factory=dict, init=False)
    _recorder: Recorder = attrs.field(init=False)
    _performer: Performer = attrs.field(init=False)
    _controller: Controller[ObjectKey] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._recorder = Recorder(self.client, self.clock, self.events)
        self._performer = Performer(self.client, self._recorder, lambda _resource, job: self._observe(job))
        self._controller = Controller("job-runner", self, concurrency=self.concurrency)

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Work until cancelled; started once all Jobs there are have been seen."""
        cache = ObjectCache(self.client, JOB, on_change=self._changed)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(cache.run)
            await cache.wait_synced()
            tasks.start_soon(self._controller.run)
            tasks.start_soon(self._recorder.run)
            task_status.started()

    async def reconcile(self, key: ObjectKey) -> Action:
        """Bring one Job forward."""
        job = self._jobs.get(key)
        if job is None:
            return Action.done()
        time = anyio.current_time()
        turn = decide_run(
            job,
            self._runs.get(uid(job)),
            time=time,
            now=self.clock(),
            startup=self.options.startup,
            draw=lambda: self._draw(job),
        )
        if turn.status is not None:
            notes = [Note("job-controller", job, *turn.event)] if turn.event else []
            await self._performer.perform(Step(Replace(JOB, {**job, "status": turn.status}, "status"), tuple(notes)))
        self._remember(uid(job), turn.run)
        return Action.done() if turn.at is None else Action.after(turn.at - time)

    @property
    def idle(self) -> bool:
        """Whether nothing is due now; jobs may be running."""
        return self._controller.idle

    def _draw(self, job: Json) -> Fate:
        return fate(job, self.options, self.seed, self._starts.get(uid(job), 0))

    def _remember(self, job: str, run: Run | None) -> None:
        if run is None:
            self._runs.pop(job, None)
            return
        if job not in self._runs:
            self._starts[job] = self._starts.get(job, 0) + 1
        self._runs[job] = run

    def _changed(self, _key: ObjectKey, old: Json | None, new: Json | None) -> None:
        if new is not None:
            self._observe(typed(JOB, new))
        elif old is not None:
            self._jobs.remove(old)
            self._runs.pop(uid(old), None)
            self._starts.pop(uid(old), None)

    def _observe(self, job: Json) -> None:
        if self._jobs.observe(job):
            self._controller.enqueue(ObjectKey.of(job))
