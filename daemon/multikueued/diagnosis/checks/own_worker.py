"""Checks of the manager as one of its own workers, by what the daemon has noted on MultiKueueClusters."""

from __future__ import annotations

from collections.abc import Iterator

from multikueue.core.config.own_queues import unfit
from multikueue.core.machinery.connection_facts import connection_facts
from multikueue.core.model.conditions import is_true
from multikueue.core.model.objects import dig, name_of
from multikueued.diagnosis.facts import Facts
from multikueued.diagnosis.findings import Spot, check


@check("own-worker-queue")
def unfit_queue(facts: Facts) -> Iterator[Spot]:
    """A worker is the manager itself, and a queue for copies there leads to workers, or shares a cohort with one."""
    flaws = unfit(facts.objects.cluster_queues, facts.objects.cohorts, facts.objects.our_checks)
    for name in sorted(facts.objects.clusters_by_name):
        names, unfit_targets = facts.objects.names_on(name), set[tuple[str, str]]()
        for here in facts.objects.local_queues_for.get(name, ()) if facts.objects.is_manager(name) else ():
            there = facts.objects.local_queues_by_key.get(names.local_queue(here))
            target = str(dig(there, "spec", "clusterQueue") or "")
            if why := flaws.get(target):
                unfit_targets.add((target, why))
        for target, why in sorted(unfit_targets):
            where, queue = f"{name}, ClusterQueue {target}", f"ClusterQueue {target}"
            yield Spot(where, f"copies would be in it, and {why}", object=queue, workers=(name,))


@check("own-worker-unknown")
def unknown_identity(facts: Facts) -> Iterator[Spot]:
    """It cannot be told whether a worker is the manager itself."""
    for cluster in facts.objects.clusters:
        seen = connection_facts(cluster)
        if seen is not None and seen.is_manager is None and is_true(cluster, "Active"):
            yield Spot(name_of(cluster), "the daemon cannot tell whether it is the manager itself")
