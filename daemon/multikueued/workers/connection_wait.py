"""Wait until the daemon has connected to a worker: its word counts, not whether this machine reaches it."""

from __future__ import annotations

from typing import Final

import anyio

from multikueue.core.model.conditions import condition
from multikueue.core.model.kinds import MULTIKUEUE_CLUSTER
from multikueue.core.model.names import Json, ObjectKey
from multikueue.kube import parse_worker_kubeconfig
from multikueue.kube.kubeconfigs.worker_kubeconfig import credentials_digest
from multikueue.protocols import read
from multikueued.exits import CommandError
from multikueued.reports.workers import digest_in_use
from multikueued.workers.places import ManagerAccess

INTERVAL: Final = 0.5
"""Seconds between two looks."""


def digest_of(kubeconfig: bytes) -> str:
    """What the daemon says once it uses this kubeconfig."""
    return credentials_digest(parse_worker_kubeconfig(kubeconfig))


def is_connected(cluster: Json, digest: str, *, must_tell: bool) -> bool:
    """Whether the daemon says that it is connected with this kubeconfig.

    Args:
        cluster: the MultiKueueCluster.
        digest: of the kubeconfig.
        must_tell: whether `Active` alone is not enough: it may stand for earlier credentials.
    """
    active = (condition(cluster, "Active") or {}).get("status") == "True"
    in_use = digest_in_use(cluster)
    return active and (in_use == digest or (not in_use and not must_tell))


def why_not_connected(cluster: Json | None, namespace: str) -> str:
    """What the daemon says instead, or that it says nothing."""
    active = condition(cluster or {}, "Active")
    if cluster is None:
        return "its MultiKueueCluster is gone"
    if active is None:
        return (
            "nobody has looked at it: does the daemon run and lead (its log says 'working'), "
            f"and does it read Secrets in namespace {namespace}?"
        )
    if active.get("status") != "True":
        return f"{active.get('reason')}: {active.get('message')}"
    if digest_in_use(cluster):
        return (
            "it was connected with earlier credentials, and the daemon has not taken the new ones yet: "
            "does it run and lead? multikueue status says so"
        )
    return "it is Active, but its controller does not say which credentials it uses"


async def until_connected(
    manager: ManagerAccess, worker: str, kubeconfig: bytes, timeout: float, *, must_tell: bool
) -> None:
    """Wait until the daemon is connected with this kubeconfig.

    Raises:
        CommandError: it is not, after `timeout` seconds; the message says what the daemon says.
    """
    digest, key, why = digest_of(kubeconfig), ObjectKey("", worker), "the manager does not answer"
    with anyio.move_on_after(timeout):
        while True:
            cluster = await read(manager.client, MULTIKUEUE_CLUSTER, key)
            if cluster is not None and is_connected(cluster, digest, must_tell=must_tell):
                return
            why = why_not_connected(cluster, manager.namespace)
            if cluster is None:
                break
            await anyio.sleep(INTERVAL)
    raise CommandError(f'worker "{worker}" is not connected after {timeout:.0f} s: {why}')
