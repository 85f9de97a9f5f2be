"""`multikueue worker rotate`: a new token, without a lost connection, and the old one worthless afterwards."""

from __future__ import annotations

import secrets

import yaml

from multikueue.core.model.kinds import SECRET
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import name_of, resource_version
from multikueue.protocols import ApiClient
from multikueue.runtime.reconcilers.configuration import KUBECONFIG_KEY
from multikueued.workers import objects
from multikueued.workers.adding import account_secrets, filled, token_in
from multikueued.workers.connecting import until_connected
from multikueued.workers.objects import WorkerError, WorkerSide
from multikueued.workers.places import Manager, decoded, read, remove


async def rotate(manager: Manager, worker: ApiClient, name: str, side: WorkerSide, timeout: float) -> None:
    """Give the daemon a new token for a worker; delete the old one once the daemon uses the new one.

    Raises:
        WorkerError: that is not possible, or the daemon does not take the new token: then the old one still works.
        ApiError: a cluster refuses a request.
    """
    secret = await _stored(manager, name)
    before = token_in(secret)
    replaced = next((one for one in await account_secrets(worker, side) if decoded(one, "token") == before), None)
    fresh = f"{side.token}-{secrets.token_hex(4)}"
    new = ObjectKey(side.namespace, fresh)
    given = False
    try:
        kubeconfig = with_token(secret, decoded(await filled(worker, side, fresh), "token"))
        manager.say(f"{name}: Secret {new} has a new token")
        given = True  # also if the answer is lost: the token may be in use
        await _store(manager, secret, kubeconfig)
        await until_connected(manager, name, kubeconfig, timeout, must_tell=True)
    except BaseException:  # Ctrl-C as well
        manager.say(_undo(manager, name, new, replaced, given))
        raise
    if replaced is None:
        manager.say(f"{name}: the earlier credentials are not a token that this command made: revoke them yourself")
    elif await remove(worker, SECRET, ObjectKey.of(replaced)):
        manager.say(
            f"{name}: the daemon uses the new token; Secret {ObjectKey.of(replaced)} is deleted, its token void"
        )
    others = [name_of(one) for one in await account_secrets(worker, side) if name_of(one) != fresh]
    if others:
        manager.say(f"{name}: the account has other tokens, for other managers or left behind: {', '.join(others)}")


def _undo(manager: Manager, name: str, new: ObjectKey, replaced: Json | None, given: bool) -> str:
    if not given:
        undo = f"kubectl delete secret -n {new.namespace} {new.name} --ignore-not-found"
        return f"Not done: nothing has changed for the daemon. On {name}: {undo}"
    stored = f"{manager.namespace}/{objects.secret_name(name)}"
    old = f"; the earlier one, Secret {ObjectKey.of(replaced)}, still works" if replaced is not None else ""
    return (
        f"Not done: the Secret {stored} has the new token, and the daemon may be about to take it{old}. Rotate again."
    )


async def _stored(manager: Manager, name: str) -> Json:
    """The Secret on the manager with the worker's kubeconfig.

    Raises:
        WorkerError: there is none.
    """
    cluster = await manager.cluster(name)
    found = objects.location(cluster)
    if not found:
        raise WorkerError(
            f'MultiKueueCluster "{name}" does not have its kubeconfig from a Secret: change it where it is'
        )
    secret = await read(manager.client, SECRET, ObjectKey(manager.namespace, found))
    if secret is None:
        raise WorkerError(f"there is no Secret {manager.namespace}/{found} on the manager: use worker add")
    return secret


def with_token(secret: Json, token: str) -> bytes:
    """The kubeconfig in a Secret with another token as its only credential.

    Raises:
        WorkerError: it cannot be read, or the daemon would refuse it.
    """
    try:
        document = yaml.safe_load(decoded(secret, KUBECONFIG_KEY))
        user = document["users"][0]
    except (yaml.YAMLError, KeyError, IndexError, TypeError):
        raise WorkerError(f"the kubeconfig in Secret {ObjectKey.of(secret)} cannot be read: use worker add") from None
    return objects.check_kubeconfig({**document, "users": [{**user, "user": {"token": token}}]})


async def _store(manager: Manager, secret: Json, kubeconfig: bytes) -> None:
    made = objects.manager_secret("", manager.namespace, kubeconfig)
    patch = {"metadata": {"resourceVersion": resource_version(secret)}, "data": made["data"]}
    await manager.client.merge_patch(SECRET, ObjectKey.of(secret), patch)
