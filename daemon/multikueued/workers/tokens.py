"""The Secrets on a worker that the daemon's token comes from, and the token in the Secret on the manager."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

import anyio
import yaml

from multikueue.core.model.kinds import MULTIKUEUE_CLUSTER, SECRET
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import annotations_of, dig, name_of, uid
from multikueue.core.model.shape import object_flaw
from multikueue.kube.kubernetes_yaml import KubernetesLoader
from multikueue.protocols import ApiClient, read
from multikueue.runtime.reconcilers.configuration import KUBECONFIG_KEY
from multikueued.exits import CommandError
from multikueued.rbac.objects import SERVICE_ACCOUNT
from multikueued.reports.worker_facts import secret_name
from multikueued.tokens.bound import ACCOUNT, claims_of
from multikueued.workers import objects
from multikueued.workers.objects import WorkerSide
from multikueued.workers.places import FIELD_MANAGER, ManagerAccess, decoded

TOKEN_PATIENCE: Final = 30.0
"""Seconds that a worker may take to fill in a token Secret; it takes milliseconds."""


async def account_secrets(worker: ApiClient, side: WorkerSide) -> list[Json]:
    """The Secrets of the account that this command made: with its tokens, and those that tokens are bound to."""
    listed = (await worker.list(SECRET, namespace=side.namespace)).items
    whole = (secret for secret in listed if not object_flaw(secret))
    return [secret for secret in whole if objects.is_ours(secret) and is_of_account(secret, side)]


def is_of_account(secret: Json, side: WorkerSide) -> bool:
    """Whether a Secret holds a token of the account, or tokens of it are bound to it."""
    annotations = annotations_of(secret)
    if secret.get("type") == objects.TOKEN_TYPE:
        return annotations.get(objects.ACCOUNT_ANNOTATION) == side.account
    return annotations.get(ACCOUNT) == str(side.key)


async def filled(worker: ApiClient, side: WorkerSide, name: str) -> Json:
    """Make a token Secret and wait until the worker has filled it in.

    Raises:
        CommandError: it is not filled in.
    """
    key = ObjectKey(side.namespace, name)
    await worker.apply(SECRET, side.token_secret(name), field_manager=FIELD_MANAGER)
    with anyio.move_on_after(TOKEN_PATIENCE):
        while True:
            secret = await worker.get(SECRET, key)
            if dig(secret, "data", "token"):
                return secret
            await anyio.sleep(0.2)
    raise CommandError(
        f"the worker does not fill in the token of Secret {key} after {TOKEN_PATIENCE:g} s: "
        "does its kube-controller-manager run, with the token controller?"
    )


async def check_account(manager: ManagerAccess, name: str, worker: ApiClient, side: WorkerSide) -> list[str]:
    """Look whose account the one on a worker is, before it is changed in the name of a MultiKueueCluster.

    Returns:
        The other MultiKueueClusters that the daemon reaches by it: one cluster may have several names.

    Raises:
        CommandError: it is another's alone: the name or the context is a wrong one.
    """
    account = await read(worker, SERVICE_ACCOUNT, side.key)
    if account is None:
        return []
    tokens = {decoded(secret, "token") for secret in await account_secrets(worker, side)} - {""}
    servers, users = dict[str, str](), list[str]()
    async for user, secret in kubeconfig_secrets(manager):
        servers[user], used = server_in(secret), token_in(secret)
        if used in tokens or dig(claims_of(used), "kubernetes.io", "serviceaccount", "uid") == uid(account):
            users.append(user)
    if users and servers.get(name) not in {servers[user] for user in users}:
        owner = f'the daemon reaches MultiKueueCluster "{users[0]}" by the account of that context'
        raise CommandError(f"{owner}, and not {name}: correct the name or --worker-context")
    return [user for user in users if user != name]


async def kubeconfig_secrets(manager: ManagerAccess) -> AsyncIterator[tuple[str, Json]]:
    """The names of all MultiKueueClusters with a Secret that holds their kubeconfig."""
    for cluster in (await manager.client.list(MULTIKUEUE_CLUSTER)).items:
        secret = await kubeconfig_secret(manager, name_of(cluster), cluster)
        if secret is not None:
            yield name_of(cluster), secret


async def kubeconfig_secret(manager: ManagerAccess, name: str, cluster: Json | None) -> Json | None:
    """The Secret on the manager with a worker's kubeconfig."""
    location = objects.location(cluster) if cluster is not None else secret_name(name)
    return await read(manager.client, SECRET, ObjectKey(manager.namespace, location)) if location else None


def token_in(secret: Json) -> str:
    """The token in the kubeconfig of a Secret on the manager; empty if there is none."""
    return _field(secret, "users", "user", "token")


def comes_from(token: str, source: Json) -> bool:
    """Whether a token is void once a Secret on its worker is deleted: that holds it, or it is bound to that."""
    bound_to = dig(claims_of(token), "kubernetes.io", "secret", "uid")
    return bool(token) and (token == decoded(source, "token") or bound_to == uid(source))


def server_in(secret: Json) -> str:
    """The server in the kubeconfig of a Secret on the manager; empty if there is none."""
    return _field(secret, "clusters", "cluster", "server")


def _field(secret: Json, listed: str, part: str, field: str) -> str:
    try:
        document = yaml.load(decoded(secret, KUBECONFIG_KEY), KubernetesLoader)
        return str(document[listed][0][part].get(field) or "")
    except (yaml.YAMLError, KeyError, IndexError, TypeError, AttributeError):
        return ""
