"""Defects in what workers call namespaces; see `mutations`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from types import MappingProxyType
from typing import Any, Final
from unittest import mock

import attrs

from multikueue.core.model import worker_names
from multikueue.core.model.marks import Marks
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import annotations_of
from multikueue.core.model.worker_names import WorkerNames, namespace_on
from multikueue.runtime.reconcilers.snapshot_reader import SnapshotReader
from multikueue.runtime.workers.pool import WorkerCluster

Mutation = Callable[[], AbstractContextManager[Any]]


def the_way_back_is_the_mapping() -> AbstractContextManager[Any]:
    """Copies are looked for where the mapping leads now, not where they were made."""

    def looked_for(
        self: SnapshotReader, here: Any, workload: Json, cluster: WorkerCluster, _proven: Sequence[str]
    ) -> str:
        said = self.manager.clusters.get(ObjectKey("", cluster.name)) or {}
        mapped = WorkerNames.of(annotations_of(said)).namespace(here.key.namespace)
        return mapped or namespace_on(workload, cluster.name, here.siblings)

    return mock.patch.object(SnapshotReader, "_namespace_on", looked_for)


def marks_lead_nowhere() -> AbstractContextManager[Any]:
    """A copy is looked for where its Workload says only: somebody may have removed that."""

    def looked_for(
        self: SnapshotReader, here: Any, workload: Json, cluster: WorkerCluster, _proven: Sequence[str]
    ) -> str:
        del self
        return namespace_on(workload, cluster.name, here.siblings)

    return mock.patch.object(SnapshotReader, "_namespace_on", looked_for)


def what_a_former_workload_left_is_unknown() -> AbstractContextManager[Any]:
    """Copies are known neither by the job nor by the Workload's name: Kueue has made that again, and nothing leads to
    their namespace."""
    return mock.patch.multiple(Marks, made_copy=mock.Mock(return_value=False), made_under=mock.Mock(return_value=False))


def an_unreadable_mapping_is_none() -> AbstractContextManager[Any]:
    """A worker whose mapping cannot be read gets copies under the manager's names."""
    read = worker_names._read

    def lenient(*said: Any) -> WorkerNames:
        return attrs.evolve(read(*said), flaw="")

    return mock.patch.object(worker_names, "_read", lenient)


MAPPING_MUTATIONS: Final[Mapping[str, Mutation]] = MappingProxyType(
    {
        mutation.__name__: mutation
        for mutation in (
            the_way_back_is_the_mapping,
            marks_lead_nowhere,
            an_unreadable_mapping_is_none,
            what_a_former_workload_left_is_unknown,
        )
    }
)
