"""How a run ends that is taken away, for every reason and kind: it has pods that go on for a while after SIGTERM."""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

import anyio
import attrs

from multikueue.core.model.kinds import CLUSTER_QUEUE, JOB, WORKLOAD
from multikueue.core.model.labels import MOVE_FROM_ANNOTATION
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import dig, finalizers_of
from multikueue.core.model.workloads import cluster_name
from multikueue.errors import Conflict
from multikueue.protocols import read
from multikueue.sandbox.jobs.deciding import TRAP_ANNOTATION
from multikueue.sandbox.kinds import SandboxKind
from multikueue.sandbox.kinds.pods import POD_RESOURCE
from multikueue.sandbox.kueue import evict
from multikueue.sandbox.kueue.performing import typed
from multikueue.sandbox.kueue.statuses import PODS_READY_TIMEOUT
from multikueue.sandbox.setting_up import CLUSTER_QUEUE_NAME
from tests.core.door import STOP
from tests.kinds import journeys
from tests.kinds.cases import Case, of_each_sort
from tests.kinds.ground import Cluster, Ground
from tests.kinds.runs import Life

TRAP: Final = 3.0
"""Seconds for which pods go on after SIGTERM."""
HELD: Final = 2.0
"""Seconds more for which nothing may begin."""
_SLOW: Final = "example.com/slow"
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

    def pods(self) -> list[Life]:
        """Its pods that are there: those of each of its Workloads."""
        runs = itertools.chain.from_iterable(self.ground.runs.of(self.name).values())
        return [pod for run in runs for pod in run.pods if pod.ended is None]


async def deactivated(ending: Ending) -> None:
    """Deactivated on the manager, and activated again while its pods end.

    All of them: Kueue may not have seen yet that another Workload of the job is inactive, and would never.
    """
    pods = ending.pods()
    await ending.activate(False)
    await ending.until(lambda: all(pod.asked is not None for pod in pods))
    await ending.activate(True)


async def evicted_on_the_manager(ending: Ending) -> None:
    """Preempted there."""
    for workload in ending.workloads:
        await evict(ending.ground.manager.client, ObjectKey.of(workload))


async def evicted_by_its_worker(ending: Ending) -> None:
    """Its pods were too slow there: the worker's Kueue does not start it again for a minute, as others do at once.

    Each Workload is evicted where it runs: the pods of a Deployment may have spread.
    """
    for workload in ending.workloads:
        worker = ending.ground.workers[cluster_name(workload) or ending.worker]
        copy = worker.get(WORKLOAD, workload["metadata"]["name"])
        if copy is not None:
            await evict(worker.client, ObjectKey.of(copy), reason=PODS_READY_TIMEOUT)


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


async def resized(ending: Ending) -> None:
    """Its user gives it another size: its Kueue stops it, deletes its Workload without an eviction, and makes another.

    A Job may get no pods at all, as to pause it; then it gets some.
    """
    kind, path = ending.case.kind, SIZES[ending.case.name]
    if kind.resource == JOB:
        pods = ending.pods()
        await ending.ground.resize(kind, ending.name, path, 0)
        await ending.until(lambda: all(pod.asked is not None for pod in pods))
    await ending.ground.resize(kind, ending.name, path, 1 if kind.resource == JOB else 3)


async def made_anew(ending: Ending) -> None:
    """Deleted on the manager, and submitted under the same name as soon as that is free."""
    await ending.ground.delete(ending.case.kind, ending.jobs)
    kind, ground = ending.case.kind, ending.ground
    await ending.until(lambda: not ground.jobs(ground.manager, kind, ending.name))
    await ending.submit()


async def held_by_a_finalizer(ending: Ending) -> None:
    """Preempted on the manager; a finalizer of somebody else's holds its copies: until that goes no run begins.

    But where they say that no pod of theirs is left.
    """
    ground, worker, name = ending.ground, ending.ground.workers[ending.worker], ending.name
    held = ground.jobs(worker, ending.case.kind, name)
    await change_finalizers(worker, ending.case.kind, held, lambda those: [*those, _SLOW])
    before = ground.runs.named(name)
    copies = ground.runs.copies(name)
    await evicted_on_the_manager(ending)
    pods = [life for life in before if life.resource == POD_RESOURCE]
    await _have_ended(ground, ending.case, name, pods)
    await anyio.sleep(HELD)
    held = ground.jobs(worker, ending.case.kind, name)
    assert held
    assert all(map(ending.case.adapter.pods_are_gone, held)) or ground.runs.copies(name) == copies
    await change_finalizers(
        worker, ending.case.kind, held, lambda those: [finalizer for finalizer in those if finalizer != _SLOW]
    )


async def outlives_its_pods(ground: Ground, case: Case) -> None:
    """Preempted on the manager. Its pods take longer than a worker's Kueue has to stop it, and its controller cleans up
    for long after they have gone, as KubeRay does with GCS fault tolerance: the next run does not wait for that.
    """
    name, kind = f"{case.name}-cleaned-up", case.kind
    await ground.submit(kind, name, duration="1h", annotations={TRAP_ANNOTATION: f"{2 * STOP.total_seconds():g}s"})
    before = await _running(ground, case, name)
    worker = ground.workers[await ground.running(kind, name)]
    held = ground.jobs(worker, kind, name)
    await change_finalizers(worker, kind, held, lambda those: [*those, _SLOW])
    await evicted_on_the_manager(Ending(ground, case, name, [], worker.name))
    await _have_ended(ground, case, name, [life for life in before if life.resource == POD_RESOURCE])
    await ground.until(lambda: len(ground.runs.copies(name)) == 2, lambda: ground.story(kind, name))
    held = ground.jobs(worker, kind, name)
    assert held, "it is there still"
    await change_finalizers(worker, kind, held, lambda those: [finalizer for finalizer in those if finalizer != _SLOW])
    await _deleted(ground, case, name)
    _check_runs(ground, name)


async def change_finalizers(
    cluster: Cluster, kind: SandboxKind, copies: list[Json], change: Callable[[list[str]], list[str]]
) -> None:
    """Change those of job copies, but of those that are gone meanwhile."""
    for copy in copies:
        while (current := await read(cluster.client, kind.resource, ObjectKey.of(copy))) is not None:
            current["metadata"]["finalizers"] = change(finalizers_of(current))
            with suppress(Conflict):  # somebody else wrote in between
                await cluster.client.replace(kind.resource, typed(kind.resource, current))
                break


SIZES: Final[Mapping[str, tuple[str, ...]]] = {
    **journeys.SIZES,
    "jobset": ("spec", "replicatedJobs", "1", "template", "spec", "parallelism"),
    "pytorchjob": ("spec", "pytorchReplicaSpecs", "Worker", "replicas"),
    "mpijob": ("spec", "mpiReplicaSpecs", "Worker", "replicas"),
}
"""What makes a job of a kind larger or smaller."""

Reason = Callable[[Ending], Awaitable[None]]


def _always(_case: Case) -> bool:
    return True


def _never(_case: Case) -> bool:
    return False


def is_not_alike(case: Case) -> bool:
    """The training operator's kinds have common rules: PyTorchJobs end for every reason, the others for three."""
    return case.name not in ("jaxjob", "paddlejob", "tfjob", "xgboostjob")


def _is_movable(case: Case) -> bool:
    return not case.adapter.traits.serves and case.kind.course.ends and is_not_alike(case)


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
    of_all: bool = False
    """Whether real servers have it of each kind; the others of those that are `decisive`, as the sandbox has all."""
    evicts: bool = False
    """Whether it keeps its job and its Workload, which show how its pods end."""
    is_another: bool = False
    """Whether what runs next is another job: its name is taken on the same worker only."""


REASONS: Final = (
    _Row(deactivated, concerns=is_not_alike, evicts=True),
    _Row(evicted_on_the_manager, of_all=True, evicts=True),
    _Row(evicted_by_its_worker, concerns=is_not_alike, evicts=True),
    _Row(held_by_a_finalizer, concerns=lambda case: case.is_copied and is_not_alike(case), evicts=True),
    _Row(moved, concerns=_is_movable, evicts=True),
    _Row(deleted, of_all=True, runs_again=_never),
    _Row(lost_its_workload, concerns=is_not_alike, runs_again=_is_made_again),
    _Row(resized, concerns=lambda case: case.name in SIZES),
    _Row(made_anew, of_all=True, is_another=True),
)


def decisive(case: Case) -> bool:
    """Whether a real API server may show more of how runs of a kind end than of others: for who ends its pods there."""
    return of_each_sort(case) or case.name in ("deployment", "statefulset")


async def is_taken_away(ground: Ground, case: Case) -> None:
    """Whatever the reason: the next run begins on no worker before the last pod has gone, and nothing is left.

    Not on the worker, and not of quota there and on the manager; which shows a job as long as its pods end.
    """
    wrong: dict[str, str] = {}

    async def go(row: _Row) -> None:
        try:
            await _goes(ground, case, [row], row.act.__name__)
        except Exception as error:  # the other reasons go on: all that is wrong is told
            wrong[row.act.__name__] = f"{type(error).__name__}: {error}"

    async with anyio.create_task_group() as tasks:
        for row in REASONS:
            if row.concerns(case):
                tasks.start_soon(go, row)
    assert wrong == {}, wrong
    await no_quota_is_held(ground)


async def is_taken_away_in_turn(ground: Ground, case: Case) -> None:
    """The same for one reason after the other, of one job or of two: where a run costs much, as on real servers."""
    rows = [row for row in REASONS if row.concerns(case) and (row.of_all or decisive(case))]
    rows.sort(key=lambda row: not row.runs_again(case))  # a job that ends for good has had the other reasons before
    jobs = 2 if len(rows) > 3 else 1
    async with anyio.create_task_group() as tasks:
        for first in range(jobs):
            tasks.start_soon(_goes, ground, case, rows[first::jobs], f"in-turn-{first}")


async def no_quota_is_held(ground: Ground) -> None:
    """Wait until it is held nowhere."""
    await ground.until(lambda: not any(_reserved(ground).values()), lambda: _reserved(ground))


async def waits_for_dead_nodes(ground: Ground, rows: Sequence[Case]) -> None:
    """Preempted while no kubelet of a worker answers: nothing ends and nothing begins, until they are back."""
    before: dict[Case, list[Life]] = {}

    async def begins(case: Case) -> None:
        await _submit(ground, case, _on_dead_nodes(case))
        before[case] = await _running(ground, case, _on_dead_nodes(case))

    async def is_evicted(case: Case) -> None:
        name = _on_dead_nodes(case)
        await evicted_on_the_manager(Ending(ground, case, name, [], ""))
        pods = [life for life in before[case] if life.resource == POD_RESOURCE]
        await ground.until(lambda: all(pod.asked is not None for pod in pods), lambda: ground.story(case.kind, name))

    async def runs_again(case: Case) -> None:
        name, there = _on_dead_nodes(case), before[case]
        await _have_ended(ground, case, name, there)
        await ground.until(lambda: _is_there(ground, name), lambda: ground.story(case.kind, name))
        await _running(ground, case, name)
        await _deleted(ground, case, name)
        _check_runs(ground, name)

    await _each(rows, begins)
    _let_nodes_die(ground, dead=True)
    await _each(rows, is_evicted)
    await anyio.sleep(TRAP + HELD)
    for case, there in before.items():
        assert [life.last["metadata"]["name"] for life in there if life.ended is not None] == []
        assert ground.runs.copies(_on_dead_nodes(case)) == [life for life in there if life.is_copy]
    _let_nodes_die(ground, dead=False)
    await _each(rows, runs_again)


def _on_dead_nodes(case: Case) -> str:
    return f"{case.name}-dead-nodes"


async def _each(rows: Sequence[Case], step: Callable[[Case], Coroutine[Any, Any, None]]) -> None:
    async with anyio.create_task_group() as tasks:
        for case in rows:
            tasks.start_soon(step, case)


def _let_nodes_die(ground: Ground, *, dead: bool) -> None:
    for runner in ground.runners.values():
        runner.node_is_dead = dead


async def _goes(ground: Ground, case: Case, rows: Sequence[_Row], named: str) -> None:
    """One job, that is taken away for each of these reasons, and deleted."""
    kind, name = case.kind, f"{case.name}-{named.replace('_', '-')}"
    jobs, pods, elsewhere = await _submit(ground, case, name), list[Life](), list[tuple[float, float]]()
    for row in rows:
        there, begin = await _running(ground, case, name), anyio.current_time()
        pods += [life for life in there if life.resource == POD_RESOURCE and life.ended is None]
        worker = await ground.running(kind, name)
        await row.act(Ending(ground, case, name, ground.jobs(ground.manager, kind, name) or jobs, worker))
        await _have_ended(ground, case, name, there)
        if row.runs_again(case):
            await ground.until(lambda: _is_there(ground, name), lambda: ground.story(kind, name))
            await _running(ground, case, name)
            if kind.resource == JOB and row.evicts:
                _check_shown(ground, name, pods, begin)
        if row.is_another or _makes_other_pods(case, row):
            elsewhere.append((begin, anyio.current_time()))
    await _deleted(ground, case, name)
    assert all((life.ended or 0.0) - (life.asked or 0.0) >= TRAP - ground.late for life in pods), "each had its time"
    _check_runs(ground, name, elsewhere)


async def _running(ground: Ground, case: Case, name: str) -> list[Life]:
    """Wait until a job has pods that run; return all that there ever was of it."""
    await ground.running(case.kind, name)
    await ground.until(lambda: have_pods(ground, name), lambda: ground.story(case.kind, name))
    return ground.runs.named(name)


async def _have_ended(ground: Ground, case: Case, name: str, lives: Iterable[Life]) -> None:
    await ground.until(lambda: all(life.ended is not None for life in lives), lambda: ground.story(case.kind, name))


async def _deleted(ground: Ground, case: Case, name: str) -> None:
    await ground.delete(case.kind, ground.jobs(ground.manager, case.kind, name))
    await ground.cleaned(case.kind, name)
    await ground.gone(case.kind, name)


def _check_runs(ground: Ground, name: str, elsewhere: Sequence[tuple[float, float]] = ()) -> None:
    """No run began while pods of an earlier one were there, but for other jobs on other workers, in these times."""
    for runs in ground.runs.of(name).values():
        for earlier, later in itertools.pairwise(runs):
            if later.worker != earlier.worker and any(begin <= later.began <= end for begin, end in elsewhere):
                continue
            assert later.began >= earlier.ended, f"{later.worker} began while pods of {earlier.worker} were there"


async def _submit(ground: Ground, case: Case, name: str) -> list[Json]:
    return await ground.submit(case.kind, name, duration="1h", annotations=_TRAPS)


def _is_there(ground: Ground, name: str) -> bool:
    """Whether there is a copy of a job."""
    return any(life.ended is None for life in ground.runs.copies(name))


def have_pods(ground: Ground, name: str) -> bool:
    """Whether the copies of a job that are there have pods that run."""
    runs = [run for runs in ground.runs.of(name).values() for run in runs if not run.is_over]
    return bool(runs) and all(run.pods and all(pod.runs for pod in run.pods) for run in runs)


def _check_shown(ground: Ground, name: str, pods: list[Life], begin: float) -> None:
    """A Job is shown as active while its pods end, and in the end none is shown that terminates."""
    gone = max(pod.ended or 0.0 for pod in pods)
    shown = [(time, status) for time, status in ground.manager.status_log[JOB, name] if time >= begin]
    ending = list(itertools.dropwhile(lambda timed: not timed[1].get("terminating"), shown))
    assert ending or ground.late, "pods are seen to end"
    assert all(status.get("active") for time, status in ending if time < gone), "it is active until the last has gone"
    assert not shown[-1][1].get("terminating")


def _reserved(ground: Ground) -> Mapping[str, set[str]]:
    """The quota that each cluster's queue has given away."""
    reserved: dict[str, set[str]] = {}
    for cluster in ground.clusters:
        queue = cluster.get(CLUSTER_QUEUE, CLUSTER_QUEUE_NAME) or {}
        flavors = dig(queue, "status", "flavorsReservation") or []
        totals = {str(entry["total"]) for flavor in flavors for entry in flavor["resources"]}
        reserved[cluster.name] = totals - {"0"}
    return reserved
