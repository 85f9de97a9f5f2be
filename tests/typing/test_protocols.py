"""Assignments that mypy checks: what implements which seam. Running it proves nothing more."""

from __future__ import annotations

import attrs

from multikueue import (
    Action,
    AllAtOnce,
    ApiClient,
    Caches,
    Candidate,
    ClusterConfig,
    ClusterName,
    ClusterPool,
    Connect,
    Controller,
    ControllerHook,
    Dispatcher,
    External,
    Incremental,
    KubeClient,
    ManagerHook,
    ObjectKey,
    Reader,
    Reconciler,
    RequestHook,
    ReviewHook,
    Watcher,
    Writer,
)
from multikueue.adapters import SafeAdapter
from multikueue.core.model.adapter import JobAdapter
from multikueue.kube.credentials.credential import CredentialSource
from multikueue.kube.credentials.sources import PluginCredential, StaticToken, TokenFile
from multikueue.kube.informers.reflector import ListerWatcher
from multikueue.runtime.caches.discovery import Discoverer
from multikueue.runtime.caches.manager_cluster import ManagerCluster
from multikueue.runtime.election import LeaseClient
from multikueue.runtime.reconcilers.configuration import AdmissionCheckReconciler, ClusterReconciler
from multikueue.runtime.reconcilers.quota import QuotaReconciler
from multikueue.runtime.reconcilers.workload import WorkloadReconciler
from multikueue.runtime.target import Target
from multikueue.runtime.workers.informers import WorkerInformers
from multikueue.sandbox.apiserver import DirectClient, Registry
from multikueue.testing import InMemoryCluster
from multikueue.webhook.certificate_secret import CertificateSecret
from multikueue.webhook.registrar import Authorities
from multikueued.metrics.hooks import Metrics
from multikueued.serving.certificate_files import CertificateFolder


def clients(over_http: KubeClient, in_memory: DirectClient) -> tuple[ApiClient, ApiClient]:
    """Both clients can do everything a server can be asked."""
    return over_http, in_memory


def parts(client: ApiClient) -> tuple[Reader, Watcher, Writer, ListerWatcher, LeaseClient]:
    """A whole client serves whoever needs a part."""
    return client, client, client, client, client


def of_the_test_support(cluster: InMemoryCluster) -> ApiClient:
    """What is written for a client can be tested in memory."""
    return cluster.client()


def connections() -> Connect:
    """The client over HTTP is the context manager that a pool opens for each connection."""
    return lambda name, config: KubeClient(config, name=name)


def adapters(safe: SafeAdapter) -> JobAdapter:
    """What a registry gives out is what a decision asks."""
    return safe


def discoverers(client: KubeClient) -> Discoverer:
    """The manager's client tells how it has a kind."""
    return client


def credentials(
    fixed: StaticToken, file: TokenFile, plugin: PluginCredential
) -> tuple[CredentialSource, CredentialSource, CredentialSource]:
    """All of them are asked in the same way."""
    return fixed, file, plugin


def hooks(metrics: Metrics) -> tuple[RequestHook, ControllerHook, ManagerHook, ReviewHook]:
    """The daemon's metrics observe everything."""
    return metrics, metrics, metrics, metrics


def reconcilers(
    workloads: WorkloadReconciler,
    clusters: ClusterReconciler,
    checks: AdmissionCheckReconciler,
    quotas: QuotaReconciler,
) -> list[Reconciler[ObjectKey]]:
    """The library's own."""
    return [workloads, clusters, checks, quotas]


@attrs.frozen
class OfAnything:
    """A reconciler that takes more than it is given."""

    async def reconcile(self, key: object) -> Action:
        """Nothing is needed."""
        del key
        return Action.done()


def controllers(reconciler: OfAnything) -> Controller[str]:
    """A reconciler that takes any key serves a controller of names."""
    return Controller("names", reconciler)


def dispatchers() -> tuple[Dispatcher, Dispatcher, Dispatcher]:
    """The built-in ones."""
    return AllAtOnce(), External(), Incremental()


def caches(informers: WorkerInformers, pool: ClusterPool[WorkerInformers]) -> tuple[Caches, Caches | None]:
    """A pool keeps the informers of each connection, and gives them out as what they are."""
    return informers, pool.connected("worker1")


def names(pool: ClusterPool[WorkerInformers], config: ClusterConfig) -> tuple[Candidate, ClusterName]:
    """Callers name a cluster by a `str`; what they get is a `ClusterName`."""
    pool.assign("worker1", config)
    pool.refuse("worker2", "BadConfig", "it has no token")
    return (given := Candidate("worker1")), given.name


def targets(manager: ManagerCluster, worker: WorkerInformers) -> tuple[Target, Target]:
    """Effects are executed on the manager and on workers."""
    return manager, worker


def authorities(secret: CertificateSecret, files: CertificateFolder) -> tuple[Authorities, Authorities]:
    """Where the webhook's certificates are from."""
    return secret, files


def test_the_client_in_memory_stands_where_any_client_is_wanted() -> None:
    """The rest of this file is for the type checker, which reads it under `mypy --strict`."""
    client = DirectClient(Registry())
    assert parts(client) == (client,) * 5
