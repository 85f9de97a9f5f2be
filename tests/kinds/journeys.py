"""What a user of any kind may rely on, from submission to the end."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import anyio

from multikueue.core.model.kinds import WORKLOAD
from multikueue.core.model.labels import (
    ELASTIC_ANNOTATION,
    ORIGIN_LABEL,
    ORIGIN_NAMESPACE_ANNOTATION,
    ORIGIN_UID_ANNOTATION,
    PREBUILT_WORKLOAD,
)
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import annotations_of, dig, labels_of, name_of, with_value, without
from multikueue.core.model.started import is_started
from multikueue.core.model.workloads import is_admitted, is_finished, is_on_hold
from multikueue.sandbox.kinds.ray import WORKERS
from multikueue.sandbox.kueue import evict
from multikueue.sandbox.setting_up import LOCAL_QUEUE_NAME
from tests.kinds.cases import Case
from tests.kinds.ground import NAMESPACE, QUEUE_THERE, TEMPLATE, Ground

ATTEMPT: Final = "multikueue.dev/attempt"
JOB_MARK: Final = "multikueue.dev/job-mark"
COPY_OF: Final = "multikueue.dev/copy-of"
FILLED_IN: Final[Mapping[str, tuple[tuple[str, ...], ...]]] = {
    "Job": (("spec", "selector"), ("spec", "template", "metadata", "labels")),
    "Pod": (("spec", "priority"), ("spec", "preemptionPolicy")),
}
"""What every API server fills in for itself."""

ROOM: Final[Mapping[str, Json]] = {"job": {"completions": 3}}
"""What a job must have for it to be able to grow."""

NO_RETRIES: Final[Mapping[str, Json]] = {"job": {"backoffLimit": 0}}
"""What a job must have to fail with its first pod."""
TEMPLATES: Final = ("job", "jobset", "pytorchjob", "podgroup")
"""Kinds with their pod template in the job, several in a list or a mapping, and the job itself."""
FIXED: Final = ("rayjob", "rayservice")
"""Kinds that cannot change their size, though their jobs may say that they are elastic."""

HELD: Final = 10.0
"""Seconds for which one that is on hold is looked at: it would have been sent round by then."""

Journey = Callable[[Ground, Case], Awaitable[None]]


async def finishes(ground: Ground, case: Case) -> None:
    """It is copied as it is, runs on one worker, and the manager shows how it went."""
    kind, name = case.kind, f"{case.name}-finishes"
    submitted = await ground.submit(kind, name)
    if kind.course.ends:
        done = await ground.ended(kind, name, "Succeeded")
        (worker,) = ground.ran_on(kind, name)
    else:
        worker = await ground.running(kind, name)
        if case.adapter.resource == kind.resource:
            await ground.shown(kind, name, worker)
        done = ground.jobs(ground.manager, kind, name)
        await ground.delete(kind, submitted)
    await ground.cleaned(kind, name)

    if case.adapter.resource == kind.resource:  # else its pods were copied, one by one
        assert ground.ran_on(kind, name) == [worker]
        for job, made in zip(submitted, done, strict=True):
            place = (kind.resource, job["metadata"]["name"])
            _check_copy(case, job, ground.workers[worker].first[place], ground.names_on(worker)[0])
            if kind.reports and kind.course.ends:
                assert ground.workers[worker].showed(*place, made["status"])


async def pasted(ground: Ground, case: Case) -> None:
    """One that was created from what `kubectl get -o yaml` showed of a job that had been started runs as any other.

    It once waited for ever, with quota held on the manager and a worker.
    """
    kind, name = case.kind, f"{case.name}-pasted"
    await ground.submit(kind, name, started=True)
    await ground.ended(kind, name, "Succeeded")
    (worker,) = ground.ran_on(kind, name)
    copies = [first for (resource, _), first in ground.workers[worker].first.items() if resource == kind.resource]
    assert copies
    assert not any(is_started(copy) for copy in copies)
    await ground.cleaned(kind, name)


async def fails(ground: Ground, case: Case) -> None:
    """A job that fails has failed on the manager, too, and is not tried elsewhere."""
    kind, name = case.kind, f"{case.name}-fails"
    await ground.submit(kind, name, fails=True, spec=NO_RETRIES.get(case.name))
    await ground.ended(kind, name, "Failed")
    await ground.cleaned(kind, name)

    assert len(ground.ran_on(kind, name)) == 1


async def deleted(ground: Ground, case: Case) -> None:
    """What is deleted on the manager does not go on anywhere."""
    kind, name = case.kind, f"{case.name}-deleted"
    jobs = await ground.submit(kind, name, duration="1h")
    await ground.running(kind, name)
    await ground.delete(kind, jobs)
    await ground.cleaned(kind, name)
    await ground.gone(kind, name)


async def leaves_foreign_jobs_alone(ground: Ground, case: Case, *, defaulted: bool = False) -> None:
    """Somebody else's object of the same name is neither changed nor deleted; the job runs on the other worker.

    Then it is deleted on the manager: it does not go on anywhere.

    Args:
        ground: where.
        case: the kind.
        defaulted: whether the kind's own controller fills in fields of the spec, and adds labels.
    """
    kind, name = case.kind, f"{case.name}-taken"
    await ground.queue_on(name, "worker1")
    (first, *_) = kind.examples(name, TEMPLATE, queue="somebodys")
    taken = kind.example(first["metadata"]["name"], TEMPLATE, queue="somebodys", delegated=False)
    taken = with_value(taken, ("metadata", "namespace"), ground.names_on("worker1")[0])
    before = await ground.workers["worker1"].client.create(kind.resource, taken)
    jobs = await ground.submit(kind, name, queue=name, duration="1h")
    await ground.until(
        lambda: any(is_admitted(workload) for workload in _copies_of(ground, case, "worker1", name)),
        lambda: ground.story(kind, name),
    )
    await ground.open_queue("worker2", name)
    assert await ground.running(kind, name) == "worker2"
    await ground.delete(kind, jobs)
    await ground.gone(kind, name)
    await ground.until(
        lambda: set(ground.copies(kind, name)) <= _foreign(ground, name), lambda: ground.story(kind, name)
    )

    left = await ground.workers["worker1"].client.get(kind.resource, ObjectKey.of(before))
    assert left["metadata"]["uid"] == before["metadata"]["uid"]
    assert _contains(left["spec"], before["spec"]) if defaulted else left["spec"] == before["spec"]
    assert labels_of(left).items() >= labels_of(before).items() if defaulted else labels_of(left) == labels_of(before)
    await ground.workers["worker1"].client.delete(kind.resource, ObjectKey.of(left), propagation="Background")


async def runs_again_after_eviction(ground: Ground, case: Case) -> None:
    """A worker that takes the quota back stops the job; it goes through the queue again, and runs as it was written."""
    kind, name = case.kind, f"{case.name}-evicted"
    submitted = await ground.submit(kind, name, duration="1h")
    worker = await ground.running(kind, name)
    (copy, *_) = _copies_of(ground, case, worker, name)
    place = (WORKLOAD, copy["metadata"]["name"])
    seen = {uid for other in ground.workers.values() for uid in other.uids.get(place, ())}
    await evict(ground.workers[worker].client, ObjectKey.of(copy))

    def again() -> bool:
        there = [workload for other in ground.workers for workload in _copies_of(ground, case, other, name)]
        new = [workload for workload in there if ("Workload", workload["metadata"]["name"]) == ("Workload", place[1])]
        return any(is_admitted(workload) and workload["metadata"]["uid"] not in seen for workload in new)

    await ground.until(again, lambda: ground.story(kind, name))
    second = await ground.running(kind, name)
    for job in submitted if case.adapter.resource == kind.resource else ():
        _check_copy(case, job, ground.workers[second].first[kind.resource, name_of(job)], ground.names_on(second)[0])
    await ground.delete(kind, submitted)
    await ground.cleaned(kind, name)


_CHANGED: Final[Mapping[str, Any]] = {"replicas": 3, "serveConfigV2": "changed: true\n"}
"""What is written into a field that follows. All others are limits: seconds, or how often."""
_OF_SOME: Final = ("maxFailedIndexes",)
"""Fields that follow and that the case's job may not have: of Indexed Jobs alone."""


async def follows(ground: Ground, case: Case) -> None:
    """What may change of a running job reaches its copy."""
    kind, name = case.kind, f"{case.name}-followed"
    jobs = await ground.submit(kind, name, duration="1h")
    worker = await ground.running(kind, name)
    forwarded = (path for path in case.adapter.sync.forwarded if path[-1] not in _OF_SOME)
    changes = {path: _CHANGED.get(path[-1], 7200) for path in forwarded}
    patch: Json = {}
    for path, value in changes.items():
        patch = with_value(patch, path, value)
    await ground.manager.client.merge_patch(kind.resource, ObjectKey.of(jobs[0]), patch)

    def has_followed() -> bool:
        copy = ground.workers[worker].get(kind.resource, name_of(jobs[0]))
        return all(dig(copy, *path) == value for path, value in changes.items())

    await ground.until(has_followed, lambda: ground.story(kind, name))
    await ground.running(kind, name)
    await ground.delete(kind, jobs)
    await ground.cleaned(kind, name)
    await ground.gone(kind, name)


SIZES: Final[Mapping[str, tuple[str, ...]]] = {
    "job": ("spec", "parallelism"),
    "rayjob": ("spec", "rayClusterSpec", "workerGroupSpecs", "0", "replicas"),
    "raycluster": ("spec", "workerGroupSpecs", "0", "replicas"),
    "rayservice": ("spec", "rayClusterConfig", "workerGroupSpecs", "0", "replicas"),
}
"""What makes an elastic job of a kind larger or smaller."""
SIZE_SHOWN: Final[Mapping[str, tuple[str, ...]]] = {
    "rayjob": ("rayClusterStatus", WORKERS),
    "raycluster": (WORKERS,),
    "rayservice": ("activeServiceStatus", "rayClusterStatus", WORKERS),
}
"""Where the status shows how many workers there are."""


async def scales(ground: Ground, case: Case) -> None:
    """An elastic job grows and shrinks on its worker while it runs; its copy is not made anew for that."""
    kind, name = case.kind, f"{case.name}-scales"
    jobs = await ground.submit(
        kind, name, duration="1h", annotations={ELASTIC_ANNOTATION: "true"}, spec=ROOM.get(case.name)
    )
    worker = await ground.running(kind, name)
    before = ground.workers[worker].first[kind.resource, name]["metadata"]["uid"]

    def shows(size: int) -> bool:
        return bool(dig(ground.manager.get(kind.resource, name), "status", *SIZE_SHOWN[case.name]) == size)

    for size in (3, 1):
        await ground.resize(kind, name, SIZES[case.name], size)

        def follows_size(size: int = size) -> bool:
            copy = ground.workers[worker].get(kind.resource, name)
            if copy is None:
                return False
            live = [workload for workload in ground.workloads_of(kind, name) if not is_finished(workload)]
            wanted = [pod_set["count"] for pod_set in kind.pods.read(copy)]
            same = [[pod_set["count"] for pod_set in workload["spec"]["podSets"]] == wanted for workload in live]
            return ground.size(copy, SIZES[case.name]) == size and same == [True] and all(map(is_admitted, live))

        await ground.until(follows_size, lambda: ground.story(kind, name))
        if case.name in SIZE_SHOWN:
            await ground.until(functools.partial(shows, size), lambda: ground.story(kind, name))
    assert await ground.running(kind, name) == worker
    assert ground.workers[worker].uids[kind.resource, name] == {before}
    await ground.delete(kind, jobs)
    await ground.cleaned(kind, name)


async def keeps_its_size(ground: Ground, case: Case) -> None:
    """One of a kind that cannot grow runs on as it is, though it says that it is elastic, and ends as any other.

    KubeRay passes no changed size on: quota for it would be held for nothing.
    """
    kind, name = case.kind, f"{case.name}-fixed"
    jobs = await ground.submit(kind, name, duration="30s", annotations={ELASTIC_ANNOTATION: "true"})
    worker = await ground.running(kind, name)
    (before,) = ground.jobs(ground.workers[worker], kind, name)
    await ground.resize(kind, name, SIZES[case.name], 3)
    await ground.until(lambda: len(ground.workloads_of(kind, name)) == 2, lambda: ground.story(kind, name))
    if kind.course.ends:
        (shown,) = await ground.ended(kind, name, "Succeeded")
    else:
        await ground.until_told(kind, name, "cannot change")
        (shown,) = ground.jobs(ground.manager, kind, name)
        await ground.delete(kind, jobs)
    assert dig(shown, "status", *SIZE_SHOWN[case.name]) == 1
    assert ground.workers[worker].last[kind.resource, name]["spec"] == before["spec"]
    assert ground.workers[worker].uids[kind.resource, name] == {before["metadata"]["uid"]}
    await ground.cleaned(kind, name)


async def waits_for_its_user(ground: Ground, case: Case) -> None:
    """One that its kind's controller does not run as it is: Kueue puts it on hold, and nobody else is offered it.

    It is shown with that controller's words, and runs once its user has put it right.
    """
    kind, name = case.kind, f"{case.name}-waits"
    (job,) = await ground.submit(kind, name, spec={"backoffLimit": -1})

    def is_held() -> bool:
        workloads, jobs = ground.workloads_of(kind, name), ground.jobs(ground.manager, kind, name)
        return bool(workloads) and all(map(is_on_hold, workloads)) and all(map(kind.on_hold, jobs))

    await ground.until(is_held, lambda: ground.story(kind, name))
    await ground.cleaned(kind, name)
    await anyio.sleep(HELD)
    assert is_held()
    assert len(ground.runs.copies(name)) == 1
    await ground.manager.client.merge_patch(kind.resource, ObjectKey.of(job), {"spec": {"backoffLimit": 0}})
    await ground.ended(kind, name, "Succeeded")
    await ground.cleaned(kind, name)
    assert len(ground.runs.copies(name)) == 2


async def shrinks(ground: Ground, case: Case) -> None:
    """A set that is made smaller gives up what it does not need any more, and the rest runs on."""
    kind, name = case.kind, f"{case.name}-shrinks"
    jobs = await ground.submit(kind, name)
    worker = await ground.running(kind, name)
    before = {job["metadata"]["uid"] for job in ground.jobs(ground.workers[worker], kind, name)}
    await ground.manager.client.merge_patch(kind.resource, ObjectKey.of(jobs[0]), {"spec": {"replicas": 1}})
    await ground.until(
        lambda: len(ground.workloads_of(kind, name)) == len(_copies_of(ground, case, worker, name)) == 1,
        lambda: ground.story(kind, name),
    )
    assert await ground.running(kind, name) == worker
    assert {job["metadata"]["uid"] for job in ground.jobs(ground.workers[worker], kind, name)} == before
    await ground.delete(kind, jobs)
    await ground.cleaned(kind, name)


def _copies_of(ground: Ground, case: Case, worker: str, job: str) -> list[Json]:
    """The Workload copies of a job on a worker."""
    names = [workload["metadata"]["name"] for workload in ground.workloads_of(case.kind, job)]
    return [workload for name in names if (workload := ground.workers[worker].get(WORKLOAD, name)) is not None]


def _foreign(ground: Ground, name: str) -> set[str]:
    """What there is of somebody else's set of that name: its pods, and what its own controllers make for them."""
    there = ground.workers["worker1"].now.items()
    return {f"worker1 {obj['kind']} {own}" for (_, own), obj in there if labels_of(obj).get("app") == name}


def _contains(whole: object, part: object) -> bool:
    """Whether all that `part` says is in `whole`."""
    if isinstance(whole, dict) and isinstance(part, dict):
        return all(_contains(whole.get(key), value) for key, value in part.items())
    if isinstance(whole, list) and isinstance(part, list):
        return len(whole) == len(part) and all(map(_contains, whole, part))
    return whole == part


def _check_copy(case: Case, submitted: Json, copy: Json, namespace: str) -> None:
    """The copy is what was submitted, less its delegation, and with our marks; under the names of the worker."""
    kind = case.kind
    assert copy["metadata"]["namespace"] == namespace
    ignored = [*FILLED_IN.get(kind.resource.gvk.kind, ())]
    if kind.managed_by is not None:
        assert dig(copy, *kind.managed_by) in (None, "", kind.operator)
        ignored.append(kind.managed_by)
    assert without({"spec": copy["spec"]}, ignored) == without({"spec": submitted["spec"]}, ignored)

    labels, annotations = labels_of(copy), annotations_of(copy)
    marks: Json = {}
    if case.adapter.membership.carriers is None:
        marks[PREBUILT_WORKLOAD] = annotations[PREBUILT_WORKLOAD]
    delegated_by = {kind.managed_by_label} if kind.managed_by_label else set()
    kept = {key: value for key, value in labels_of(submitted).items() if key not in delegated_by}
    if namespace != NAMESPACE:
        kept |= {name: QUEUE_THERE for name, value in kept.items() if value == LOCAL_QUEUE_NAME}
        assert annotations.pop(ORIGIN_NAMESPACE_ANNOTATION) == NAMESPACE
    assert labels == {**kept, ORIGIN_LABEL: "multikueue", **marks}
    assert annotations.pop(ATTEMPT)
    assert annotations.pop(JOB_MARK)
    assert annotations.pop(COPY_OF)
    if kind.gated:
        marks = {**marks, ORIGIN_UID_ANNOTATION: submitted["metadata"]["uid"]}
    assert annotations == {**annotations_of(submitted), **marks}
    assert "ownerReferences" not in copy["metadata"]
