"""The settings of configs that are filled from an inventory: by OCM's Placements, or by labels of ClusterProfiles."""

from __future__ import annotations

from datetime import timedelta
from typing import Literal, NewType

import attrs

from multikueue.core.placement.settings import Adopt, PlacementSettings, Policy

ConfigName = NewType("ConfigName", str)
"""A text that Kubernetes accepts as the name of a MultiKueueConfig that an AdmissionCheck can name."""
Selector = NewType("Selector", str)
"""A label selector as kubectl takes it: `accelerator=nvidia-tesla-t4,region in (eu, us)`."""


@attrs.frozen
class OcmSettings:
    """The placement check: OCM's Placements fill MultiKueueConfigs."""

    enabled: bool = False
    """On: AdmissionChecks of `open-cluster-management.io/placement` are ours: a MultiKueueConfig named as the Placement
    gets its clusters, and the check becomes Ready on Workloads. It takes the place of OCM's kueue-addon; see
    `multikueue.core.placement`."""
    policy: Literal["Drain", "Evict", "Immediate"] = "Drain"
    """What becomes of the jobs on a cluster that is not selected any more. `Drain`: they run to their end there.
    `Evict`: they are sent back, and run elsewhere. `Immediate`: the cluster leaves the config whatever runs there, as
    with OCM's addon: beside another MultiKueue controller jobs then run twice."""
    min_dwell: timedelta = timedelta(0)
    """How long a cluster stays selected at least, for a Placement whose choice changes with each score."""
    adopt: Literal["none", "addon", "2024"] = "none"
    """Whose configs are taken over: those of OCM's kueue-addon (`addon`, which must be uninstalled before), or those of
    the recipe that OCM published in 2024 (`2024`). Running jobs stay. `none`: what somebody else has made is left
    alone and the check says `Conflict`."""

    def placement_settings(self, controller_name: str) -> PlacementSettings:
        """The same as the library's settings.

        Args:
            controller_name: of the MultiKueue checks that this daemon dispatches for.
        """
        return PlacementSettings(Policy(self.policy), Adopt(self.adopt), controller_name, min_dwell=self.min_dwell)


@attrs.frozen
class InventorySettings:
    """One entry of `inventory`: the ClusterProfiles with these labels fill a MultiKueueConfig, without OCM."""

    selector: Selector = Selector("")
    """Which ClusterProfiles in the daemon's namespace: a label selector, as kubectl takes it."""
    config: ConfigName = ConfigName("")
    """The MultiKueueConfig that lists them."""
    policy: Literal["Drain", "Evict", "Immediate"] = "Drain"
    """As `ocm.policy`."""

    def placement_settings(self, controller_name: str) -> PlacementSettings:
        """The same as the library's settings.

        Args:
            controller_name: of the MultiKueue checks that this daemon dispatches for.
        """
        return PlacementSettings(Policy(self.policy), Adopt.NONE, controller_name)
