"""The API types MultiKueue itself reads and writes; job kinds are rows in `multikueue.adapters`."""

from __future__ import annotations

from typing import Final

from multikueue.core.model.names import GVK, Json, Resource

KUEUE_GROUP = "kueue.x-k8s.io"
KUEUE_VERSION = "v1beta2"


def _kueue(kind: str, plural: str, *, namespaced: bool) -> Resource:
    return Resource(GVK(KUEUE_GROUP, KUEUE_VERSION, kind), plural, namespaced)


WORKLOAD = _kueue("Workload", "workloads", namespaced=True)
LOCAL_QUEUE = _kueue("LocalQueue", "localqueues", namespaced=True)
CLUSTER_QUEUE = _kueue("ClusterQueue", "clusterqueues", namespaced=False)
COHORT = _kueue("Cohort", "cohorts", namespaced=False)
RESOURCE_FLAVOR = _kueue("ResourceFlavor", "resourceflavors", namespaced=False)
WORKLOAD_PRIORITY_CLASS = _kueue("WorkloadPriorityClass", "workloadpriorityclasses", namespaced=False)
ADMISSION_CHECK = _kueue("AdmissionCheck", "admissionchecks", namespaced=False)
MULTIKUEUE_CONFIG = _kueue("MultiKueueConfig", "multikueueconfigs", namespaced=False)
MULTIKUEUE_CLUSTER = _kueue("MultiKueueCluster", "multikueueclusters", namespaced=False)

DEPLOYMENT = Resource(GVK("apps", "v1", "Deployment"), "deployments")
POD = Resource(GVK("", "v1", "Pod"), "pods")
NAMESPACE = Resource(GVK("", "v1", "Namespace"), "namespaces", namespaced=False)
CONFIG_MAP = Resource(GVK("", "v1", "ConfigMap"), "configmaps")
SECRET = Resource(GVK("", "v1", "Secret"), "secrets")
EVENT = Resource(GVK("events.k8s.io", "v1", "Event"), "events")
CORE_EVENT = Resource(GVK("", "v1", "Event"), "events")
"""The same events under their former group."""
LEASE = Resource(GVK("coordination.k8s.io", "v1", "Lease"), "leases")
CUSTOM_RESOURCE_DEFINITION = Resource(
    GVK("apiextensions.k8s.io", "v1", "CustomResourceDefinition"), "customresourcedefinitions", namespaced=False
)
JOB = Resource(GVK("batch", "v1", "Job"), "jobs")
MUTATING_WEBHOOKS = Resource(
    GVK("admissionregistration.k8s.io", "v1", "MutatingWebhookConfiguration"),
    "mutatingwebhookconfigurations",
    namespaced=False,
)
CLUSTER_PROFILE = Resource(GVK("multicluster.x-k8s.io", "v1alpha1", "ClusterProfile"), "clusterprofiles")
"""An entry of a cluster inventory: https://github.com/kubernetes-sigs/cluster-inventory-api."""

OCM_GROUP = "cluster.open-cluster-management.io"
PLACEMENT = Resource(GVK(OCM_GROUP, "v1beta1", "Placement"), "placements")
PLACEMENT_DECISION = Resource(GVK(OCM_GROUP, "v1beta1", "PlacementDecision"), "placementdecisions")
ADDON_PLACEMENT_SCORE = Resource(GVK(OCM_GROUP, "v1alpha1", "AddOnPlacementScore"), "addonplacementscores")

_OWN_GROUPS: Final = frozenset(
    (
        *("", KUEUE_GROUP, "visibility.kueue.x-k8s.io", "multicluster.x-k8s.io", OCM_GROUP),
        *("admissionregistration.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "certificates.k8s.io"),
        *("authentication.k8s.io", "authorization.k8s.io", "rbac.authorization.k8s.io"),
        *("coordination.k8s.io", "events.k8s.io", "resource.k8s.io"),
        *("authentication.open-cluster-management.io", "rbac.open-cluster-management.io"),
    )
)


def is_own(gvk: GVK) -> bool:
    """Whether we, or Kueue, or the API server, keep something in objects of this kind, so that they cannot be jobs."""
    return gvk.group in _OWN_GROUPS and gvk.group_kind != POD.gvk.group_kind


REFUSED: Final = "Refused"
"""The action of an event about an object that a worker refuses; `related` is the worker. Of a placement that is over:
why it ended."""


def worker_reference(name: str) -> Json:
    """What names a worker, as events do."""
    gvk = MULTIKUEUE_CLUSTER.gvk
    return {"apiVersion": gvk.api_version, "kind": gvk.kind, "name": name}
