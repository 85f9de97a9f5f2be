"""The leader looks at its workers, as `multikueue doctor` does, and publishes what it sees.

It looks at a worker after each connection and every `interval`, by connections of its own, at a few workers at a time
and at each for 20 s at most. Every 30 s it reads quotas: from the watches of a dispatcher that looks at figures, or by
two lists through the connection in use. It writes one ConfigMap, when something has changed and every 30 s at most.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final, TypeAlias

import anyio
import attrs
import structlog

from multikueue import JobKind
from multikueue.core.machinery.shares import UsedUp
from multikueue.core.model.kinds import CLUSTER_QUEUE, CONFIG_MAP, KUEUE_GROUP, LOCAL_QUEUE
from multikueue.core.model.names import GVK, Json, ObjectKey, Resource
from multikueue.errors import ApiError, Forbidden, NotFound
from multikueue.kube import ClusterConfig
from multikueue.protocols import ApiClient
from multikueue.runtime.loop import loop_time
from multikueued.clusters import ClusterClient, Connect
from multikueued.doctor.cluster_reader import MANAGER, Sight, why_unread
from multikueued.doctor.credentials import facts_in_use
from multikueued.doctor.probe import Measure, probe
from multikueued.doctor.worker_reader import CONNECT, DIAGNOSE, Rounds, lacking_of
from multikueued.few_at_a_time import few_at_a_time
from multikueued.reports.published import MOST, TOGETHER, Published, config_map, seen, slim, written
from multikueued.reports.worker_facts import (
    ClockBound,
    KubeconfigFacts,
    NotChecked,
    Permission,
    ShownPods,
    WorkerFacts,
)
from multikueued.reports.worker_queues import QueuesOnWorker
from multikueued.settings.config import Settings
from multikueued.workers.objects import location


@attrs.frozen
class Reached:
    """A worker that the daemon is connected to."""

    name: str
    config: ClusterConfig
    client: ApiClient
    """In use for everything else, too."""
    cluster: Json
    watched: Callable[[], QueuesOnWorker | None] = lambda: None
    """Its queues with their figures as of now; None: they are not watched, or a watch fails."""
    deleted: Callable[[], Sequence[tuple[Resource, Json]]] = lambda: ()
    """The job copies there that somebody has deleted, or whose Workload is gone, as the caches have them."""
    used_up: Callable[[], UsedUp | None] = lambda: None
    """Which namespace has most there, while jobs wait for a share of that."""
    mirrors: Callable[[], ShownPods | None] = lambda: None
    """How its pods of runs are shown; None: they are not."""


TICK: Final = 1.0
"""Seconds between two looks at which workers are connected, so that the figures of a new one soon follow: reads memory
only."""
EVERY: Final = 30.0
"""Seconds between two reads of quotas, and between two writes."""
INTERVAL: Final = 600.0
"""Seconds between two looks at a worker."""
SOON: Final = 60.0
"""Seconds until a worker is looked at again that did not answer to a look, or lacks what somebody may soon mend."""
LATELY: Final = 3600.0
"""Seconds for which a worker is looked at again `SOON` after a change of which kinds of jobs it lacks: somebody may be
installing them, or means not to. For Kueue's own kinds, and permissions, there is no such limit."""
AT_ONCE: Final = 5
"""Workers that are looked at."""
LOOKS: Final = 6
"""Once in `LOOKS` x `INTERVAL` seconds a worker is asked by the same credentials for all permissions, between for those
alone that it has not granted: each is a request, and 20 kinds need a hundred."""
QUOTAS_AT_ONCE: Final = 32
"""Workers whose quotas are read: small lists, which cost less together, since each alone wakes an idle process."""
QUOTA_DEADLINE: Final = 10.0
"""Seconds for both lists of one worker."""
MOST_QUEUES: Final = 2_000
"""LocalQueues of one worker that are read every 30 s; of one that has more no quota is told."""
FIELD_MANAGER: Final = "multikueue"
_SILENT: Final = "it did not answer by another connection than the one that the daemon has"
_ODD: Final = "they cannot be used, see the log of the daemon"
_MANY: Final = f"there are more than {MOST_QUEUES} queues"

log = structlog.get_logger(__name__)


Reach: TypeAlias = Callable[[], Iterable[Reached]]


@attrs.define
class KnownWorker:
    """What is known of one worker."""

    probed: float | None = None
    """When it was looked at, on the loop's clock; None: not since it was connected."""
    published: Published | None = None
    share: UsedUp | None = None
    """As of the last read of quotas: from memory."""
    mirrors: ShownPods | None = None
    """The same."""
    granted: frozenset[Permission] = frozenset()
    """What it grants, as it has said at the last look."""
    granted_to: ClusterConfig | None = None
    """By which credentials that was asked: others may have less."""
    asked_all: float = -math.inf
    """When it was asked for all permissions with these credentials last, on the loop's clock."""
    lacking: frozenset[GVK] = frozenset()
    """Kinds that it lacks and the manager has, as of the last look."""
    lacking_since: float = -math.inf
    """When those changed last, on the loop's clock."""
    quotas_from: float = 0.0
    """When its queues may be read again, on the loop's clock: `SOON` after they were refused."""
    queues_not_checked: Sequence[NotChecked] = ()
    """What of what is not checked is about its queues."""

    def note_lacking(self, lacking: frozenset[GVK]) -> None:
        """Keep which kinds it lacks and the manager has."""
        if lacking != self.lacking:
            self.lacking, self.lacking_since = lacking, loop_time()

    def read_queues(self, facts: WorkerFacts, at: datetime | None, *gaps: NotChecked) -> None:
        """Keep what its queues are now, or why that is not known."""
        assert self.published is not None, "the queues of a worker are read after it was looked at"
        others = (gap for gap in self.published.not_checked if gap not in self.queues_not_checked)
        self.published = attrs.evolve(self.published, facts=facts, not_checked=(*others, *gaps), quota_at=at)
        self.queues_not_checked = gaps

    @property
    def may_get_kinds(self) -> bool:
        """Whether somebody may soon install a kind that it lacks."""
        of_kueue = any(gvk.group == KUEUE_GROUP for gvk in self.lacking)
        return of_kueue or (bool(self.lacking) and loop_time() < self.lacking_since + LATELY)

    @property
    def to_publish(self) -> Published | None:
        """What is published."""
        if self.published is None:
            return None
        facts = attrs.evolve(self.published.facts, used_up=self.share, mirrors=self.mirrors)
        return attrs.evolve(self.published, facts=facts)


@attrs.define(eq=False)
class FindingsPublisher:
    """Looks at the workers of one manager, and publishes what it sees."""

    settings: Settings
    kinds: tuple[JobKind, ...]
    client: ClusterClient
    """The manager's."""
    config: ClusterConfig
    """The manager's, to compare clocks."""
    reach: Reach
    secret: Callable[[ObjectKey], Json | None]
    clock: Callable[[], datetime]
    connect: Connect = CONNECT
    measure: Measure = probe
    _known: dict[str, KnownWorker] = attrs.field(factory=dict, init=False)
    _look_due: float = attrs.field(default=0.0, init=False)
    _quotas_due: float = attrs.field(default=0.0, init=False)
    _write_due: float = attrs.field(default=0.0, init=False)
    _changed: bool = attrs.field(default=False, init=False)
    """Whether something was read since the ConfigMap was compared."""
    _written: dict[str, Published] = attrs.field(factory=dict, init=False)
    """What the ConfigMap has."""
    _error: str = attrs.field(default="", init=False)

    async def run(self) -> None:
        """Look and publish until cancelled."""
        while True:
            await self.turn()
            await anyio.sleep(TICK)

    async def turn(self) -> None:
        """Do what is due."""
        reached = {worker.name: worker for worker in self.reach()}
        self._known = {name: self._known.get(name, KnownWorker()) for name in reached}
        now = loop_time()
        due = [
            worker
            for name, worker in reached.items()
            if (probed := self._known[name].probed) is None or now >= probed + INTERVAL
        ]
        if due and now >= self._look_due:
            self._look_due = now + TICK if await self._look(due) else now + SOON
        if loop_time() >= self._quotas_due:
            self._quotas_due = loop_time() + EVERY
            for name, worker in reached.items():
                self._known[name].share, self._known[name].mirrors = worker.used_up(), worker.mirrors()
            readable = [worker for name, worker in reached.items() if loop_time() >= self._known[name].quotas_from]
            await few_at_a_time(QUOTAS_AT_ONCE, self._read_quota, readable)
            self._changed = True
        gone = self._written.keys() - self._known.keys()
        if (self._changed or gone) and loop_time() >= self._write_due:
            await self._publish()

    async def _look(self, due: list[Reached]) -> bool:
        """Look at workers, a few at a time; return whether the manager said what it serves, which comes first."""
        manager = (await self.measure(self.config)).clock
        try:
            sight = Sight(self.client, MANAGER, "")
            lacking = await lacking_of(sight, [kind.resource.gvk for kind in self.kinds if not kind.workload_only])
        except ApiError as error:
            log.info("the manager does not say which kinds it serves", error=str(error))
            return False
        held = {worker.name: self._credentials(worker) for worker in due}

        async def visit(worker: Reached) -> None:
            here, known = frozenset({worker.name}), self._known[worker.name]
            if known.granted_to != worker.config:
                known.granted_to, known.asked_all = worker.config, -math.inf
            granted = {worker.name: known.granted}
            if loop_time() >= known.asked_all + LOOKS * INTERVAL:
                known.asked_all, granted = loop_time(), {worker.name: frozenset()}
            rounds = Rounds(
                self.settings,
                self.kinds,
                lacking,
                here,
                self.connect,
                self.measure,
                held,
                granted,
                self.clock(),
                {worker.name: worker.deleted()},
            )
            try:
                await rounds.visit({worker.name: worker.config})
            except Exception as error:  # of one worker: the others are looked at all the same
                log.error("unexpected exception", cluster=worker.name, exc_info=error)
            self._note(worker.name, rounds, manager)

        await few_at_a_time(AT_ONCE, visit, due)
        self._changed = True
        return True

    def _credentials(self, worker: Reached) -> KubeconfigFacts:
        """When the credentials in use expire, and what their Secret says of that."""
        secret = self.secret(ObjectKey(str(self.settings.namespace), location(worker.cluster)))
        return facts_in_use(worker.cluster, worker.config, secret or {})

    def _note(self, name: str, rounds: Rounds, manager: ClockBound | None) -> None:
        """Keep what was seen of a worker; nothing: it did not answer, though the daemon is connected to it."""
        known, now = self._known[name], self.clock()
        facts, gaps = rounds.workers.get(name), rounds.not_checked
        known.probed = loop_time()
        if facts is None:
            known.probed += SOON - INTERVAL
            if known.published is not None:
                return  # what was seen before stays, with its time
            facts = WorkerFacts(name)
            gaps = [NotChecked(f"{name} itself", _SILENT, "it is looked at again", name)]
        elif facts.error:
            known.probed += SOON - INTERVAL
        else:
            known.note_lacking(facts.lacking - rounds.lacking)
            if known.may_get_kinds or not all(permission.allowed for permission in facts.permissions):
                known.probed += SOON - INTERVAL  # somebody may mend it
        known.granted = frozenset(permission for permission in facts.permissions if permission.allowed)
        queues = slim(facts.queues) if facts.queues is not None else None
        published = attrs.evolve(seen(facts, manager), queues=queues)
        quota_at = now if queues is not None else None
        known.published = Published(published, now, tuple(gaps), quota_at, rounds.credentials[name])
        known.queues_not_checked = rounds.queues_not_checked.get(name, ())
        known.quotas_from = loop_time() + SOON if queues is None else 0.0

    async def _read_quota(self, worker: Reached) -> None:
        """Read a worker's queues; one that does not answer keeps what was seen last, with its time."""
        known = self._known[worker.name]
        if known.published is None:
            return
        try:
            queues = worker.watched() or await _listed(worker)
            if max(len(queues.local), len(queues.cluster)) > MOST_QUEUES:
                self._blind(known, _MANY)
                return
            facts = attrs.evolve(known.published.facts, queues=slim(queues), queues_unseen="")
            known.read_queues(facts, self.clock())
        except _QueuesUnseenError as error:
            self._blind(known, str(error), SOON)
        except (ApiError, TimeoutError) as error:
            log.debug("quotas not read", cluster=worker.name, error=str(error))
        except Exception as error:  # of one worker: those of the others are read all the same
            log.error("unexpected exception", cluster=worker.name, exc_info=error)
            self._blind(known, _ODD)

    def _blind(self, known: KnownWorker, why: str, wait: float = math.inf) -> None:
        """Its queues may not be read, or are too many; they are tried again after so long, or with the next look."""
        assert known.published is not None, "the queues of a worker are read after it was looked at"
        facts = attrs.evolve(known.published.facts, queues=None, queues_unseen=why)
        known.quotas_from = loop_time() + wait
        known.read_queues(facts, None, NotChecked(f"quotas of {facts.name}", why, f"{DIAGNOSE} {facts.name}"))

    async def _publish(self) -> None:
        """Write the ConfigMap if something has changed, or if a look has confirmed what it has."""
        self._changed = False
        wanted = {name: known.to_publish for name, known in self._known.items() if known.to_publish is not None}
        if _without_times(wanted) == _without_times(self._written) or (not wanted and not self._written):
            return
        settings = self.settings
        limit = min(MOST, TOGETHER // max(1, len(wanted)))
        documents = {name: written(published, limit) for name, published in wanted.items()}
        made = config_map(str(settings.namespace), settings.findings_config_map, documents)
        self._write_due = loop_time() + EVERY
        try:
            await self.client.apply(CONFIG_MAP, made, field_manager=FIELD_MANAGER)
        except ApiError as error:
            if str(error) != self._error:
                advice = "grant create and patch of that ConfigMap (multikueue rbac manager), or set findings.enabled"
                log.warning("what is seen of workers is not published", error=str(error), advice=advice)
            self._error, self._changed = str(error), True
            return
        self._written, self._error = dict(wanted), ""


class _QueuesUnseenError(Exception):
    """The queues of a worker may not be read, or are not served."""


async def _listed(worker: Reached) -> QueuesOnWorker:
    """The queues of a worker; of one that has too many, one more than that."""

    async def items(resource: Resource) -> Sequence[Json]:
        try:
            return (await worker.client.list(resource, limit=MOST_QUEUES + 1)).items
        except (Forbidden, NotFound) as error:
            raise _QueuesUnseenError(why_unread(error, "list", resource, worker.name)) from error

    with anyio.fail_after(QUOTA_DEADLINE):
        return QueuesOnWorker.of(await items(LOCAL_QUEUE), await items(CLUSTER_QUEUE))


def _without_times(published: Mapping[str, Published]) -> dict[str, Published]:
    """What is worth a write: a quota that was read again and is the same is none."""
    return {name: attrs.evolve(report, quota_at=None) for name, report in published.items()}
