"""Checks of the manager's objects between a queue and the list of workers, of the daemon, and of what it says."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from multikueue.core.model.objects import dig, name_of
from multikueued.reports import remedies
from multikueued.reports.chain import check_findings
from multikueued.reports.doctor.facts import Facts
from multikueued.reports.doctor.findings import Severity, Spot
from multikueued.reports.objects import similar
from multikueued.reports.queues import queue_problem
from multikueued.reports.remedy_table import about_worker
from multikueued.reports.status import daemon_findings, daemon_report
from multikueued.reports.workers import worker_reports


def spot_of(found: remedies.Finding) -> Spot:
    """What a report has found, as a spot."""
    severity = Severity.ERROR if found.blocking else Severity.WARNING
    told = f' (it says: "{found.told}")' if found.told and found.told not in found.why else ""
    return Spot(found.where, found.why + told, severity=severity, id=found.id, remedy=found.remedy)


def of_checks(id: str) -> Callable[[Facts], Iterator[Spot]]:
    """What is wrong with AdmissionChecks and their MultiKueueConfigs, of one kind of finding."""

    def look(facts: Facts) -> Iterator[Spot]:
        yield from (spot_of(one) for one in check_findings(facts.objects) if one.id == id)

    return look


def no_checks(facts: Facts) -> Iterator[Spot]:
    """That nothing leads to workers at all."""
    if not facts.objects.our_checks:
        yield Spot("the manager", "there is no AdmissionCheck of MultiKueue")
    elif not any(facts.objects.check_of_queue(one) for one in facts.objects.cluster_queues):
        named = ", ".join(sorted(facts.objects.our_checks))
        yield Spot("the manager", f"no ClusterQueue names an AdmissionCheck of MultiKueue ({named})")


def nobody_leads(facts: Facts) -> Iterator[Spot]:
    """That no daemon works, by the Lease."""
    found = daemon_findings(daemon_report(facts.objects.lease, facts.now), facts.daemon_namespace)
    yield from map(spot_of, found)


def unlisted_workers(facts: Facts) -> Iterator[Spot]:
    """Workers that no MultiKueueConfig lists."""
    for worker in worker_reports(facts.objects):
        if worker.state != "Missing" and not worker.checks:
            yield Spot(f"MultiKueueCluster {worker.name}", "no MultiKueueConfig of a check lists it")


def what_workers_say(facts: Facts) -> Iterator[Spot]:
    """What the daemon says about workers that are not connected, or lack a kind."""
    for worker in worker_reports(facts.objects):
        if not worker.error or worker.state == "Missing":
            continue
        context = {"secrets": facts.daemon_namespace, "job": "JOB", "namespace": "NAMESPACE"}
        degraded = worker.state == "Degraded"
        found = spot_of(about_worker(worker.name, worker.error, context, connected=degraded, own=worker.is_ours))
        harmless = degraded or not worker.checks
        severity = Severity.WARNING if harmless else found.severity
        yield Spot(found.where, found.what, severity=severity, id=found.id, remedy=found.remedy)


def cordoned_workers(facts: Facts) -> Iterator[Spot]:
    """Workers that get nothing new because somebody said so."""
    for worker in worker_reports(facts.objects):
        if worker.cordoned:
            yield Spot(worker.name, "it is cordoned: it is offered nothing new", {"worker": worker.name})


def queues_without_target(facts: Facts) -> Iterator[Spot]:
    """LocalQueues whose ClusterQueue does not exist."""
    for key, local in sorted(facts.objects.local_queues_by_key.items()):
        target = str(dig(local, "spec", "clusterQueue") or "")
        if target not in facts.objects.queues_by_name:
            guess = similar(target, facts.objects.queues_by_name)
            yield Spot(f"LocalQueue {key}", f'it leads to ClusterQueue "{target}", which does not exist{guess}')


def queues_with_unknown_check(facts: Facts) -> Iterator[Spot]:
    """ClusterQueues that name a check which does not exist."""
    known = {name_of(check) for check in facts.objects.checks}
    for name, queue in sorted(facts.objects.queues_by_name.items()):
        entries = dig(queue, "spec", "admissionChecksStrategy", "admissionChecks") or []
        for check in (str(entry.get("name")) for entry in entries if entry.get("name") not in known):
            told = f'it names AdmissionCheck "{check}", which does not exist{similar(check, known)}'
            yield Spot(f"ClusterQueue {name}", told)


def inactive_queues(facts: Facts) -> Iterator[Spot]:
    """ClusterQueues with a check of ours that admit nothing."""
    for name, queue in sorted(facts.objects.queues_by_name.items()):
        if facts.objects.check_of_queue(queue) is not None and (problem := queue_problem(queue)):
            yield Spot(f"ClusterQueue {name}", f"it admits no jobs: {problem}")
