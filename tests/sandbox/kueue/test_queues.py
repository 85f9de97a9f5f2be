"""Queues: which one a Workload belongs to, and why one cannot admit."""

from __future__ import annotations

from typing import Any

import pytest

from multikueue.core.model.names import Json
from multikueue.sandbox.kueue.scheduling.queues import check_names
from tests.sandbox.kueue.objects import admission_check, cluster_queue, configuration, flavor, local_queue


def workload(**status: Any) -> Json:
    return {"metadata": {"name": "w", "namespace": "default"}, "spec": {"queueName": "lq"}, "status": status}


def active(check: Json) -> Json:
    return {**check, "status": {"conditions": [{"type": "Active", "status": "True"}]}}


QUEUES = (flavor(), local_queue())


def test_a_queue_with_all_it_needs_is_active() -> None:
    objects = configuration(*QUEUES, cluster_queue(checks=("mk",)), active(admission_check()))
    assert objects.inactivity(cluster_queue(checks=("mk",))) is None
    assert objects.inadmissible(workload()) is None


@pytest.mark.parametrize(
    ("queue", "others", "reason", "message"),
    [
        (
            cluster_queue(checks=("mk",)),
            [flavor(), admission_check()],
            "AdmissionCheckInactive",
            "Can't admit new workloads: references inactive AdmissionCheck(s): mk.",
        ),
        (
            cluster_queue(checks=("b", "a")),
            [flavor()],
            "AdmissionCheckNotFound",
            "Can't admit new workloads: references missing AdmissionCheck(s): a,b.",
        ),
        (
            cluster_queue(stopPolicy="Hold"),
            [],
            "Stopped",
            "Can't admit new workloads: is stopped, references missing ResourceFlavor(s): default.",
        ),
        (
            cluster_queue(checks=("mk", "mk2")),
            [flavor(), active(admission_check()), active(admission_check("mk2"))],
            "MultipleMultiKueueAdmissionChecks",
            "Can't admit new workloads: Cannot use multiple MultiKueue AdmissionChecks on the same ClusterQueue, "
            "found: mk,mk2.",
        ),
        (
            cluster_queue(admissionChecksStrategy={"admissionChecks": [{"name": "mk", "onFlavors": ["default"]}]}),
            [flavor(), active(admission_check())],
            "MultiKueueAdmissionCheckAppliedPerFlavor",
            "Can't admit new workloads: Cannot specify MultiKueue AdmissionCheck per flavor, found: mk.",
        ),
    ],
)
def test_an_inactive_queue_says_why_in_kueues_words(queue: Json, others: list[Json], reason: str, message: str) -> None:
    objects = configuration(local_queue(), queue, *others)
    assert objects.inactivity(queue) == (reason, message)
    assert objects.inadmissible(workload()) == "ClusterQueue cq is inactive"


def test_a_missing_or_stopped_queue_is_named() -> None:
    stopped = local_queue()
    stopped["spec"]["stopPolicy"] = "Hold"
    assert configuration().inadmissible(workload()) == "LocalQueue lq doesn't exist"
    assert configuration(stopped).inadmissible(workload()) == "LocalQueue lq is inactive"
    assert configuration(local_queue()).inadmissible(workload()) == "ClusterQueue cq doesn't exist"


def test_quota_stays_with_the_queue_that_gave_it() -> None:
    """A LocalQueue can be deleted while its workloads run."""
    objects = configuration(cluster_queue())
    held = workload(admission={"clusterQueue": "cq"}, conditions=[{"type": "QuotaReserved", "status": "True"}])
    assert (objects.cluster_queue_of(held) or {})["metadata"]["name"] == "cq"
    assert objects.cluster_queue_of(workload()) is None


@pytest.mark.parametrize(
    ("selector", "matches"),
    [
        (None, False),
        ({}, True),
        ({"matchLabels": {"team": "a"}}, True),
        ({"matchLabels": {"team": "b"}}, False),
        ({"matchExpressions": [{"key": "team", "operator": "In", "values": ["a", "b"]}]}, True),
        ({"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["a"]}]}, False),
        ({"matchExpressions": [{"key": "team", "operator": "Exists"}]}, True),
        ({"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]}, False),
    ],
)
def test_a_queue_takes_the_namespaces_its_selector_matches(selector: Json | None, matches: bool) -> None:
    """As in Kueue, no selector at all matches nothing."""
    namespace = {"kind": "Namespace", "metadata": {"name": "default", "labels": {"team": "a"}}}
    queue = {"spec": {} if selector is None else {"namespaceSelector": selector}}
    assert configuration(namespace).takes_namespace(queue, "default") is matches


def test_a_check_for_one_flavor_concerns_those_who_got_it() -> None:
    checks = [{"name": "all"}, {"name": "spot-only", "onFlavors": ["spot"]}]
    queue = cluster_queue(admissionChecksStrategy={"admissionChecks": checks})
    assert check_names(queue, workload()) == ["all"]
    spot = workload(admission={"podSetAssignments": [{"name": "main", "flavors": {"cpu": "spot"}}]})
    assert check_names(queue, spot) == ["all", "spot-only"]
