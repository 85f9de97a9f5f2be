"""One cause is one finding, with the better remedy and all the workers that show it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import attrs
import pytest

from multikueue.core.machinery.connection_facts import ConnectionFacts
from multikueue.core.model.names import Json
from multikueue.errors import Cause
from multikueued.diagnosis.checks.table import CHECKS
from multikueued.diagnosis.facts import Facts
from multikueued.diagnosis.findings import diagnose
from multikueued.diagnosis.fleet import status_report
from multikueued.reports.explanation import explain
from multikueued.reports.objects import ManagerObjects
from multikueued.reports.remedies.remedy import CAUSES, Severity
from multikueued.reports.seen import Seen
from multikueued.reports.waiting_jobs import with_waiting
from multikueued.reports.worker_facts import KubeconfigFacts
from tests.reports.doctor.healthy import ALLOWED, JOB_KIND, NOW, healthy, objects_of, queues, worker_facts
from tests.reports.doctor.test_checks import inactive_queues
from tests.reports.objects import fleet, job, saying, stored, worker, workload

BOTH = ("worker1", "worker2")
MIRROR = "multikueue queues mirror user-queue -n default --worker-context {0} --worker {0}"
DENIED = 'User "mk" cannot create resource "workloads" in API group "kueue.x-k8s.io" at the cluster scope'
Case: TypeAlias = tuple[str, Facts, tuple[str, ...], str]
"""Id, facts, workers, and a part of the remedy."""


def told_by(words: str, *names: str, cpu: str = "1", job_name: str = "train") -> Json:
    """A job that is offered to both, of which these say that."""
    made = workload(stored(job(job_name, cpu=cpu)), nominated=BOTH)
    made["status"]["admission"]["podSetAssignments"][0]["resourceUsage"] = {"cpu": cpu}
    return saying(made, f"Offered to worker1, worker2 — {' · '.join(f'{name}: {words}' for name in names)}")


def on_both(*made: Json, **changed: Any) -> Facts:
    """Both workers show the same."""
    return healthy(*made, workers={name: worker_facts(name, **changed) for name in BOTH})


def of_cluster(cause: Cause, **changed: Any) -> Facts:
    """A worker of which the daemon says that it is not connected, while a job waits."""
    refused = worker("worker1", "words", reason="BadKubeConfig", facts=ConnectionFacts(cause=cause))
    facts = healthy(workload(job(), nominated=BOTH), **changed)
    return objects_of(facts, clusters=(refused, worker("worker2")))


def doctors_cases() -> Iterator[Case]:
    """Facts of which both the doctor's own checks and the daemon or a job tell."""
    no_queue = "LocalQueue user-queue doesn't exist"
    mirrors = "; ".join(map(MIRROR.format, BOTH))
    bare = on_both(told_by(no_queue, *BOTH), queues=queues(local={}))
    yield "worker-local-queue-missing", bare, BOTH, mirrors
    unseen = healthy(told_by(no_queue, *BOTH), workers={"worker1": worker_facts(queues=queues(local={}))})
    yield "worker-local-queue-missing", unseen, BOTH, MIRROR.format("worker1")
    gone = 'namespaces "default" not found'
    yield "worker-namespace-missing", on_both(told_by(gone, *BOTH), namespaces=frozenset()), BOTH, mirrors
    too_small = "insufficient quota for cpu in flavor f (3 > 1)"
    small = on_both(told_by(too_small, *BOTH, cpu="3"), queues=queues(cpu="1"))
    yield "never-fits", small, BOTH, "request less"
    lacks = (attrs.evolve(ALLOWED, verb="create", allowed=False),)
    verb = on_both(told_by(f"workloads is forbidden: {DENIED}", *BOTH), permissions=lacks)
    yield "worker-permission-missing", verb, BOTH, "rbac worker --least --user NAME | kubectl --context worker2 auth"
    held = {"worker1": KubeconfigFacts("worker1-secret", problem="it names an exec plugin")}
    bad = of_cluster(Cause.CONTENT, credentials=held)
    yield "kubeconfig-unusable", bad, ("worker1",), "create secret generic worker1-secret --from-file"
    bare_secret = {"worker1": KubeconfigFacts("worker1-secret", problem='key "kubeconfig" not found')}
    yield "kubeconfig-key", of_cluster(Cause.KEY_MISSING, credentials=bare_secret), ("worker1",), "--from-file"
    expired = {"worker1": KubeconfigFacts("worker1-kubeconfig", token_expires=NOW.replace(year=2025))}
    expired_facts = of_cluster(Cause.BAD_TOKEN, credentials=expired)
    yield "credentials-expire", expired_facts, ("worker1",), "multikueue worker rotate worker1"
    lacking = {"worker1": worker_facts(lacking=frozenset({JOB_KIND.resource.gvk})), "worker2": worker_facts("worker2")}
    unusable = ConnectionFacts(
        is_manager=False, unusable={"Job.v1.batch": "no"}, causes={"Job.v1.batch": Cause.NOT_SERVED}
    )
    without = objects_of(
        healthy(workload(job(), nominated=BOTH), workers=lacking),
        clusters=(worker("worker1", facts=unusable), worker("worker2")),
    )
    yield "worker-without-kind", without, ("worker1",), "install the CustomResourceDefinition"
    stopped = {"worker1": worker_facts(queues=inactive_queues()), "worker2": worker_facts("worker2")}
    inactive = healthy(told_by("ClusterQueue cluster-queue is inactive", "worker1"), workers=stopped)
    yield "worker-cluster-queue", inactive, ("worker1",), "condition Active"


CASES = list(doctors_cases())


@pytest.mark.parametrize(
    ("id", "facts", "workers", "remedy"), CASES, ids=[f"{case[0]}-{case[2][-1]}" for case in CASES]
)
def test_the_doctor_tells_a_cause_once(id: str, facts: Facts, workers: tuple[str, ...], remedy: str) -> None:
    findings = diagnose(facts, CHECKS).findings

    assert [finding.id for finding in findings] == [id], [
        (finding.id, finding.where, finding.object, finding.workers) for finding in findings
    ]
    assert findings[0].workers == workers
    assert remedy in findings[0].remedy


def test_the_better_remedy_is_as_grave_as_what_stands_behind_it() -> None:
    """The twin that one worker lacks is a warning; a job that waits for it alone is an error."""
    facts = healthy(
        told_by("LocalQueue user-queue doesn't exist", *BOTH),
        workers={"worker1": worker_facts(queues=queues(local={}))},
    )

    (finding,) = diagnose(facts, CHECKS).findings
    assert finding.severity is Severity.ERROR
    assert finding.why.endswith("so says worker2")


def test_what_two_jobs_lack_is_two_causes() -> None:
    large = [told_by("insufficient quota for cpu (3 > 1)", *BOTH, cpu="3", job_name=name) for name in ("a", "b")]
    findings = diagnose(on_both(*large, queues=queues(cpu="1")), CHECKS).findings
    assert [(finding.id, finding.object) for finding in findings] == [
        ("never-fits", "default/job/a"),
        ("never-fits", "default/job/b"),
    ]


def test_a_credential_that_ends_soon_is_not_why_it_is_refused_now() -> None:
    held = {"worker1": KubeconfigFacts("worker1-secret", token_expires=NOW.replace(day=3))}
    findings = diagnose(of_cluster(Cause.BAD_TOKEN, credentials=held), CHECKS).findings
    assert {finding.id for finding in findings} == {"bad-token", "credentials-expire"}


def status_of(objects: ManagerObjects) -> list[tuple[str, tuple[str, ...]]]:
    """Id and workers of what `multikueue status` finds."""
    report = status_report(objects, NOW)
    findings = with_waiting(report.findings, objects, NOW)
    return [(finding.id, finding.workers) for finding in findings if finding.workers]


@pytest.mark.parametrize(
    ("words", "id"),
    [
        ("LocalQueue user-queue doesn't exist", "local-queue-missing"),
        ('namespaces "default" not found', "namespace-missing"),
        ("insufficient quota for cpu in flavor f (3 > 1)", "quota-too-small"),
    ],
)
def test_explain_and_status_tell_a_cause_once(words: str, id: str) -> None:
    made = told_by(words, *BOTH)
    findings = explain(Seen(made, None, fleet(made), (), NOW)).findings

    assert [(finding.id, finding.workers) for finding in findings if finding.workers] == [(id, BOTH)]
    assert status_of(fleet(made)) == [(id, BOTH)]


def test_what_many_jobs_lack_is_told_once_in_status() -> None:
    lacking = [told_by("LocalQueue user-queue doesn't exist", *BOTH, job_name=name) for name in "abc"]
    large = [told_by("insufficient quota for cpu (3 > 1)", *BOTH, job_name=f"j{number}") for number in range(30)]

    assert status_of(fleet(*lacking)) == [("local-queue-missing", BOTH)]
    assert len(status_of(fleet(*large))) == 10


def test_a_remedy_for_many_workers_stays_short() -> None:
    names = tuple(f"w{number}" for number in range(20))
    made = workload(stored(job("train")), nominated=names)
    reasons = " · ".join(f"{name}: LocalQueue user-queue doesn't exist" for name in names)
    made = saying(made, f"Offered to {', '.join(names)} — {reasons}")
    objects = fleet(made, workers=tuple(map(worker, names)), listed=names)
    (finding,) = explain(Seen(made, None, objects, (), NOW)).findings

    assert finding.workers == names
    assert finding.remedy.count("multikueue queues mirror") == 3
    assert "; and so for w3, w4, w5" in finding.remedy


def test_each_id_tells_of_one_cause() -> None:
    ids = [name for alike in CAUSES for name in alike]
    assert len(ids) == len(set(ids))
