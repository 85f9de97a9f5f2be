"""Which jobs may be moved, and where they could ever fit."""

from __future__ import annotations

from typing import Any

import pytest

from multikueue import AVAILABLE, JobKind
from multikueue.core.dispatchers.scored.job_annotations import NAMES, SELECTOR, TOGETHER
from multikueue.core.machinery.connection_facts import ConnectionFacts
from multikueue.core.model.kinds import JOB
from multikueue.core.model.labels import (
    COMPONENT_INDEX_ANNOTATION,
    NAMESPACES_ANNOTATION,
    POD_GROUP_SERVING_ANNOTATION,
    POD_PARENT_ANNOTATION,
)
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.worker_names import WorkerNames
from multikueued.reports.typenames import title
from multikueued.reports.worker_queues import QueuesOnWorker, quota_mismatch
from multikueued.workers.jobs import never_ends, why_not_moved
from multikueued.workers.move_targets import annotations_mismatch, queues_mismatch
from tests.reports.objects import worker

KINDS = {kind.resource.gvk.kind: kind for kind in AVAILABLE}
KEY = ObjectKey("team", "lq")


def workload(usage: Json | None = None, *, check: str = "Pending", **metadata: Any) -> Json:
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "controller": True}
    assignments = [{"name": "main", "resourceUsage": usage or {"cpu": "3"}}]
    return {
        "metadata": {"name": "job-train-1", "namespace": "team", "ownerReferences": [owner], **metadata},
        "spec": {"queueName": "lq"},
        "status": {
            "admission": {"podSetAssignments": assignments},
            "admissionChecks": [{"name": "mk", "state": check}],
        },
    }


def queue(*flavors: Json, **spec: Any) -> Json:
    listed = [
        {"name": str(number), "resources": [{"name": name, **quota} for name, quota in flavor.items()]}
        for number, flavor in enumerate(flavors)
    ]
    return {"metadata": {"name": "cq"}, "spec": {"resourceGroups": [{"flavors": listed}], **spec}}


def fits(cluster_queue: Json, seen: Json | None = None) -> str:
    return str(
        quota_mismatch(seen or workload(), QueuesOnWorker({KEY: "cq"}, {"cq": cluster_queue}), WorkerNames()) or ""
    )


class TestFitting:
    @pytest.mark.parametrize(
        ("cluster_queue", "why"),
        [
            (queue({"cpu": {"nominalQuota": "3"}}), ""),
            (queue({"cpu": {"nominalQuota": "2500m"}}), "insufficient quota for cpu (3 > 2.5)"),
            (queue({"cpu": {"nominalQuota": "1"}}, {"cpu": {"nominalQuota": "4"}}), ""),
            (queue({"memory": {"nominalQuota": "1Gi"}}), 'its ClusterQueue "cq" has no quota for cpu'),
            (queue({"cpu": {"nominalQuota": "1"}}, cohortName="all"), ""),
            (
                queue({"cpu": {"nominalQuota": "1", "borrowingLimit": "1"}}, cohortName="all"),
                "insufficient quota for cpu (3 > 2)",
            ),
            (queue({"cpu": {"nominalQuota": "8"}}, stopPolicy="Hold"), 'ClusterQueue "cq" is stopped'),
        ],
        ids=["just", "too small", "another flavor", "not covered", "borrows", "borrows too little", "stopped"],
    )
    def test_by_quota(self, cluster_queue: Json, why: str) -> None:
        assert fits(cluster_queue) == why

    def test_pods_count_only_where_a_queue_covers_them(self) -> None:
        seen = workload({"cpu": "1", "pods": "7"})
        assert fits(queue({"cpu": {"nominalQuota": "3"}}), seen) == ""
        covered = queue({"cpu": {"nominalQuota": "3"}, "pods": {"nominalQuota": "5"}})
        assert fits(covered, seen) == "insufficient quota for pods (7 > 5)"

    def test_queues_that_are_missing_are_named(self) -> None:
        names, bare = WorkerNames(), QueuesOnWorker({KEY: "cq"}, {})
        assert str(quota_mismatch(workload(), QueuesOnWorker({}, {}), names)) == 'LocalQueue "team/lq" does not exist'
        assert str(quota_mismatch(workload(), bare, names)) == 'ClusterQueue "cq" does not exist'

    def test_a_worker_with_other_names_is_asked_by_those(self) -> None:
        names, bare = WorkerNames({"team": "mk-team"}, {"lq": "theirs"}), QueuesOnWorker({KEY: "cq"}, {})
        assert str(quota_mismatch(workload(), bare, names)) == 'LocalQueue "mk-team/theirs" does not exist'
        assert "none there" in str(quota_mismatch(workload(), bare, WorkerNames({})))


@pytest.mark.parametrize(
    ("annotations", "why"),
    [
        ({}, ""),
        ({SELECTOR: "region=eu"}, ""),
        ({SELECTOR: "region=us"}, "the job does not select it"),
        ({NAMES: "oslo"}, "the job does not name it"),
        ({TOGETHER: "job/other"}, "job/other is on oslo"),
    ],
)
@pytest.mark.parametrize("on_job", [False, True])
def test_a_job_is_moved_only_where_its_annotations_take_it(annotations: dict[str, str], why: str, on_job: bool) -> None:
    """It was evicted, and waited until its worker was uncordoned."""
    seen = workload(annotations={} if on_job else annotations)
    seen["status"]["clusterName"] = "oslo"
    cluster = {"metadata": {"name": "bergen", "labels": {"region": "eu"}}}

    assert annotations_mismatch(seen, {"metadata": {"annotations": annotations}} if on_job else None, cluster) == why


@pytest.mark.parametrize(
    ("namespaces", "checks", "why"),
    [
        ('{"team": "local-team"}', [], ""),
        ('{"team": "local-team"}', ["mk"], 'AdmissionCheck "mk", so its jobs go to workers'),
        ('{"other": "team"}', [], 'namespace "team" is for copies of others'),
    ],
)
def test_the_manager_itself_is_asked_by_its_own_names(namespaces: str, checks: list[str], why: str) -> None:
    """A job was evicted for a place where no copy of it could be made, or would ever start."""
    local = worker("local", facts=ConnectionFacts(is_manager=True), annotations={NAMESPACES_ANNOTATION: namespaces})
    strategy = {"admissionChecks": [{"name": check} for check in checks]}
    pool = queue({"cpu": {"nominalQuota": "3"}}, admissionChecksStrategy=strategy)
    leads = {ObjectKey(name, "lq"): "cq" for name in ("team", "local-team")}
    mismatch = queues_mismatch(workload(), local, QueuesOnWorker(leads, {"cq": pool}), ["mk"])
    assert why in mismatch if why else not mismatch


class TestWhatNeverEnds:
    @pytest.mark.parametrize("kind", ["StatefulSet", "LeaderWorkerSet", "RayCluster", "RayService"])
    def test_kinds_that_serve(self, kind: str) -> None:
        assert never_ends(workload(), KINDS[kind], []) == f"a {kind} runs until somebody stops it"

    @pytest.mark.parametrize("kind", ["Job", "JobSet", "RayJob", "PyTorchJob", "AppWrapper", "Pod"])
    def test_kinds_that_end(self, kind: str) -> None:
        assert never_ends(workload(), KINDS[kind], []) == ""

    @pytest.mark.parametrize(
        ("metadata", "why"),
        [
            ({"ownerReferences": [{"kind": "ReplicaSet", "name": "web", "controller": True}]}, "a Deployment makes"),
            ({"annotations": {POD_PARENT_ANNOTATION: "deployment"}}, "a Deployment makes"),
            ({"annotations": {POD_GROUP_SERVING_ANNOTATION: "true"}}, "its pods serve"),
        ],
    )
    def test_pods_that_somebody_makes_anew(self, metadata: Json, why: str) -> None:
        assert never_ends(workload(), KINDS["Pod"], [{"metadata": metadata}]).startswith(why)

    def test_parts_of_groups(self) -> None:
        part = workload(annotations={COMPONENT_INDEX_ANNOTATION: "1"})
        assert "part of a group" in never_ends(part, None, [])


class TestWhatIsNotMoved:
    job: JobKind = KINDS["Job"]

    def test_a_plain_job_is(self) -> None:
        assert why_not_moved(workload(check="Ready"), self.job, "mk") == ""

    def test_pods_that_kueue_would_delete(self) -> None:
        assert "Kueue deletes pods that it evicts" in why_not_moved(workload(check="Ready"), KINDS["Pod"], "mk")
        assert why_not_moved(workload(), KINDS["Pod"], "mk") == ""

    def test_without_our_check_nobody_would_dispatch_it_again(self) -> None:
        assert "does not have our AdmissionCheck" in why_not_moved(workload(), self.job, None)

    def test_of_a_kind_that_is_not_known_the_settings_are_asked_for(self) -> None:
        assert "--config-file" in why_not_moved(workload(), None, "mk")

    def test_one_that_is_being_deleted(self) -> None:
        going = workload(deletionTimestamp="2026-01-01T00:00:00Z")
        assert why_not_moved(going, self.job, "mk") == "it is being deleted"


def test_jobs_are_named_as_their_users_know_them() -> None:
    assert title(workload()) == "team/job/train"
    named = workload()
    named["metadata"]["ownerReferences"][0]["name"] = "a\x1b[2J\n  team/job/b"
    assert title(named) == "team/job/a [2J team/job/b", "whoever may create Workloads gives their owner any name"
    assert JOB.gvk.kind == "Job"
