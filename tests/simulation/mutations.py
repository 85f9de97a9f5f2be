"""Known defects of Kueue's built-in controller, put back into ours: each must be caught, or the net has a hole.

The numbers are those of the list of weaknesses (`spec/core.md` §12). A mutation swaps one row of the plan's table or
one function, for as long as its context lasts.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from types import MappingProxyType
from typing import Any, Final
from unittest import mock

import attrs

from multikueue.core.dispatchers.guarded import Guarded
from multikueue.core.model.kinds import WORKLOAD
from multikueue.core.model.names import ClusterName, Json, ObjectKey, Resource
from multikueue.core.model.worker_names import WorkerNames
from multikueue.errors import KubeconfigError
from multikueue.kube import parse_worker_kubeconfig
from multikueue.kube.informers.informer import Informer
from multikueue.runtime import effect_executor as performing
from multikueue.runtime.caches.workload_memory import WorkloadMemory
from multikueue.runtime.event_handlers import WorkerHandlers
from multikueue.runtime.reconcilers import configuration
from multikueue.runtime.reconcilers.snapshot_reader import SnapshotReader
from multikueue.runtime.target import Target
from multikueue.runtime.workers import informers as worker_informers
from multikueue.runtime.workers.pool import WorkerCluster
from tests.core.door import Worker
from tests.simulation.choosing_mutations import RULES
from tests.simulation.decision_mutations import DECISIONS
from tests.simulation.guard_mutations import GUARDS
from tests.simulation.kind_mutations import KIND_MUTATIONS
from tests.simulation.leaving_mutations import LEAVING_MUTATIONS
from tests.simulation.mapping_mutations import MAPPING_MUTATIONS
from tests.simulation.need_mutations import NEED_MUTATIONS
from tests.simulation.nominating import OneByOne
from tests.simulation.placement_mutations import PLACEMENT_MUTATIONS
from tests.simulation.planted import PLANTED
from tests.simulation.simulating import Run, simulate
from tests.simulation.watch_mutations import WATCH_MUTATIONS

Mutation = Callable[[], AbstractContextManager[Any]]


def removed_clusters_are_forgotten() -> AbstractContextManager[Any]:
    """28: what lies on a cluster that the config lists no more is not looked at: it counts as gone."""
    original = SnapshotReader._workers

    def workers(self: SnapshotReader, here: Any, config: Json | None) -> Iterator[Worker]:
        for worker in original(self, here, config):
            yield worker if worker.configured or config is None else attrs.evolve(worker, copy=None, jobs=())

    return mock.patch.object(SnapshotReader, "_workers", workers)


@contextmanager
def origins_are_not_checked() -> Iterator[None]:
    """26: whatever has the right name or says that it belongs to a Workload is taken for a copy of ours."""

    def unselected(*args: Any, **options: Any) -> Informer:
        return Informer(*args, **{**options, "label_selector": "", "belongs": lambda _: True})

    with mock.patch.object(worker_informers, "Informer", unselected):
        yield


def connecting_wakes_nobody() -> AbstractContextManager[Any]:
    """38: what waits for a worker is not looked at when one comes back."""

    def changed(self: WorkerHandlers, worker: WorkerCluster, known: bool) -> None:
        del known
        self._note_connection(worker)
        self.status_changed(worker)

    return mock.patch.object(WorkerHandlers, "cluster_changed", changed)


def failed_deletions_are_forgotten() -> AbstractContextManager[Any]:
    """Cleanup that a worker did not answer is not tried again."""

    async def delete(
        target: Target, resource: Resource, key: ObjectKey, uid: str, propagation: Any = "Background", **_: Any
    ) -> None:
        if (cache := target.workloads if resource == WORKLOAD else target.cache_of(resource.gvk)) is not None:
            cache.removed(key, uid)
            cache._deleted[key] = attrs.evolve(cache._deleted[key], until=float("inf"))
        with contextlib.suppress(Exception):
            await target.client.delete(resource, key, uid=uid, propagation=propagation)

    return mock.patch.object(performing, "_delete", delete)


def errors_quote_kubeconfigs() -> AbstractContextManager[Any]:
    """What is wrong with a kubeconfig is told by showing it: in a status that every user can read."""
    original = parse_worker_kubeconfig

    def parse(raw: bytes) -> Any:
        try:
            return original(raw)
        except KubeconfigError as error:
            raise KubeconfigError(error.reason, f"{error}: {raw.decode()}") from error

    return mock.patch.object(configuration, "parse_worker_kubeconfig", parse)


def lost_answers_count_as_not_sent() -> AbstractContextManager[Any]:
    """A creation without an answer is taken for one that has not left: nobody waits for the worker."""

    def unanswered(memory: WorkloadMemory, cluster: ClusterName, key: ObjectKey, job: ObjectKey) -> None:
        memory.not_created(cluster, key, job, still_unanswered=False)

    return mock.patch.object(WorkloadMemory, "unanswered", unanswered)


@contextmanager
def messages_of_nobody_are_written() -> Iterator[None]:
    """A dispatcher that does not know its own message again writes it with each look, for ever."""
    with (
        mock.patch.object(Guarded, "_lasting", lambda guarded, answer, said: answer),
        mock.patch.object(OneByOne, "remembers", return_value=False),
    ):
        yield


def names_are_not_kept_apart() -> AbstractContextManager[Any]:
    """The manager as a worker is taken like any other, though copies have the names of what they are made of."""
    original = WorkerNames.of

    def of(annotations: Mapping[str, str], *, of_manager: bool = False) -> WorkerNames:
        del of_manager
        return original(annotations)

    return mock.patch.object(WorkerNames, "of", of)


MUTATIONS: Final[Mapping[str, Mutation]] = MappingProxyType(
    {
        **DECISIONS,
        **KIND_MUTATIONS,
        **NEED_MUTATIONS,
        **WATCH_MUTATIONS,
        **PLACEMENT_MUTATIONS,
        **PLANTED,
        **GUARDS,
        **RULES,
        **MAPPING_MUTATIONS,
        **LEAVING_MUTATIONS,
        **{
            mutation.__name__: mutation
            for mutation in (
                removed_clusters_are_forgotten,
                origins_are_not_checked,
                connecting_wakes_nobody,
                failed_deletions_are_forgotten,
                errors_quote_kubeconfigs,
                lost_answers_count_as_not_sent,
                names_are_not_kept_apart,
                messages_of_nobody_are_written,
            )
        },
    }
)


def simulate_mutated(name: str, seed: int, extra: tuple[str, ...] = ()) -> Run:
    """Run one seed with a defect put back."""
    with MUTATIONS[name]():
        return simulate(seed, extra=extra)


def runner(name: str | None, extra: tuple[str, ...] = ()) -> Callable[[int], Run]:
    """What runs a seed: with a defect, or as it is; and with rows of `adversity.ROWS`."""
    return partial(simulate, extra=extra) if name is None else partial(simulate_mutated, name, extra=extra)
