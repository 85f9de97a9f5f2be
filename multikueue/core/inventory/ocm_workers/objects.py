"""What is made for a spoke, and what differs from it. A rewrite by hand, of a label as of a rule, is taken back."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable
from datetime import timedelta
from typing import Any, Final

import attrs

from multikueue.core.inventory.names import (
    AGENT_NAMESPACE,
    BASE_NAME,
    CLUSTER_PERMISSION,
    MANAGED_CLUSTER,
    MANAGED_SERVICE_ACCOUNT,
    SYNC_LABEL,
    kubeconfig_secret,
)
from multikueue.core.inventory.ocm_workers.spoke import Spoke, marks, owner_references
from multikueue.core.inventory.settings import ConnectionSource, SpokeSettings
from multikueue.core.model.kinds import MULTIKUEUE_CLUSTER, SECRET
from multikueue.core.model.labels import DETACHED_ANNOTATION
from multikueue.core.model.names import Json, Resource
from multikueue.core.model.objects import annotations_of, dig, labels_of, merge_patch, name_of, with_value


@attrs.frozen
class Address:
    """Where the API server of a spoke is."""

    url: str
    authority: str
    """The certificate authority, PEM in base64; empty: it is not known."""


def address_of(managed: Json) -> Address | None:
    """The first https address of a ManagedCluster; None if it has none. The agent of the spoke writes them."""
    listed = dig(managed, "spec", "managedClusterClientConfigs")
    for entry in listed if isinstance(listed, list) else ():
        url = dig(entry, "url")
        if isinstance(url, str) and url.startswith("https://"):
            return Address(url, str(dig(entry, "caBundle") or ""))
    return None


def token_in(secret: Json | None) -> str:
    """The token in the Secret of a ManagedServiceAccount; empty if there is none that can be used."""
    try:
        token = base64.b64decode(dig(secret, "data", "token") or "", validate=True).decode("ascii").strip()
    except (binascii.Error, UnicodeDecodeError, TypeError, ValueError):
        return ""
    return token if token.isprintable() and " " not in token else ""


def kubeconfig_of(managed: Json, secret: Json | None) -> str | None:
    """The text of a spoke's kubeconfig: JSON, which is YAML; None if address or token are missing."""
    address, token = address_of(managed), token_in(secret)
    if address is None or not token:
        return None
    name = name_of(managed)
    cluster: dict[str, Any] = {"server": address.url}
    authority = address.authority or dig(secret, "data", "ca.crt")
    if authority:
        cluster["certificate-authority-data"] = authority
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": BASE_NAME, "user": {"token": token}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": BASE_NAME}}],
        "current-context": name,
    }
    return json.dumps(document, indent=2, sort_keys=True) + "\n"


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
    if settings.source is ConnectionSource.KUBECONFIG:
        source = {"kubeConfig": {"location": kubeconfig_secret(spoke.name), "locationType": "Secret"}}
    made = _object(MULTIKUEUE_CLUSTER, spoke, settings, name)
    if (detached := dig(spoke.managed, "metadata", "deletionTimestamp")) is not None:
        made = with_value(made, ("metadata", "annotations", DETACHED_ANNOTATION), detached)
    return {**made, "spec": {"clusterSource": source}}


def secret(spoke: Spoke, settings: SpokeSettings, kubeconfig: str) -> Json:
    """The Secret with the kubeconfig. The MultiKueueCluster owns it once that is there."""
    made = _object(SECRET, spoke, settings, kubeconfig_secret(spoke.name), settings.namespace)
    owners = owner_references(MULTIKUEUE_CLUSTER, [worker.object for worker in spoke.workers])
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
    """The merge patch that corrects an object; empty if nothing differs.

    Args:
        seen: the object.
        wanted: as it should be. It may have more labels, annotations and owners.
        only_metadata: leave its content as it is.
    """
    metadata: Json = {}
    for field, present in (("labels", labels_of(seen)), ("annotations", annotations_of(seen))):
        missing = {key: value for key, value in wanted["metadata"][field].items() if present.get(key) != value}
        if missing:
            metadata[field] = missing
    references = dig(seen, "metadata", "ownerReferences") or []
    owners = wanted["metadata"]["ownerReferences"]
    if any(not _names(references, owner) for owner in owners):
        kinds = {owner["kind"] for owner in owners}
        metadata["ownerReferences"] = [
            *(reference for reference in references if reference.get("kind") not in kinds),
            *owners,
        ]
    patch: Json = {"metadata": metadata} if metadata else {}
    for field in () if only_metadata else _WHOLE:
        if field in wanted and (changed := merge_patch(seen.get(field) or {}, wanted[field])):
            patch[field] = changed
    return patch


def _names(references: Iterable[Json], owner: Json) -> bool:
    return any(all(reference.get(field) == value for field, value in owner.items()) for reference in references)
