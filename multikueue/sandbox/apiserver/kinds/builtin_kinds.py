"""The builtin kinds the server knows, one row each. Kinds that are not here can be added with a CRD."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from multikueue.sandbox.apiserver.kinds.resources import ResourceType, Twin

_POD_FIELDS = (
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.schedulerName",
    "spec.serviceAccountName",
    "spec.hostNetwork",
    "status.phase",
    "status.podIP",
    "status.nominatedNodeName",
)
_EVENT_FIELDS = (
    "involvedObject.kind",
    "involvedObject.namespace",
    "involvedObject.name",
    "involvedObject.uid",
    "involvedObject.apiVersion",
    "involvedObject.resourceVersion",
    "involvedObject.fieldPath",
    "reason",
    "reportingComponent",
    "source",
    "type",
)
_REGARDING = tuple(
    f"regarding.{field}" for field in ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
)
_NEW_EVENTS = Twin(
    "events.k8s.io",
    {
        "involvedObject": "regarding",
        "message": "note",
        "reportingComponent": "reportingController",
        "source": "deprecatedSource",
        "firstTimestamp": "deprecatedFirstTimestamp",
        "lastTimestamp": "deprecatedLastTimestamp",
        "count": "deprecatedCount",
    },
)
"""An event is one object in both groups: controllers report in the new one, `kubectl describe` reads the old."""


def builtin_types() -> Iterator[ResourceType]:
    """Fresh rows, for one server."""
    yield from _core()
    yield from _core_infrastructure()
    yield from _workloads()
    yield from _policies()


def _core() -> Iterator[ResourceType]:
    row = ResourceType
    yield row(
        plural="namespaces",
        kind="Namespace",
        namespaced=False,
        short_names=("ns",),
        subresources=("status", "finalize"),
        selectable=("status.phase",),
        returns_object=True,
    )
    yield row(
        plural="pods",
        kind="Pod",
        short_names=("po",),
        categories=("all",),
        subresources=("status", "log"),
        selectable=_POD_FIELDS,
        generation=True,
        returns_object=True,
    )
    yield row(plural="configmaps", kind="ConfigMap", short_names=("cm",))
    yield row(plural="secrets", kind="Secret", selectable=("type",))
    yield row(
        plural="serviceaccounts",
        kind="ServiceAccount",
        short_names=("sa",),
        subresources=("token",),
        returns_object=True,
    )


def _core_infrastructure() -> Iterator[ResourceType]:
    row, status = ResourceType, ("status",)
    yield row(
        plural="services",
        kind="Service",
        short_names=("svc",),
        categories=("all",),
        subresources=status,
        returns_object=True,
    )
    yield row(
        plural="nodes",
        kind="Node",
        namespaced=False,
        short_names=("no",),
        subresources=status,
        selectable=("spec.unschedulable",),
    )
    yield row(plural="limitranges", kind="LimitRange", short_names=("limits",))
    yield row(plural="resourcequotas", kind="ResourceQuota", short_names=("quota",), subresources=status)
    yield row(plural="podtemplates", kind="PodTemplate")
    yield row(plural="persistentvolumeclaims", kind="PersistentVolumeClaim", short_names=("pvc",), subresources=status)
    yield row(plural="events", kind="Event", short_names=("ev",), selectable=_EVENT_FIELDS, twin=_NEW_EVENTS)


def _workloads() -> Iterator[ResourceType]:
    batch = partial(ResourceType, group="batch", categories=("all",), subresources=("status",), generation=True)
    yield batch(plural="jobs", kind="Job", selectable=("status.successful",), orphans=True)
    yield batch(plural="cronjobs", kind="CronJob", short_names=("cj",))
    apps = partial(ResourceType, group="apps", categories=("all",), subresources=("status", "scale"), generation=True)
    yield apps(plural="deployments", kind="Deployment", short_names=("deploy",))
    yield apps(plural="statefulsets", kind="StatefulSet", short_names=("sts",))
    yield apps(plural="replicasets", kind="ReplicaSet", short_names=("rs",))


def _policies() -> Iterator[ResourceType]:
    yield ResourceType(
        group="events.k8s.io",
        plural="events",
        kind="Event",
        short_names=("ev",),
        selectable=("reason", "type", "reportingController", *_REGARDING),
    )
    yield ResourceType(group="coordination.k8s.io", plural="leases", kind="Lease", unconditional=False)
    yield ResourceType(
        group="scheduling.k8s.io",
        plural="priorityclasses",
        kind="PriorityClass",
        namespaced=False,
        short_names=("pc",),
    )
    yield ResourceType(group="resource.k8s.io", plural="resourceclaimtemplates", kind="ResourceClaimTemplate")
    rbac = partial(ResourceType, group="rbac.authorization.k8s.io")
    yield rbac(plural="roles", kind="Role")
    yield rbac(plural="rolebindings", kind="RoleBinding")
    yield rbac(plural="clusterroles", kind="ClusterRole", namespaced=False)
    yield rbac(plural="clusterrolebindings", kind="ClusterRoleBinding", namespaced=False)
    yield ResourceType(
        group="apiextensions.k8s.io",
        plural="customresourcedefinitions",
        kind="CustomResourceDefinition",
        namespaced=False,
        short_names=("crd", "crds"),
        categories=("api-extensions",),
        subresources=("status",),
        generation=True,
    )
