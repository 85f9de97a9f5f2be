"""Workers that are taken away under their jobs: what becomes of these, and when."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import attrs
import pytest

from multikueue.core.machinery.connection_facts import ConnectionFacts
from multikueue.core.model.conditions import timestamp
from multikueue.core.model.kinds import MULTIKUEUE_CLUSTER
from multikueue.core.model.labels import DETACHED_ANNOTATION, GIVE_UP_BEFORE_ANNOTATION
from multikueue.core.model.names import Json
from multikueue.errors import Cause
from multikueued.diagnosis.fleet import fleet_findings
from multikueued.reports.explanation import Explanation, explain
from multikueued.reports.objects import ManagerObjects
from multikueued.reports.seen import Seen
from tests.reports.objects import CHECK, NOW, fleet, job, saying, stored, worker, workload

TRAIN = stored(job("train"))
RUNNING = workload(TRAIN, cluster="worker1", checks={CHECK: "Ready"})
AT = {DETACHED_ANNOTATION: timestamp(NOW)}
LOST = ConnectionFacts(error="refused")


def explained(objects: ManagerObjects, of: Json = RUNNING) -> Explanation:
    return explain(Seen(of, TRAIN, objects, (), NOW))


def detached(
    facts: ConnectionFacts | None = None, *, of: Json = RUNNING, noted: Mapping[str, str] = MappingProxyType({})
) -> ManagerObjects:
    """A fleet whose worker1 is being detached; with facts it is lost."""
    how: dict[str, Any] = {"message": "refused", "reason": "ClientConnectionFailed", "facts": facts} if facts else {}
    return fleet(of, workers=(worker("worker1", annotations={**AT, **noted}, **how), worker("worker2")))


@pytest.mark.parametrize(
    ("facts", "why", "remedy"),
    [
        (None, "nobody can stop or move them", "multikueue worker drain worker1 --move"),
        (LOST, "elsewhere workerLostTimeout after it is gone", "annotate multikueuecluster worker1"),
        (attrs.evolve(LOST, moves_at=NOW), f"they start elsewhere at {timestamp(NOW)}", "nothing, if it is dead"),
    ],
    ids=["in reach", "answered until then", "lost before"],
)
def test_explain_says_what_becomes_of_the_job(facts: ConnectionFacts | None, why: str, remedy: str) -> None:
    explanation = explained(detached(facts))
    (finding,) = [entry for entry in explanation.findings if entry.id == "worker-detached"]
    assert (finding.where, finding.blocking) == ("worker1", False)
    assert why.removeprefix("they ") in finding.why
    assert remedy in finding.remedy


def test_that_it_cannot_be_reached_follows_from_its_detaching() -> None:
    """Somebody had to see to the ClusterProfile that the detaching has taken away. What was lost before is told."""
    gone = ConnectionFacts(error="not found", cause=Cause.PROFILE_MISSING)
    for facts, ids in ((gone, []), (attrs.evolve(gone, moves_at=NOW), ["cluster-profile-missing"])):
        objects = detached(facts)
        told = [finding.id for finding in explained(objects).findings]
        assert [one for one in told if one != "worker-detached"] == ids
        told = [finding.id for finding in fleet_findings(objects, NOW)]
        assert [one for one in told if one.startswith("cluster-profile")] == ids


def test_no_move_is_announced_that_does_not_come() -> None:
    """Nor where the check tells that the worker is lost."""
    for of in (RUNNING, saying(RUNNING, 'The workload was admitted on "worker1" — worker1: is lost')):
        first, *_ = explained(detached(LOST, of=of), of).next
        assert first.text.startswith("the job stays there until that cluster is gone")
        assert first.at is None


def test_a_cluster_that_a_person_calls_broken_is_lost_like_any_other() -> None:
    given_up = detached(attrs.evolve(LOST, moves_at=NOW), noted={GIVE_UP_BEFORE_ANNOTATION: timestamp(NOW)})
    assert "worker-detached" not in [finding.id for finding in explained(given_up).findings]


def test_jobs_that_others_have_and_those_that_have_ended_are_none_of_its() -> None:
    for of in (workload(TRAIN, cluster="worker2"), workload(TRAIN, cluster="worker1", finished="Succeeded")):
        assert "worker-detached" not in [finding.id for finding in explained(detached(of=of), of).findings]


def test_a_worker_without_a_multikueuecluster_is_a_finding_once_these_could_be_read() -> None:
    """It was told as lost, and why was told nowhere."""
    objects = fleet(RUNNING, workers=(worker("worker2"),))
    (finding,) = explained(objects).findings
    assert (finding.id, finding.where, finding.blocking) == ("worker-gone", "MultiKueueCluster worker1", False)
    unread = attrs.evolve(objects, clusters=(), unread=frozenset({MULTIKUEUE_CLUSTER}))
    assert "worker-gone" not in [finding.id for finding in explained(unread).findings]
