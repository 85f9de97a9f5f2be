"""Checks of workers, by what they answered: whether they have what the manager's queues and jobs need."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from multikueue.core.model import workloads
from multikueue.core.model.kinds import KUEUE_GROUP
from multikueue.core.model.names import GVK, Json, ObjectKey
from multikueue.core.model.objects import dig, name_of
from multikueued.reports.doctor.configuration import spot_of
from multikueued.reports.doctor.facts import Facts
from multikueued.reports.doctor.findings import Severity, Spot
from multikueued.reports.jobs import WAITING_STATES, state_of
from multikueued.reports.remedy_table import about_worker
from multikueued.reports.typenames import type_name
from multikueued.workers.move_targets import quota_mismatch

SKEW: Final = 10.0
"""Seconds by which clocks may differ."""
SLOW: Final = 1.0
"""Seconds that a small request may take."""


def slow(facts: Facts) -> Iterator[Spot]:
    """Workers that answer slowly."""
    for worker in facts.workers.values():
        if worker.latency is not None and worker.latency > SLOW:
            told = f"a small request takes {worker.latency:.1f} s from here (the median of three)"
            yield Spot(worker.name, told)


def skewed(facts: Facts) -> Iterator[Spot]:
    """Workers whose clock differs from the manager's; the manager's, where only this machine's can be compared."""
    for worker in facts.workers.values():
        if worker.clock is None or facts.clock is None:
            continue
        bound = worker.clock.ahead_of(facts.clock)
        if abs(bound.at_least) > SKEW:
            side = "ahead of" if bound.at_least > 0 else "behind"
            told = f"its clock is at least {int(abs(bound.at_least))} s {side} the manager's"
            yield Spot(worker.name, told, {"worker": worker.name})


def this_machine_skewed(facts: Facts) -> Iterator[Spot]:
    """A manager whose clock differs from this machine's."""
    bound = facts.clock
    if bound is not None and abs(bound.at_least) > SKEW:
        side = "behind" if bound.at_least > 0 else "ahead of"
        yield Spot("this machine", f"its clock is at least {int(abs(bound.at_least))} s {side} the manager's")


def silent(facts: Facts) -> Iterator[Spot]:
    """Workers that did not answer, or did not accept the credentials, and that the daemon does not reach, either."""
    for worker in facts.workers.values():
        if worker.error:
            context = {"secrets": facts.daemon_namespace, "job": "JOB", "namespace": "NAMESPACE"}
            yield spot_of(about_worker(worker.name, worker.error, context, connected=False))


def without_kueue(facts: Facts) -> Iterator[Spot]:
    """Workers that do not serve Kueue's kinds."""
    for worker in facts.workers.values():
        if lacking := sorted(_words(gvk) for gvk in worker.lacking if gvk.group == KUEUE_GROUP):
            yield Spot(worker.name, f"it does not serve {', '.join(lacking)}")


def older_kueue(facts: Facts) -> Iterator[Spot]:
    """Workers whose Kueue lacks what copies may need."""
    for worker in facts.workers.values():
        if worker.kueue is not None and worker.kueue.lacks:
            yield Spot(worker.name, f"{worker.kueue.name} there lacks {'; '.join(worker.kueue.lacks)}")


def without_kind(facts: Facts) -> Iterator[Spot]:
    """Kinds that are enabled and served here, and not by a worker. An error if jobs of the kind wait."""
    waiting = {behind.gvk for one in _waiting(facts) if (behind := workloads.owner(one)) is not None}
    for worker in facts.workers.values():
        for kind in facts.kinds:
            gvk = kind.resource.gvk
            if gvk in worker.lacking and gvk not in facts.lacking and not kind.workload_only:
                told = f"it does not serve {kind.resource}, which the manager serves"
                severity = Severity.ERROR if gvk in waiting else Severity.WARNING
                yield Spot(worker.name, told, severity=severity)


def without_namespace(facts: Facts) -> Iterator[Spot]:
    """Namespaces with queues here that lead to a worker and are not there."""
    for worker in facts.workers.values():
        for namespace in sorted({key.namespace for key in _queues_for(facts, worker.name)}):
            if worker.namespaces is not None and namespace not in worker.namespaces:
                told = f'namespace "{namespace}" does not exist there'
                words = {"worker": worker.name, "namespace": namespace}
                yield Spot(f"{worker.name}, Namespace {namespace}", told, words)


def without_local_queue(facts: Facts) -> Iterator[Spot]:
    """LocalQueues here that lead to a worker and have no twin there. An error if no worker has one."""
    missing = [
        (key, worker.name)
        for worker in facts.workers.values()
        for key in _queues_for(facts, worker.name)
        if worker.queues is not None and key not in worker.queues.local
        if worker.namespaces is None or key.namespace in worker.namespaces
    ]
    checks = dict(facts.queues_with_check())
    lacking: dict[ObjectKey, set[str]] = defaultdict(set)
    for key, worker_name in missing:
        lacking[key].add(worker_name)
    for key, worker_name in missing:
        nowhere = lacking[key] >= set(facts.objects.workers_of(checks[key]))
        told = f'LocalQueue "{key}" does not exist there{", nor on any other worker" if nowhere else ""}'
        words = {"worker": worker_name, "queue": key.name, "namespace": key.namespace}
        severity = Severity.ERROR if nowhere else Severity.WARNING
        yield Spot(f"{worker_name}, LocalQueue {key}", told, words, severity=severity)


def without_cluster_queue(facts: Facts) -> Iterator[Spot]:
    """Twins whose ClusterQueue does not exist there, or is stopped."""
    for worker in facts.workers.values():
        for key in _queues_for(facts, worker.name):
            queues = worker.queues
            if queues is None or key not in queues.local:
                continue
            target = queues.local[key]
            queue = queues.cluster.get(target)
            if queue is None:
                told = f'it leads to ClusterQueue "{target}", which does not exist there'
            elif dig(queue, "spec", "stopPolicy") not in (None, "None"):
                told = f'it leads to ClusterQueue "{name_of(queue)}", which is stopped there'
            else:
                continue
            yield Spot(f"{worker.name}, LocalQueue {key}", told)


def never_fitting(facts: Facts) -> Iterator[Spot]:
    """Jobs that have quota here and could get it on no worker, whatever ends there."""
    for one in _waiting(facts):
        check = facts.objects.check_of(one)
        listed = facts.objects.workers_of(check) if check is not None else []
        seen = {name: worker.queues for name in listed if (worker := facts.workers.get(name)) is not None}
        reasons = {name: quota_mismatch(one, queues) for name, queues in seen.items() if queues is not None}
        if not workloads.has_quota(one) or not reasons or len(reasons) < len(listed):
            continue
        if all("quota for" in why for why in reasons.values()):
            told = "; ".join(f"{name}: {why}" for name, why in reasons.items())
            name = f"{dig(one, 'metadata', 'namespace')}/{type_name(one)}"
            yield Spot(name, f"no worker could ever have quota for it: {told}")


def _waiting(facts: Facts) -> list[Json]:
    return [one for one in facts.objects.dispatched if state_of(one, facts.objects) in WAITING_STATES]


def _queues_for(facts: Facts, worker: str) -> list[ObjectKey]:
    """The LocalQueues that lead to a worker."""
    return [key for key, check in facts.queues_with_check() if worker in facts.objects.workers_of(check)]


def _words(gvk: GVK) -> str:
    return f"{gvk.kind} ({gvk.api_version})"
