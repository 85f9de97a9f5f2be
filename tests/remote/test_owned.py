"""The pods of a job, by the UIDs of their owners."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import pytest

from multikueue.core.model.names import GVK, Json, Resource
from multikueue.errors import Forbidden
from multikueue.kube.served_kinds import ServedKind
from multikueue.protocols import ObjectList
from multikueued.reading.owned import Owned, Ownership, owned_pods
from tests.remote.objects import job_copy, owned_by, pod

pytestmark = pytest.mark.looptime

JOBSET: Json = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": "big", "uid": "root"}}


@attrs.define
class Lists:
    """A worker that serves lists."""

    objects: Mapping[str, Sequence[Json]]
    """By plural; None of a plural: it may not be listed."""
    refused: frozenset[str] = frozenset()
    asked: list[str] = attrs.field(factory=list)

    async def list(self, resource: Resource, **_: Any) -> ObjectList:
        self.asked.append(resource.plural)
        if resource.plural in self.refused:
            raise Forbidden("you may not")
        return ObjectList(list(self.objects.get(resource.plural, ())), "1")

    async def discover(self, gvk: GVK) -> ServedKind | None:
        known = {"ReplicaSet": "replicasets", "Widget": "widgets"}
        return ServedKind(known[gvk.kind], True, frozenset()) if gvk.kind in known else None


def a_job(name: str, owner: Json) -> Json:
    metadata = {"name": name, "uid": f"uid-of-{name}", "ownerReferences": [owned_by(owner)]}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata}


async def names(worker: Any, *roots: str) -> list[str]:
    return [pod["metadata"]["name"] for pod in (await owned_pods(worker, frozenset(roots), "default")).pods]


async def test_the_pods_of_a_job() -> None:
    copy = job_copy()
    worker = Lists({"pods": [pod("train-1", copy), pod("train-2", copy), pod("web")]})
    assert await names(worker, copy["metadata"]["uid"]) == ["train-1", "train-2"]
    assert worker.asked == ["pods"]


async def test_a_foreign_pod_of_the_same_name_is_not_shown() -> None:
    """Its owner has the job's name and kind, and another UID: the job of a namespace that was made again."""
    other = {**job_copy(), "metadata": {**job_copy()["metadata"], "uid": "another"}}
    assert await names(Lists({"pods": [pod("train-1", other), pod("train-2")]}), "uid-of-copy-of-train") == []


async def test_a_pod_that_names_the_job_as_an_owner_only_is_not_shown() -> None:
    """Anybody who may create pods there can write that. A controller lets go pods that it has not made."""
    copy = job_copy()
    forged = pod("train-1", ownerReferences=[owned_by(copy, controller=False)])
    unsaid = pod("train-2", ownerReferences=[{**owned_by(copy), "controller": None}])
    inner = a_job("inner", copy)
    inner["metadata"]["ownerReferences"] = [owned_by(copy, controller=False)]
    worker = Lists({"pods": [forged, unsaid, pod("train-3", inner), pod("train-4", copy)], "jobs": [inner]})
    assert await names(worker, copy["metadata"]["uid"]) == ["train-4"]


async def test_a_jobset_has_jobs_which_have_pods() -> None:
    mine, foreign = a_job("big-w-0", JOBSET), a_job("other", {**JOBSET, "metadata": {"name": "big", "uid": "other"}})
    worker = Lists({"pods": [pod("a", mine), pod("b", foreign)], "jobs": [mine, foreign]})
    assert await names(worker, "root") == ["a"]


async def test_any_kind_in_between_is_found_by_discovery() -> None:
    metadata = {"name": "w", "uid": "w", "ownerReferences": [owned_by(JOBSET)]}
    widget: Json = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": metadata}
    assert await names(Lists({"pods": [pod("a", widget)], "widgets": [widget]}), "root") == ["a"]


async def test_what_may_not_be_listed_is_told() -> None:
    worker: Any = Lists({"pods": [pod("a", a_job("big-w-0", JOBSET))]}, frozenset({"jobs"}))
    owned = await owned_pods(worker, frozenset({"root"}), "default")
    assert (owned.pods, owned.not_read) == ((), ("jobs.batch may not be listed there",))


async def test_kinds_beyond_the_bound_are_told() -> None:
    """They were left out without a word, and with them pods of the job."""
    kinds = [
        {**JOBSET, "kind": f"Kind{number:02}", "metadata": {"name": "x", "uid": f"u{number}"}} for number in range(18)
    ]
    worker: Any = Lists({"pods": [pod(f"p{number}", kind) for number, kind in enumerate(kinds)]})
    owned = await owned_pods(worker, frozenset({"root"}), "default")
    gap = "owners of kind Kind16 (jobset.x-k8s.io/v1alpha2) and 1 more are not looked at, as there are so many"
    assert (owned.pods, owned.not_read) == ((), (gap,))


async def test_the_pods_of_a_group_are_roots() -> None:
    assert await names(Lists({"pods": [pod("a"), pod("b"), pod("c")]}), "uid-of-a", "uid-of-b") == ["a", "b"]


async def test_nothing_is_owned_by_nobody() -> None:
    """An owner reference without a UID, or one that is empty, leads nowhere."""
    assert await names(Lists({"pods": [pod("a")]})) == []


def test_a_circle_of_owners_ends() -> None:
    first, second = pod("a"), pod("b")
    first["metadata"]["ownerReferences"] = [owned_by(second)]
    second["metadata"]["ownerReferences"] = [owned_by(first)]
    family = Ownership(frozenset({"root"}))
    family.add([first, second])
    assert not family.reaches(first)


def warning(about: Json, reason: str, at: int, **fields: Any) -> Json:
    """An event of a worker's controller."""
    name = about["metadata"]["name"]
    regarding = {
        "kind": about["kind"],
        "apiVersion": about["apiVersion"],
        "name": name,
        "uid": about["metadata"]["uid"],
    }
    time = f"2026-01-01T00:00:{at:02}Z"
    metadata = {"name": f"{reason}-{at}", "uid": f"event-{reason}-{at}", "creationTimestamp": time}
    event = {"metadata": metadata, "regarding": regarding, "type": "Warning", "reason": reason, "note": "words"}
    return {**event, "eventTime": time, **fields}


async def test_of_a_job_without_pods_the_last_warning_there_is_told() -> None:
    """Also of what it has made; not what was said of another job, what is no warning, nor what fails nothing."""
    inner = a_job("big-w-0", JOBSET)
    events = [
        warning(inner, "FailedCreate", 2),
        warning(JOBSET, "JobCreationFailed", 1),
        warning(JOBSET, "Resumed", 4, type="Normal"),
        warning(inner, "SettedPodTemplateRestartPolicy", 5),
        warning(a_job("other", {**JOBSET, "metadata": {"name": "other", "uid": "other"}}), "Other", 3),
    ]
    worker: Any = Lists({"jobs": [inner], "events": events})
    owned = await owned_pods(worker, frozenset({"root"}), "default", why_none=True)
    assert owned.warning is not None
    assert (owned.warning.reason, owned.warning.note) == ("FailedCreate", "words")

    assert (await owned_pods(worker, frozenset({"root"}), "default")).warning is None, "nobody has asked"
    with_pod: Any = Lists({"jobs": [inner], "events": events, "pods": [pod("a", inner)]})
    assert (await owned_pods(with_pod, frozenset({"root"}), "default", why_none=True)).warning is None
    refused: Any = Lists({"jobs": [inner], "events": events}, frozenset({"events"}))
    assert await owned_pods(refused, frozenset({"root"}), "default", why_none=True) == Owned(())
