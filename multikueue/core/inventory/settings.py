"""What an operator can choose about configs that an inventory fills, and about the workers that are made of one."""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum
from typing import Final

import attrs

from multikueue.core.model.labels import CONTROLLER_NAME
from multikueue.core.model.names import Json

PLACEMENT_CONTROLLER: Final = "open-cluster-management.io/placement"
"""`spec.controllerName` of the AdmissionChecks that stand for a Placement, and our field manager on their entries."""


class Policy(StrEnum):
    """What becomes of the jobs on a cluster that is not selected any more."""

    DRAIN = "Drain"
    """They run to their end there."""
    EVICT = "Evict"
    """They are sent back at once, and run elsewhere."""
    IMMEDIATE = "Immediate"
    """The cluster leaves the config at once, whatever runs there: what OCM's addon does."""


class Adopt(StrEnum):
    """Whose configs are taken over."""

    NONE = "none"
    """Nobody's: an object of somebody else is a conflict."""
    ADDON = "addon"
    """Those of OCM's kueue-addon, which must not run any more."""
    RECIPE_2024 = "2024"
    """Those of the recipe that OCM published in 2024, in which workers are named PLACEMENT-CLUSTER."""


@attrs.frozen
class PlacementSettings:
    """Settings of the placement check and of configs that are filled by label."""

    policy: Policy = Policy.DRAIN
    adopt: Adopt = Adopt.NONE
    dispatched_as: str = CONTROLLER_NAME
    """`spec.controllerName` of the MultiKueue checks that this process dispatches for. A config that other checks use,
    too, is another controller's; empty: all are."""
    grace: timedelta = timedelta(seconds=60)
    """How long a decision that is empty, or names fewer than half as many clusters as before, must hold before it is
    accepted: OCM empties decisions for a moment when it replaces them, and while it cannot read the Placement."""
    min_dwell: timedelta = timedelta(0)
    """How long a cluster stays selected at least: for Placements whose choice changes with each score."""
    hysteresis: int = 10
    """Points by which scores must have changed until the order of a config is rewritten."""
    order_interval: timedelta = timedelta(minutes=5)
    """The order is not rewritten more often."""


DEFAULT_VALIDITY: Final = timedelta(days=7)
MIN_VALIDITY: Final = timedelta(days=1)
"""A spoke that is cut off for a night must not lose its token: its agent renews it when a fifth of the time is left."""


class ConnectionSource(StrEnum):
    """Where the MultiKueueCluster of a spoke has its connection from."""

    CLUSTER_PROFILE = "clusterProfile"
    """The ClusterProfile that OCM keeps for it, through OCM's cluster-proxy."""
    KUBECONFIG = "kubeconfig"
    """A kubeconfig that is written from the ManagedCluster's address and a token of a ManagedServiceAccount."""


@attrs.frozen
class SpokeSettings:
    """Settings of the workers that are made for selected ManagedClusters."""

    source: ConnectionSource = ConnectionSource.CLUSTER_PROFILE
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
