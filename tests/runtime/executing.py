"""A manager and two workers in memory, on which effects are executed."""

from __future__ import annotations

from datetime import UTC, datetime

import attrs

from multikueue.core.model.kinds import JOB, WORKLOAD
from multikueue.core.model.names import ClusterName, Json, ObjectKey
from multikueue.core.model.worker_kueue import Version
from multikueue.kube import Informer
from multikueue.runtime.caches.mutation_cache import MutationCache
from multikueue.runtime.caches.workload_memory import WorkloadMemory
from multikueue.runtime.effect_executor import EffectExecutor
from multikueue.runtime.events import EventRecorder
from multikueue.runtime.target import Target
from multikueue.sandbox.apiserver import DirectClient, Registry
from multikueue.sandbox.crds import load_crds
from tests.core.door import MANAGER
from tests.kueue_versions import definitions_of

KEY = ObjectKey("default", "wl")
W1, W2 = ClusterName("w1"), ClusterName("w2")


def a_workload(**metadata: object) -> Json:
    """A Workload as small as its schema lets it be."""
    template = {"spec": {"containers": [{"name": "c", "image": "x"}], "restartPolicy": "Never"}}
    return {
        "apiVersion": WORKLOAD.gvk.api_version,
        "kind": "Workload",
        "metadata": {"name": "wl", "namespace": "default", **metadata},
        "spec": {"queueName": "q", "podSets": [{"name": "main", "count": 1, "template": template}]},
    }


def a_job() -> Json:
    """A Job."""
    template = {"spec": {"containers": [{"name": "c", "image": "x"}], "restartPolicy": "Never"}}
    metadata = {"name": "job", "namespace": "default"}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"template": template}}


@attrs.define(eq=False)
class FakeTarget(Target):
    """A cluster in memory."""

    client: DirectClient

    @classmethod
    def build(cls, name: str, version: Version = (0, 19)) -> FakeTarget:
        registry = Registry(name)
        for definition in definitions_of(version, load_crds()):
            registry.create_object(definition)
        client = DirectClient(registry)
        jobs = {JOB.gvk: MutationCache(Informer(client, JOB))}
        return cls(client=client, workloads=MutationCache(Informer(client, WORKLOAD)), jobs=jobs)


@attrs.define(eq=False)
class Fleet:
    """The manager and two workers, and what was told and counted."""

    clusters: dict[str, FakeTarget] = attrs.field(
        factory=lambda: {name: FakeTarget.build(name or "manager") for name in (MANAGER, W1, W2)}
    )
    dispatched_to: list[str] = attrs.field(factory=list)
    admitted_on: list[str] = attrs.field(factory=list)
    refusals: list[tuple[str, str]] = attrs.field(factory=list)
    gone: set[str] = attrs.field(factory=set)
    memory: WorkloadMemory = attrs.field(factory=WorkloadMemory)
    executor: EffectExecutor = attrs.field(init=False)
    events: EventRecorder = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        client = self.clusters[MANAGER].client
        self.events = EventRecorder(client, "test", "test", lambda: datetime(2026, 1, 1, tzinfo=UTC))
        self.executor = EffectExecutor(self.target, self.events, self.memory, self)

    def target(self, cluster: ClusterName) -> Target | None:
        return None if cluster in self.gone else self.clusters[cluster]

    def dispatched(self, cluster_queue: str, cluster: ClusterName) -> None:
        self.dispatched_to.append(cluster)

    def admitted(self, cluster_queue: str, cluster: ClusterName) -> None:
        self.admitted_on.append(cluster)

    def rejected(self, cluster: ClusterName, reason: str) -> None:
        self.refusals.append((cluster, reason))

    def round_begun(self, cluster_queue: str) -> None:
        raise AssertionError("executing chooses no workers")

    def placed(self, cluster: ClusterName, seconds: float) -> None:
        raise AssertionError("it is told when the record shows")

    def status_synced(self, cluster: ClusterName, seconds: float) -> None:
        raise AssertionError("the reconciler tells it")

    def refused(self, cluster: ClusterName, reason: str) -> None:
        self.refusals.append((cluster, reason))

    def cluster_connected(self, cluster: ClusterName, connected: bool) -> None:
        raise AssertionError("executing does not connect")

    def cluster_removed(self, cluster: ClusterName) -> None:
        raise AssertionError("executing removes no cluster")
