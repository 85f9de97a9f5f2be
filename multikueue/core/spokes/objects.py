"""What is made for a spoke, and what differs from it. A rewrite by hand, of a label as of a rule, is taken back."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from datetime import timedelta
from typing import Final

from multikueue.core.model.kinds import MULTIKUEUE_CLUSTER, SECRET
from multikueue.core.model.names import Json, Resource
from multikueue.core.model.objects import annotations_of, dig, labels_of, merge_patch
from multikueue.core.spokes.names import (
    AGENT_NAMESPACE,
    BASE_NAME,
    CLUSTER_PERMISSION,
    MANAGED_CLUSTER,
    MANAGED_SERVICE_ACCOUNT,
    SYNC_LABEL,
    kubeconfig_secret,
)
from multikueue.core.spokes.ownership import marks, owner_references
from multikueue.core.spokes.settings import Source, SpokeSettings
from multikueue.core.spokes.spoke import Spoke

_WHOLE: Final = ("spec", "data")
"""What is ours wholly: what somebody has added there is taken away."""


def account(spoke: Spoke, settings: SpokeSettings) -> Json:
    """The ManagedServiceAccount: an identity on the spoke, with a token that is short-lived and renewed."""
    rotation = {"enabled": True, "validity": duration(settings.validity)}
    made = _object(MANAGED_SERVICE_ACCOUNT, spoke, settings, namespace=spoke.name)
    made["metadata"]["labels"][SYNC_LABEL] = "true"
    return {**made, "spec": {"rotation": rotation}}


def permission(spoke: Spoke, settings: SpokeSettings) -> Json:
    """The ClusterPermission: what that identity may do on the spoke."""
    return {
        **_object(CLUSTER_PERMISSION, spoke, settings, namespace=spoke.name),
        "spec": permission_spec(settings.rules or ()),
    }


def permission_spec(rules: Iterable[Json]) -> Json:
    """The spec of every ClusterPermission of ours: the admission policy lets nothing else pass."""
    subject = {"kind": "ServiceAccount", "name": BASE_NAME, "namespace": AGENT_NAMESPACE}
    return {"clusterRole": {"rules": list(rules)}, "clusterRoleBinding": {"subject": subject}}


def worker(spoke: Spoke, settings: SpokeSettings, name: str) -> Json:
    """The MultiKueueCluster of this name."""
    source: Json = {"clusterProfileRef": {"name": spoke.name}}
    if settings.source is Source.KUBECONFIG:
        source = {"kubeConfig": {"location": kubeconfig_secret(spoke.name), "locationType": "Secret"}}
    return {**_object(MULTIKUEUE_CLUSTER, spoke, settings, name), "spec": {"clusterSource": source}}


def secret(spoke: Spoke, settings: SpokeSettings, kubeconfig: str) -> Json:
    """The Secret with the kubeconfig. The MultiKueueCluster owns it once that is there."""
    made = _object(SECRET, spoke, settings, kubeconfig_secret(spoke.name), settings.namespace)
    owners = owner_references(MULTIKUEUE_CLUSTER, [one.object for one in spoke.workers])
    made["metadata"]["ownerReferences"] = owners
    return {**made, "type": "Opaque", "data": {"kubeconfig": base64.b64encode(kubeconfig.encode()).decode()}}


def duration(length: timedelta) -> str:
    """A length of time as Go writes it, and as the field's default is written: `168h0m0s`."""
    minutes, seconds = divmod(int(length.total_seconds()), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes}m{seconds}s"


def _object(
    resource: Resource, spoke: Spoke, settings: SpokeSettings, name: str = BASE_NAME, namespace: str = ""
) -> Json:
    owners = [spoke.managed] if spoke.managed is not None else []
    metadata: Json = {
        "name": name,
        **({"namespace": namespace} if namespace else {}),
        **marks(spoke.name, spoke.uid, settings.owner),
        "ownerReferences": owner_references(MANAGED_CLUSTER, owners),
    }
    return {"apiVersion": resource.gvk.api_version, "kind": resource.gvk.kind, "metadata": metadata}


def difference(seen: Json, wanted: Json, *, only_metadata: bool = False) -> Json:
    """The merge patch that mends an object; empty if nothing is to be mended.

    Args:
        seen: the object.
        wanted: as it should be. It may have more labels, annotations and owners.
        only_metadata: leave its content as it is.
    """
    metadata: Json = {}
    for field, found in (("labels", labels_of(seen)), ("annotations", annotations_of(seen))):
        missing = {key: value for key, value in wanted["metadata"][field].items() if found.get(key) != value}
        if missing:
            metadata[field] = missing
    references = dig(seen, "metadata", "ownerReferences") or []
    owners = wanted["metadata"]["ownerReferences"]
    if any(not _names(references, one) for one in owners):
        kinds = {one["kind"] for one in owners}
        metadata["ownerReferences"] = [*(one for one in references if one.get("kind") not in kinds), *owners]
    patch: Json = {"metadata": metadata} if metadata else {}
    for field in () if only_metadata else _WHOLE:
        if field in wanted and (changed := merge_patch(seen.get(field) or {}, wanted[field])):
            patch[field] = changed
    return patch


def _names(references: Iterable[Json], owner: Json) -> bool:
    return any(all(one.get(field) == value for field, value in owner.items()) for one in references)
