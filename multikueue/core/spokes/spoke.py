"""What a decision about one spoke looks at: a value made of the caches."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from multikueue.core.model.names import Json, Resource
from multikueue.core.model.objects import dig, is_terminating, uid
from multikueue.core.spokes.names import is_hub


@attrs.frozen
class Worker:
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
    workers: tuple[Worker, ...] = ()
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
