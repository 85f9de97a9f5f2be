"""The job runner: the controllers of all kinds and a kubelet, as far as the status of a job shows them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial

import anyio
import anyio.abc
import attrs

from multikueue.core.machinery.action import Action
from multikueue.core.model.kinds import JOB
from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.core.model.objects import uid
from multikueue.kube.informers.informer import Informer
from multikueue.kube.informers.informer_start import start_informers
from multikueue.protocols import ApiClient, Subresource
from multikueue.runtime.controller import Controller
from multikueue.runtime.loop import utc_now
from multikueue.sandbox.jobs.deciding import RunnerOptions, decide_run, fate
from multikueue.sandbox.jobs.pods import JobPods, SetPods
from multikueue.sandbox.kinds import BATCH_JOB, KINDS, SandboxKind, completed
from multikueue.sandbox.kinds.course import Fate, Run, Turn
from multikueue.sandbox.kinds.sets import SetKind
from multikueue.sandbox.kueue.effects import Note, Replace, Step
from multikueue.sandbox.kueue.performing import Performer, Recorder, typed
from multikueue.sandbox.kueue.scheduling.newest import Newest


@attrs.define(eq=False)
class JobRunner:
    """Runs the jobs of one API server: their status goes from started to ended on the loop's clock.

    It leaves alone jobs that are given to another controller, and queued ones until Kueue has started them
    (`deciding.is_waiting`). It never changes a spec.
    """

    client: ApiClient
    """Its writes should be known to the server as `kube-controller-manager`'s."""
    seed: int = attrs.field(default=0, kw_only=True)
    """Of what is drawn: the same seed lets the same jobs run for the same times."""
    clock: Callable[[], datetime] = attrs.field(default=utc_now, kw_only=True)
    """The wall clock that goes into statuses."""
    options: RunnerOptions = attrs.field(factory=RunnerOptions, kw_only=True)
    kinds: Sequence[SandboxKind] = attrs.field(default=KINDS, kw_only=True)
    concurrency: int = attrs.field(default=8, kw_only=True)
    pods: bool = attrs.field(default=False, kw_only=True)
    """Whether batch Jobs get pods, whose logs can be read."""
    events: bool = attrs.field(default=True, kw_only=True)
    """Whether to write Event objects."""
    _jobs: dict[Resource, Newest] = attrs.field(init=False)
    _rows: dict[Resource, SandboxKind] = attrs.field(init=False)
    _sets: dict[Resource, SetKind] = attrs.field(init=False)
    _runs: dict[str, Run] = attrs.field(factory=dict, init=False)
    """By the job's UID."""
    _starts: dict[str, int] = attrs.field(factory=dict, init=False)
    _recorder: Recorder = attrs.field(init=False)
    _performer: Performer = attrs.field(init=False)
    _controller: Controller[tuple[Resource, ObjectKey]] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        kinds = completed(self.kinds)
        self._rows = {kind.resource: kind for kind in kinds if not isinstance(kind, SetKind)}
        self._sets = {kind.resource: kind for kind in kinds if isinstance(kind, SetKind)}
        self._jobs = {resource: Newest() for resource in self._rows}
        self._recorder = Recorder(self.client, self.clock, self.events)
        self._performer = Performer(self.client, self._recorder, self._observe)
        self._controller = Controller("job-runner", self, concurrency=self.concurrency)

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Work until cancelled; started once all jobs there are have been seen."""
        caches = [
            Informer(self.client, resource, on_change=partial(self._changed, resource)) for resource in self._rows
        ]
        async with anyio.create_task_group() as tasks:
            await start_informers(caches, tasks)
            tasks.start_soon(self._controller.run)
            if self._sets:
                await tasks.start(SetPods(self.client, self._recorder, "set-runner", self._sets).run)
            if self.pods:
                await tasks.start(JobPods(self.client, self._recorder, "job-pods", {JOB: BATCH_JOB}).run)
            tasks.start_soon(self._recorder.run)
            task_status.started()

    async def reconcile(self, key: tuple[Resource, ObjectKey]) -> Action:
        """Bring one job forward."""
        resource, name = key
        kind, job = self._rows[resource], self._jobs[resource].get(name)
        if job is None:
            return Action.done()
        time = anyio.current_time()
        turn = decide_run(
            kind,
            job,
            self._runs.get(uid(job)),
            time=time,
            now=self.clock(),
            startup=self.options.startup,
            draw=lambda: self._draw(job),
        )
        if turn.status is not None:
            await self._performer.perform(_write(kind, job, turn))
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

    def _changed(self, resource: Resource, _key: ObjectKey, old: Json | None, new: Json | None) -> None:
        if new is not None:
            self._observe(resource, typed(resource, new))
        elif old is not None:
            self._jobs[resource].remove(old)
            self._runs.pop(uid(old), None)
            self._starts.pop(uid(old), None)

    def _observe(self, resource: Resource, job: Json) -> None:
        if self._jobs[resource].observe(job):
            self._controller.enqueue((resource, ObjectKey.of(job)))


def _write(kind: SandboxKind, job: Json, turn: Turn) -> Step:
    """The write of a job's new status, and the event that tells of it."""
    reporter = f"{kind.resource.gvk.kind.lower()}-controller"
    notes = (Note(reporter, job, *turn.event),) if turn.event else ()
    subresource: Subresource = "status" if kind.status_subresource else ""
    return Step(Replace(kind.resource, {**job, "status": turn.status}, subresource), notes)
