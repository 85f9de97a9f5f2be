"""The manager as the API reads it: slim informers of its own, and the jobs that they make."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Awaitable, Callable
from datetime import datetime
from functools import partial
from typing import Final

import anyio
import anyio.abc
import anyio.lowlevel
import attrs
import structlog

from multikueue.core.model import workloads
from multikueue.core.model.kinds import (
    ADMISSION_CHECK,
    CLUSTER_QUEUE,
    LOCAL_QUEUE,
    MULTIKUEUE_CLUSTER,
    MULTIKUEUE_CONFIG,
    WORKLOAD,
)
from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.core.model.objects import dig, name_of, resource_version
from multikueue.core.model.shape import workload_flaw
from multikueue.core.model.writers import drop_managed_fields
from multikueue.errors import ApiError
from multikueue.kube.informers.informer import Informer
from multikueue.kube.informers.informer_start import start_informers
from multikueue.kube.informers.reflector import ListerWatcher
from multikueued.remoteapi.history import History
from multikueued.remoteapi.objects import api_name, counts, remote_job
from multikueued.remoteapi.overview import counted
from multikueued.reports.objects import ManagerObjects

WINDOW: Final = 8192
"""Changes that a watch can begin behind; before them it lists again."""
FINDINGS_AGAIN: Final = 30.0
"""Seconds between two looks at what the daemon publishes."""
STALE: Final = 120.0
"""Seconds of failures after which what was read is not shown any more."""
BREATH: Final = 50
"""Jobs that are made anew before others run."""


log = structlog.get_logger(__name__)


@attrs.define(eq=False)
class ManagerView:
    """Implements what the handlers read. `run` keeps it."""

    client: ListerWatcher
    """Of the manager."""
    now: Callable[[], datetime]
    """The wall clock."""
    published: Callable[[], Awaitable[Json | None]]
    """Reads what the daemon publishes of workers."""
    daemon_namespace: str
    """Where the daemon has its Secrets, for remedies."""
    namespace: str = ""
    """Of jobs; empty: all."""
    unread: frozenset[Resource] = frozenset()
    """What may not be listed: it is not watched."""
    published_again: float = attrs.field(factory=lambda: FINDINGS_AGAIN)
    """Seconds between two looks at what the daemon publishes."""
    history: History = attrs.field(factory=History)
    """How many jobs there were, step by step."""
    read_lease: Callable[[], Awaitable[Json | None]] | None = None
    """Reads the daemon's Lease, which says whether anybody dispatches; None: it is not read."""
    informers: dict[str, Informer] = attrs.field(init=False)
    findings: Json | None = attrs.field(default=None, init=False)
    lease: Json | None = attrs.field(default=None, init=False)
    jobs: dict[ObjectKey, Json] = attrs.field(factory=dict, init=False)
    """By namespace and API name."""
    changes: deque[Change] = attrs.field(factory=lambda: deque(maxlen=WINDOW), init=False)
    dropped: int = attrs.field(default=0, init=False)
    """How many changes are not in the window any more."""
    begin: int = attrs.field(default=0, init=False)
    """What is older than this version is not known."""
    changed: anyio.Event = attrs.field(factory=anyio.Event, init=False)
    synced: bool = attrs.field(default=False, init=False)
    _due: dict[ObjectKey, None] = attrs.field(factory=dict, init=False)
    """Jobs that are to be made anew, in turn."""
    _due_now: anyio.Event = attrs.field(factory=anyio.Event, init=False)
    _by_job: dict[ObjectKey, set[ObjectKey]] = attrs.field(factory=dict, init=False)
    """The Workloads of each job."""
    _latest: int = attrs.field(default=0, init=False)
    _settled: int = attrs.field(default=0, init=False)
    """Up to here all jobs are made."""

    @informers.default
    def _informers(self) -> dict[str, Informer]:
        watching = partial(Informer, self.client)
        made = {
            "workloads": watching(
                WORKLOAD, namespace=self.namespace, transform=slim, flaw=workload_flaw, keeps_unreadable=True
            ),
            "checks": watching(ADMISSION_CHECK),
            "configs": watching(MULTIKUEUE_CONFIG),
            "clusters": watching(MULTIKUEUE_CLUSTER),
            "cluster_queues": watching(CLUSTER_QUEUE),
            "local_queues": watching(LOCAL_QUEUE, namespace=self.namespace, transform=without_usage),
        }
        return {name: informer for name, informer in made.items() if informer.resource not in self.unread}

    def __attrs_post_init__(self) -> None:
        self.informers["workloads"].subscribe(self._workload_changed)
        for name in self.informers.keys() - {"workloads"}:
            self.informers[name].subscribe(partial(self._other_changed, name))

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Keep the view; ready once all can be read."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._read_findings)
            await start_informers([*self.informers.values()], tasks)
            self._latest = max(number(informer.resource_version) for informer in self.informers.values())
            await self._make_due()
            self._settled = self.begin = self._latest
            self.synced = True
            tasks.start_soon(self._note_history)
            task_status.started()
            while True:
                await self._due_now.wait()
                self._due_now = anyio.Event()
                await self._make_due()

    async def _read_findings(self) -> None:
        """Again and again: it is no kind that is watched."""
        while True:
            with contextlib.suppress(ApiError):
                self.findings = await self.published()
            with contextlib.suppress(ApiError):
                self.lease = await self.read_lease() if self.read_lease is not None else None
            await anyio.sleep(self.published_again)

    async def _note_history(self) -> None:
        while True:
            now = self.now()
            self.history.note(now, counted([*self.jobs.values()], now))
            await anyio.sleep(self.history.step)

    @property
    def why_not_synced(self) -> str:
        """Which kind the manager does not give, or has not for a while; empty: none."""
        now = anyio.current_time()
        for informer in self.informers.values():
            since = informer.status.failing_since
            if informer.status.last_error and (
                not informer.status.synced or (since is not None and now - since > STALE)
            ):
                return f"{informer.resource} cannot be read on the manager"
        return ""

    @property
    def version(self) -> int:
        """The version that lists have: all jobs are as the manager was then."""
        return self._settled

    @property
    def newest(self) -> int:
        """The newest version that the manager has told."""
        return max(self._latest, *(number(informer.resource_version) for informer in self.informers.values()))

    @property
    def context(self) -> ManagerObjects:
        """What a job is made of beside its Workload."""
        watched = (self.informers.get(name) for name in _LISTS)
        checks, configs, clusters, queues, local = (
            tuple(informer.values()) if informer is not None else () for informer in watched
        )
        made = ManagerObjects((), checks, configs, clusters, queues, local, findings=self.findings)
        return attrs.evolve(made, unread=self.unread, lease=self.lease, daemon_namespace=self.daemon_namespace)

    @property
    def objects(self) -> ManagerObjects:
        """All that reports are made of."""
        return attrs.evolve(self.context, workloads=tuple(self.informers["workloads"].values()))

    def workload_of(self, key: ObjectKey) -> Json | None:
        """The Workload that counts of a job's."""
        return max(self._workloads_of(key), key=counts, default=None)

    def _workloads_of(self, key: ObjectKey) -> list[Json]:
        return [*filter(None, map(self.informers["workloads"].get, self._by_job.get(key, ())))]

    def others_of(self, key: ObjectKey) -> tuple[str, ...]:
        """The Workloads of a job that have not ended, as `workload/NAME`, beside the one that counts."""
        counting = self.workload_of(key)
        others = (other for other in self._workloads_of(key) if other is not counting)
        return tuple(sorted(f"workload/{name_of(other)}" for other in others if not workloads.is_finished(other)))

    def _workload_changed(self, key: ObjectKey, old: Json | None, new: Json | None) -> None:
        self._seen("workloads", new)
        for before, there in ((old, False), (new, True)):
            if before is not None:
                job = ObjectKey(key.namespace, api_name(before))
                names = self._by_job.setdefault(job, set())
                (names.add if there else names.discard)(key)
                if not names:
                    del self._by_job[job]
                self._make(job)

    def _other_changed(self, name: str, key: ObjectKey, old: Json | None, new: Json | None) -> None:
        self._seen(name, new)
        if name == "cluster_queues" and checks_of(old) == checks_of(new):
            return  # its figures change with each job
        if name == "local_queues" and old is not None and new is not None and old.get("spec") == new.get("spec"):
            return  # so do a LocalQueue's
        for job in list(self._by_job) if name != "clusters" else self._jobs_at(key.name):
            self._make(job)

    def _jobs_at(self, worker: str) -> list[ObjectKey]:
        listed = self.informers["workloads"].values()
        at = [
            workload
            for workload in listed
            if worker in (workloads.cluster_name(workload), *workloads.nominated(workload))
        ]
        return [ObjectKey(ObjectKey.of(workload).namespace, api_name(workload)) for workload in at]

    def _seen(self, name: str, new: Json | None) -> None:
        version = resource_version(new) if new is not None else self.informers[name].resource_version
        self._latest = max(self._latest, number(version))

    def _make(self, job: ObjectKey) -> None:
        self._due[job] = None
        self._due_now.set()

    async def _make_due(self) -> None:
        while self._due:
            context = self.context
            for job in list(self._due)[:BREATH]:
                del self._due[job]
                self._made(job, context)
            if not self._due:
                self._settled = self._latest
            self.changed.set()
            self.changed = anyio.Event()
            await anyio.lowlevel.checkpoint()

    def _made(self, job: ObjectKey, context: ManagerObjects) -> None:
        known, workload = self.jobs.get(job), self.workload_of(job)
        if self.unread and workload is not None:  # the Workload alone names checks and workers then
            context = attrs.evolve(context, workloads=(workload,))
        if workload is None or not context.chain(workload).is_dispatched:
            if known is not None:
                del self.jobs[job]
                self._note("DELETED", at(known, self._latest))
            return
        # What was there at the start has the version that every replica gives it.
        new = self._job(workload, context, str(self._latest) if self.synced else resource_version(workload))
        if new is not None and (known is None or at(known, self._latest) != at(new, self._latest)):
            self.jobs[job] = new
            self._note("ADDED" if known is None else "MODIFIED", new)

    def _job(self, workload: Json, context: ManagerObjects, version: str) -> Json | None:
        """A job; None if it cannot be made: whoever wrote its Workload must not stop what others read."""
        try:
            return remote_job(workload, context, version, self.now())
        except Exception as error:  # a bug: the traceback goes to the log only
            log.error("a job cannot be shown", workload=str(ObjectKey.of(workload)), exc_info=error)
            return None

    def _note(self, kind: str, job: Json) -> None:
        if not self.synced:
            return
        if len(self.changes) == WINDOW:
            self.begin, self.dropped = self.changes[0].version + 1, self.dropped + 1
        self.changes.append(Change(self._latest, kind, job))


_LISTS: Final = ("checks", "configs", "clusters", "cluster_queues", "local_queues")


@attrs.frozen
class Change:
    """A job that is there, has changed, or is gone."""

    version: int
    """The manager's resourceVersion of the event that changed it."""
    type: str
    """`ADDED`, `MODIFIED` or `DELETED`."""
    job: Json


def slim(workload: Json) -> Json:
    """A Workload without its pods' templates: reports need none of them, and they are most of its size."""
    slim = drop_managed_fields(workload)
    pod_sets = dig(slim, "spec", "podSets")
    if not isinstance(pod_sets, list):
        return slim
    kept = [{field: pod_set[field] for field in ("name", "count") if field in pod_set} for pod_set in pod_sets]
    return {**slim, "spec": {**slim["spec"], "podSets": kept}}


def without_usage(queue: Json) -> Json | None:
    """A LocalQueue without its figures, which change with each job: what it leads to, and whether it takes jobs."""
    metadata = {field: dig(queue, "metadata", field) for field in ("namespace", "name", "uid", "resourceVersion")}
    active = [condition for condition in dig(queue, "status", "conditions") or () if condition.get("type") == "Active"]
    return {"metadata": metadata, "spec": queue.get("spec"), "status": {"conditions": active}}


def checks_of(queue: Json | None) -> tuple[object, ...]:
    """What jobs are made of in a ClusterQueue."""
    spec = dig(queue, "spec") or {}
    return (queue is None, spec.get("admissionChecks"), spec.get("admissionChecksStrategy"), spec.get("stopPolicy"))


def number(version: str) -> int:
    """A resourceVersion as it is ordered; API servers write numbers (KEP-5504)."""
    return int(version) if version.isdecimal() else 0


def at(job: Json, version: int) -> Json:
    """A job with another version."""
    return {**job, "metadata": {**job["metadata"], "resourceVersion": str(version)}}
