"""From a job's name to its pods on the worker that is recorded."""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial

import anyio
import attrs

from multikueue.core.model import workloads
from multikueue.core.model.kinds import WORKLOAD
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import uid
from multikueue.errors import ApiError, Forbidden, NotFound
from multikueue.protocols import read
from multikueued.clusters import ClusterClient
from multikueued.exits import NOT_FOUND, NOT_REACHABLE, CommandError, for_people, in_words
from multikueued.reading.asked import Asked
from multikueued.reading.job_lookup import ManagerJob, find_job
from multikueued.reading.manager_lists import job_resource
from multikueued.reading.owned import Owned, owned_pods
from multikueued.reading.placed_job import PlacedJob, siblings_of
from multikueued.reading.pods import RETENTION, warning_of
from multikueued.reading.worker_access import mark_key, told_of, worker_client
from multikueued.reports.jobs import ENDED_STATES, JobState, reason_of, state_of
from multikueued.reports.jobs_alone import job_alone
from multikueued.reports.remedies.remedy import command_for


@attrs.frozen
class UnplacedJob:
    """A job that no worker has."""

    job: str
    """TYPE/NAME."""
    why: str
    """In words."""
    known: bool
    """Whether Kueue has a Workload for it."""
    ended: bool

    def no_pods(self) -> CommandError:
        """What who wants its pods, or their logs, is told."""
        return CommandError(f"{self.job} has no pods: {self.why}", NOT_FOUND)


class JobLocator(ABC):
    """Says where one job is, and reaches the workers: with the rights of a person, or of a server."""

    worker: str
    """The one that was read last, for an audit; empty: none, or nobody audits it."""

    @abstractmethod
    async def look(self) -> PlacedJob | UnplacedJob:
        """Where the job is now.

        Raises:
            CommandError: there is no such job, or it cannot be told.
            ApiError: the manager cannot be read, for now.
        """

    @abstractmethod
    def client(self, worker: str) -> AbstractAsyncContextManager[ClusterClient]:
        """A client of a worker.

        Raises:
            CommandError: it cannot be asked.
        """

    @abstractmethod
    def words(self, error: ApiError) -> str:
        """Words for what the manager answers."""

    @abstractmethod
    def worker_words(self, worker: str, error: ApiError) -> str:
        """Words for what a worker answers."""

    async def placed(self) -> PlacedJob:
        """Where the job is; raises as `look`, and CommandError where no worker has it: it has no pods."""
        job = await self.look()
        if isinstance(job, UnplacedJob):
            raise job.no_pods()
        return job

    @asynccontextmanager
    async def pods_of(self, job: PlacedJob) -> AsyncIterator[WorkerPods]:
        """The pods on the worker that has the job.

        Raises:
            CommandError: the worker cannot be asked, also while the context lasts.
        """
        async with self.client(job.worker) as client:
            with in_words(partial(self.worker_words, job.worker)):
                yield WorkerPods(client, job)


@attrs.define(eq=False)
class LocatorOfManager(JobLocator):
    """With what one person may read on the manager, Secrets included."""

    manager: ClusterClient
    asked: Asked
    worker: str = attrs.field(default="", init=False)
    """Nobody audits who reads with rights of his own."""
    _job: ManagerJob | None = attrs.field(default=None, init=False)
    """As it was seen last."""
    _mark_key: bytes | None = attrs.field(default=None, init=False, repr=False)

    async def look(self) -> PlacedJob | UnplacedJob:
        """See `JobLocator`. After the first time only the Workload is read, as long as it is the same."""
        target = self.asked.target
        try:
            job = self._job = await self._newer() or await self._found()
        except ApiError as error:
            if error.retryable:
                raise
            with for_people(target.config.server):
                raise
        worker = workloads.cluster_name(job.workload) if job.workload is not None else None
        if job.workload is None or worker is None:
            if WORKLOAD in job.objects.unread:
                raise CommandError(f"{job.name}: {'; '.join(job.unread)}", NOT_REACHABLE)
            return unplaced(job)
        return PlacedJob(
            job=job.name,
            namespace=target.namespace,
            worker=worker,
            workload=job.workload,
            origin=self.asked.origin,
            siblings=siblings_of(job.workload, job.objects.workloads),
            object=job.object,
            mark_key=self._mark_key,
        )

    async def _found(self) -> ManagerJob:
        self._mark_key = await mark_key(self.manager, self.asked.target.daemon_namespace)
        return await find_job(self.manager, self.asked)

    async def _newer(self) -> ManagerJob | None:
        """The job with its Workload as it is now; None: it has to be found, as that one has ended, or is gone."""
        if self._job is None or self._job.workload is None:
            return None
        with contextlib.suppress(Forbidden):
            now = await read(self.manager, WORKLOAD, ObjectKey.of(self._job.workload))
            if now is not None and uid(now) == uid(self._job.workload) and not workloads.is_finished(now):
                return attrs.evolve(self._job, workload=now)
        return None

    def client(self, worker: str) -> AbstractAsyncContextManager[ClusterClient]:
        """See `JobLocator`."""
        return worker_client(self.manager, worker, self.asked.target.daemon_namespace)

    def words(self, error: ApiError) -> str:
        """See `JobLocator`."""
        return f"the manager does not answer ({error})"

    def worker_words(self, worker: str, error: ApiError) -> str:
        """See `JobLocator`."""
        return told_of(worker, error)


def unplaced(job: ManagerJob) -> UnplacedJob:
    """A job that no worker has, by what stands on the manager."""
    return UnplacedJob(job.name, why_nowhere(job), job.workload is not None, _state(job) in ENDED_STATES)


def _state(job: ManagerJob) -> JobState | None:
    """By its Workload, else by the job itself; None: neither is there."""
    if job.workload is not None:
        return state_of(job.objects.chain(job.workload))
    return job_alone(job.object).state if job.object is not None else None


def why_nowhere(job: ManagerJob) -> str:
    """Why no worker has a job, in the words of whoever decided that."""
    explain, state = command_for(job.name, "explain", job.namespace), _state(job)
    if job.workload is None or state is None:
        gone = f"it has ended ({state}), and its Workload is gone"
        return gone if state in ENDED_STATES else f"it has no Workload ({explain} says why)"
    if state in ENDED_STATES:
        return f"it has ended ({state}). {RETENTION}"
    reason = reason_of(job.objects.chain(job.workload), state)
    return f"no worker has it; it is {state}{f': {reason}' if reason else ''} ({explain} says more)"


@attrs.define(eq=False)
class WorkerPods:
    """The pods of one job on its worker, read again when newer ones are needed."""

    client: ClusterClient
    sought: PlacedJob
    latest: Owned = attrs.field(factory=lambda: Owned(()), init=False)
    copied: bool = attrs.field(default=False, init=False)
    """Whether the job has a copy there."""
    _began: float = attrs.field(default=float("-inf"), init=False)
    _lock: anyio.Lock = attrs.field(factory=anyio.Lock, init=False)

    async def since(self, moment: float) -> Owned:
        """The pods, read after that moment of the loop's clock: several who ask share one answer.

        Raises:
            ApiError: the worker cannot be read.
        """
        async with self._lock:
            if self._began <= moment:
                began = anyio.current_time()
                self.latest = await self._read()
                self._began = began
            return self.latest

    async def now(self) -> Owned:
        """The pods, read anew; raises as `since`."""
        return await self.since(anyio.current_time())

    async def is_still_there(self, pod: Json) -> bool:
        """Whether a pod that was seen before is there now, and has not been made again under its name."""
        return any(uid(seen) == uid(pod) for seen in (await self.now()).pods)

    async def _read(self) -> Owned:
        roots = await self._roots()
        self.copied = bool(roots)
        there = self.sought.namespace_there
        return await owned_pods(self.client, roots, there, why_none=True) if roots else Owned(())

    async def _roots(self) -> frozenset[str]:
        """The UIDs of the copies; of jobs that others have moved, what the Workload copy says."""
        sought = self.sought
        owner = workloads.owner(sought.workload)
        resource = await job_resource(self.client, owner.gvk) if owner is not None else None
        if resource is not None:
            try:
                listed = await self.client.list(
                    resource, namespace=sought.namespace_there, label_selector=sought.selector
                )
            except NotFound:
                return frozenset()
            if copies := sought.copies(listed.items):
                return frozenset(map(uid, copies))
        listed = await self.client.list(WORKLOAD, namespace=sought.namespace_there, label_selector=sought.selector)
        return sought.owners_of_copy(listed.items)


def why_no_pods(pods: WorkerPods) -> str:
    """Why a job that has a worker has no pods there."""
    sought, copied = pods.sought, pods.copied
    if pods.latest.not_read:
        return f'{sought.job} has no pods on worker cluster "{sought.worker}" that are known: {pods.latest.not_read[0]}'
    if workloads.is_finished(sought.workload):
        return f'{sought.job} has ended on worker cluster "{sought.worker}". {RETENTION}'
    if not copied:
        return f'{sought.job} is being created on worker cluster "{sought.worker}": it has no pods yet'
    warning = warning_of(pods.latest)
    return f'{sought.job} has no pods on worker cluster "{sought.worker}" yet{f": {warning}" if warning else ""}'
