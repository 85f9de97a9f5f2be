"""What a user of any kind may rely on, from submission to the end."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from multikueue.core.kinds import WORKLOAD
from multikueue.core.labels import ORIGIN_LABEL, PREBUILT_WORKLOAD
from multikueue.core.names import Json, ObjectKey
from multikueue.core.objects import annotations_of, dig, labels_of, with_value, without
from multikueue.core.workloads import is_admitted
from multikueue.sandbox.kueue import evict
from tests.kinds.cases import Case
from tests.kinds.ground import TEMPLATE, Ground

ATTEMPT: Final = "multikueue.dev/attempt"
FILLED_IN: Final[Mapping[str, tuple[tuple[str, ...], ...]]] = {
    "Job": (("spec", "selector"), ("spec", "template", "metadata", "labels")),
}
"""What every API server fills in for itself."""

Journey = Callable[[Ground, Case], Awaitable[None]]


async def finishes(ground: Ground, case: Case) -> None:
    """It is copied as it is, runs on one worker, and the manager shows how it went."""
    kind, name = case.kind, f"{case.name}-finishes"
    submitted = await ground.submit(kind, name)
    worker = await ground.running(kind, name) if not kind.course.ends else ""
    if kind.course.ends:
        done = await ground.ended(kind, name, "Succeeded")
        worker = ground.ran_on(kind, name)[0]
        shown = ground.workers[worker].last[kind.resource, name]["status"]
    else:
        shown = (ground.workers[worker].get(kind.resource, name) or {})["status"]
        done = ground.manager.get(kind.resource, name) or {}
        await ground.manager.client.delete(kind.resource, ObjectKey.of(done), propagation="Background")
    await ground.cleaned(kind, name)

    assert done["status"] == shown
    assert ground.ran_on(kind, name) == [worker]
    _check_copy(case, submitted, ground.workers[worker].first[kind.resource, name])


async def fails(ground: Ground, case: Case) -> None:
    """A job that fails has failed on the manager, too, and is not tried elsewhere."""
    kind, name = case.kind, f"{case.name}-fails"
    await ground.submit(kind, name, fails=True)
    await ground.ended(kind, name, "Failed")
    await ground.cleaned(kind, name)

    assert len(ground.ran_on(kind, name)) == 1


async def deleted(ground: Ground, case: Case) -> None:
    """What is deleted on the manager does not go on anywhere."""
    kind, name = case.kind, f"{case.name}-deleted"
    job = await ground.submit(kind, name, duration="1h")
    await ground.running(kind, name)
    await ground.manager.client.delete(kind.resource, ObjectKey.of(job), propagation="Background")
    await ground.cleaned(kind, name)
    await ground.gone(kind, name)


async def leaves_foreign_jobs_alone(ground: Ground, case: Case) -> None:
    """Somebody else's object of the same name is neither changed nor deleted; the job runs on the other worker.

    Then it is deleted on the manager: it does not go on anywhere.
    """
    kind, name = case.kind, f"{case.name}-taken"
    await ground.queue_on(name, "worker1")
    taken = kind.example(name, TEMPLATE, queue="somebodys", delegated=False)
    before = await ground.workers["worker1"].client.create(kind.resource, taken)
    job = await ground.submit(kind, name, queue=name, duration="1h")
    await ground.until(
        lambda: any(is_admitted(found) for found in _copies_of(ground, "worker1", name)),
        lambda: ground.story(kind, name),
    )
    await ground.open_queue("worker2", name)
    assert await ground.running(kind, name) == "worker2"
    await ground.manager.client.delete(kind.resource, ObjectKey.of(job), propagation="Background")
    await ground.cleaned(kind, name)
    await ground.gone(kind, name)

    left = await ground.workers["worker1"].client.get(kind.resource, ObjectKey.of(job))
    assert left["metadata"]["uid"] == before["metadata"]["uid"]
    assert left["spec"] == before["spec"]
    assert labels_of(left) == labels_of(before)


async def runs_again_after_eviction(ground: Ground, case: Case) -> None:
    """A worker that takes the quota back stops the job; it goes through the queue again, and runs as it was written."""
    kind, name = case.kind, f"{case.name}-evicted"
    submitted = await ground.submit(kind, name, duration="1h")
    worker = await ground.running(kind, name)
    (copy,) = _copies_of(ground, worker, name)
    first = ground.workers[worker].uids[WORKLOAD, copy["metadata"]["name"]].copy()
    await evict(ground.workers[worker].client, ObjectKey.of(copy))

    def again() -> bool:
        later = {
            found["metadata"]["uid"] for other in ground.workers for found in _copies_of(ground, other, name)
        } - first
        return bool(later) and kind.course.pods_ready(ground.manager.get(kind.resource, name) or {})

    await ground.until(again, lambda: ground.story(kind, name))
    second = await ground.running(kind, name)
    _check_copy(case, submitted, ground.workers[second].first[kind.resource, name])
    await ground.manager.client.delete(kind.resource, ObjectKey.of(submitted), propagation="Background")
    await ground.cleaned(kind, name)


async def follows(ground: Ground, case: Case) -> None:
    """What may change of a running job reaches its copy."""
    kind, name = case.kind, f"{case.name}-followed"
    job = await ground.submit(kind, name, duration="1h")
    worker = await ground.running(kind, name)
    (path,) = case.adapter.forwarded
    await ground.manager.client.merge_patch(kind.resource, ObjectKey.of(job), with_value({}, path, "changed: true\n"))
    await ground.until(
        lambda: dig(ground.workers[worker].get(kind.resource, name), *path) == "changed: true\n",
        lambda: ground.story(kind, name),
    )
    await ground.manager.client.delete(kind.resource, ObjectKey.of(job), propagation="Background")
    await ground.cleaned(kind, name)


def _copies_of(ground: Ground, worker: str, job: str) -> list[Json]:
    workload = ground.workload_of(job) or {"metadata": {"name": ""}}
    found = ground.workers[worker].get(WORKLOAD, workload["metadata"]["name"])
    return [found] if found is not None else []


def _check_copy(case: Case, submitted: Json, copy: Json) -> None:
    """The copy is what was submitted, less its delegation, and with our marks."""
    kind = case.kind
    ignored = [*FILLED_IN.get(kind.resource.gvk.kind, ())]
    if kind.managed_by is not None:
        assert dig(copy, *kind.managed_by) in (None, "", kind.operator)
        ignored.append(kind.managed_by)
    assert without({"spec": copy["spec"]}, ignored) == without({"spec": submitted["spec"]}, ignored)

    labels, annotations = labels_of(copy), annotations_of(copy)
    workload = annotations[PREBUILT_WORKLOAD]
    delegated_by = {kind.managed_by_label} if kind.managed_by_label else set()
    kept = {key: value for key, value in labels_of(submitted).items() if key not in delegated_by}
    assert labels == {**kept, ORIGIN_LABEL: "multikueue", PREBUILT_WORKLOAD: workload}
    assert annotations.pop(ATTEMPT)
    assert annotations == {**annotations_of(submitted), PREBUILT_WORKLOAD: workload}
    assert "ownerReferences" not in copy["metadata"]
