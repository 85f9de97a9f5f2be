"""Queues that have no room for copies, as their worker is the manager itself, or may be."""

from __future__ import annotations

from multikueue.core.config.own_queues import unfit
from multikueue.core.config.quota import check_names
from multikueue.core.dispatchers.reasons import Reason, Why
from multikueue.core.dispatchers.scored.facts import Room
from multikueue.core.model.names import ObjectKey
from multikueue.core.model.objects import name_of
from multikueue.runtime.caches.manager_cluster import ManagerCluster
from multikueue.runtime.workers.informers import WorkerInformers


def own_queue_room(name: str, informers: WorkerInformers, manager: ManagerCluster) -> Room | None:
    """What a ClusterQueue of a worker has for copies because of whose it is; None: what its figures say.

    While nobody knows whether it is the manager's, one in which copies would wait for our check for ever is not used.
    """
    queues, identity = informers.queues, informers.identity
    if not identity.may_be_manager:
        return None
    ours = {name_of(one) for one in manager.checks.values() if manager.is_ours(one)}
    queue = queues.cluster_queues.get(ObjectKey("", name))
    leads_away = queue is not None and not ours.isdisjoint(check_names(queue))
    if identity.is_manager:
        flaw = unfit(list(queues.cluster_queues.values()), queues.readable_cohorts or (), ours).get(name)
        told = f"ClusterQueue {name} there cannot hold copies: {flaw}"
        return Room(obstacle=Reason(Why.NEVER_STARTS if leads_away else Why.QUEUE_UNFIT, told)) if flaw else None
    told = f"ClusterQueue {name} there has our check, and it is not known yet whether the worker is the manager itself"
    return Room(obstacle=Reason(Why.QUEUE_UNFIT, told)) if leads_away else None
