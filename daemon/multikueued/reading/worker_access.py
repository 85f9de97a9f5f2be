"""Reaches a worker from the manager, with the credentials that the manager holds for it."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import structlog

from multikueue.core.model.kinds import MULTIKUEUE_CLUSTER, SECRET
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import dig
from multikueue.errors import ApiError, Forbidden, NotFound, Unauthorized, Unreachable
from multikueue.kube import ClientOptions, ClusterConfig, KubeClient
from multikueued.clusters import ClusterClient, Lack, NoAccess, access_to
from multikueued.exits import FINDING, NOT_FOUND, NOT_REACHABLE, CommandError
from multikueued.settings.config import Settings

FIELD: Final = "key"
"""Where the Secret has it."""
SHORTEST: Final = 16
"""Bytes that one must have that somebody else has put there: a shorter one might be guessed."""
OPTIONS: Final = ClientOptions(deadline=20.0, connection_wait=10.0, connections=8)
"""For workers: what is read of them is bounded, unlike what is read of the manager."""
_WITHOUT: Final = "ask an operator who may, or for multikueue api-server, which shows pods and logs without that"
_REMEDIES: Final = {
    Lack.ELSEWHERE: ("ask the worker itself with kubectl", NOT_REACHABLE),
    Lack.FORBIDDEN: (_WITHOUT, NOT_REACHABLE),
    Lack.MISSING: ("name the daemon's namespace with --daemon-namespace", NOT_FOUND),
    Lack.UNUSABLE: ("multikueue explain JOB says how to mend it", FINDING),
}
"""What to do, and the command's exit code."""

log = structlog.get_logger(__name__)


@asynccontextmanager
async def worker_client(manager: ClusterClient, worker: str, secrets: str) -> AsyncIterator[ClusterClient]:
    """A client of a worker, by the kubeconfig that the daemon uses, under the daemon's rules for kubeconfigs.

    Args:
        manager: its API server.
        worker: name of the MultiKueueCluster.
        secrets: namespace of the kubeconfig Secrets.

    Raises:
        CommandError: there is no such worker, or its kubeconfig may not be read or used.
    """
    config = await worker_config(manager, worker, secrets)
    async with KubeClient(config, name=worker, options=OPTIONS) as client:
        yield client


async def worker_config(manager: ClusterClient, worker: str, secrets: str) -> ClusterConfig:
    """The address and credentials of a worker; arguments and errors as for `worker_client`."""
    try:
        cluster = await manager.get(MULTIKUEUE_CLUSTER, ObjectKey("", worker))
    except NotFound as error:
        problem = f'there is no MultiKueueCluster "{worker}" any more: nothing says how to reach that worker'
        raise CommandError(problem, NOT_FOUND) from error
    except Forbidden as error:
        problem = f'you may not get MultiKueueCluster "{worker}", which says how that worker is reached: {_WITHOUT}'
        raise CommandError(problem, NOT_REACHABLE) from error
    try:
        return (await access_to(manager, cluster, secrets)).config
    except NoAccess as error:
        remedy, code = _REMEDIES[error.lack]
        raise CommandError(f"{error}: {remedy}", code) from error


async def mark_key(manager: ClusterClient, namespace: str) -> bytes | None:
    """The key by which copies are marked; None if it is not there, or may not be read."""
    try:
        return key_in(await manager.get(SECRET, ObjectKey(namespace, Settings().marks_secret)))
    except (NotFound, Forbidden):
        return None


def told_of(worker: str, error: ApiError) -> str:
    """What went wrong on a worker, and what to do."""
    match error:
        case Forbidden():
            grant = f"multikueue worker add {worker} --worker-context CONTEXT --logs, or multikueue rbac worker --logs"
            local = "(worker add wants --outside where the daemon runs on this machine)"
            return f"the daemon's account may not do that on {error}: grant it with {grant} {local}"
        case Unauthorized():
            rotate = f"multikueue worker rotate {worker} --worker-context CONTEXT"
            return f'worker cluster "{worker}" does not accept the daemon\'s credentials: {rotate} gives it new ones'
        case Unreachable():
            return (
                f'worker cluster "{worker}" cannot be reached from this machine ({error}): is it up, and routed here?'
            )
    return f'worker cluster "{worker}" answers with an error: {error}'


def key_in(secret: Json) -> bytes | None:
    """The key in a Secret; None if it has none that can be used."""
    try:
        key = base64.b64decode(str(dig(secret, "data", FIELD) or ""))
    except ValueError:
        return None
    return key if len(key) >= SHORTEST else None
