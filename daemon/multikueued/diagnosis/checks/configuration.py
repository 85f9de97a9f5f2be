"""Checks of the manager's objects between a queue and the list of workers, of the daemon, and of what it says."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import attrs

from multikueue.core.dispatchers.incremental import INCREMENTAL
from multikueue.core.inventory.names import CONFIG_LABEL
from multikueue.core.inventory.ocm_workers.spoke import OWNER_LABEL
from multikueue.core.model.kinds import ADMISSION_CHECK, CLUSTER_QUEUE, LEASE, MULTIKUEUE_CONFIG
from multikueue.core.model.labels import DIFFERENT_ANNOTATION
from multikueue.core.model.name_lists import listed, suggestion
from multikueue.core.model.names import ObjectKey
from multikueue.core.model.objects import dig, labels_of, name_of
from multikueue.core.model.second_names import Because, held_as_second
from multikueued.diagnosis.facts import Facts, Installation
from multikueued.diagnosis.findings import Check, Spot, check, row
from multikueued.reports.chain import (
    inactive_placement,
    inactive_queue,
    missing_checks,
    placement_checks,
    stopped_queue,
    without_cluster_queue,
)
from multikueued.reports.cluster_answers import WorkerState
from multikueued.reports.daemon_lease import daemon_findings
from multikueued.reports.remedies.remedy import Finding, Severity, finding
from multikueued.reports.remedies.trouble import DETACHED, GONE, taken_away
from multikueued.reports.typenames import title


def _of_checks(id: str, finds: str) -> Check:
    """What is wrong with AdmissionChecks and their MultiKueueConfigs, of one kind of finding."""

    return row(id, finds, lambda facts: (problem for problem in facts.of_checks if problem.id == id))


@check("daemon-not-running")
def nobody_leads(facts: Facts) -> Iterator[Finding]:
    """Nobody leads: the daemon's Lease is free, or was not renewed; `origin-changed` if the daemon does not start, as
    its setting `origin` is another one than before; nothing where it may not hold that Lease, which is told.
    """
    leases = LEASE.plural, LEASE.gvk.group
    lacking = {
        permission.verb
        for permission in facts.permissions
        if (permission.resource, permission.group) == leases and not permission.allowed
    }
    if lacking & {"get", "update"}:  # it need not be created, as it is there; patched are those of mirrors' Nodes
        return
    origin, secret = str(facts.settings.origin), ObjectKey(facts.objects.daemon_namespace, facts.settings.marks_secret)
    is_other = facts.settings_known and facts.noted_origin not in ("", origin)
    words = {"name": secret.name, "namespace": secret.namespace, "noted": facts.noted_origin, "origin": origin}
    for problem in daemon_findings(facts.objects.lease, facts.managers_now, facts.objects.daemon_namespace):
        yield finding("origin-changed", problem.where, **words) if is_other else problem


@check("two-daemons")
def several_lead(facts: Facts) -> Iterator[Spot]:
    """Two installations of the chart have the same `controllerName`, and not the same Lease; or one has several
    replicas without leader election. Of two that share a Lease and not the `controllerName` one never leads.
    """
    seen: list[Installation] = []
    for each in facts.installations:
        where = f"Deployment {each.key}"
        words = {"name": each.key.name, "namespace": each.key.namespace}
        if each.replicas > 1 and not each.settings.leader_election.enabled:
            why = f"it has {each.replicas} replicas without leader election: each of them dispatches"
            yield Spot(where, why, words, instead="two-daemons@replicas", object=where)
        for other in seen:
            same, shared = each.settings.controller_name == other.settings.controller_name, _share_lease(each, other)
            if same and not shared:
                why = f"it works on the same checks as Deployment {other.key}, without one Lease of both: both dispatch"
                yield Spot(where, why, words, object=where)
            elif shared and not same:
                lease = f"{each.settings.namespace}/{each.settings.name}"
                why = (
                    f"it has the Lease {lease} as Deployment {other.key} has, for other checks: one of them only waits"
                )
                yield Spot(where, why, words, instead="two-daemons@lease", object=where)
        seen.append(each)


def _share_lease(one: Installation, other: Installation) -> bool:
    elected = one.settings.leader_election.enabled and other.settings.leader_election.enabled
    leases = [ObjectKey(str(each.settings.namespace), each.settings.name) for each in (one, other)]
    return elected and leases[0] == leases[1]


@check("no-check")
def no_checks(facts: Facts) -> Iterator[Spot | Finding]:
    """There is no AdmissionCheck of MultiKueue, or no ClusterQueue names one (or one that does not exist)."""
    lacking = any(True for queue in facts.objects.cluster_queues for _ in missing_checks(queue, facts.objects))
    if not (lacking or facts.objects.our_checks) and ADMISSION_CHECK not in facts.objects.unread:
        yield Spot("the manager", "there is no AdmissionCheck of MultiKueue")
    yield from (problem for problem in facts.of_checks if problem.id == "no-check")


config_missing = _of_checks("config-missing", "An AdmissionCheck names a MultiKueueConfig that does not exist")


@check("check-unseen")
def checks_unseen(facts: Facts) -> Iterator[Spot | Finding]:
    """Nobody has looked at an AdmissionCheck; if it is that of another controller, both names are told."""
    ours = str(facts.settings.controller_name)
    others = {
        f"AdmissionCheck {name}": theirs
        for name, seen in facts.objects.our_checks.items()
        if facts.settings_known and (theirs := dig(seen, "spec", "controllerName")) not in (None, ours)
    }
    for problem in facts.of_checks:
        if problem.id == "check-unseen" and problem.where in others:
            why = f"nobody has looked at this check: it is that of {others[problem.where]}, and the daemon is {ours}"
            yield Spot(problem.where, why, {"controller": ours}, instead="check-unseen@other")
        elif problem.id == "check-unseen":
            yield problem


check_parameters = _of_checks("check-parameters", "An AdmissionCheck refers to no MultiKueueConfig")
cluster_missing = _of_checks(
    "cluster-missing", "A MultiKueueConfig lists a worker that does not exist; a name that is meant is told"
)


@check("check-missing")
def queues_with_unknown_check(facts: Facts) -> Iterator[Finding]:
    """A ClusterQueue names an AdmissionCheck that does not exist."""
    if ADMISSION_CHECK in facts.objects.unread:
        return
    for _, queue in sorted(facts.objects.queues_by_name.items()):
        yield from missing_checks(queue, facts.objects)


@check("queue-inactive")
def inactive_queues(facts: Facts) -> Iterator[Finding]:
    """A ClusterQueue with a check of MultiKueue is not active, for another reason than a check that is told of; the id
    is `queue-stopped` if somebody has stopped it.
    """
    for _, queue in sorted(facts.objects.queues_by_name.items()):
        if facts.objects.check_of_queue(queue) is not None:
            yield from [*stopped_queue(CLUSTER_QUEUE, queue)] or inactive_queue(queue, facts.objects)


@check("cluster-queue-missing", Severity.WARNING)
def queues_without_target(facts: Facts) -> Iterator[Finding]:
    """A LocalQueue leads to a ClusterQueue that does not exist."""
    for _, local in sorted(facts.objects.local_queues_by_key.items()):
        for problem in without_cluster_queue(local, facts.objects):
            yield problem.mild()  # it may have no jobs


@check("worker-unlisted")
def unlisted_workers(facts: Facts) -> Iterator[Spot]:
    """A worker is in no MultiKueueConfig of a check, and all of these are there, and list none that is not."""
    known, unread = facts.objects.clusters_by_name, facts.objects.unread
    if unread & {ADMISSION_CHECK, MULTIKUEUE_CONFIG}:
        return
    if any(name not in facts.objects.configs_by_check for name in facts.objects.our_checks) or any(
        problem.id == "cluster-missing" for problem in facts.of_checks
    ):
        return  # it may be in that one, or be meant by that name, of which another finding tells
    for worker in facts.worker_reports:
        if worker.state is not WorkerState.MISSING and not worker.checks:
            why, kept = "no MultiKueueConfig of a check lists it", OWNER_LABEL in labels_of(known[worker.name])
            instead = "worker-unlisted@selected" if kept else ""
            yield Spot(f"MultiKueueCluster {worker.name}", why, {"worker": worker.name}, instead=instead)


@check(DETACHED)
def detached_workers(facts: Facts) -> Iterator[Finding]:
    """The cluster of a worker is being detached (its ManagedCluster was deleted) under jobs: they are named, with what
    becomes of them.
    """
    yield from _taken_away(facts, facts.objects.clusters_by_name)


@check(GONE)
def gone_workers(facts: Facts) -> Iterator[Finding]:
    """Jobs have a worker whose MultiKueueCluster does not exist."""
    yield from _taken_away(facts, sorted(facts.objects.jobs_by_worker.keys() - facts.objects.clusters_by_name.keys()))


def _taken_away(facts: Facts, workers: Iterable[str]) -> Iterator[Finding]:
    for worker in workers:
        problem = taken_away(worker, facts.objects)
        if problem is not None and (jobs := [*map(title, facts.objects.jobs_by_worker.get(worker, ()))]):
            why = f"{problem.why}; it has {listed(jobs)}"
            yield attrs.evolve(problem, where=f"MultiKueueCluster {worker}", why=why)


@check("worker-cordoned")
def cordoned_workers(facts: Facts) -> Iterator[Spot]:
    """A worker is cordoned."""
    for name, said in sorted(facts.objects.cluster_answers.items()):
        if said.cordon:
            yield Spot(name, "it is cordoned: it is offered nothing new", {"worker": name}, workers=(name,))


@check("worker-second-name")
def second_names(facts: Facts) -> Iterator[Spot]:
    """Two MultiKueueClusters lead to one cluster."""
    for name, said in sorted(facts.objects.cluster_answers.items()):
        if (second := said.second) is not None:
            why = held_as_second(second.first)
            void = f": it has shown what {second.first} has, whatever {DIFFERENT_ANNOTATION} says"
            why += void if second.because is Because.NOT_DIFFERENT else ""
            yield Spot(name, why, {"worker": name, "first": second.first}, workers=(name,))


@check("only-second-names")
def only_second_names(facts: Facts) -> Iterator[Spot]:
    """A MultiKueueConfig lists nothing but second names of clusters: its jobs are offered to nobody. They are named."""
    for name in sorted(facts.objects.our_checks):
        seconds = {worker: facts.objects.said_of(worker).second for worker in facts.objects.workers_of(name)}
        firsts = {worker: second.first for worker, second in seconds.items() if second is not None}
        config = facts.objects.configs_by_check.get(name)
        if config is None or not seconds or len(firsts) < len(seconds):
            continue
        names = ", ".join(f"{worker}, which leads to the same cluster as {first}" for worker, first in firsts.items())
        waiting = [title(chain.workload) for chain in facts.waiting if name in chain.checks]
        words = {"firsts": " and ".join(dict.fromkeys(firsts.values())), "config": name_of(config)}
        yield Spot(
            f"MultiKueueConfig {name_of(config)}",
            f"it lists only {names}, and gets nothing beside it; {listed(waiting) or 'no job yet'} waits",
            words,
            object=f"MultiKueueConfig {name_of(config)}",
        )


@check("placement-inactive")
def inactive_checks(facts: Facts) -> Iterator[Finding]:
    """A placement check is not active, nobody handles it, or OCM's addon handles it as well."""
    for placement_check in placement_checks(facts.objects):
        yield from inactive_placement(placement_check)


@check("order-unused")
def orders_without_use(facts: Facts) -> Iterator[Spot]:
    """A Placement orders a MultiKueueConfig, and the dispatcher offers jobs to all workers at once."""
    if not facts.settings_known or facts.settings.dispatcher.name == INCREMENTAL:
        return
    for config in facts.objects.configs:
        if CONFIG_LABEL in labels_of(config):
            yield Spot(
                f"MultiKueueConfig {name_of(config)}", "the dispatcher in use does not ask its first clusters first"
            )


@check("dependencies-unused")
def dependencies_without_config(facts: Facts) -> Iterator[Spot]:
    """The settings name a MultiKueueConfig for `dependencies` that does not exist."""
    known = {name_of(config) for config in facts.objects.configs}
    for entry in facts.settings.dependencies if MULTIKUEUE_CONFIG not in facts.objects.unread else ():
        if entry.config not in known:
            yield Spot(
                "dependencies", f'there is no MultiKueueConfig "{entry.config}"{suggestion(entry.config, known)}'
            )


@check("worker-says")
def what_workers_say(facts: Facts) -> Iterator[Finding]:
    """The daemon says why a worker is not connected, or not usable for a kind; the id is the reason's, as
    `bad-token`, `kubeconfig-key`, `worker-down`, `worker-hung`, `crd-missing`, `rbac`.
    """
    for worker in facts.worker_reports:
        if facts.objects.said_of(worker.name).is_lost_by_detaching:
            continue
        if worker.error and worker.state is not WorkerState.MISSING:  # of which the check's findings tell
            degraded = worker.state is WorkerState.DEGRADED
            problem = facts.about_worker(worker.name, worker.error, worker.cause, connected=degraded)
            yield problem.mild(degraded or not worker.checks)  # nobody uses it, or it lacks a kind alone
