"""Checks of what the scored dispatcher holds by: one large queue on each worker, for queues that share them here."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping

from multikueue.core.config.quota import cohort_of
from multikueue.core.dispatchers.dispatcher import SCORED
from multikueue.core.dispatchers.scored.profile import Hold, Profile
from multikueue.core.model.labels import PROFILE_ANNOTATION
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import annotations_of, dig
from multikueue.core.model.quantities import written
from multikueued.diagnosis.facts import Facts, KueueFacts
from multikueued.diagnosis.findings import Spot, check
from multikueued.reports.quotas import nominal
from multikueued.reports.worker_queues import QueuesOnWorker


@check("hold-blocks-admission")
def hold_blocks_admission(facts: Facts) -> Iterator[Spot]:
    """The dispatcher holds jobs, and the manager's Kueue waits for the pods of each (`blockAdmission`)."""
    if blocks_admission(facts.kueue):
        for name in sorted(check_name for check_name in facts.objects.our_checks if _holds(facts, check_name)):
            yield Spot(f"AdmissionCheck {name}", "its jobs are held, and Kueue has waitForPodsReady.blockAdmission")


@check("pool-spoiled")
def spoiled(facts: Facts) -> Iterator[Spot]:
    """Several ClusterQueues here share one ClusterQueue of a worker, and something there decides beside the manager."""
    for worker in facts.workers.values():
        for pool, ours in sorted(_pools(facts, worker.name, worker.queues).items()):
            flaws = list(_flaws(pool, ours, worker.queues)) if worker.queues is not None else []
            if flaws:
                yield Spot(f"{worker.name}, ClusterQueue {pool}", "; ".join(flaws))


@check("pools-too-small")
def too_small(facts: Facts) -> Iterator[Spot]:
    """The ClusterQueues that share the workers' are entitled to more than these have together."""
    for name in sorted(facts.objects.our_checks):
        listed = facts.objects.workers_of(name)
        queues = {worker: seen for worker in listed if (seen := facts.queues_on(worker)) is not None}
        pools = {worker: _pools(facts, worker, seen, name) for worker, seen in queues.items()}
        if not listed or len(queues) < len(set(listed)) or not all(pools.values()):
            continue
        there: Counter[str] = Counter()
        for worker, seen in queues.items():
            for pool in pools[worker]:
                there.update(nominal(seen.cluster.get(pool) or {}))
        sharing = {queue for pools_there in pools.values() for ours in pools_there.values() for queue in ours.values()}
        here: Counter[str] = Counter()
        for queue in sharing:
            here.update(nominal(facts.objects.queues_by_name.get(queue) or {}))
        short = [resource for resource in sorted(here) if resource in there and here[resource] > there[resource]]
        if short:
            amounts = ", ".join(
                f"{written(resource, here[resource])} {resource} of {written(resource, there[resource])}"
                for resource in short
            )
            yield Spot(f"AdmissionCheck {name}", f"its queues {', '.join(sorted(sharing))} are entitled to {amounts}")


def blocks_admission(kueue: KueueFacts) -> bool:
    """Whether Kueue admits nobody while the pods of somebody are not ready; not if that cannot be read.

    Without a word v1beta1 does so once waitForPodsReady is enabled, and v1beta2 does not.
    """
    settings = dig(kueue.configuration or {}, "waitForPodsReady") or {}
    blocks = settings.get("blockAdmission")
    if str((kueue.configuration or {}).get("apiVersion")).endswith("/v1beta1"):
        return settings.get("enable") is True and blocks is not False
    return blocks is True


def _holds(facts: Facts, check_name: str) -> bool:
    """Whether the dispatcher holds jobs of a check while no worker has room."""
    if facts.settings.dispatcher.name != SCORED:
        return False
    named = annotations_of(facts.objects.configs_by_check.get(check_name, {})).get(PROFILE_ANNOTATION) or "default"
    profiles: Mapping[str, Profile] = facts.settings.dispatcher.profiles or {}
    return profiles.get(named, Profile()).hold is Hold.AUTO


def _pools(
    facts: Facts, worker: str, queues: QueuesOnWorker | None, check_name: str = ""
) -> dict[str, dict[ObjectKey, str]]:
    """The ClusterQueues of a worker that several here lead to: its LocalQueues of each, with the ClusterQueue here."""
    pools: dict[str, dict[ObjectKey, str]] = defaultdict(dict)
    names = facts.objects.names_on(worker)
    for local, name in facts.queues_with_check():
        key = names.local_queue(local)
        if queues is None or key not in queues.local or worker not in facts.objects.workers_of(name):
            continue
        if _holds(facts, name) and check_name in ("", name):
            here = str(dig(facts.objects.local_queues_by_key[local], "spec", "clusterQueue") or "")
            pools[queues.local[key]][key] = here
    return {pool: ours for pool, ours in pools.items() if len(set(ours.values())) > 1}


def _flaws(pool: str, ours: Mapping[ObjectKey, str], queues: QueuesOnWorker) -> Iterator[str]:
    """What spoils a pool."""
    queue = queues.cluster.get(pool) or {}
    spec: Json = queue.get("spec") or {}
    if dig(spec, "admissionChecksStrategy", "admissionChecks") or spec.get("admissionChecks"):
        yield "it has admission checks of its own, so its jobs are offered to several workers at once"
    cohort = cohort_of(queue)
    others = (name for name, other in queues.cluster.items() if name != pool and cohort == cohort_of(other) != "")
    if beside := sorted(others):
        yield f"it shares cohort {cohort} with {', '.join(beside)}"
    elif cohort:
        yield f"it is in cohort {cohort}"
    preempts = {name: how for name, how in (spec.get("preemption") or {}).items() if _preempts(how)}
    if preempts:
        yield f"it preempts by itself: {', '.join(sorted(preempts))}"
    for group in spec.get("resourceGroups") or []:
        flavors = [str(flavor.get("name")) for flavor in group.get("flavors") or []]
        if len(flavors) > 1:
            yield f"a job must fit one of its flavors {', '.join(flavors)}, and the manager counts them together"
    if strange := sorted(str(key) for key, target in queues.local.items() if target == pool and key not in ours):
        yield f"other LocalQueues lead to it: {', '.join(strange)}"


def _preempts(how: object) -> bool:
    policy = how.get("policy") if isinstance(how, Mapping) else how
    return policy not in (None, "Never")
