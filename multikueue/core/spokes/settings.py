"""What an operator can choose about the workers that are made of an inventory."""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum
from typing import Final

import attrs

from multikueue.core.model.names import Json
from multikueue.core.placement.settings import Adopt

DEFAULT_VALIDITY: Final = timedelta(days=7)
MIN_VALIDITY: Final = timedelta(days=1)
"""A spoke that is cut off for a night must not lose its token: its agent renews it when a fifth of the time is left."""


class Source(StrEnum):
    """Where the MultiKueueCluster of a spoke has its connection from."""

    CLUSTER_PROFILE = "clusterProfile"
    """The ClusterProfile that OCM keeps for it, through OCM's cluster-proxy."""
    KUBECONFIG = "kubeconfig"
    """A kubeconfig that is written from the ManagedCluster's address and a token of a ManagedServiceAccount."""


@attrs.frozen
class SpokeSettings:
    """Settings of the workers that are made for selected ManagedClusters."""

    source: Source = Source.CLUSTER_PROFILE
    namespace: str = "kueue-system"
    """Where ClusterProfiles and Secrets of workers are: Kueue's own namespace."""
    owner: str = "multikueue"
    """The value of our label: what another process with another value has made is not ours."""
    accounts: bool = True
    """Whether each spoke gets a ManagedServiceAccount. Without, the access provider brings its own credentials."""
    validity: timedelta = DEFAULT_VALIDITY
    """How long a token is valid; the agent on the spoke renews it earlier."""
    rules: tuple[Json, ...] | None = None
    """What a ClusterPermission grants on each spoke. None: somebody else grants it, and none is written."""
    adopt: Adopt = Adopt.NONE
    """Whose objects are taken over."""
