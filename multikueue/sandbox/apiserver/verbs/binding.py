"""What creating a Binding does: the pod of its name gets a node. Nothing is stored of the Binding itself."""

from __future__ import annotations

from typing import Any

from multikueue.core.model.conditions import new_condition, updated
from multikueue.core.model.names import Json
from multikueue.core.model.objects import dig
from multikueue.sandbox.apiserver.encoding import clone
from multikueue.sandbox.apiserver.kinds.resources import ResourceType
from multikueue.sandbox.apiserver.status_errors import StatusError, conflict
from multikueue.sandbox.apiserver.storage.cluster import Cluster, WriteOptions
from multikueue.sandbox.apiserver.validation.every_kind import check_identity

_DONE: Json = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


def bind(cluster: Cluster, row: ResourceType, namespace: str | None, body: Any, options: WriteOptions) -> Json:
    """Give a pod the node that a Binding names, once.

    Raises:
        StatusError: 400, it is no Binding; 500, it names no node; 404, there is no such pod; 409, that is being
            deleted, or has a node or a scheduling gate.
    """
    binding = check_identity(row, namespace, None, body)
    node, metadata = dig(binding, "target", "name"), binding["metadata"]
    if not node:
        raise StatusError(500, "", "target.name: Required value")
    pods = cluster.type_of("", "v1", "pods")
    pod = cluster.entry(pods, namespace, metadata.get("name") or "").obj
    if why := _refusal(pod):
        raise conflict(pods, pod["metadata"]["name"], why)
    bound = clone(pod)
    bound["spec"]["nodeName"] = node
    scheduled = new_condition("PodScheduled", True, "", "", now=cluster.moment())
    condition = {name: value for name, value in scheduled.items() if value != ""}
    status = bound.get("status") or {}
    bound["status"] = {**status, "conditions": updated(status.get("conditions") or [], condition)}
    if not options.dry_run:
        cluster.put(pods, (namespace or "", pod["metadata"]["name"]), bound, pod)
    return dict(_DONE)


def _refusal(pod: Json) -> str:
    metadata, spec = pod["metadata"], pod["spec"]
    if metadata.get("deletionTimestamp"):
        return f"pod {metadata['name']} is being deleted, cannot be assigned to a host"
    if spec.get("nodeName"):
        return f'pod {metadata["name"]} is already assigned to node "{spec["nodeName"]}"'
    if spec.get("schedulingGates"):
        return f"pod {metadata['name']} has non-empty .spec.schedulingGates"
    return ""
