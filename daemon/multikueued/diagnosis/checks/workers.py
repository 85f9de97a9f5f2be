"""Checks of workers, by what they answered: whether they have what the manager's queues and jobs need."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final, TypeVar

import attrs

from multikueue.core.dispatchers.reasons import Reason
from multikueue.core.model import workloads
from multikueue.core.model.conditions import parse_timestamp
from multikueue.core.model.kinds import KUEUE_GROUP
from multikueue.core.model.labels import MANAGED_LABEL
from multikueue.core.model.name_lists import listed
from multikueue.core.model.names import GVK, Json, ObjectKey
from multikueue.core.model.objects import dig, namespace_of
from multikueue.errors import Cause
from multikueued.diagnosis.checks.access import granting_there, has_new_credentials, refused
from multikueued.diagnosis.facts import Facts
from multikueued.diagnosis.findings import Spot, check
from multikueued.reports.clocks import TOLERATED, measured
from multikueued.reports.ending_copies import EndingCopy
from multikueued.reports.job_findings import DOES_NOT_END
from multikueued.reports.remedies.remedy import Finding, Severity
from multikueued.reports.typenames import title, type_name
from multikueued.reports.worker_queues import QueuesOnWorker, is_stopped, local_queue_of, queue_flaw, quota_mismatch

W = TypeVar("W", bound=Hashable)
LONG_GONE: Final = 60.0
"""Seconds after which Kueue lets go of no pod that it has not let go of."""
SLOW: Final = 1.0
"""Seconds that a small request may take."""


@check("worker-answers")
def silent(facts: Facts) -> Iterator[Finding]:
    """A worker does not answer here, or refuses the credentials, and the daemon is not connected to it with them,
    either; the id is the reason's, as for `worker-says`.
    """
    for worker in facts.workers.values():
        if worker.error:
            problem = facts.about_worker(worker.name, worker.error, worker.cause, connected=False)
            credentials = facts.credentials.get(worker.name)
            if credentials is not None and has_new_credentials(worker.name, credentials, facts.objects):
                more = f"Secret {credentials.secret} has new ones, and the daemon is connected with the former"
                problem = attrs.evolve(problem, why=f"{problem.why}; {more}")
            yield problem


@check("worker-permission-missing")
def on_workers(facts: Facts) -> Iterator[Spot]:
    """The user of a worker's kubeconfig lacks a verb there."""
    for lacking, names in _alike((worker.name, refused(worker.permissions)) for worker in facts.workers.values()):
        words = [{"worker": name, "grant": granting_there(facts, name)} for name in names]
        why = f"the user of its kubeconfig may not {lacking}"
        instead = "worker-permission-missing@account" if all(each["grant"] for each in words) else ""
        yield Spot(", ".join(names), why, words, instead=instead, workers=names)


@check("worker-takes-anybody")
def takes_anybody(facts: Facts) -> Iterator[Spot]:
    """With `managerName`, a worker has no policy by which its namespaces say whose copies they take."""
    if names := [worker.name for worker in facts.workers.values() if worker.takes_anybody]:
        yield Spot(", ".join(names), "no ValidatingAdmissionPolicy there asks its namespaces whose copies they take")


@check("worker-without-kueue")
def without_kueue(facts: Facts) -> Iterator[Spot]:
    """A worker does not serve Kueue's kinds in v1beta2."""
    lacking = (
        (worker.name, ", ".join(sorted(_words(gvk) for gvk in worker.lacking if gvk.group == KUEUE_GROUP)))
        for worker in facts.workers.values()
    )
    for kinds, names in _alike(lacking):
        yield Spot(", ".join(names), f"it does not serve {kinds}", workers=names)


@check("worker-share-used-up")
def share_used_up(facts: Facts) -> Iterator[Spot]:
    """Jobs are not offered to a worker for want of a share; told is the namespace of the manager with most there."""
    for worker in facts.workers.values():
        if (used := worker.used_up) is not None:
            amount = f"{used.bytes / (1 << 20):.1f} MiB in {used.objects} jobs"
            why = f"namespace {used.namespace} has {amount} there, more than any other; {used.waiting} jobs wait"
            yield Spot(worker.name, why, {"namespace": used.namespace})


@check("worker-kueue-older")
def older_kueue(facts: Facts) -> Iterator[Spot]:
    """A worker's Kueue lacks what jobs may need: preemption gates, slices within slices, names over 63
    characters.
    """
    lacking = (
        (worker.name, f"{worker.kueue.name} there lacks {'; '.join(worker.kueue.lacks)}")
        for worker in facts.workers.values()
        if worker.kueue is not None and worker.kueue.lacks
    )
    for why, names in _alike(lacking):
        yield Spot(", ".join(names), why)


@check("worker-without-kind")
def without_kind(facts: Facts) -> Iterator[Spot]:
    """A worker does not serve an enabled kind that the manager serves; an error if jobs of the kind wait."""
    here = [kind.resource for kind in facts.kinds if kind.resource.gvk not in facts.lacking and not kind.workload_only]
    lacking = (
        (worker.name, tuple(resource for resource in here if resource.gvk in worker.lacking))
        for worker in facts.workers.values()
    )
    for resources, names in _alike(lacking):
        why = f"it does not serve {', '.join(map(str, resources))}, which the manager serves"
        waiting = {owner.gvk for chain in facts.waiting if (owner := workloads.owner(chain.workload)) is not None}
        waits = any(resource.gvk in waiting for resource in resources)
        yield Spot(", ".join(names), why, severity=Severity.ERROR if waits else Severity.WARNING, workers=names)


def _alike(whys: Iterable[tuple[str, W]]) -> Iterator[tuple[W, tuple[str, ...]]]:
    """What is wrong with workers, with all of those of which it is true; empty: nothing is."""
    alike: dict[W, list[str]] = defaultdict(list)
    for worker, why in whys:
        alike[why].append(worker)
    return ((why, tuple(names)) for why, names in alike.items() if why)


@check("worker-namespace-missing")
def without_namespace(facts: Facts) -> Iterator[Spot]:
    """A namespace with queues here does not exist on a worker."""
    alike: dict[tuple[str, str], dict[tuple[str, ObjectKey], None]] = defaultdict(dict)
    for worker in facts.workers.values():
        for here, key in _queues_for(facts, worker.name, facts.seen_at):
            if worker.namespaces is not None and key.namespace not in worker.namespaces:
                alike[here.namespace, key.namespace][worker.name, here] = None
    for (namespace, there), lacking in sorted(alike.items()):
        names = dict.fromkeys(name for name, _ in lacking)
        words = [{"worker": name, "queue": here.name, "here": namespace} for name, here in lacking]
        where = f"{', '.join(names)}, Namespace {there}"
        why, about = f'namespace "{there}" does not exist there', f"Namespace {namespace}"
        yield Spot(where, why, words, object=about, workers=tuple(names))


@check("namespace-terminating", Severity.WARNING)
def terminating_namespace(facts: Facts) -> Iterator[Spot]:
    """A namespace that jobs need is being deleted on a worker."""
    going: dict[tuple[str, str], dict[str, None]] = defaultdict(dict)
    for worker in facts.workers.values():
        for here, key in _queues_for(facts, worker.name, facts.seen_at):
            if key.namespace in worker.terminating:
                going[here.namespace, key.namespace][worker.name] = None
    for (namespace, name), names in sorted(going.items()):
        where, why = f"{', '.join(names)}, Namespace {name}", f'namespace "{name}" is being deleted there'
        yield Spot(where, why, object=f"Namespace {namespace}", workers=tuple(names))


@check("worker-namespace-unnamed")
def unnamed_namespace(facts: Facts) -> Iterator[Spot]:
    """A worker has names for some namespaces, and none for one with queues that lead to it."""
    for worker in facts.workers.values():
        names = facts.objects.names_on(worker.name)
        for namespace in sorted({key.namespace for key in facts.objects.local_queues_for.get(worker.name, ())}):
            if not names.flaw and (why := names.why_none(namespace)):
                yield Spot(f"{worker.name}, Namespace {namespace}", why, {"worker": worker.name})


@check("worker-local-queue-missing")
def without_local_queue(facts: Facts) -> Iterator[Spot]:
    """A LocalQueue has no twin on a worker; an error if it has none on any worker."""
    checks = dict(facts.queues_with_check())
    lacking: dict[ObjectKey, dict[str, ObjectKey]] = defaultdict(dict)
    for worker in facts.workers.values():
        for here, there in _queues_for(facts, worker.name, facts.queues_at):
            known = worker.namespaces is None or there.namespace in worker.namespaces
            known = known and there.namespace not in worker.terminating
            if known and worker.queues is not None and there not in worker.queues.local:
                lacking[here][worker.name] = there
    for here, twins in lacking.items():
        nowhere = twins.keys() >= set(facts.objects.workers_of(checks[here]))
        named = " and ".join(f'"{there}"' for there in dict.fromkeys(twins.values()))
        why = f"LocalQueue {named} does not exist there{', nor on any other worker' if nowhere else ''}"
        yield Spot(
            f"{', '.join(twins)}, LocalQueue {here}",
            why,
            [{"worker": name, "queue": here.name, "namespace": here.namespace} for name in twins],
            severity=Severity.ERROR if nowhere else Severity.WARNING,
            object=f"LocalQueue {here}",
            workers=tuple(twins),
        )


@check("worker-cluster-queue")
def without_cluster_queue(facts: Facts) -> Iterator[Spot]:
    """A twin leads to a ClusterQueue that does not exist there, is stopped, or is not active."""
    twins: dict[str, dict[tuple[str, ObjectKey], str]] = defaultdict(dict)
    rows: dict[str, set[str]] = defaultdict(set)
    for worker, queues, key in _twins(facts):
        target = queues.local[key]
        if flaw := queue_flaw(queues, target):
            twins[target][worker, key] = flaw
            rows[target].add(_mends(queues.cluster.get(target)))
    for target, flaws in twins.items():
        by_worker = {worker: flaw for (worker, _), flaw in flaws.items()}
        apart = ", ".join(f"on {worker} {flaw}" for worker, flaw in by_worker.items())
        flaw = apart if len(set(by_worker.values())) > 1 else by_worker.popitem()[1]
        words = [{"worker": worker, "name": target} for worker in dict.fromkeys(worker for worker, _ in flaws)]
        row = rows[target].pop() if len(rows[target]) == 1 else ""
        what = f'it leads to ClusterQueue "{target}" there, which {flaw}'
        yield _of_twins(flaws, what, words, f"ClusterQueue {target}", row)


@check("worker-local-queue-stopped")
def stopped_local_queue(facts: Facts) -> Iterator[Spot]:
    """Somebody has stopped a twin."""
    twins: dict[str, list[tuple[str, ObjectKey]]] = defaultdict(list)
    for worker, queues, key in _twins(facts):
        if key in queues.stopped:
            twins[key.name].append((worker, key))
    for name, places in twins.items():
        words = [{"worker": worker, "name": name, "namespace": key.namespace} for worker, key in places]
        yield _of_twins(places, "it is stopped there", words, f"LocalQueue {name}")


def _twins(facts: Facts) -> Iterator[tuple[str, QueuesOnWorker, ObjectKey]]:
    """The LocalQueues of each worker that queues here lead to, and that are there, with all of its queues."""
    for worker in facts.workers.values():
        if (queues := worker.queues) is not None:
            twins = dict.fromkeys(key for _, key in _queues_for(facts, worker.name, facts.queues_at))
            yield from ((worker.name, queues, key) for key in twins if key in queues.local)


def _of_twins(
    places: Iterable[tuple[str, ObjectKey]], what: str, words: Sequence[Mapping[str, str]], about: str, row: str = ""
) -> Spot:
    """What is wrong with LocalQueues of workers: the first is named, and how many more there are."""
    workers, (first, *others) = dict.fromkeys(worker for worker, _ in places), dict.fromkeys(key for _, key in places)
    more = f"; so it is with {len(others)} more" if others else ""
    where = f"{', '.join(workers)}, LocalQueue {first}"
    return Spot(where, f"{what}{more}", words, instead=row, object=about, workers=tuple(workers))


def _mends(queue: Json | None) -> str:
    """The key of the row that mends a ClusterQueue that is not there, or is stopped; empty: as the check's does."""
    if queue is None:
        return "worker-cluster-queue@gone"
    return "worker-cluster-queue@stopped" if is_stopped(queue) else ""


@check("never-fits")
def never_fitting(facts: Facts) -> Iterator[Spot]:
    """A waiting job asks for more than any worker could ever give."""
    for chain in facts.waiting:
        workload = chain.workload
        if workloads.has_quota(workload) and (reasons := _never_fits(workload, chain.workers, facts)):
            each = "; ".join(f"{name}: {why}" for name, why in reasons.items())
            why = f"no worker could ever have quota for it: {each}"
            about = f"{namespace_of(workload)}/{type_name(workload)}"
            yield Spot(title(workload), why, object=about, workers=tuple(reasons))


def _never_fits(workload: Json, workers: Iterable[str], facts: Facts) -> dict[str, Reason]:
    """Why each of these workers could never have quota for a Workload; empty: one could, or it is not known."""
    reasons: dict[str, Reason] = {}
    for name in workers:
        queues = facts.queues_on(name)
        why = quota_mismatch(workload, queues, facts.objects.names_on(name)) if queues is not None else None
        if why is None or why.why is not Cause.NEVER_FITS:
            return {}
        reasons[name] = why
    return reasons


@check("pods-stranded")
def stranded(facts: Facts) -> Iterator[Spot]:
    """Kueue holds ended pods of a group that an older daemon, or Kueue's own controller, took the Workload from."""
    for worker in facts.workers.values():
        for pod in worker.stranded:
            since = parse_timestamp(pod["metadata"]["deletionTimestamp"])
            if since is not None and (facts.now - since).total_seconds() > LONG_GONE:
                key = ObjectKey.of(pod)
                why = f"it is deleted and has ended, and its finalizer {MANAGED_LABEL} stays: its Workload is gone"
                words = {"worker": worker.name, "name": key.name, "namespace": key.namespace}
                yield Spot(f"{worker.name}, Pod {key}", why, words)


@check("worker-clock")
def skewed(facts: Facts) -> Iterator[Finding]:
    """The clock of a worker differs from the manager's by more than ten seconds."""
    for worker in facts.workers.values():
        if worker.clock is not None and facts.clock is not None:
            yield from measured(worker.name, worker.clock.ahead_of(facts.clock))


@check("own-clock")
def this_machine_skewed(facts: Facts) -> Iterator[Spot]:
    """The clock of this machine differs from the manager's by more than ten seconds."""
    bound = facts.clock
    if bound is not None and abs(bound.at_least) > TOLERATED.total_seconds():
        side = "behind" if bound.at_least > 0 else "ahead of"
        yield Spot("this machine", f"its clock is at least {int(abs(bound.at_least))} s {side} the manager's")


@check("worker-slow")
def slow(facts: Facts) -> Iterator[Spot]:
    """A worker takes more than a second for a small request."""
    for worker in facts.workers.values():
        if worker.latency is not None and worker.latency > SLOW:
            why = f"a small request takes {worker.latency:.1f} s from here (the median of three)"
            yield Spot(worker.name, why)


@check(DOES_NOT_END)
def do_not_end(facts: Facts) -> Iterator[Spot]:
    """A job copy on a worker was deleted longer ago than its pods' longest grace period and a minute: a finalizer
    holds it, or a pod that has not ended, as on a node that is down; or its Workload is gone, and the worker refuses
    its deletion. Copies with the same cause are one finding.
    """
    workloads_here = facts.objects.workloads
    known = set(map(ObjectKey.of, workloads_here))
    for worker in facts.workers.values():
        cluster = facts.objects.clusters_by_name.get(worker.name, {})
        by_cause: dict[tuple[object, ...], list[EndingCopy]] = defaultdict(list)
        for copy in worker.overdue or ():
            if not copy.is_given_up(worker.name, cluster, workloads_here):
                nodes = frozenset(pod.node for pod in copy.pods)
                by_cause[copy.finalizers, nodes, copy.pods_unseen, copy.orphaned].append(copy)
        for first, *others in by_cause.values():
            same = f"; the same holds of {listed([*map(str, others)])}" if others else ""
            why = f"{first}: {first.why(facts.now)}{same}"
            words = {"way_out": first.way_out(worker.name, known=first.workload in known)}
            yield Spot(f"{worker.name}, {first.kind} {first.key}", why, words, instead=f"{DOES_NOT_END}@there")


def _queues_for(facts: Facts, worker: str, seen_at: Mapping[str, datetime]) -> list[tuple[ObjectKey, ObjectKey]]:
    """The LocalQueues that lead to a worker, and their twins there: those of which what was seen then can tell."""
    names, newer = facts.objects.names_on(worker), _newer_than(facts, worker, seen_at.get(worker))
    here = (key for key in facts.objects.local_queues_for.get(worker, ()) if key not in newer)
    return [(key, there) for key in here if (there := names.local_queue(key)).namespace]


def _newer_than(facts: Facts, worker: str, seen: datetime | None) -> frozenset[ObjectKey]:
    """The LocalQueues made, or by which a worker got a job, after the daemon saw it: what it saw says nothing of these.
    None: it was looked at now."""
    if seen is None:
        return frozenset()
    made = {
        key: dig(queue, "metadata", "creationTimestamp") for key, queue in facts.objects.local_queues_by_key.items()
    }
    got = (
        (local_queue_of(workload), check.get("lastTransitionTime"))
        for workload in facts.objects.workloads
        if workloads.cluster_name(workload) == worker
        for check in dig(workload, "status", "admissionChecks") or ()
    )
    times = ((key, parse_timestamp(time)) for key, time in (*made.items(), *got))
    return frozenset(key for key, time in times if time is not None and time > seen)


def _words(gvk: GVK) -> str:
    return f"{gvk.kind} ({gvk.api_version})"
