"""Whose an object is. What is not ours is never changed and never deleted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum, auto
from typing import Final

from multikueue.core.model.kinds import MULTIKUEUE_CLUSTER, SECRET
from multikueue.core.model.labels import OWN_PREFIX
from multikueue.core.model.names import Json, Resource
from multikueue.core.model.objects import annotations_of, dig, labels_of, name_of, uid
from multikueue.core.placement.settings import Adopt
from multikueue.core.spokes.names import (
    AGENT_NAMESPACE,
    BASE_NAME,
    CLUSTER_PERMISSION,
    MANAGED_SERVICE_ACCOUNT,
    kubeconfig_location,
    kubeconfig_secret,
    older_secret,
    older_spoke,
)

OWNER_LABEL: Final = f"{OWN_PREFIX}managed-by"
"""On what is made for a spoke: the origin of the process that made it. Without it the object is somebody else's: who
takes it off keeps the object."""
SPOKE_ANNOTATION: Final = f"{OWN_PREFIX}managed-cluster"
"""On the same: the ManagedCluster it is made for."""
UID_ANNOTATION: Final = f"{OWN_PREFIX}managed-cluster-uid"
"""On the same: that one's UID. A later ManagedCluster of that name is another cluster."""


class Standing(Enum):
    """Whose an object is."""

    ABSENT = auto()
    OURS = auto()
    FORMER = auto()
    """Ours, made for a ManagedCluster that does not exist any more."""
    ADOPTABLE = auto()
    """What somebody else has made and the settings have us take over."""
    FOREIGN = auto()
    UNKNOWN = auto()
    """Its kind cannot be read."""


def standing(obj: Json | None, resource: Resource, spoke: str, cluster_uid: str, owner: str, adopt: Adopt) -> Standing:
    """Whose an object is.

    Args:
        obj: the object under a name that is ours to use.
        resource: its kind.
        spoke: the ManagedCluster's name.
        cluster_uid: the ManagedCluster's UID; empty: there is none.
        owner: the value of our label.
        adopt: whose objects are taken over.
    """
    if obj is None:
        return Standing.ABSENT
    made_for, noted = annotations_of(obj).get(UID_ANNOTATION), annotations_of(obj).get(SPOKE_ANNOTATION)
    if labels_of(obj).get(OWNER_LABEL) == owner and made_for and noted == spoke:
        return Standing.OURS if made_for == cluster_uid else Standing.FORMER
    others = OWNER_LABEL in labels_of(obj)
    adoptable = adopt is not Adopt.NONE and not others and _is_of(adopt, obj, resource, spoke)
    return Standing.ADOPTABLE if adoptable and cluster_uid else Standing.FOREIGN


def _is_of(adopt: Adopt, obj: Json, resource: Resource, spoke: str) -> bool:
    """Whether an object looks as that of OCM's kueue-addon, or of the recipe of 2024, does."""
    if resource == SECRET:
        made = kubeconfig_secret(spoke) if adopt is Adopt.ADDON else older_secret(spoke)
        return name_of(obj) == made and set(dig(obj, "data") or ()) == {"kubeconfig"}
    if adopt is Adopt.RECIPE_2024:
        return resource == MULTIKUEUE_CLUSTER and older_spoke(obj) == spoke
    if resource == MULTIKUEUE_CLUSTER:
        profile = dig(obj, "spec", "clusterSource", "clusterProfileRef", "name")
        return profile == spoke or kubeconfig_location(obj) == kubeconfig_secret(spoke)
    if resource == CLUSTER_PERMISSION:
        subject = dig(obj, "spec", "clusterRoleBinding", "subject") or {}
        return (dig(subject, "name"), dig(subject, "namespace")) == (BASE_NAME, AGENT_NAMESPACE)
    return resource == MANAGED_SERVICE_ACCOUNT


def marks(spoke: str, cluster_uid: str, owner: str) -> Json:
    """The label and annotations of what is ours, as a part of `metadata`."""
    return {"labels": {OWNER_LABEL: owner}, "annotations": {SPOKE_ANNOTATION: spoke, UID_ANNOTATION: cluster_uid}}


def spokes_of(worker: Json) -> Iterator[str]:
    """The ManagedClusters that a MultiKueueCluster may be the worker of."""
    noted = annotations_of(worker).get(SPOKE_ANNOTATION)
    yield from dict.fromkeys(one for one in (name_of(worker), noted, older_spoke(worker)) if one)


def owner_references(resource: Resource, owners: Iterable[Json]) -> list[Json]:
    """References by which the garbage collector removes an object once all its owners are gone.

    Only objects without a namespace, or of the object's own, may be owners.
    """
    return [
        {
            "apiVersion": resource.gvk.api_version,
            "kind": resource.gvk.kind,
            "name": name_of(one),
            "uid": uid(one),
        }
        for one in owners
    ]
