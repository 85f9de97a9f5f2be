"""The job runner: the controllers of all kinds and a kubelet, as far as the status of a job shows them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import Final

import anyio
import anyio.abc
import attrs

from multikueue.core.machinery.action import Action
from multikueue.core.model.conditions import is_true
from multikueue.core.model.kinds import JOB
from multikueue.core.model.names import GVK, Json, ObjectKey, Resource
from multikueue.core.model.objects import annotations_of, dig, is_terminating, uid
from multikueue.errors import AlreadyExists, Conflict, NotFound
from multikueue.kube.informers.informer import Informer
from multikueue.kube.informers.informer_start import start_informers
from multikueue.protocols import ApiClient, Subresource
from multikueue.runtime.controller import Controller
from multikueue.runtime.loop import utc_now
from multikueue.sandbox.jobs.deciding import (
    OUTCOME_ANNOTATION,
    RunnerOptions,
    decide_run,
    fate,
    is_deleted,
    trap_of,
)
from multikueue.sandbox.jobs.kubelet import bind, is_bound, remove
from multikueue.sandbox.jobs.pods import SetPods, ended, has_ended, job_pods, owners, unready
from multikueue.sandbox.kinds import KINDS, SandboxKind, completed
from multikueue.sandbox.kinds.course import Fate, Run, Turn
from multikueue.sandbox.kinds.job_course import seconds_kept
from multikueue.sandbox.kinds.pods import POD, POD_RESOURCE, is_gated
from multikueue.sandbox.kinds.sets import SetKind
from multikueue.sandbox.kueue.effects import Note, Replace, Step
from multikueue.sandbox.kueue.performing import Performer, Recorder, typed
from multikueue.sandbox.kueue.scheduling.newest import Newest

UNHEARD: Final = 50.0
"""Seconds after which a node whose kubelet is silent counts as NotReady."""


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
    """Whether jobs get pods, whose logs can be read. Those whose pods take time to end have them anyway."""
    node: str = attrs.field(default="node-1", kw_only=True)
    """Where its pods run."""
    events: bool = attrs.field(default=True, kw_only=True)
    """Whether to write Event objects."""
    _jobs: dict[Resource, Newest] = attrs.field(init=False)
    _rows: dict[Resource, SandboxKind] = attrs.field(init=False)
    _sets: dict[Resource, SetKind] = attrs.field(init=False)
    _runs: dict[str, Run] = attrs.field(factory=dict, init=False)
    """By the job's UID."""
    _starts: dict[str, int] = attrs.field(factory=dict, init=False)
    _signalled: dict[str, float] = attrs.field(factory=dict, init=False)
    """When each pod on its way out got its SIGTERM, on the loop's clock, by UID."""
    _died: float | None = attrs.field(default=None, init=False)
    """Since when the node is dead, on the loop's clock; None: it is not."""
    _recorder: Recorder = attrs.field(init=False)
    _performer: Performer = attrs.field(init=False)
    _controller: Controller[tuple[Resource, ObjectKey]] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        kinds = completed(self.kinds)
        self._rows = {POD_RESOURCE: POD, **{kind.resource: kind for kind in kinds if not isinstance(kind, SetKind)}}
        self._sets = {kind.resource: kind for kind in kinds if isinstance(kind, SetKind)}
        held = dict.fromkeys((POD_RESOURCE, *(JOB for kind in kinds if kind.makes_jobs)))
        self._jobs = {resource: Newest(owners) if resource in held else Newest() for resource in {**self._rows, **held}}
        self._recorder = Recorder(self.client, self.clock, self.events)
        self._performer = Performer(self.client, self._recorder, self._observe)
        self._controller = Controller("job-runner", self, concurrency=self.concurrency)

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Work until cancelled; started once all jobs there are have been seen."""
        caches = [
            Informer(self.client, resource, on_change=partial(self._changed, resource)) for resource in self._jobs
        ]
        async with anyio.create_task_group() as tasks:
            await start_informers(caches, tasks)
            tasks.start_soon(self._controller.run)
            if self._sets:
                await tasks.start(SetPods(self.client, self._recorder, self._sets).run)
            tasks.start_soon(self._recorder.run)
            task_status.started()

    async def reconcile(self, key: tuple[Resource, ObjectKey]) -> Action:
        """Bring one job forward."""
        resource, name = key
        action = await self._go_on(resource, name)
        job = self._jobs[resource].get(name) if resource == JOB else None
        left = None if job is None or is_terminating(job) else seconds_kept(job, self.clock())
        if job is not None and left is not None and left <= 0:
            with suppress(Conflict, NotFound):  # whoever runs it
                await self.client.delete(JOB, name, uid=uid(job), propagation="Foreground")
            return action
        return Action.earliest(action.delay, left)

    async def _go_on(self, resource: Resource, name: ObjectKey) -> Action:
        kind, job = self._rows.get(resource), self._jobs[resource].get(name)
        if job is not None and resource == POD_RESOURCE and self._is_elsewhere(job):
            return Action.done()
        if self._died is not None and job is not None and resource == POD_RESOURCE:
            return await self._lose(job, self._died)
        if job is not None and resource == POD_RESOURCE and is_terminating(job):
            return await self._end(job)
        if job is None or kind is None or (self.node_is_dead and not kind.is_held(job) and not is_deleted(job)):
            return Action.done()
        time, holders = anyio.current_time(), self._jobs[JOB].by(uid(job)) if kind.makes_jobs else [job]
        listed = [pod for holder in holders for pod in self._jobs[POD_RESOURCE].by(uid(holder))]
        pods = [pod for pod in listed if not self._is_elsewhere(pod)]
        stopped = kind.is_held(job) or is_deleted(job) or not kind.course.is_active(job)
        turn = decide_run(
            kind,
            job,
            self._runs.get(uid(job)),
            time=time,
            now=self.clock(),
            startup=self.options.startup,
            draw=lambda: self._draw(job),
            ending=sum(not has_ended(pod) and (stopped or is_terminating(pod)) for pod in pods),
        )
        if turn.status is not None and resource == POD_RESOURCE and not is_bound(job):
            await bind(self.client, job, self.node)
        elif turn.status is not None:
            await self._performer.perform(_write(kind, job, turn))
        elif pods or self.pods or trap_of(job, self.options):
            await self._keep_pods(kind, job, holders, pods)
        self._remember(uid(job), turn.run)
        return Action.done() if turn.at is None else Action.after(turn.at - time)

    def _is_elsewhere(self, pod: Json) -> bool:
        """Whether another node's kubelet runs a pod, or shows it."""
        return dig(pod, "spec", "nodeName") not in (None, "", self.node)

    async def _keep_pods(self, kind: SandboxKind, job: Json, holders: list[Json], pods: list[Json]) -> None:
        if kind.gated or kind.is_delegated(job):
            return
        for step in job_pods(kind, job, holders, pods, self.clock(), blocking=self.options.blocking):
            with suppress(AlreadyExists):  # somebody else's pod: the job stays one short
                await self._performer.perform(step)

    async def _lose(self, pod: Json, died: float) -> Action:
        """What the node controller does about a pod whose kubelet is silent: it is not ready; else it stays."""
        left = died + UNHEARD - anyio.current_time()
        if left > 0 or not is_true(pod, "Ready"):
            return Action.after(left) if left > 0 else Action.done()
        await self._performer.perform(unready(pod, self.clock()))
        return Action.done()

    async def _end(self, pod: Json) -> Action:
        """What a kubelet does about a pod on its way out: SIGTERM, SIGKILL after its grace period, and it is gone."""
        if is_gated(pod):
            return Action.done()
        time, trap = anyio.current_time(), trap_of(pod, self.options)
        grace = pod["metadata"].get("deletionGracePeriodSeconds") or 0
        left = self._signalled.setdefault(uid(pod), time) + min(trap, grace) - time
        if left > 0 and not has_ended(pod):
            return Action.after(left)
        if not has_ended(pod):
            well = 0 < trap < grace and annotations_of(pod).get(OUTCOME_ANNOTATION) == "complete"
            await self._performer.perform(ended(pod, failed=not well, now=self.clock()))
        elif grace:
            await remove(self.client, pod)
        return Action.done()

    @property
    def node_is_dead(self) -> bool:
        """Whether the kubelet of all pods here is away: none ends, none starts, and jobs do not go on.

        Those that were ready are not, 50 s later. Once it is back, pods on their way out get their SIGTERM. Only jobs
        that have pods show it.
        """
        return self._died is not None

    @node_is_dead.setter
    def node_is_dead(self, dead: bool) -> None:
        self._died = anyio.current_time() if dead else None
        for resource, objects in self._jobs.items():
            for obj in objects:
                self._controller.enqueue((resource, ObjectKey.of(obj)))

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
            for known in (self._runs, self._starts, self._signalled):
                known.pop(uid(old), None)
            self._concern(resource, old)

    def _observe(self, resource: Resource, job: Json) -> None:
        if self._jobs[resource].observe(job):
            self._controller.enqueue((resource, ObjectKey.of(job)))
            self._concern(resource, job)

    def _concern(self, resource: Resource, obj: Json) -> None:
        """Look at the jobs that a pod belongs to, too, and at those that these belong to; owners may go in circles."""
        found, todo = set[tuple[Resource, ObjectKey]](), [(resource, obj)]
        while todo:
            of, owned = todo.pop()
            for owner in (dig(owned, "metadata", "ownerReferences") or ()) if of in (POD_RESOURCE, JOB) else ():
                row = next((row for row in self._jobs if row.gvk == GVK.of(owner["apiVersion"], owner["kind"])), None)
                key = ObjectKey(obj["metadata"]["namespace"], owner["name"])
                if row is not None and (row, key) not in found:
                    found.add((row, key))
                    self._controller.enqueue((row, key))
                    todo.append((row, self._jobs[row].get(key) or {}))


def _write(kind: SandboxKind, job: Json, turn: Turn) -> Step:
    """The write of a job's new status, and the event that tells of it."""
    reporter = f"{kind.resource.gvk.kind.lower()}-controller"
    notes = (Note(reporter, job, *turn.event),) if turn.event else ()
    subresource: Subresource = "status" if kind.status_subresource else ""
    return Step(Replace(kind.resource, {**job, "status": turn.status}, subresource), notes)
