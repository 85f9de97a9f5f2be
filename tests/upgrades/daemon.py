"""A daemon for one manager cluster, as a process of its own: of whichever commit `PYTHONPATH` leads to."""

from __future__ import annotations

import sys
from pathlib import Path

import anyio

from multikueue import (
    AdapterRegistry,
    ClusterConfig,
    ClusterName,
    KubeClient,
    Manager,
    ManagerSettings,
    load_kubeconfig,
)
from multikueue.adapters import AVAILABLE


def connect(name: ClusterName, config: ClusterConfig) -> KubeClient:
    """Reach a worker."""
    return KubeClient(config, name=name)


async def main() -> None:
    """Dispatch until killed."""
    async with KubeClient(load_kubeconfig([Path(sys.argv[1])]), name="manager") as client:
        await Manager(client, AdapterRegistry(AVAILABLE), ManagerSettings(), connect).run()


if __name__ == "__main__":
    anyio.run(main)
