"""What counts as still there on a worker, until when it has time to end, and what is read for that."""

from __future__ import annotations

from collections.abc import Iterable, Set
from datetime import timedelta
from typing import Any

import attrs
import pytest

from multikueue import AVAILABLE, JobKind
from multikueue.core.model.conditions import timestamp
from multikueue.core.model.labels import FOREGROUND_FINALIZER, ORIGIN_LABEL, PREBUILT_WORKLOAD
from multikueue.core.model.names import GVK, Json, ObjectKey, Resource
from multikueue.errors import Forbidden, NotFound
from multikueue.protocols import ObjectList
from multikueue.testing import NOW
from multikueued.reports.ending_copies import EndingCopy
from multikueued.workers.copy_reader import CopyReader, EndingCopies

KINDS = {kind.resource.gvk.kind: kind for kind in AVAILABLE}
MINUTE = timedelta(minutes=1)
SPENT = {"conditions": [{"type": "Complete", "status": "True"}]}


@attrs.define
class Worker:
    """Answers lists, by plural."""

    objects: dict[str, list[Json]]
    tells: bool = True
    """Whether it tells of all its kinds at once."""
    refused: Set[str] = frozenset()
    asked: list[tuple[str, str]] = attrs.field(factory=list)
    """Plurals and selectors."""

    async def served(self) -> Set[GVK] | None:
        served = {kind.resource.gvk for kind in AVAILABLE if kind.resource.plural in self.objects}
        return served if self.tells else None

    async def list(self, resource: Resource, *, namespace: str = "", label_selector: str = "") -> ObjectList:
        self.asked.append((resource.plural, label_selector))
        if resource.plural in self.refused:
            raise Forbidden("no", status=403)
        if resource.plural not in self.objects:
            raise NotFound("no", status=404)
        return ObjectList(list(self.objects[resource.plural]), "1")


def made(kind: str, *, deleted: timedelta | None = None, spec: Json | None = None, **fields: Any) -> Json:
    """A copy; `deleted` is how long ago."""
    gvk = KINDS[kind].resource.gvk
    times = {"creationTimestamp": timestamp(NOW - timedelta(hours=1))}
    if deleted is not None:
        times["deletionTimestamp"] = timestamp(NOW - deleted)
    metadata = {"namespace": "team", "name": kind.lower(), "uid": f"uid-{kind}", **times, **fields.pop("metadata", {})}
    return {"apiVersion": gvk.api_version, "kind": kind, "metadata": metadata, "spec": spec or {}, **fields}


def reader_of(worker: Any, rows: Iterable[JobKind], orphans: Set[str] = frozenset()) -> CopyReader:
    """A worker here has of a client what is asked of it."""
    return CopyReader(worker, rows, "us", orphans)


async def seen(worker: Worker, *kinds: str, overdue_only: bool = False) -> EndingCopies:
    rows: Iterable[JobKind] = [KINDS[kind] for kind in kinds]
    reader = reader_of(worker, rows)
    ending: EndingCopies = await reader.look(NOW, overdue_only=overdue_only)
    return ending


async def only(worker: Worker, kind: str) -> EndingCopy:
    (copy,) = (await seen(worker, kind)).copies
    return copy


async def test_what_has_ended_is_retained_and_does_not_count() -> None:
    worker = Worker({"jobs": [made("Job"), made("Job", status=SPENT, metadata={"name": "kept"})]})
    assert [copy.key for copy in (await seen(worker, "Job")).copies] == [ObjectKey("team", "job")]
    assert worker.asked == [("jobs", f"{ORIGIN_LABEL}=us")]


async def test_a_copy_whose_status_says_that_its_pods_are_gone_does_not_count() -> None:
    status = {"state": "suspended", "conditions": [{"type": "RayClusterSuspended", "status": "True"}]}
    gone = made("RayCluster", deleted=MINUTE, spec={"suspend": True}, status=status)
    ends = made("RayCluster", deleted=MINUTE, status={"state": "ready"}, metadata={"name": "ends"})
    ending = await seen(Worker({"rayclusters": [gone, ends], "pods": []}), "RayCluster")
    assert [copy.key.name for copy in ending.copies] == ["ends"]


@pytest.mark.parametrize(
    ("kind", "spec", "grace"),
    [
        ("Job", {}, 30),
        ("Job", {"template": {"spec": {"terminationGracePeriodSeconds": 300}}}, 300),
        ("Job", {"template": {"spec": {"terminationGracePeriodSeconds": 0}}}, 0),
        ("StatefulSet", {"template": {"spec": {"terminationGracePeriodSeconds": 40}}}, 40),
        (
            "RayCluster",
            {
                "headGroupSpec": {"template": {"spec": {}}},
                "workerGroupSpecs": [{"template": {"spec": {"terminationGracePeriodSeconds": 90}}}],
            },
            90,
        ),
    ],
)
async def test_it_has_its_pods_longest_grace_period_and_a_minute(kind: str, spec: Json, grace: int) -> None:
    plural, ago = KINDS[kind].resource.plural, timedelta(seconds=5)
    copy = await only(Worker({plural: [made(kind, deleted=ago, spec=spec)]}), kind)
    assert copy.due == NOW - ago + timedelta(seconds=grace) + MINUTE
    assert not copy.is_overdue(copy.due - timedelta(seconds=1))
    assert copy.is_overdue(copy.due)


async def test_the_deletion_of_a_pod_has_its_grace_period_already() -> None:
    spec = {"nodeName": "n1", "terminationGracePeriodSeconds": 300, "containers": []}
    pod = made("Pod", deleted=MINUTE, spec=spec, status={"phase": "Running"})
    copy = await only(Worker({"pods": [pod]}), "Pod")
    assert copy.due == NOW
    assert "pod pod on node n1 should have ended at" in copy.why(NOW)


async def test_it_tells_foreign_finalizers_and_the_workload_it_was_made_for() -> None:
    metadata = {"finalizers": [FOREGROUND_FINALIZER, "a/b"], "labels": {PREBUILT_WORKLOAD: "job-train-1"}}
    copy = await only(Worker({"jobs": [made("Job", metadata=metadata)]}), "Job")
    assert copy.finalizers == ("a/b",)
    assert copy.workload == ObjectKey("team", "job-train-1")
    assert (copy.deleted, copy.due) == (None, None)
    assert copy.why(NOW) == "nobody has deleted it, and it may run"


@pytest.mark.parametrize("tells", [True, False])
async def test_kinds_that_are_not_served_are_passed_over_and_forbidden_ones_named(tells: bool) -> None:
    worker = Worker({"jobs": [made("Job")], "jobsets": []}, tells=tells, refused={"jobsets"})
    ending = await seen(worker, "Job", "JobSet", "RayJob")
    assert [copy.kind for copy in ending.copies] == ["Job"]
    assert ending.not_read == (KINDS["JobSet"].resource,)
    assert (("rayjobs", f"{ORIGIN_LABEL}=us") in worker.asked) is not tells


def pod(name: str, deleted: timedelta | None, *, of: str = "uid-Job", controls: bool = True) -> Json:
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "job", "uid": of, "controller": controls}
    metadata = {"name": name, "uid": f"uid-{name}", "ownerReferences": [owner]}
    return made("Pod", deleted=deleted, spec={"nodeName": "n1"}, status={"phase": "Running"}, metadata=metadata)


async def test_pods_are_looked_for_once_it_is_overdue() -> None:
    """Those that it has made, and whose grace period was over a minute ago."""
    pods = [
        pod("late", MINUTE),
        pod("soon", timedelta(seconds=59)),
        pod("runs", None),
        pod("other", MINUTE, of="uid-other"),
        pod("claims", MINUTE, controls=False),
    ]
    quiet = Worker({"jobs": [made("Job", deleted=timedelta(seconds=89))], "pods": pods})
    assert (await only(quiet, "Job")).pods == ()
    assert [plural for plural, _ in quiet.asked] == ["jobs"]
    overdue = Worker({"jobs": [made("Job", deleted=timedelta(seconds=90))], "pods": pods})
    assert [(pod.name, pod.node) for pod in (await only(overdue, "Job")).pods] == [("late", "n1")]


async def test_one_whose_workload_is_gone_is_told_if_nobody_has_deleted_it() -> None:
    """A webhook refuses its deletion. Whose it is only the daemon knows: managers may share a worker."""
    copies = [made("Job"), made("Job", metadata={"name": "new", "uid": "uid-new", "creationTimestamp": timestamp(NOW)})]
    worker = Worker({"jobs": copies})
    rows: Iterable[JobKind] = [KINDS["Job"]]
    for orphans, overdue in ((frozenset[str](), []), (frozenset({"uid-Job", "uid-new"}), ["job"])):
        reader = reader_of(worker, rows, orphans)
        ending = (await reader.look(NOW, overdue_only=True)).copies
        assert [copy.key.name for copy in ending] == overdue
        assert all("was not deleted" in copy.why(NOW) for copy in ending)
        assert all("give-up-before" in copy.way_out("w1", known=False) for copy in ending)


LABEL = "example.com/job"


def labelled(name: str, of: str, *, phase: str = "Running", deleted: timedelta | None = None) -> Json:
    metadata = {"name": name, "uid": f"uid-{name}", "labels": {LABEL: of}}
    return made("Pod", deleted=deleted, spec={"nodeName": "n1"}, status={"phase": phase}, metadata=metadata)


async def by_label(worker: Worker, *, overdue_only: bool = False) -> EndingCopies:
    reader = reader_of(worker, [attrs.evolve(KINDS["Job"], pods_label=LABEL)])
    ending: EndingCopies = await reader.look(NOW, overdue_only=overdue_only)
    return ending


async def test_pods_that_outlive_their_job_count_where_only_a_label_shows_them() -> None:
    """Their controller does not set `blockOwnerDeletion`: the job copy is gone, and drain said "drained"."""
    pods = [labelled("left", "gone"), labelled("ended", "gone", phase="Failed"), labelled("its", "job")]
    ending = await by_label(Worker({"jobs": [made("Job", status=SPENT)], "pods": pods}))
    assert [(copy.kind, copy.key.name) for copy in ending.copies] == [("Pod", "left")]


async def test_of_them_those_are_overdue_whose_grace_period_was_over_a_minute_ago() -> None:
    pods = [labelled("soon", "gone", deleted=timedelta(seconds=59)), labelled("late", "gone", deleted=MINUTE)]
    ending = await by_label(Worker({"jobs": [], "pods": pods}), overdue_only=True)
    assert [copy.why(NOW) for copy in ending.copies if "pod late on node n1 should have ended" in copy.why(NOW)]
    assert len(ending.copies) == 1


async def test_where_pods_may_not_be_listed_that_is_told() -> None:
    ending = await by_label(Worker({"jobs": [], "pods": []}, refused={"pods"}))
    assert (ending.copies, ending.pods_unseen) == ((), (KINDS["Job"].resource,))


async def test_only_what_is_overdue_is_kept_if_nothing_else_is_asked_for() -> None:
    copies = [made("Job"), made("Job", deleted=MINUTE), made("Job", deleted=2 * MINUTE, metadata={"name": "late"})]
    ending = await seen(Worker({"jobs": copies, "pods": []}), "Job", overdue_only=True)
    assert [copy.key.name for copy in ending.copies] == ["late"]


async def test_a_time_that_cannot_be_is_none_to_fail_at() -> None:
    """Whoever may write to a worker chooses the year."""
    odd = made("Job", metadata={"deletionTimestamp": "9999-12-31T23:59:59Z"})
    assert not (await only(Worker({"jobs": [odd]}), "Job")).is_overdue(NOW)
