"""`multikueue worker remove`: out of the list, then the MultiKueueCluster and its Secret, then what the worker has."""

from __future__ import annotations

from typing import Final

import anyio

from multikueue.core.machinery.connection_facts import connection_facts
from multikueue.core.model.kinds import MULTIKUEUE_CLUSTER, MULTIKUEUE_CONFIG, SECRET, WORKLOAD
from multikueue.core.model.labels import ORIGIN_LABEL
from multikueue.core.model.name_lists import listed
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import name_of
from multikueue.protocols import ApiClient, read
from multikueued.exits import CommandError
from multikueued.rbac.objects import CLUSTER_ROLE, CLUSTER_ROLE_BINDING, ROLE, ROLE_BINDING, SERVICE_ACCOUNT
from multikueued.reports.typenames import title
from multikueued.workers import objects
from multikueued.workers.drain import drain
from multikueued.workers.jobs import cordon, running_on
from multikueued.workers.kept import check_by_hand
from multikueued.workers.objects import WorkerSide
from multikueued.workers.places import ManagerAccess, change_list, remove
from multikueued.workers.tokens import account_secrets, check_account, kubeconfig_secret

_REASON: Final = "it is being removed"
CLEARING: Final = 60.0
"""Seconds that the daemon may take to remove its copies from a worker before its account there is deleted."""


async def remove_worker(
    manager: ManagerAccess, name: str, *, timeout: float, force: bool, worker: ApiClient | None, side: WorkerSide
) -> None:
    """Remove a worker. What is gone already is passed over, so the same command again goes on.

    Args:
        manager: the manager cluster.
        name: the worker's.
        timeout: seconds that its jobs may take to end; 0: there must be none.
        force: remove it although it has jobs: they run to their end while this daemon lives.
        worker: to delete the account there, too; None: leave it.
        side: what was made there.

    Raises:
        CommandError: it may not be removed.
        ApiError: a cluster refuses a request.
    """
    cluster = await read(manager.client, MULTIKUEUE_CLUSTER, ObjectKey("", name))
    if cluster is not None:
        check_by_hand(cluster)
    configs = [
        config for config in (await manager.client.list(MULTIKUEUE_CONFIG)).items if objects.without_entry(config, name)
    ]
    if worker is not None and (others := await check_account(manager, name, worker, side)):
        shared = f'the daemon reaches MultiKueueCluster "{others[0]}" by the account of that context, too'
        raise CommandError(f"{shared}: leave --worker-context out, and the account stays for it")
    if cluster is not None:
        await _empty(manager, name, timeout, force=force)
    try:
        for config in configs:
            key = ObjectKey.of(config)
            await change_list(manager.client, MULTIKUEUE_CONFIG, key, lambda now: objects.without_entry(now, name))
            manager.say(f"manager: MultiKueueConfig {key.name} does not list {name} any more")
        if not force and (late := await running_on(manager, name)):
            raise CommandError(_has_jobs(name, late))
        known = await _forget(manager, name, cluster) or cluster is not None or bool(configs)
        if worker is not None:
            await _clear(manager, name, worker, side)
    except BaseException:  # Ctrl-C as well
        manager.say(f"Not done: run the same command again to remove the rest of {name}")
        raise
    if worker is None and not known:
        await manager.cluster(name)  # raises, with what may have been meant
    if worker is None:
        facts, account = connection_facts(cluster or {}), f"the account {side.key}"
        if facts is not None and facts.same_as:
            shared = f"the cluster of {name} is that of {listed(facts.same_as)}, too"
            manager.say(f"{shared}: {account} stays there")
        else:
            manager.say(f"{name} still has {account}: --worker-context removes it, and its token with it")


async def _empty(manager: ManagerAccess, name: str, timeout: float, *, force: bool) -> None:
    if force:
        return
    running = await running_on(manager, name)
    if running and timeout > 0:
        await drain(manager, name, timeout, reason=_REASON, move=None)
    elif running or (running := await cordon(manager, name, _REASON)):
        raise CommandError(_has_jobs(name, running))


def _has_jobs(name: str, running: list[Json]) -> str:
    lines = "\n".join(f"  {title(workload)}" for workload in running)
    advice = "wait for them with --timeout, move them with worker drain --move, or say --force"
    return f"{name} has jobs: {advice}:\n{lines}"


async def _forget(manager: ManagerAccess, name: str, cluster: Json | None) -> bool:
    """Delete the MultiKueueCluster, and the Secret if it is ours; return whether there was a Secret."""
    secret = await kubeconfig_secret(manager, name, cluster)
    if cluster is not None and await remove(manager.client, MULTIKUEUE_CLUSTER, cluster):
        manager.say(f"manager: MultiKueueCluster {name} is deleted")
    if secret is None:
        return False
    key = ObjectKey.of(secret)
    others = (await manager.client.list(MULTIKUEUE_CLUSTER)).items
    if sharing := [name_of(other) for other in others if objects.location(other) == key.name]:
        manager.say(f"manager: Secret {key} is that of {', '.join(sharing)}, too, and stays")
    elif not objects.is_ours(secret):
        manager.say(f"manager: Secret {key} was not made by this command, and stays: delete it yourself")
    elif await remove(manager.client, SECRET, secret):
        manager.say(f"manager: Secret {key} is deleted")
    return True


async def _clear(manager: ManagerAccess, name: str, worker: ApiClient, side: WorkerSide) -> None:
    """Delete the account, its role and its tokens on the worker, once the daemon has removed its copies.

    Raises:
        CommandError: copies are left there.
    """
    selector = f"{ORIGIN_LABEL}={manager.settings.origin}"
    with anyio.move_on_after(CLEARING) as scope:
        while True:
            if not (await worker.list(WORKLOAD, label_selector=selector, limit=1)).items:
                break
            await anyio.sleep(0.5)
    if scope.cancelled_caught:
        why = "its account is needed to remove them, and stays"
        raise CommandError(
            f"{name} still has copies of the origin {manager.settings.origin}: {why}; run this again later, or, if "
            "they are another manager's, give each an origin of its own"
        )
    for secret in await account_secrets(worker, side):
        await remove(worker, SECRET, secret)
    for resource, key in (
        (CLUSTER_ROLE_BINDING, ObjectKey("", side.role)),
        (CLUSTER_ROLE, ObjectKey("", side.role)),
        (ROLE_BINDING, ObjectKey(side.namespace, side.role)),
        (ROLE, ObjectKey(side.namespace, side.role)),
        (SERVICE_ACCOUNT, side.key),
    ):
        obj = await read(worker, resource, key)
        if obj is not None and objects.is_ours(obj):
            await remove(worker, resource, obj)
    manager.say(f"{name}: the account {side.key}, its role and its tokens are deleted")
