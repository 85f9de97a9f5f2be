"""The queues of one cluster: for quota automation, and for a dispatcher that looks at their figures."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

import anyio
import anyio.abc
import attrs

from multikueue.core.config.quota import cohort_of
from multikueue.core.dispatchers.dispatcher import SILENT_AFTER, Known
from multikueue.core.model.kinds import CLUSTER_QUEUE, COHORT, LOCAL_QUEUE
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import dig, identity
from multikueue.core.model.shape import queue_flaw
from multikueue.core.model.writers import drop_managed_fields
from multikueue.kube.http.response_limits import LISTS_UNLIMITED, AnswerLimits
from multikueue.kube.informers.informer import Informer
from multikueue.kube.informers.informer_start import start_informers
from multikueue.kube.informers.informer_status import InformerStatus
from multikueue.protocols import ApiClient
from multikueue.runtime.caches.flavor_list import FlavorList
from multikueue.runtime.loop import loop_time


@attrs.define(eq=False)
class QueueInformers:
    """Their informers. Nothing is known of the queues before `run`."""

    cluster_queues: Informer
    local_queues: Informer
    cohorts: Informer | None = None
    """Followed with the figures, once a ClusterQueue names one. Nothing waits for them: a cluster may not serve or not
    give them."""
    flavors: FlavorList | None = None
    """Listed with the figures. Nothing waits for them for long, likewise."""
    _cohort_named: anyio.Event = attrs.field(factory=anyio.Event, init=False)

    def __attrs_post_init__(self) -> None:
        if self.cohorts is not None:
            self.cluster_queues.subscribe(lambda _key, _old, new: self._note_cohort(new))

    @classmethod
    def build(
        cls,
        client: ApiClient,
        on_queue: Callable[[ObjectKey], object],
        *,
        on_status: Callable[[InformerStatus], None] = lambda _: None,
        fraction: Callable[[], float] = lambda: 0.0,
        slim: bool = True,
        on_figures: Callable[[], None] | None = None,
        limits: AnswerLimits = LISTS_UNLIMITED,
    ) -> QueueInformers:
        """Build the informers; `run` fills them.

        Args:
            client: the cluster's API server.
            on_queue: called with each ClusterQueue whose sum may change: it or one of its LocalQueues comes or goes, or
                has another spec.
            on_status: called when the status of an informer changes.
            fraction: the source of jitter.
            slim: keep only what sums need. Statuses change with every admission, so this saves most of the work.
            on_figures: called with each change of a queue or a cohort, their statuses included; None: nobody looks at
                those.
            limits: how much of either is kept.
        """

        def changed(key: ObjectKey, old: Json | None, new: Json | None) -> None:
            if old is None or new is None or dig(old, "spec") != dig(new, "spec"):
                names = {dig(queue, "spec", "clusterQueue") or key.name for queue in (old, new) if queue is not None}
                for name in sorted(names):
                    on_queue(ObjectKey("", name))

        def reported(status: InformerStatus) -> None:
            on_status(status)
            if on_figures is not None:
                on_figures()

        informer = partial(Informer, client, on_change=changed, on_status=reported, fraction=fraction, limits=limits)
        informer = partial(informer, flaw=queue_flaw)
        kept = only_spec("resourceGroups") if slim and on_figures is None else drop_managed_fields
        queues = cls(informer(CLUSTER_QUEUE, transform=kept), informer(LOCAL_QUEUE, transform=_OF_LOCAL))
        if on_figures is None:
            return queues
        cohorts = Informer(
            client, COHORT, on_status=lambda _: on_figures(), fraction=fraction, limits=limits, flaw=queue_flaw
        )
        for each in (*queues.both, cohorts):
            each.subscribe(lambda _key, _old, _new: on_figures())
        return attrs.evolve(queues, cohorts=cohorts, flavors=FlavorList(client, queues.cluster_queues, on_figures))

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Follow the queues until cancelled; ready once all are known."""
        async with anyio.create_task_group() as tasks:
            if self.cohorts is not None:
                tasks.start_soon(self._follow_cohorts, self.cohorts)
            if self.flavors is not None:
                tasks.start_soon(self.flavors.run)
            await start_informers(self.both, tasks)
            task_status.started()

    async def _follow_cohorts(self, cohorts: Informer) -> None:
        await self._cohort_named.wait()
        await cohorts.run()

    def _note_cohort(self, queue: Json | None) -> None:
        if queue is not None and cohort_of(queue):
            self._cohort_named.set()

    @property
    def both(self) -> tuple[Informer, Informer]:
        """Of ClusterQueues and of LocalQueues."""
        return self.cluster_queues, self.local_queues

    @property
    def known(self) -> bool:
        """Whether both have synced."""
        return all(informer.status.synced for informer in self.both)

    @property
    def figures_known(self) -> Known:
        """Whether the figures that are there can be used."""
        for informer in self.both:
            status = informer.status
            if status.refused:
                return Known.FORBIDDEN
            if status.unreadable:
                return Known.ODD
            if status.failing_since is not None and loop_time() - status.failing_since > SILENT_AFTER.total_seconds():
                return Known.SILENT
        return Known.YES if self.known and (self.flavors is None or self.flavors.settled) else Known.AWAITED

    @property
    def readable_cohorts(self) -> list[Json] | None:
        """The cohorts; None if they cannot be read. A cluster whose Kueue serves none answers so, too."""
        if self.cohorts is None or not self.cohorts.status.synced or self.cohorts.status.refused:
            return None
        return list(self.cohorts.values())

    def targets(self) -> Iterator[tuple[ObjectKey, str]]:
        """The LocalQueues, each with the name of its ClusterQueue."""
        for queue in self.local_queues.values():
            yield ObjectKey.of(queue), dig(queue, "spec", "clusterQueue") or ""


def only_spec(*fields: str) -> Callable[[Json], Json]:
    """A transform that keeps some fields of the spec: the status of a queue changes with each job."""
    return lambda obj: {**identity(obj), "spec": {field: dig(obj, "spec", field) for field in fields}}


_OF_LOCAL: Final = only_spec("clusterQueue", "stopPolicy")
"""What is kept of LocalQueues."""
