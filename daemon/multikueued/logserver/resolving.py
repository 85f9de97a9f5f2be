"""From TYPE/NAME in a namespace to its worker and its copies, for somebody who may see no Secret.

The way is: the Workload's UID, the worker that is recorded, the copies there that carry our mark of that Workload, the
pods by their owners' UIDs. Each worker is read with credentials of this server alone. Words for users name no address.
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Final

import anyio
import attrs
import structlog

from multikueue.core.model import workloads
from multikueue.core.model.kinds import (
    ADMISSION_CHECK,
    CLUSTER_QUEUE,
    LOCAL_QUEUE,
    MULTIKUEUE_CLUSTER,
    SECRET,
    WORKLOAD,
)
from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.core.model.objects import uid
from multikueue.core.model.outside_text import without_addresses
from multikueue.errors import ApiError, Forbidden, KubeconfigError, NotFound, NotSent, TooManyRequests, Unauthorized
from multikueue.kube import AnswerLimits, ClientOptions, ClusterConfig, KubeClient, parse_worker_kubeconfig
from multikueue.protocols import ObjectList, Received, read
from multikueue.runtime.reconcilers.configuration import kubeconfig_in
from multikueued.clusters import ClusterClient
from multikueued.exits import FINDING, NOT_FOUND, NOT_REACHABLE, USAGE, CommandError
from multikueued.reading.job_lookup import ManagerJob
from multikueued.reading.placed_job import PlacedJob, siblings_of
from multikueued.reading.pod_lookup import JobLocator, UnplacedJob, unplaced
from multikueued.reading.worker_access import key_in
from multikueued.reports.objects import ManagerObjects
from multikueued.reports.typenames import JobName, matching, meant, type_name

LIMITS: Final = AnswerLimits(list_bytes=32 << 20, list_pages=100, list_objects=10_000)
"""Of the objects of one namespace: a tenant may make as many as a quota of objects lets him."""
CLIENT: Final = ClientOptions(deadline=20.0, connection_wait=10.0, user_agent="multikueue-logs", limits=LIMITS)
"""For the manager."""
OPTIONS: Final = attrs.evolve(CLIENT, connections=4)
"""For workers."""
READS: Final = 4
"""Lists of one worker at a time, of all requests: a worker that hangs holds up those of its own jobs alone."""
UNREAD: Final = frozenset({ADMISSION_CHECK, LOCAL_QUEUE, CLUSTER_QUEUE, MULTIKUEUE_CLUSTER})
"""What this server does not read to find a job: its Workload says where it is, and why it is nowhere."""
TURN: Final = 20.0
"""Seconds that a list may wait for its place."""

log = structlog.get_logger(__name__)


@attrs.frozen
class ReadableWorkers:
    """The workers that this server may read."""

    client: ClusterClient
    """Of the manager cluster."""
    namespace: str
    """Where the Secrets with the kubeconfigs are."""
    secrets: Mapping[str, str]
    """Names of the Secrets, by worker."""
    _turns: dict[str, anyio.CapacityLimiter] = attrs.field(factory=dict, init=False)

    @asynccontextmanager
    async def open(self, worker: str) -> AsyncIterator[KubeClient]:
        """A client of a worker.

        Raises:
            CommandError: it cannot be asked; the log says why in more words.
        """
        config = await self._config(worker)
        turns = self._turns.setdefault(worker, anyio.CapacityLimiter(READS))
        async with InTurns(config, name=worker, options=OPTIONS, turns=turns) as client:
            yield client

    async def _config(self, worker: str) -> ClusterConfig:
        name = self.secrets.get(worker)
        if name is None:
            refusal = f'this server has no credentials for worker cluster "{worker}": ask an operator to add them'
            raise CommandError(refusal, NOT_REACHABLE)
        key = ObjectKey(self.namespace, name)
        try:
            return parse_worker_kubeconfig(kubeconfig_in(await self.client.get(SECRET, key), name))
        except (ApiError, KubeconfigError) as error:
            log.warning("credentials cannot be used", worker=worker, secret=str(key), error=str(error))
            refusal = f'the credentials of this server for worker cluster "{worker}" cannot be used: ask an operator'
            raise CommandError(refusal, NOT_REACHABLE) from error


@attrs.define(eq=False)
class InTurns(KubeClient):
    """A client of a worker whose lists wait for a place; logs do not."""

    turns: anyio.CapacityLimiter = attrs.field(kw_only=True)

    async def list(
        self,
        resource: Resource,
        *,
        namespace: str = "",
        label_selector: str = "",
        limit: int = 0,
        each: Received | None = None,
    ) -> ObjectList:
        """See `Reader.list`."""
        with anyio.move_on_after(TURN) as waiting:
            async with self.turns:
                waiting.deadline = math.inf  # from here on the client's own deadline counts
                return await KubeClient.list(
                    self, resource, namespace=namespace, label_selector=label_selector, limit=limit, each=each
                )
        raise NotSent(f"{self.name}: list {resource}: too many others are being read")


@attrs.define(eq=False)
class LocatorOfTenant(JobLocator):
    """With the rights of this server, for one request."""

    workers: ReadableWorkers
    origin: str
    marks: ObjectKey
    """The Secret with the key of marks."""
    name: JobName
    namespace: str
    worker: str = attrs.field(default="", init=False)
    """The last one that was read, for the audit."""
    _workload: Json | None = attrs.field(default=None, init=False)
    _siblings: tuple[Json, ...] = attrs.field(default=(), init=False)
    _key: bytes | None = attrs.field(default=None, init=False, repr=False)

    async def look(self) -> PlacedJob | UnplacedJob:
        """See `JobLocator`."""
        try:
            await self._read_key()
            workload = await self._read()
        except ApiError as error:
            if error.retryable:
                raise
            raise CommandError(f"{self.words(error)} this server as it must: ask an operator", FINDING) from error
        job, worker = type_name(workload), workloads.cluster_name(workload)
        if worker is None:
            known = ManagerObjects(workloads=(workload,), unread=UNREAD)
            nowhere = unplaced(ManagerJob(job, known, workload, None))
            return attrs.evolve(nowhere, why=without_addresses(nowhere.why))
        self.worker = worker
        return PlacedJob(
            job=job,
            namespace=self.namespace,
            worker=worker,
            workload=workload,
            origin=self.origin,
            siblings=self._siblings,
            mark_key=self._key,
            strict=True,
        )

    @asynccontextmanager
    async def client(self, worker: str) -> AsyncIterator[ClusterClient]:
        """See `JobLocator`."""
        async with self.workers.open(worker) as client:
            yield client

    def words(self, error: ApiError) -> str:
        """See `JobLocator`."""
        log.warning("the manager cannot be read", namespace=self.namespace, error=str(error))
        return "the manager cluster does not answer"

    def worker_words(self, worker: str, error: ApiError) -> str:
        """See `JobLocator`; the log has the rest."""
        log.warning("a worker cannot be read", worker=worker, error=str(error))
        match error:
            case Forbidden() | Unauthorized():
                return f'worker cluster "{worker}" refuses this server: ask an operator'
            case TooManyRequests():
                return f'worker cluster "{worker}" has too much to do'
        return f'worker cluster "{worker}" does not answer'

    async def _read_key(self) -> None:
        if self._key is not None:
            return
        try:
            self._key = key_in(await self.workers.client.get(SECRET, self.marks))
        except (NotFound, Forbidden) as error:
            log.warning("the key of marks cannot be read", secret=str(self.marks), error=str(error))
        if self._key is None:
            raise CommandError("this server cannot tell whose copies are ours: ask an operator", FINDING)

    async def _read(self) -> Json:
        """The Workload that counts: the same as before while it lives, else the newest of the job."""
        if self._workload is not None and (same := await self._same(self._workload)) is not None:
            self._workload = same
            return same
        listed = (await self.workers.client.list(WORKLOAD, namespace=self.namespace)).items
        of_job = matching(self.name, listed if self._workload is None else self._of_same_job(self._workload, listed))
        if not of_job:
            raise CommandError(f"there is no Workload of {self.name} in namespace {self.namespace}", NOT_FOUND)
        if len(meant(of_job)) > 1:
            raise CommandError(f"{self.name} is the name of several jobs: write TYPE.GROUP:NAME", USAGE)
        self._workload, self._siblings = of_job[0], siblings_of(of_job[0], listed)
        return of_job[0]

    def _of_same_job(self, before: Json, listed: Iterable[Json]) -> list[Json]:
        """Not those of a job of the same name that was made later, perhaps in a namespace that was made again: the user
        was asked about for the first one."""
        every = [*listed]
        return [*siblings_of(before, every), *(workload for workload in every if uid(workload) == uid(before))]

    async def _same(self, before: Json) -> Json | None:
        now = await read(self.workers.client, WORKLOAD, ObjectKey.of(before))
        return now if now is not None and uid(now) == uid(before) and not workloads.is_finished(now) else None
