"""Objects as the sandbox's controllers make them."""

from __future__ import annotations

from typing import Any

from multikueue.core.model.names import Json, Resource
from multikueue.core.model.objects import dig, uid


def built(resource: Resource, name: str, namespace: str = "", *, labels: Json | None = None, **fields: Any) -> Json:
    """An object of a kind.

    Args:
        resource: its kind.
        name: its name.
        namespace: empty for what is in none.
        labels: its labels.
        fields: what stands beside the metadata, such as `spec`.
    """
    metadata: Json = {"name": name}
    if namespace:
        metadata["namespace"] = namespace
    if labels:
        metadata["labels"] = labels
    return {"apiVersion": resource.gvk.api_version, "kind": resource.gvk.kind, "metadata": metadata, **fields}


def owned_by(resource: Resource, owner: Json, *, controller: bool = True) -> Json:
    """The reference to an owner of an object; with `controller` to the one that controls it."""
    gvk = resource.gvk
    reference = {"apiVersion": gvk.api_version, "kind": gvk.kind, "name": owner["metadata"]["name"], "uid": uid(owner)}
    return {**reference, "controller": True, "blockOwnerDeletion": True} if controller else reference


def with_claims(spec: Json, owner: Json, pod: str = "") -> Json:
    """The spec of a pod of a set, with a volume for each claim that the set makes for it: containers mount these."""
    parts = (dig(owner, "spec"), dig(owner, "spec", "leaderWorkerTemplate"))
    names = [dig(claim, "metadata", "name") for part in parts for claim in dig(part, "volumeClaimTemplates") or []]
    made = [{"name": name, "persistentVolumeClaim": {"claimName": f"{name}-{pod}"}} for name in names]
    volumes = [volume for volume in spec.get("volumes") or [] if volume.get("name") not in names]
    return {**spec, "volumes": [*volumes, *made]} if names else spec
