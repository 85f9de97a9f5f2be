"""A manager's objects for reports: one queue, two workers, and a Workload as far on its way as a test wants."""

from __future__ import annotations

from typing import Any

from multikueue.core.machinery.connection_facts import ConnectionFacts, facts_status
from multikueue.core.model.conditions import new_condition
from multikueue.core.model.names import Json
from multikueue.sandbox.setting_up import CHECK, admission_check, cluster, config
from multikueue.testing import NOW, job, queues, stored, workload
from multikueued.reports.objects import ManagerObjects
from tests.core.door import EarlierRun, RefusalFacts, earlier_run_condition, refusals_condition


def worker(
    name: str,
    message: str = "Connected",
    *,
    reason: str = "Active",
    facts: ConnectionFacts | None = None,
    **metadata: Any,
) -> Json:
    """A MultiKueueCluster; one with another message than `Connected` is not connected. Without facts: as by Kueue."""
    conditions = [new_condition("Active", message == "Connected", reason, message, now=NOW)]
    made = stored(cluster(name), **metadata)
    if facts is not None and (facts_condition := facts_status(made, conditions[0], facts, NOW)) is not None:
        conditions.append(facts_condition)
    return {**made, "status": {"conditions": conditions}}


def saying(made: Json, message: str) -> Json:
    """A Workload whose check says that."""
    entries = [{**entry, "message": message} for entry in made["status"]["admissionChecks"]]
    return {**made, "status": {**made["status"], "admissionChecks": entries}}


def judged(made: Json, verdict: str) -> Json:
    """A Workload whose check we have Rejected for that."""
    verdict_condition = new_condition("multikueue.dev/Rejected", True, verdict, "words", now=NOW, generation=1)
    status = {**made["status"], "conditions": [*made["status"].get("conditions", ()), verdict_condition]}
    return {**made, "metadata": {**made["metadata"], "generation": 1}, "status": status}


def refused(made: Json, **facts: RefusalFacts) -> Json:
    """A Workload of which workers of these names say beside the check's message why they refuse it."""
    (message,) = [entry["message"] for entry in made["status"]["admissionChecks"]]
    refused_condition = refusals_condition(facts, message, NOW)
    assert refused_condition is not None
    status = {**made["status"], "conditions": [*made["status"].get("conditions", ()), refused_condition]}
    return {**made, "status": status}


def waiting_for(made: Json, *runs: EarlierRun) -> Json:
    """A Workload that says beside the check's message for which earlier runs it waits."""
    (message,) = [entry["message"] for entry in made["status"]["admissionChecks"]]
    waits_condition = earlier_run_condition(runs, message, NOW)
    status = {**made["status"], "conditions": [*made["status"].get("conditions", ()), waits_condition]}
    return {**made, "status": status}


def fleet(
    *workloads: Json, workers: tuple[Json, ...] = (), listed: tuple[str, ...] = ("worker1", "worker2")
) -> ManagerObjects:
    """A manager with these Workloads; two connected workers unless told otherwise."""
    _, check, queue, local = queues(checked=True)
    active = new_condition("Active", True, "Ready", "Can admit new workloads", now=NOW)
    return ManagerObjects(
        workloads=workloads,
        checks=(check,),
        configs=(config(listed),),
        clusters=workers or (worker("worker1"), worker("worker2")),
        cluster_queues=({**queue, "status": {"conditions": [active]}},),
        local_queues=(local,),
        daemon_namespace="kueue-system",
    )


__all__ = [
    "CHECK",
    "NOW",
    "admission_check",
    "fleet",
    "job",
    "judged",
    "refused",
    "saying",
    "stored",
    "waiting_for",
    "worker",
    "workload",
]
