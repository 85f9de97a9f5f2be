"""How a job is taken away: nothing of it stays on a worker, and what should run, runs again."""

from __future__ import annotations

from typing import Final

import attrs

from multikueue.core.model.kinds import CLUSTER_QUEUE, WORKLOAD
from multikueue.core.model.labels import MOVE_FROM_ANNOTATION, RETRIABLE_ANNOTATION
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import finalizers_of, name_of, uid
from multikueue.core.model.workloads import has_quota
from multikueue.sandbox.jobs import OUTCOME_ANNOTATION, TRAP_ANNOTATION
from multikueue.sandbox.kueue import evict
from tests.kinds.cases import Case
from tests.kinds.ground import Cluster, Ground

OF_PODS: Final = ("pod", "podgroup", "deployment", "statefulset", "leaderworkerset")
"""Kinds that become pods, or groups of them, on the worker."""
MOVABLE: Final = ("pod", "podgroup", "deployment")
"""Those of them that are moved when that is asked: sets serve, and are not."""
ENDED_WITH_THEIR_WORKLOAD: Final = ("pod", "podgroup")
"""Kinds that end with their Workload: Kueue deletes their pods, and nobody makes them anew."""
TO_NOTHING: Final = ("deployment", "statefulset", "leaderworkerset")
"""Kinds that can be without pods, and stay."""


@attrs.frozen
class Ending:
    """How the pods of a group end once they are told to."""

    trap: str
    """How long they take."""
    fails: tuple[bool, ...]
    """Which of them fail; the others exit with 0."""


async def deleted_while_it_waits(ground: Ground, case: Case) -> None:
    """No worker has room. It goes at once, and takes no quota of a worker that gets room (found E1)."""
    kind, name = case.kind, f"{case.name}-waits"
    await ground.queue_on(name)
    jobs = await ground.submit(kind, name, queue=name, duration="1h")
    await ground.until(lambda: len(_offered(ground, case, name)) == 2, lambda: ground.story(kind, name))
    await ground.delete(kind, jobs)
    await ground.gone(kind, name)
    await ground.cleaned(kind, name)
    assert ground.ran_on(kind, name) == []


async def evicted_by_the_manager(ground: Ground, case: Case, ending: Ending | None = None) -> None:
    """It is preempted there: its copies go, and it runs again."""
    kind, name = case.kind, f"{case.name}-preempted"
    jobs, _ = await _runs(ground, case, name, ending)
    before = _seen(ground)
    for workload in ground.workloads_of(kind, name):
        await evict(ground.manager.client, ObjectKey.of(workload))
    await _runs_again(ground, case, name, before)
    await _ended(ground, case, name, jobs)


async def deactivated(ground: Ground, case: Case, ending: Ending | None = None) -> None:
    """It is stopped on the manager, goes from its worker, and runs again once it is activated (found E6a)."""
    kind, name = case.kind, f"{case.name}-off"
    jobs, _ = await _runs(ground, case, name, ending)
    before = _seen(ground)
    await _activate(ground, case, name, active=False)
    await ground.cleaned(kind, name)
    await _activate(ground, case, name, active=True)
    await _runs_again(ground, case, name, before)
    await _ended(ground, case, name, jobs)


async def moved(ground: Ground, case: Case, ending: Ending | None = None) -> None:
    """It is moved away from its worker: nothing stays there, and it runs on the other one."""
    kind, name = case.kind, f"{case.name}-moved"
    jobs, worker = await _runs(ground, case, name, ending)
    asked = {"metadata": {"annotations": {MOVE_FROM_ANNOTATION: worker}}}
    before = _seen(ground)
    for workload in ground.workloads_of(kind, name):
        await ground.manager.client.merge_patch(WORKLOAD, ObjectKey.of(workload), asked)
    await _runs_again(ground, case, name, before)
    left = [copy for copy in ground.copies(kind, name) if copy.startswith(f"{worker} ")]
    assert left == []
    await _ended(ground, case, name, jobs)


async def ended_by_its_workload(ground: Ground, case: Case, ending: Ending | None = None) -> None:
    """Its Workload is deleted on the manager: pods end with it, all else runs again (found E6b)."""
    kind, name = case.kind, f"{case.name}-dropped"
    jobs, _ = await _runs(ground, case, name, ending)
    before = _seen(ground)
    await _delete_workloads(ground, case, name)
    if case.name in ENDED_WITH_THEIR_WORKLOAD:
        await ground.gone(kind, name)
        await ground.cleaned(kind, name)
    else:
        await _runs_again(ground, case, name, before)
        await _ended(ground, case, name, jobs)


async def evicted_by_the_worker(ground: Ground, case: Case, ending: Ending | None = None) -> None:
    """It is preempted on its worker: its copies go, and it runs again."""
    kind, name = case.kind, f"{case.name}-displaced"
    jobs, worker = await _runs(ground, case, name, ending)
    before = _seen(ground)
    for workload in ground.workloads_of(kind, name):
        copy = ground.workers[worker].get(WORKLOAD, workload["metadata"]["name"])
        assert copy is not None
        await evict(ground.workers[worker].client, ObjectKey.of(copy))
    await _runs_again(ground, case, name, before)
    await _ended(ground, case, name, jobs)


async def member_deleted_there(ground: Ground, case: Case) -> None:
    """A node is drained: its pod has failed, as on one cluster, and the one that is made in its place runs there."""
    kind, name = case.kind, f"{case.name}-drained"
    jobs, worker = await _runs(ground, case, name, None)
    gone, there = jobs[0], ground.workers[worker]
    await there.client.delete(kind.resource, ObjectKey.of(gone))

    def phases(of: Cluster) -> dict[str, str]:
        return {name_of(pod): pod["status"]["phase"] for pod in ground.jobs(of, kind, name)}

    names = [name_of(job) for job in jobs]
    failed = dict(zip(names, ["Failed", "Running"], strict=True))
    await ground.until(lambda: phases(ground.manager) == failed, lambda: ground.story(kind, name))
    assert phases(there) == failed, "kept while its group runs"

    metadata = {field: gone["metadata"][field] for field in ("namespace", "labels", "annotations", "finalizers")}
    new = {**gone, "metadata": {**metadata, "name": f"{name}-again"}, "status": {}}
    made = await ground.manager.client.create(kind.resource, new)
    now = {names[1]: "Running", name_of(made): "Running"}
    await ground.until(
        lambda: phases(there) == phases(ground.manager) == {**failed, **now}, lambda: ground.story(kind, name)
    )
    held = ground.manager.get(kind.resource, name_of(gone)) or {}
    assert not finalizers_of(held), "the manager's Kueue has the other one in its place"
    await _ended(ground, case, name, [*jobs, made])


async def scaled_to_nothing(ground: Ground, case: Case) -> None:
    """No pod of it is left on any worker, and it runs again once it is to have some."""
    kind, name = case.kind, f"{case.name}-empty"
    jobs = await ground.submit(kind, name)
    await ground.running(kind, name)
    before = _seen(ground)
    (job,) = jobs
    size = job["spec"]["replicas"]
    await ground.resize(kind, name, ("spec", "replicas"), 0)
    await ground.until(lambda: not _pods(ground, name), lambda: ground.story(kind, name))
    await ground.resize(kind, name, ("spec", "replicas"), size)
    await ground.until(lambda: len(_pods(ground, name)) >= size, lambda: ground.story(kind, name))
    assert not before & {uid(pod) for pod in _pods(ground, name)}
    await _ended(ground, case, name, jobs)


async def _runs(ground: Ground, case: Case, name: str, ending: Ending | None) -> tuple[list[Json], str]:
    """Submit it and wait until it runs; return what it is made of, and its worker."""
    kind, noted = case.kind, {RETRIABLE_ANNOTATION: "true"}  # else Kueue finishes a group whose pods have ended
    if ending is not None:
        noted[TRAP_ANNOTATION] = ending.trap
    jobs = await ground.submit(kind, name, duration="1h", annotations=noted)
    worker = await ground.running(kind, name)
    for copy, fails in zip(
        ground.jobs(ground.workers[worker], kind, name), ending.fails if ending else (), strict=False
    ):
        patch = {"metadata": {"annotations": {OUTCOME_ANNOTATION: "fail" if fails else "complete"}}}
        await ground.workers[worker].client.merge_patch(kind.resource, ObjectKey.of(copy), patch)
    return jobs, worker


async def _activate(ground: Ground, case: Case, name: str, *, active: bool) -> None:
    for workload in ground.workloads_of(case.kind, name):
        await ground.manager.client.merge_patch(WORKLOAD, ObjectKey.of(workload), {"spec": {"active": active}})


async def _runs_again(ground: Ground, case: Case, name: str, before: set[str]) -> None:
    """Wait until all that was there before is gone from the workers, and it runs."""
    await ground.until(lambda: not before & _seen(ground), lambda: ground.story(case.kind, name))
    await ground.running(case.kind, name)


async def _ended(ground: Ground, case: Case, name: str, jobs: list[Json]) -> None:
    """Delete it. Kueue waits for other pods in the place of a group's that ran; its Workload ends it (found E6c)."""
    await ground.delete(case.kind, jobs)
    if case.name == "podgroup":
        await _delete_workloads(ground, case, name)
    await ground.gone(case.kind, name)
    await ground.cleaned(case.kind, name)


async def _delete_workloads(ground: Ground, case: Case, name: str) -> None:
    for workload in ground.workloads_of(case.kind, name):
        await ground.manager.client.delete(WORKLOAD, ObjectKey.of(workload), propagation="Background")


def _seen(ground: Ground) -> set[str]:
    objects = (obj for worker in ground.workers.values() for obj in worker.now.values())
    return {uid(obj) for obj in objects if obj["kind"] != CLUSTER_QUEUE.gvk.kind}


def _pods(ground: Ground, name: str) -> list[Json]:
    objects = (obj for worker in ground.workers.values() for obj in worker.now.values())
    return [obj for obj in objects if obj["kind"] == "Pod" and (obj["metadata"].get("labels") or {}).get("app") == name]


def _offered(ground: Ground, case: Case, name: str) -> list[Json]:
    names = [workload["metadata"]["name"] for workload in ground.workloads_of(case.kind, name) if has_quota(workload)]
    there = (worker.get(WORKLOAD, name) for worker in ground.workers.values() for name in names[:1])
    return [copy for copy in there if copy is not None]
