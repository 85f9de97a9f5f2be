"""How a run ends that is taken away, for every reason and kind: it has pods that go on for a while after SIGTERM."""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

import anyio
import attrs

from multikueue.core.model.kinds import CLUSTER_QUEUE, JOB, WORKLOAD
from multikueue.core.model.labels import MOVE_FROM_ANNOTATION
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import dig
from multikueue.sandbox.jobs.deciding import TRAP_ANNOTATION
from multikueue.sandbox.kinds.pods import POD_RESOURCE
from multikueue.sandbox.kueue import evict
from multikueue.sandbox.setting_up import CLUSTER_QUEUE_NAME
from tests.kinds.cases import Case
from tests.kinds.ground import Ground
from tests.kinds.runs import Life

TRAP: Final = 3.0
"""Seconds for which pods go on after SIGTERM."""
_TRAPS: Final = {TRAP_ANNOTATION: f"{TRAP:g}s"}


@attrs.frozen
class Ending:
    """One run that is to end."""

    ground: Ground
    case: Case
    name: str
    jobs: list[Json]
    worker: str

    @property
    def workloads(self) -> list[Json]:
        """The Workloads on the manager."""
        return self.ground.workloads_of(self.case.kind, self.name)

    async def submit(self) -> list[Json]:
        """Create the job, once more."""
        return await _submit(self.ground, self.case, self.name)

    async def until(self, look: Callable[[], bool]) -> None:
        """Wait for that."""
        await self.ground.until(look, lambda: self.ground.story(self.case.kind, self.name))

    async def activate(self, active: bool) -> None:
        """Write that into its Workloads."""
        for workload in self.workloads:
            key, patch = ObjectKey.of(workload), {"spec": {"active": active}}
            await self.ground.manager.client.merge_patch(WORKLOAD, key, patch)

    def pods_end(self) -> bool:
        """Whether SIGTERM has been sent to a pod."""
        return any(pod.asked for runs in self.ground.runs.of(self.name).values() for run in runs for pod in run.pods)


async def deactivated(ending: Ending) -> None:
    """Deactivated on the manager, and activated again while its pods end."""
    await ending.activate(False)
    await ending.until(ending.pods_end)
    await ending.activate(True)


async def evicted_on_the_manager(ending: Ending) -> None:
    """Preempted there."""
    for workload in ending.workloads:
        await evict(ending.ground.manager.client, ObjectKey.of(workload))


async def evicted_by_its_worker(ending: Ending) -> None:
    """Preempted by what runs on the worker."""
    worker = ending.ground.workers[ending.worker]
    for workload in ending.workloads:
        copy = worker.get(WORKLOAD, workload["metadata"]["name"])
        if copy is not None:
            await evict(worker.client, ObjectKey.of(copy))


async def moved(ending: Ending) -> None:
    """An operator asks for another worker."""
    (workload,) = ending.workloads
    patch = {"metadata": {"annotations": {MOVE_FROM_ANNOTATION: ending.worker}}}
    await ending.ground.manager.client.merge_patch(WORKLOAD, ObjectKey.of(workload), patch)


async def deleted(ending: Ending) -> None:
    """Deleted on the manager."""
    await ending.ground.delete(ending.case.kind, ending.jobs)


async def lost_its_workload(ending: Ending) -> None:
    """Somebody deletes its Workload on the manager."""
    for workload in ending.workloads:
        await ending.ground.manager.client.delete(WORKLOAD, ObjectKey.of(workload), propagation="Background")


async def made_anew(ending: Ending) -> None:
    """Deleted on the manager, and submitted under the same name as soon as that is free."""
    await ending.ground.delete(ending.case.kind, ending.jobs)
    kind, ground = ending.case.kind, ending.ground
    await ending.until(lambda: not ground.jobs(ground.manager, kind, ending.name))
    await ending.submit()


Reason = Callable[[Ending], Awaitable[None]]


def _always(_case: Case) -> bool:
    return True


def _never(_case: Case) -> bool:
    return False


def _is_not_alike(case: Case) -> bool:
    """The training operator's kinds have common rules: PyTorchJobs end for every reason, the others for three."""
    return case.name not in ("jaxjob", "paddlejob", "tfjob", "xgboostjob")


def _is_movable(case: Case) -> bool:
    return not case.adapter.traits.serves and case.kind.course.ends and _is_not_alike(case)


def _is_made_again(case: Case) -> bool:
    """Kueue deletes pods with their Workload, and nobody makes those of a pod or a group again."""
    return case.kind.resource != POD_RESOURCE


def _makes_other_pods(case: Case, row: _Row) -> bool:
    """Whether its controller makes other pods at once, of other Workloads, in place of those that end."""
    return case.name == "deployment" and row.act is lost_its_workload


@attrs.frozen
class _Row:
    act: Reason
    concerns: Callable[[Case], bool] = _always
    runs_again: Callable[[Case], bool] = _always
    evicts: bool = False
    """Whether it keeps its job and its Workload, which show how its pods end."""
    is_another: bool = False
    """Whether what runs next is another job: its name is taken on the same worker only."""


REASONS: Final = (
    _Row(deactivated, concerns=_is_not_alike, evicts=True),
    _Row(evicted_on_the_manager, evicts=True),
    _Row(evicted_by_its_worker, concerns=_is_not_alike, evicts=True),
    _Row(moved, concerns=_is_movable, evicts=True),
    _Row(deleted, runs_again=_never),
    _Row(lost_its_workload, concerns=_is_not_alike, runs_again=_is_made_again),
    _Row(made_anew, is_another=True),
)


async def is_taken_away(ground: Ground, case: Case) -> None:
    """Whatever the reason: the next run begins on no worker before the last pod has gone, and nothing is left.

    Not on the worker, and not of quota there and on the manager; which shows a job as long as its pods end.
    """
    wrong: dict[str, str] = {}

    async def go(row: _Row) -> None:
        try:
            await _goes(ground, case, row)
        except Exception as error:  # the other reasons go on: all that is wrong is told
            wrong[row.act.__name__] = f"{type(error).__name__}: {error}"

    async with anyio.create_task_group() as tasks:
        for row in REASONS:
            if row.concerns(case):
                tasks.start_soon(go, row)
    assert wrong == {}, wrong
    await ground.until(lambda: not any(_reserved(ground).values()), lambda: _reserved(ground))


async def _goes(ground: Ground, case: Case, row: _Row) -> None:
    kind, name = case.kind, f"{case.name}-{row.act.__name__.replace('_', '-')}"
    jobs = await _submit(ground, case, name)
    worker = await ground.running(kind, name)
    await ground.until(lambda: _have_pods(ground, name), lambda: ground.story(kind, name))
    there = ground.runs.named(name)
    pods = [life for life in there if life.resource == POD_RESOURCE]
    await row.act(Ending(ground, case, name, jobs, worker))
    await ground.until(lambda: all(life.ended is not None for life in there), lambda: ground.story(kind, name))
    if row.runs_again(case):
        await ground.until(
            lambda: any(life.is_copy and life.ended is None for life in ground.runs.named(name)),
            lambda: ground.story(kind, name),
        )
        await ground.running(kind, name)
        await ground.until(lambda: _have_pods(ground, name), lambda: ground.story(kind, name))
        if kind.resource == JOB and row.evicts:
            _check_shown(ground, name, pods)
    await ground.delete(kind, ground.jobs(ground.manager, kind, name))
    await ground.cleaned(kind, name)
    await ground.gone(kind, name)
    assert all((life.ended or 0.0) - (life.asked or 0.0) >= TRAP for life in pods), "each has had its time"
    for runs in ground.runs.of(name).values():
        for earlier, later in itertools.pairwise(runs):
            if (row.is_another or _makes_other_pods(case, row)) and later.worker != earlier.worker:
                continue
            assert later.began >= earlier.ended, f"{later.worker} began while pods of {earlier.worker} were there"


async def _submit(ground: Ground, case: Case, name: str) -> list[Json]:
    return await ground.submit(case.kind, name, duration="1h", annotations=_TRAPS)


def _have_pods(ground: Ground, name: str) -> bool:
    """Whether the copies of a job that are there have pods that run."""
    runs = [run for runs in ground.runs.of(name).values() for run in runs if not run.is_over]
    return bool(runs) and all(run.pods and all(pod.runs for pod in run.pods) for run in runs)


def _check_shown(ground: Ground, name: str, pods: list[Life]) -> None:
    """A Job is shown as active while its pods end, and in the end none is shown that terminates."""
    gone = max(pod.ended or 0.0 for pod in pods)
    shown = ground.manager.status_log[JOB, name]
    ending = list(itertools.dropwhile(lambda one: not one[1].get("terminating"), shown))
    assert ending, "pods are seen to end"
    assert all(status.get("active") for time, status in ending if time < gone), "it is active until the last has gone"
    assert not ending[-1][1].get("terminating")


def _reserved(ground: Ground) -> Mapping[str, set[str]]:
    """The quota that each cluster's queue has given away."""
    found: dict[str, set[str]] = {}
    for cluster in ground.clusters:
        queue = cluster.get(CLUSTER_QUEUE, CLUSTER_QUEUE_NAME) or {}
        flavors = dig(queue, "status", "flavorsReservation") or []
        totals = {str(entry["total"]) for flavor in flavors for entry in flavor["resources"]}
        found[cluster.name] = totals - {"0"}
    return found
