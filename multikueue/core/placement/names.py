"""Labels, annotations, finalizers and condition types of the placement check: OCM's contract, and what is ours."""

from __future__ import annotations

from typing import Final

PLACEMENT_LABEL: Final = "cluster.open-cluster-management.io/placement"
"""On a PlacementDecision: its Placement."""
SCHEDULING_DISABLED: Final = "cluster.open-cluster-management.io/experimental-scheduling-disable"
"""On a Placement: another scheduler writes its decisions, and need not write its status."""
ADDON_FINALIZER: Final = "kueue-addon.open-cluster-management.io/admissioncheck-cleanup"
"""OCM's kueue-addon puts it on every AdmissionCheck of its controllerName, and takes it off when that is deleted."""
KUEUE_FINALIZER: Final = "kueue.x-k8s.io/resource-in-use"
"""Kueue keeps it on an AdmissionCheck while a ClusterQueue uses that."""

HUB: Final = "local-cluster"
"""What OCM calls the hub where that is a ManagedCluster, too: never a worker, unless somebody makes it one."""
FINALIZER: Final = "multikueue.dev/placement-cleanup"
"""Ours on an AdmissionCheck: its MultiKueueConfig is left or deleted before it goes."""
CONFIG_LABEL: Final = "multikueue.dev/placement"
"""On a MultiKueueConfig that we fill: the Placement."""
INVENTORY_LABEL: Final = "multikueue.dev/inventory"
"""On a MultiKueueConfig that an inventory fills, and on the MultiKueueClusters made for it: the config's name."""
WRITTEN_ANNOTATION: Final = "multikueue.dev/clusters-written-at"
"""On a config that we fill: when we wrote its list last (RFC 3339). The order waits for it, also after a restart."""

ACTIVE: Final = "Active"
CONFLICT_CONDITION: Final = "PlacementConflict"
"""On an AdmissionCheck that OCM's addon handles: a condition type of our own, because the addon writes `Active`."""
MAX_CLUSTERS: Final = 20
"""The API's limit on `spec.clusters`."""
