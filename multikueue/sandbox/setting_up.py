"""What Kueue's documentation has an administrator create for MultiKueue, as objects and as one call."""

from __future__ import annotations

import base64
import contextlib
from collections.abc import Iterable, Mapping

import orjson

from multikueue.core.inventory.names import MAX_CLUSTERS
from multikueue.core.model.kinds import (
    ADMISSION_CHECK,
    CLUSTER_QUEUE,
    LOCAL_QUEUE,
    MULTIKUEUE_CLUSTER,
    MULTIKUEUE_CONFIG,
    NAMESPACE,
    RESOURCE_FLAVOR,
    SECRET,
)
from multikueue.core.model.labels import CONTROLLER_NAME
from multikueue.core.model.names import Json, Resource
from multikueue.errors import AlreadyExists
from multikueue.protocols import Writer
from multikueue.sandbox.objects import built

FLAVOR = "default-flavor"
CLUSTER_QUEUE_NAME = "cluster-queue"
LOCAL_QUEUE_NAME = "user-queue"
CHECK = "multikueue"
KUEUE_NAMESPACE = "kueue-system"


def namespace(name: str) -> Json:
    """A namespace."""
    return built(NAMESPACE, name)


def resource_flavor() -> Json:
    """One flavor for all resources."""
    return built(RESOURCE_FLAVOR, FLAVOR, spec={})


def cluster_queue(quota: Mapping[str, str], checks: Iterable[str] = (), name: str = CLUSTER_QUEUE_NAME) -> Json:
    """A ClusterQueue with this much of each resource, guarded by these checks."""
    resources = [{"name": name, "nominalQuota": amount} for name, amount in quota.items()]
    group = {"coveredResources": list(quota), "flavors": [{"name": FLAVOR, "resources": resources}]}
    spec: Json = {"namespaceSelector": {}, "resourceGroups": [group]}
    named = [{"name": check} for check in checks]
    if named:
        spec["admissionChecksStrategy"] = {"admissionChecks": named}
    return built(CLUSTER_QUEUE, name, spec=spec)


def local_queue(in_namespace: str = "default", name: str = LOCAL_QUEUE_NAME, of: str = CLUSTER_QUEUE_NAME) -> Json:
    """The queue users name on their jobs."""
    return built(LOCAL_QUEUE, name, in_namespace, spec={"clusterQueue": of})


def admission_check(
    controller_name: str = CONTROLLER_NAME, name: str = CHECK, of: Resource = MULTIKUEUE_CONFIG, named: str = CHECK
) -> Json:
    """The check that stands for "runs on a worker cluster", or another one.

    Args:
        controller_name: of whoever answers it.
        name: its own.
        of: the kind of the object that its parameters name.
        named: that object.
    """
    parameters = {"apiGroup": of.gvk.group, "kind": of.gvk.kind, "name": named}
    return built(ADMISSION_CHECK, name, spec={"controllerName": controller_name, "parameters": parameters})


def config(clusters: Iterable[str]) -> Json:
    """The list of worker clusters."""
    return built(MULTIKUEUE_CONFIG, CHECK, spec={"clusters": list(clusters)})


def cluster(name: str) -> Json:
    """A worker cluster whose kubeconfig is in the Secret `<name>-secret`."""
    reference = {"location": f"{name}-secret", "locationType": "Secret"}
    return built(MULTIKUEUE_CLUSTER, name, spec={"clusterSource": {"kubeConfig": reference}})


def kubeconfig_secret(name: str, kubeconfig: Json) -> Json:
    """The Secret with a worker's kubeconfig. (JSON is YAML.)"""
    encoded = base64.b64encode(orjson.dumps(kubeconfig)).decode()
    return built(SECRET, f"{name}-secret", KUEUE_NAMESPACE, data={"kubeconfig": encoded})


async def set_up_queues(
    client: Writer,
    quota: Mapping[str, str],
    checks: Iterable[str] = (),
    in_namespace: str = "default",
    name: str = LOCAL_QUEUE_NAME,
) -> None:
    """Create namespace, flavor, ClusterQueue and LocalQueue: the same on the manager and on every worker by default."""
    for resource, obj in (
        (NAMESPACE, namespace(in_namespace)),
        (RESOURCE_FLAVOR, resource_flavor()),
        (CLUSTER_QUEUE, cluster_queue(quota, checks)),
        (LOCAL_QUEUE, local_queue(in_namespace, name)),
    ):
        await ensure(client, resource, obj)


async def connect_workers(client: Writer, kubeconfigs: Mapping[str, Json]) -> None:
    """Create, on the manager, the check, its config, and a MultiKueueCluster with a Secret for every worker.

    A config takes `MAX_CLUSTERS`; workers beyond that are in none.
    """
    await ensure(client, NAMESPACE, namespace(KUEUE_NAMESPACE))
    for name, kubeconfig in kubeconfigs.items():
        await ensure(client, SECRET, kubeconfig_secret(name, kubeconfig))
        await ensure(client, MULTIKUEUE_CLUSTER, cluster(name))
    await ensure(client, MULTIKUEUE_CONFIG, config([*kubeconfigs][:MAX_CLUSTERS]))
    await ensure(client, ADMISSION_CHECK, admission_check())


async def await_workers(client: Writer) -> None:
    """Create, on the manager, the check of workers that are yet to be added, and the namespace for their Secrets."""
    await ensure(client, NAMESPACE, namespace(KUEUE_NAMESPACE))
    await ensure(client, ADMISSION_CHECK, admission_check())


async def ensure(client: Writer, resource: Resource, obj: Json) -> None:
    """Create an object, unless it is there."""
    with contextlib.suppress(AlreadyExists):
        await client.create(resource, obj)
