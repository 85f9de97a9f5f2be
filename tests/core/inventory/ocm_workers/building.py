"""Objects of a spoke, in the shape OCM gives them."""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from multikueue.core.inventory.names import CLUSTER_PERMISSION, MANAGED_CLUSTER, MANAGED_SERVICE_ACCOUNT
from multikueue.core.model.conditions import new_condition, timestamp
from multikueue.core.model.kinds import CLUSTER_PROFILE, MULTIKUEUE_CLUSTER, SECRET
from multikueue.core.model.names import Json, Resource
from multikueue.core.model.objects import clone

NOW: Final = datetime(2026, 1, 1, tzinfo=UTC)
NAMESPACE: Final = "kueue-system"
RULES: Final = ({"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["create", "get"]},)


def made(resource: Resource, name: str, namespace: str = "", **fields: Any) -> Json:
    """An object with a UID of its own."""
    metadata = {"name": name, "uid": f"{resource.gvk.kind}-{name}", "resourceVersion": "1"}
    labels = fields.pop("labels", {})
    where = {"namespace": namespace} if namespace else {}
    extra = {"labels": labels} if labels else {}
    api = {"apiVersion": resource.gvk.api_version, "kind": resource.gvk.kind}
    return {**api, "metadata": {**metadata, **where, **extra}, **fields}


def managed(name: str = "c1", **fields: Any) -> Json:
    """A ManagedCluster with an address."""
    configs = [{"url": f"https://{name}.example.com:6443", "caBundle": "Q0E="}]
    spec = {"hubAcceptsClient": True, "managedClusterClientConfigs": configs, **fields.pop("spec", {})}
    return made(MANAGED_CLUSTER, name, spec=spec, **fields)


def token_status(end: datetime | None = NOW + timedelta(days=5)) -> Json:
    """The status of a ManagedServiceAccount that has a token until then."""
    reference = {"name": "multikueue", "lastRefreshTimestamp": timestamp(NOW)}
    return {"tokenSecretRef": reference, **({"expirationTimestamp": timestamp(end)} if end else {})}


def applied(status: bool = True, kind: str = "AppliedRBACManifestWork", message: str = "Apply complete") -> Json:
    """The status of a ClusterPermission."""
    return {"conditions": [new_condition(kind, status, "AppliedManifestComplete", message, now=NOW)]}


def token(name: str = "c1", value: str = "t0ken", **data: str) -> Json:
    """The Secret with the token of a spoke, as the agent writes it."""
    texts = {"token": value, "ca.crt": "SPOKE", **data}
    return made(
        SECRET,
        "multikueue",
        name,
        labels={"authentication.open-cluster-management.io/is-managed-serviceaccount": "true"},
        data={key: base64.b64encode(text.encode()).decode() for key, text in texts.items()},
    )


def profile(name: str = "c1", providers: tuple[str, ...] = ("open-cluster-management",)) -> Json:
    """A ClusterProfile of OCM."""
    named = {"x-k8s.io/cluster-manager": "open-cluster-management", "open-cluster-management.io/cluster-name": name}
    status = {"accessProviders": [{"name": provider, "cluster": {"server": "https://proxy"}} for provider in providers]}
    return made(CLUSTER_PROFILE, name, NAMESPACE, labels=named, status=status)


def worker(name: str = "c1", source: Json | None = None, **fields: Any) -> Json:
    """A MultiKueueCluster that somebody has made."""
    return made(MULTIKUEUE_CLUSTER, name, spec={"clusterSource": source or kubeconfig_source("somewhere")}, **fields)


def kubeconfig_source(location: str) -> Json:
    """Where a kubeconfig is."""
    return {"kubeConfig": {"location": location, "locationType": "Secret"}}


def account(name: str = "c1", **fields: Any) -> Json:
    """A ManagedServiceAccount that somebody has made."""
    spec = {"rotation": {"enabled": True, "validity": "8640h0m0s"}}
    return made(MANAGED_SERVICE_ACCOUNT, "multikueue", name, **{"spec": spec, **fields})


def permission(name: str = "c1", **fields: Any) -> Json:
    """A ClusterPermission of the addon."""
    subject = {"kind": "ServiceAccount", "name": "multikueue", "namespace": "open-cluster-management-agent-addon"}
    spec = {"clusterRole": {"rules": [{"verbs": ["*"]}]}, "clusterRoleBinding": {"subject": subject}}
    return made(CLUSTER_PERMISSION, "multikueue", name, **{"spec": spec, **fields})


def stored(obj: Json, **fields: Any) -> Json:
    """What a server keeps of an object that is created."""
    metadata = {"uid": f"{obj['kind']}-{obj['metadata']['name']}", "resourceVersion": "1", **obj["metadata"]}
    return {**clone(obj), **fields, "metadata": clone(metadata)}
