"""Parts of a manager: what only some do plugs in as one, and is no field of the manager."""

from __future__ import annotations

import operator
from asyncio import CancelledError
from collections.abc import Callable, Collection, Iterator, Sequence, Set
from contextlib import contextmanager
from functools import partial
from typing import Protocol, TypeAlias, runtime_checkable

import attrs

from multikueue.core.dispatchers.dispatcher import Dispatcher, Facts, Figures, Known, Waiting
from multikueue.core.model.names import ClusterName, Json, ObjectKey
from multikueue.core.model.objects import dig
from multikueue.errors import SettingsError
from multikueue.logs import get_logger
from multikueue.runtime.caches.manager_cluster import ManagerCluster
from multikueue.runtime.caches.workload_indexes import looking
from multikueue.runtime.controller import Controller, KeyQueue, Process
from multikueue.runtime.loop import Task, unending
from multikueue.runtime.workers.pool import WorkerPool

log = get_logger(__name__)


@attrs.frozen
class Part:
    """One thing that a manager does."""

    controllers: Sequence[Controller[ObjectKey]] = ()
    services: Sequence[Task] = ()
    """What runs beside the controllers; nothing waits for it. One that fails ends the manager; of a dispatcher's part,
    one that fails or ends begins again after a minute."""
    figures: Figures | None = attrs.field(default=None, kw_only=True)
    """Of a dispatcher's part: what `nominate` is shown beside the objects."""
    profiles: Collection[str] | None = attrs.field(default=None, kw_only=True)
    """Of a dispatcher's part: those that a MultiKueueConfig may name; None: it has none."""
    starving: Callable[[], int] = attrs.field(default=lambda: 0, kw_only=True)
    """Of a dispatcher's part: see `Manager.starving`. Where it raises, the number is 0."""


@attrs.frozen(eq=False)
class PartHost:
    """What a part is built on: a manager's caches and workers, before they run."""

    manager: ManagerCluster
    workers: WorkerPool
    plans: KeyQueue[ObjectKey]
    """Of the Workloads."""
    process: Process

    def enqueue(self, workload: ObjectKey, after: float = 0.0) -> None:
        """Have a Workload planned after so many seconds; of several times the earliest counts."""
        self.plans.enqueue(workload, after)

    def follow_queues(self, changed: Callable[[ClusterName], None]) -> None:
        """Have the queues of all workers kept, with what is free there.

        Args:
            changed: called when something of a worker's queues, or of its MultiKueueCluster, changes. It must not wait.
        """
        self.workers.follow_figures(changed)
        self.manager.clusters.subscribe(lambda key, _old, _new: changed(ClusterName(key.name)))

    def cluster_queue(self, worker: ClusterName, local_queue: ObjectKey) -> Json | None:
        """The ClusterQueue that a LocalQueue of a worker leads to, if queues are followed.

        Returns:
            None: there is none, or what is known of it cannot be used now.
        """
        connected = self.workers.get(worker)
        if connected is None or connected.known is None or connected.known.queues.figures_known is not Known.YES:
            return None
        queues = connected.known.queues
        name = dig(queues.local_queues.get(local_queue) or {}, "spec", "clusterQueue") or ""
        return queues.cluster_queues.get(ObjectKey("", name))

    def waiting(self) -> Set[ObjectKey]:
        """The Workloads that wait for a worker."""
        return looking(self.manager.workloads.informer)


PartOf: TypeAlias = Callable[[PartHost], Part]
"""Builds a part; it must not wait."""


@runtime_checkable
class BringsPart(Protocol):
    """A dispatcher that looks at more than the objects that it is shown."""

    def part(self, host: PartHost) -> Part:
        """What it does while a manager runs; called once for each manager, before that runs."""


def brought_by(dispatcher: Dispatcher, host: PartHost) -> Part:
    """The part of a dispatcher; an empty one where it brings none.

    Raises:
        SettingsError: its `part` fails, or gives something else.
    """
    if not isinstance(dispatcher, BringsPart):
        return Part()
    cls, advice = type(dispatcher), "correct it, or choose another dispatcher"
    named = f"the dispatcher {cls.__module__}.{cls.__qualname__} cannot be used"
    try:
        part: object = dispatcher.part(host)
    except Exception as error:  # another package's code may raise anything
        raise SettingsError(f"{named}: its part raises {type(error).__name__}: {error}; {advice}") from error
    if not isinstance(part, Part):
        raise SettingsError(f"{named}: its part gives {type(part).__name__}, which is no multikueue.Part; {advice}")
    services = [partial(unending, cls.__qualname__, service) for service in part.services]
    return attrs.evolve(part, services=services, starving=_Starving(part.starving))


@attrs.frozen
class GuardedFigures:
    """Figures that may be another package's: what fails as they are told something is logged, and holds up nothing."""

    figures: Figures

    def facts(self, waiting: Waiting) -> Facts:
        """See `Figures.facts`."""
        facts: object = self.figures.facts(waiting)
        if not isinstance(facts, Facts):
            what = f"{type(self.figures).__qualname__}.facts gives {type(facts).__name__}"
            raise TypeError(f"{what}, which is no multikueue.Facts")
        return facts

    def placed(self, workload: Json, worker: ClusterName, queue: ObjectKey, pods: Sequence[Json]) -> None:
        """See `Figures.placed`."""
        with _logged(ObjectKey.of(workload)):
            self.figures.placed(workload, worker, queue, pods)

    def planned(self, key: ObjectKey, claim: object) -> None:
        """See `Figures.planned`."""
        with _logged(key):
            self.figures.planned(key, claim)


@attrs.define
class _Starving:
    """As `Part.starving`, for metrics: it never raises."""

    count: Callable[[], int]
    _told: bool = attrs.field(default=False, init=False)

    def __call__(self) -> int:
        try:
            return operator.index(self.count())
        except (Exception, CancelledError) as error:  # another package's code may raise anything; this never waits
            if not self._told:
                self._told = True
                log.error("starving fails, told once", exc_info=error)
            return 0


@contextmanager
def _logged(key: ObjectKey) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # another package's code may raise anything
        log.error("figures fail as they are told", key=str(key), exc_info=error)
