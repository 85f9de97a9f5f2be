"""One spoke: its objects as the caches show them, and whose each of them is.

What is not ours is never changed and never deleted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum, auto
from typing import Final, Self

import attrs

from multikueue.core.inventory.names import (
    AGENT_NAMESPACE,
    BASE_NAME,
    CLUSTER_PERMISSION,
    MANAGED_SERVICE_ACCOUNT,
    is_hub,
    kubeconfig_location,
    kubeconfig_secret,
    older_secret,
    older_spoke,
)
from multikueue.core.inventory.settings import Adopt, ConnectionSource, SpokeSettings
from multikueue.core.model.kinds import MULTIKUEUE_CLUSTER, SECRET
from multikueue.core.model.labels import OWN_PREFIX
from multikueue.core.model.names import Json, Resource
from multikueue.core.model.objects import annotations_of, dig, is_terminating, labels_of, name_of, uid


@attrs.frozen
class SpokeWorker:
    """A MultiKueueCluster under a name that is the spoke's: its own, or PLACEMENT-SPOKE as in the recipe of 2024."""

    object: Json
    in_use: bool = False
    """Whether a MultiKueueConfig lists it, an unfinished Workload is recorded there, or copies are still there."""


@attrs.frozen
class Spoke:
    """All that one decision looks at. None: there is no such object."""

    name: str
    """Of the ManagedCluster, of its namespace and, as a rule, of its MultiKueueCluster."""
    selected: bool = False
    """Whether a Placement of a check of ours selects it."""
    managed: Json | None = None
    """The ManagedCluster."""
    account: Json | None = None
    """The ManagedServiceAccount."""
    permission: Json | None = None
    """The ClusterPermission."""
    token: Json | None = None
    """The Secret with the account's token, where it is read."""
    token_unread: str = ""
    """Why it could not be read."""
    profile: Json | None = None
    """The ClusterProfile in Kueue's namespace."""
    synced: bool = False
    """Whether OCM has copied the token beside the profile."""
    workers: tuple[SpokeWorker, ...] = ()
    """The MultiKueueClusters."""
    secret: Json | None = None
    """The Secret with the kubeconfig."""
    older_secret: Json | None = None
    """The Secret with the kubeconfig of the recipe of 2024."""
    unserved: Mapping[Resource, str] = attrs.field(factory=dict)
    """The kinds that the manager cluster does not serve or forbids, and its words."""

    @property
    def uid(self) -> str:
        """Of the ManagedCluster; empty: there is none."""
        return uid(self.managed) if self.managed is not None else ""

    @property
    def wanted(self) -> bool:
        """Whether it shall be a worker."""
        return self.selected and self.managed is not None and not self.why_unwanted

    @property
    def why_unwanted(self) -> str:
        """Why a spoke that is selected is no worker; empty: it is one, or is not selected."""
        if not self.selected or self.managed is None:
            return ""
        if is_hub(self.managed):
            return "it is the hub itself, where jobs are queued and not run: take it out of the Placement"
        if dig(self.managed, "spec", "hubAcceptsClient") is False:
            return "the hub does not accept it any more (spec.hubAcceptsClient)"
        return "it is being detached from the hub" if is_terminating(self.managed) else ""


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
    yield from dict.fromkeys(name for name in (name_of(worker), noted, older_spoke(worker)) if name)


def owner_references(resource: Resource, owners: Iterable[Json]) -> list[Json]:
    """References by which the garbage collector removes an object once all its owners are gone.

    Only objects without a namespace, or of the object's own, may be owners.
    """
    return [
        {
            "apiVersion": resource.gvk.api_version,
            "kind": resource.gvk.kind,
            "name": name_of(owner),
            "uid": uid(owner),
        }
        for owner in owners
    ]


@attrs.frozen
class SpokeObject:
    """One object, or its absence."""

    resource: Resource
    name: str
    seen: Json | None
    standing: Standing
    in_use: bool = False
    """Of a worker: see `SpokeWorker`."""

    @property
    def ours(self) -> bool:
        """Whether it is ours, made for this ManagedCluster."""
        return self.standing is Standing.OURS

    @property
    def leaving(self) -> bool:
        """Whether somebody has deleted it and it is still there."""
        return self.seen is not None and is_terminating(self.seen)


@attrs.frozen
class Parts:
    """All objects of a spoke."""

    spoke: str
    workers: tuple[SpokeObject, ...]
    """The MultiKueueClusters that are there."""
    secret: SpokeObject
    older_secret: SpokeObject
    account: SpokeObject
    permission: SpokeObject
    uses_secret: bool
    """Whether these settings have us write it; so the others."""
    uses_account: bool
    uses_permission: bool

    @classmethod
    def of(cls, spoke: Spoke, settings: SpokeSettings) -> Self:
        """The parts of a spoke with these settings."""

        def part(resource: Resource, seen: Json | None, in_use: bool = False) -> SpokeObject:
            if resource in spoke.unserved:
                return SpokeObject(resource, "", None, Standing.UNKNOWN)
            whose = standing(seen, resource, spoke.name, spoke.uid, settings.owner, settings.adopt)
            return SpokeObject(resource, name_of(seen) if seen is not None else "", seen, whose, in_use)

        return cls(
            spoke.name,
            tuple(part(MULTIKUEUE_CLUSTER, worker.object, worker.in_use) for worker in spoke.workers),
            part(SECRET, spoke.secret),
            part(SECRET, spoke.older_secret),
            part(MANAGED_SERVICE_ACCOUNT, spoke.account),
            part(CLUSTER_PERMISSION, spoke.permission),
            uses_secret=settings.source is ConnectionSource.KUBECONFIG,
            uses_account=settings.accounts,
            uses_permission=settings.rules is not None,
        )

    def all(self) -> Iterator[SpokeObject]:
        """In the order in which they are deleted: workers before what they are reached by."""
        yield from self.workers
        yield from (self.secret, self.older_secret, self.account, self.permission)

    def needed(self) -> Iterator[SpokeObject]:
        """Those under whose names the settings have us write; nobody else's may be there."""
        yield from self.workers
        used = (self.uses_secret, self.uses_account, self.uses_permission)
        yield from (part for part, yes in zip((self.secret, self.account, self.permission), used, strict=True) if yes)

    def kept_workers(self) -> list[SpokeObject]:
        """The workers to keep up: the one of the spoke's name, or those that the recipe of 2024 named otherwise.

        One cluster must not become two workers: the copies that one of them has would be strange to the other, and be
        removed. So the spoke's own name is used once all others are gone.
        """
        own = [part for part in self.workers if part.name == self.spoke]
        others = [part for part in self.workers if part.name != self.spoke]
        if own or not others:
            return own or [SpokeObject(MULTIKUEUE_CLUSTER, self.spoke, None, Standing.ABSENT)]
        return [part for part in others if part.in_use]

    def names(self, secret: SpokeObject) -> bool:
        """Whether a worker is reached by a Secret."""
        seen = [part.seen for part in self.workers if part.seen is not None]
        return any(kubeconfig_location(worker) == secret.name for worker in seen)

    def only_ours(self) -> Self:
        """The same for a decision that takes over nothing; what is missing of ours it makes again."""

        def mine(part: SpokeObject) -> SpokeObject:
            kept = part.ours or part.standing is Standing.ABSENT
            return part if kept else SpokeObject(part.resource, part.name, None, Standing.FOREIGN)

        return attrs.evolve(
            self,
            workers=tuple(part for part in self.workers if part.ours),
            secret=mine(self.secret),
            older_secret=mine(self.older_secret),
            account=mine(self.account),
            permission=mine(self.permission),
        )
