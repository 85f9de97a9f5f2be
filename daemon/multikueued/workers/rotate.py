"""`multikueue worker rotate`: a new token, without a lost connection, and the old one worthless afterwards."""

from __future__ import annotations

import base64
import math
import secrets
from collections.abc import Iterator
from contextlib import contextmanager

import anyio
import yaml

from multikueue.core.model.kinds import SECRET
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import name_of, resource_version
from multikueue.kube.kubernetes_yaml import KubernetesLoader
from multikueue.protocols import Writer, read
from multikueue.runtime.reconcilers.configuration import KUBECONFIG_KEY
from multikueued.clusters import ClusterClient
from multikueued.exits import CommandError
from multikueued.rbac.objects import SERVICE_ACCOUNT
from multikueued.reports.worker_facts import secret_name
from multikueued.tokens.bound import NOT_BOUND, Bound, bound_in
from multikueued.workers import objects
from multikueued.workers.bound_token import check_bound, issued
from multikueued.workers.connection_wait import until_connected
from multikueued.workers.kept import check_by_hand
from multikueued.workers.objects import WorkerSide
from multikueued.workers.places import ManagerAccess, decoded, remove
from multikueued.workers.tokens import account_secrets, check_account, comes_from, filled, kubeconfig_secrets, token_in


async def rotate(
    manager: ManagerAccess,
    worker: ClusterClient,
    name: str,
    side: WorkerSide,
    timeout: float,
    *,
    bound: bool = False,
    life: float | None = None,
) -> None:
    """Give the daemon a new token for a worker; make the old one void once the daemon uses the new one.

    Args:
        manager: the manager cluster.
        worker: with an administrator's credentials.
        name: the worker's.
        side: what it keeps for the daemon.
        timeout: seconds until the daemon uses the new token, for all that is done until then.
        bound: whether the new token is to end; one that does has one that does for successor anyway.
        life: seconds that a bound one lasts; None: as long as the one in use, or the default.

    Raises:
        CommandError: that is not possible, or the daemon does not take the new token: then the old one still works.
        ApiError: a cluster refuses a request.
    """
    deadline = anyio.current_time() + timeout
    with _bounded(name, timeout) as scope:
        secret = await _stored(manager, name)
        was = bound_in(secret)
        bound = bound or was is not None
        if bound:
            check_bound(manager.settings, name, life)
        await _check_place(worker, name, side)
        if (replaced := await _source(worker, side, secret, was)) is None:
            await check_account(manager, name, worker, side)
        fresh = f"{side.holder if bound else side.token}-{secrets.token_hex(4)}"
        new, given = ObjectKey(side.namespace, fresh), False
        try:
            token, about = await _new(manager, worker, side, fresh, ends=bound, life=_life(life, was))
            kubeconfig = with_token(secret, token)
            manager.say(f"{name}: Secret {new} {'holds' if about else 'has'} a new token")
            given = True  # also if the answer is lost: the token may be in use
            await store(manager.client, secret, kubeconfig, about)
            scope.deadline = math.inf  # the rest of the time goes to the daemon, which may say why not
            await until_connected(manager, name, kubeconfig, deadline - anyio.current_time(), must_tell=True)
        except BaseException:  # Ctrl-C as well
            manager.say(_undo(manager, name, new, replaced, given))
            raise
    await _void(manager, worker, name, replaced)
    await _tell_others(manager, worker, name, side, fresh)


@contextmanager
def _bounded(name: str, timeout: float) -> Iterator[anyio.CancelScope]:
    try:
        with anyio.fail_after(timeout) as scope:
            yield scope
    except TimeoutError:
        raise CommandError(f'not done after {timeout:g} s: worker "{name}" or the manager takes longer') from None


async def _void(manager: ManagerAccess, worker: ClusterClient, name: str, replaced: Json | None) -> None:
    if replaced is None:
        manager.say(f"{name}: the earlier credentials are not a token that this command made: revoke them yourself")
        return
    key = ObjectKey.of(replaced)
    async for other, secret in kubeconfig_secrets(manager):
        if other != name and comes_from(token_in(secret), replaced):
            stays = f"Secret {key} stays, as MultiKueueCluster {other} has a token of it: rotate that, too"
            manager.say(f"{name}: the daemon uses the new token; {stays}")
            return
    if await remove(worker, SECRET, replaced):
        manager.say(f"{name}: the daemon uses the new token; Secret {key} is deleted, its token void")


async def _tell_others(manager: ManagerAccess, worker: ClusterClient, name: str, side: WorkerSide, fresh: str) -> None:
    others = [name_of(secret) for secret in await account_secrets(worker, side) if name_of(secret) != fresh]
    if others:
        manager.say(f"{name}: the account has other tokens, for other managers or left behind: {', '.join(others)}")


async def _check_place(worker: ClusterClient, name: str, side: WorkerSide) -> None:
    """Refuse a cluster without the account: nobody there would fill in the token."""
    if await read(worker, SERVICE_ACCOUNT, side.key) is None:
        raise CommandError(
            f"the cluster of that context has no ServiceAccount {side.key}: name that of {name} with --worker-context; "
            f"if it is gone there, make it again: multikueue worker add {name} --worker-context CONTEXT"
        )


async def _source(worker: ClusterClient, side: WorkerSide, secret: Json, was: Bound | None) -> Json | None:
    """The Secret on the worker whose deletion makes the token in use void; None: there is none."""
    used = token_in(secret)
    for secret_there in await account_secrets(worker, side):
        if (name_of(secret_there) == was.holder) if was is not None else (decoded(secret_there, "token") == used):
            return secret_there
    return None


def _life(asked: float | None, was: Bound | None) -> float | None:
    return was.life.total_seconds() if asked is None and was is not None else asked


async def _new(
    manager: ManagerAccess, worker: ClusterClient, side: WorkerSide, name: str, *, ends: bool, life: float | None
) -> tuple[str, Bound | None]:
    if ends:
        return await issued(manager, worker, side, name, life)
    return decoded(await filled(worker, side, name), "token"), None


def _undo(manager: ManagerAccess, name: str, new: ObjectKey, replaced: Json | None, given: bool) -> str:
    if not given:
        undo = f"kubectl delete secret -n {new.namespace} {new.name} --ignore-not-found"
        return f"Not done: nothing has changed for the daemon. On {name}: {undo}"
    stored = f"{manager.namespace}/{secret_name(name)}"
    old = f"; the earlier one, Secret {ObjectKey.of(replaced)}, still works" if replaced is not None else ""
    return (
        f"Not done: the Secret {stored} has the new token, and the daemon may be about to take it{old}. Rotate again."
    )


async def _stored(manager: ManagerAccess, name: str) -> Json:
    """The Secret on the manager with the worker's kubeconfig.

    Raises:
        CommandError: there is none, or it is not ours to change.
    """
    cluster = await manager.cluster(name)
    check_by_hand(cluster)
    location = objects.location(cluster)
    if not location:
        raise CommandError(
            f'MultiKueueCluster "{name}" does not have its kubeconfig from a Secret: change it where it is'
        )
    secret = await read(manager.client, SECRET, ObjectKey(manager.namespace, location))
    if secret is None:
        raise CommandError(f"there is no Secret {manager.namespace}/{location} on the manager: use worker add")
    return secret


def with_token(secret: Json, token: str) -> bytes:
    """The kubeconfig in a Secret with another token as its only credential.

    Raises:
        CommandError: it cannot be read, or the daemon would refuse it.
    """
    try:
        document = yaml.load(decoded(secret, KUBECONFIG_KEY), KubernetesLoader)
        user = document["users"][0]
    except (yaml.YAMLError, KeyError, IndexError, TypeError):
        raise CommandError(f"the kubeconfig in Secret {ObjectKey.of(secret)} cannot be read: use worker add") from None
    return objects.check_kubeconfig({**document, "users": [{**user, "user": {"token": token}}]})


async def store(client: Writer, secret: Json, kubeconfig: bytes, bound: Bound | None) -> None:
    """Put another kubeconfig into a Secret on the manager, as it was read.

    Raises:
        Conflict: somebody else changed it meanwhile.
    """
    data = {KUBECONFIG_KEY: base64.b64encode(kubeconfig).decode()}
    annotations = {**NOT_BOUND, **(bound.annotations if bound is not None else {})}
    metadata = {"resourceVersion": resource_version(secret), "annotations": annotations}
    await client.merge_patch(SECRET, ObjectKey.of(secret), {"metadata": metadata, "data": data})
