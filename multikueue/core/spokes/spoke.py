"""What a decision about one spoke looks at: a value made of the caches."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from multikueue.core.model.names import Json, Resource
from multikueue.core.model.objects import dig, is_terminating, uid
from multikueue.core.spokes.names import is_hub


@attrs.frozen
class Older:
    """A MultiKueueCluster of the recipe of 2024 that reaches the same spoke under another name."""

    worker: Json
    in_use: bool
    """Whether a config lists it, or something of ours is still there."""


@attrs.frozen
class Spoke:
    """All that one decision looks at. None: there is no such object."""

    name: str
    """Of the ManagedCluster, of its namespace and of its MultiKueueCluster."""
    selected: bool = False
    """Whether a Placement of a check of ours selects it."""
    in_use: bool = False
    """Whether a MultiKueueConfig lists it, an unfinished Workload is recorded there, or copies are still there."""
    managed: Json | None = None
    """The ManagedCluster."""
    account: Json | None = None
    """The ManagedServiceAccount."""
    permission: Json | None = None
    """The ClusterPermission."""
    token: Json | None = None
    """The Secret with the account's token, where it is read."""
    profile: Json | None = None
    """The ClusterProfile in Kueue's namespace."""
    synced: bool = False
    """Whether OCM has copied the token beside the profile."""
    worker: Json | None = None
    """The MultiKueueCluster."""
    secret: Json | None = None
    """The Secret with its kubeconfig."""
    older: tuple[Older, ...] = ()
    older_secret: Json | None = None
    """The Secret of these."""
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
