"""What a job tells of a place on a worker until it is asked again, beside what was seen there since."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import datetime

import attrs
import pytest

from multikueue.core.model.labels import NAMESPACES_ANNOTATION
from multikueue.core.model.names import ObjectKey
from multikueue.core.model.objects import with_value
from multikueued.diagnosis.checks import workers
from multikueued.diagnosis.checks.table import CHECKS
from multikueued.diagnosis.facts import Facts
from multikueued.diagnosis.findings import diagnose
from multikueued.reports.remedies.audience import once
from multikueued.reports.remedies.remedy import Finding, Severity
from multikueued.reports.waiting_jobs import as_seen_since
from tests.reports.doctor.healthy import healthy


def finding(id: str, object: str, *workers: str, severity: Severity = Severity.WARNING) -> Finding:
    return Finding(id, f"{', '.join(workers)}, {object}", "it is so", "", "mend it", severity, object, workers)


TOLD = {
    "namespace-missing": "Namespace team",
    "namespace-terminating": "Namespace team",
    "local-queue-missing": "LocalQueue team/gpu",
}


@pytest.mark.parametrize("told", TOLD)
@pytest.mark.parametrize(
    ("id", "object"),
    [
        ("worker-namespace-missing", "Namespace team"),
        ("namespace-terminating", "Namespace team"),
        ("worker-local-queue-missing", "LocalQueue team/gpu"),
    ],
)
def test_one_place_on_a_worker_is_one_finding_as_grave_as_the_job_says(told: str, id: str, object: str) -> None:
    seen = finding(id, object, "worker1", "worker2")
    by_job = finding(told, TOLD[told], "worker1", severity=Severity.ERROR)
    (only,) = once([seen], [as_seen_since(by_job, [seen])])
    assert (only.id, only.severity, only.workers) == (id, Severity.ERROR, ("worker1", "worker2"))


@pytest.mark.parametrize(
    "seen",
    [
        finding("worker-namespace-missing", "Namespace other", "worker1"),
        finding("worker-namespace-missing", "Namespace team", "worker2"),
        finding("worker-cluster-queue", "ClusterQueue team", "worker1"),
    ],
    ids=["another namespace", "another worker", "another thing"],
)
def test_what_was_seen_of_something_else_says_nothing(seen: Finding) -> None:
    told = finding("namespace-terminating", "Namespace team", "worker1", severity=Severity.ERROR)
    assert as_seen_since(told, [seen]) is told


def test_other_reasons_of_a_job_stand_as_they_are() -> None:
    seen = finding("worker-namespace-missing", "Namespace team", "worker1")
    told = finding("quota-too-small", "team/job/train", "worker1", severity=Severity.ERROR)
    assert as_seen_since(told, [seen]) is told


def test_the_namespaces_of_two_places_on_a_worker_are_two_findings_though_their_names_meet() -> None:
    """What "default" is called there is another namespace's name here, and that one's is missing there: the doctor did
    not tell which is being deleted.
    """
    facts = healthy()
    (here,) = facts.objects.local_queues
    objects = attrs.evolve(
        facts.objects,
        local_queues=(here, with_value(here, ("metadata", "namespace"), "mk-default")),
        clusters=tuple(
            with_value(cluster, ("metadata", "annotations"), {NAMESPACES_ANNOTATION: '{"*": "mk-*"}'})
            for cluster in facts.objects.clusters
        ),
    )
    there = attrs.evolve(
        facts.workers["worker1"], namespaces=frozenset({"mk-default"}), terminating=frozenset({"mk-default"})
    )
    found = diagnose(attrs.evolve(facts, objects=objects, workers={"worker1": there}), CHECKS).findings
    places = {each.id: (each.object, each.workers) for each in found if "namespace" in each.id}
    assert places == {
        "worker-namespace-missing": ("Namespace mk-default", ("worker1",)),
        "namespace-terminating": ("Namespace default", ("worker1",)),
    }


def test_doctor_looks_at_the_places_of_a_worker_once_for_each_check(monkeypatch: pytest.MonkeyPatch) -> None:
    """What jobs tell of them goes with what was found: the last check asked three of the five once more for that."""
    facts, asked, places = healthy(), Counter[str](), workers._queues_for

    def counted(seen: Facts, worker: str, seen_at: Mapping[str, datetime]) -> list[tuple[ObjectKey, ObjectKey]]:
        asked[worker] += 1
        return places(seen, worker, seen_at)

    monkeypatch.setattr(workers, "_queues_for", counted)
    diagnose(facts, CHECKS)
    assert asked == dict.fromkeys(facts.workers, 5)
