"""What the runtime tells about workloads and clusters, for metrics. Reconciles: `runtime.controller.ControllerHook`."""

from __future__ import annotations

from typing import Protocol

from multikueue.core.model.names import ClusterName


class ManagerHook(Protocol):
    """Sees what happens to workloads and clusters. Called in the loop: it must neither wait nor raise."""

    def dispatched(self, cluster_queue: str, cluster: ClusterName) -> None:
        """A Workload of this ClusterQueue was offered to a cluster."""
        ...

    def admitted(self, cluster_queue: str, cluster: ClusterName) -> None:
        """A Workload of this ClusterQueue was given to the cluster that admitted it."""
        ...

    def cluster_connected(self, cluster: ClusterName, connected: bool) -> None:
        """A cluster's connection came or went; told again without a change, too."""
        ...

    def cluster_removed(self, cluster: ClusterName) -> None:
        """The manager does not know a cluster any more."""
        ...
