"""Journeys that need a controller of the kind's own: what its pods do, and what becomes of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import attrs

from multikueue.core.model.conditions import is_true
from multikueue.core.model.kinds import MULTIKUEUE_CLUSTER, WORKLOAD
from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.core.model.objects import dig, labels_of, uid
from multikueue.sandbox.kueue import evict
from tests.integration.view import POD
from tests.kinds import journeys as common
from tests.kinds.cases import Case
from tests.operators.ground import OperatorsGround


@attrs.frozen(kw_only=True)
class Row:
    """A kind, and what its controller makes of one run of the example."""

    case: Case
    pods: int
    """How many pods there are while it runs."""
    counted: str = ""
    """A label of the pods that are counted, where the others may be made anew while the job ends."""
    starts: int = 0
    """How many of those there are in one run; as many as there are pods if not told."""
    until_end: int = 0
    """How many it has made once it has ended, where some come after others; as many as one run has if not told."""
    made_of: Resource | None = None
    """What its controller makes once for a run, and makes the other pods of."""
    robust: Json | None = None
    """Fields of a spec that survives a killed pod; None where none does."""
    more: tuple[Way, ...] = ()
    """Ways of this kind alone."""
    victim: Mapping[str, str] = attrs.field(factory=dict)
    """Labels of the pods of which one dies."""
    survives: str = "8s"
    """How long the others run meanwhile: a job that ends with them must not be over before the new one runs."""
    defaulted: bool = False
    """Whether its controller fills in fields of the spec."""
    tells_of_stops: bool = True
    """Whether its controller always says in the status that a suspended job has stopped; else Kueue keeps the quota."""
    writes_on: bool = False
    """Whether its controller writes into the status of a job that has ended: it may do so after the copy was read for
    the last time, and before that is deleted. Then what is shown is an earlier status that tells the end."""
    two_workers: bool = True
    """Whether its controller runs on both workers."""

    def ran(self, ground: OperatorsGround, name: str, **times: int) -> None:
        """See that a job ran so often on these clusters, and on no other."""
        each = self.starts or self.pods
        made = self.made(ground, name)
        assert made == {cluster: each * count for cluster, count in times.items()}, made
        self.made_once(ground, name, **times)

    def made_once(self, ground: OperatorsGround, name: str, **times: int) -> None:
        """See that what its controller makes for a run was made so often, each time with its pods, each once."""
        if self.made_of is not None:
            made = ground.pods_of(self.made_of, name)
            assert made == {cluster: [self.pods - self.starts] * count for cluster, count in times.items()}, made

    def ran_to_its_end(self, ground: OperatorsGround, name: str, worker: str) -> None:
        """See that a job ran once, to its end, on this worker only."""
        attrs.evolve(self, starts=self.until_end or self.starts).ran(ground, name, **{worker: 1})

    def made(self, ground: OperatorsGround, name: str) -> dict[str, int]:
        """How many pods of a job there ever were, by cluster; where they wait at a gate, those that passed."""
        return ground.pods_run(name) if self.case.kind.gated else ground.pods_made(name, self.counted)

    def has_ended(self, status: Json) -> bool:
        """Whether a status tells the end of a job."""
        return self.case.kind.ending({"status": status}) is not None

    def job(self, way: str) -> str:
        """The name of a journey's job."""
        return f"{self.case.name}-{way}"


Way = Callable[[OperatorsGround, Row], Awaitable[None]]


async def finishes(ground: OperatorsGround, row: Row) -> None:
    """It runs on one worker as it was written, and the manager shows the status that its controller wrote there."""
    await common.finishes(ground, row.case)
    name = row.job("finishes")
    (worker,) = ground.ran_on(row.case.kind, name)
    row.ran_to_its_end(ground, name, worker)
    await nothing_left(ground, row, name)


async def evicted(ground: OperatorsGround, row: Row) -> None:
    """A worker that takes the quota back stops the job; it goes through the queue again."""
    await common.runs_again_after_eviction(ground, row.case)
    await nothing_left(ground, row, row.job("evicted"))


async def foreign(ground: OperatorsGround, row: Row) -> None:
    """Somebody else's job of that name, and what its controller makes of it, is left alone."""
    if row.two_workers:
        await common.leaves_foreign_jobs_alone(ground, row.case, defaulted=row.defaulted)


async def fails(ground: OperatorsGround, row: Row) -> None:
    """A job whose pods fail has failed on the manager, as its controller says it; it is not tried elsewhere."""
    kind, name = row.case.kind, row.job("fails")
    await ground.submit(kind, name, fails=True)
    (shown,) = await ground.ended(kind, name, "Failed")
    (worker,) = ground.ran_on(kind, name)
    await ground.cleaned(kind, name)
    shows_the_last(ground, row, name, shown)
    assert set(row.made(ground, name)) == {worker}
    row.made_once(ground, name, **{worker: 1})
    await nothing_left(ground, row, name)


async def deleted(ground: OperatorsGround, row: Row) -> None:
    """What is deleted on the manager goes with its pods, and whatever its controller has made of it."""
    kind, name = row.case.kind, row.job("deleted")
    jobs = await ground.submit(kind, name, duration="1h")
    worker = await runs(ground, row, name)
    await ground.delete(kind, jobs)
    await ground.cleaned(kind, name)
    await ground.gone(kind, name)
    row.ran(ground, name, **{worker: 1})
    await nothing_left(ground, row, name)


async def moves(ground: OperatorsGround, row: Row) -> None:
    """A worker that takes the quota back stops the job; it runs once more on the other one, and no pod stays behind."""
    kind, name = row.case.kind, row.job("moves")
    await ground.queue_on(name, "worker1")
    jobs = await ground.submit(kind, name, queue=name, duration="1h")
    assert await runs(ground, row, name) == "worker1"
    await ground.open_queue("worker2", name)
    await ground.close_queue("worker1", name)
    for workload in ground.workloads_of(kind, name):
        await evict(ground.workers["worker1"].client, ObjectKey.of(workload))

    await ground.until(
        lambda: len(ground.running_pods("worker2", name)) == row.pods and not ground.pods("worker1", name),
        lambda: ground.story(kind, name),
    )
    assert await ground.running(kind, name) == "worker2"
    row.ran(ground, name, worker1=1, worker2=1)
    await ground.delete(kind, jobs)
    await ground.cleaned(kind, name)
    await nothing_left(ground, row, name)


async def pauses(ground: OperatorsGround, row: Row) -> None:
    """A Workload that a user deactivates stops on its worker, without a pod; activated again, it runs once more."""
    kind, name = row.case.kind, row.job("pauses")
    jobs = await ground.submit(kind, name, duration="1h")
    first = await runs(ground, row, name)
    await set_active(ground, row, name, False)
    await ground.cleaned(kind, name)
    await nothing_left(ground, row, name)
    await set_active(ground, row, name, True)
    row.ran(ground, name, **Counter([first, await runs(ground, row, name)]))
    await ground.delete(kind, jobs)
    await ground.cleaned(kind, name)
    await nothing_left(ground, row, name)


async def loses_a_pod(ground: OperatorsGround, row: Row) -> None:
    """A pod that dies is its controller's matter: the job goes on where it is, and its end is shown."""
    kind, name = row.case.kind, row.job("hurt")
    await ground.submit(kind, name, duration=row.survives, spec=row.robust)
    worker = await runs(ground, row, name)
    before = {uid(pod) for pod in ground.pods(worker, name)}
    hurt = [pod for pod in ground.pods(worker, name) if row.victim.items() <= labels_of(pod).items()]
    ground.kubelets[worker].kill(hurt[-1])
    await ground.until(
        lambda: {uid(pod) for pod in ground.running_pods(worker, name)} - before, lambda: ground.story(kind, name)
    )
    if kind.course.ends:
        (shown,) = await ground.ended(kind, name, "Succeeded")
        await ground.cleaned(kind, name)
        shows_the_last(ground, row, name, shown)
    else:
        await ground.running(kind, name)
        await ground.delete(kind, ground.jobs(ground.manager, kind, name))
        await ground.cleaned(kind, name)
    assert set(row.made(ground, name)) == {worker}
    assert ground.ran_on(kind, name) == [worker]
    await nothing_left(ground, row, name)


async def survives_a_lost_worker(ground: OperatorsGround, row: Row) -> None:
    """A worker that is away for a while keeps its job: it runs on there, once, and is shown to end when it is back."""
    kind, name = row.case.kind, row.job("lost")
    jobs = await ground.submit(kind, name, duration="12s")
    worker = await runs(ground, row, name)
    (plane,) = (plane for plane in ground.planes.all if plane.name == worker)
    await plane.kill_apiserver()
    await ground.until(
        lambda: not is_true(ground.manager.get(MULTIKUEUE_CLUSTER, worker) or {}, "Active"),
        lambda: ground.manager.get(MULTIKUEUE_CLUSTER, worker),
    )
    await plane.start_apiserver()
    if kind.course.ends:
        (shown,) = await ground.ended(kind, name, "Succeeded")
        shows_the_last(ground, row, name, shown)
    else:
        await ground.running(kind, name)
        await ground.delete(kind, jobs)
    await ground.cleaned(kind, name)
    row.ran_to_its_end(ground, name, worker)
    await nothing_left(ground, row, name)


def shows_the_last(ground: OperatorsGround, row: Row, name: str, shown: Json) -> None:
    """See that the manager's job has the last status that its controller wrote on the worker, in every field."""
    (worker,) = ground.ran_on(row.case.kind, name)
    seen = ground.recorded[worker]
    statuses = seen.statuses(row.case.kind.resource, name, alive=True)
    difference = f"shown is {shown['status']}, the last were {statuses[-3:]}"
    assert seen.showed(row.case.kind.resource, name, shown["status"]), difference


async def runs(ground: OperatorsGround, row: Row, name: str) -> str:
    """Wait until the manager shows that a job runs, and all its pods do; return where."""
    worker = await ground.running(row.case.kind, name)
    await ground.until(
        lambda: len(ground.running_pods(worker, name)) == row.pods, lambda: ground.story(row.case.kind, name)
    )
    return worker


async def set_active(ground: OperatorsGround, row: Row, name: str, active: bool) -> None:
    """Deactivate a job's Workloads on the manager, or activate them, as a user does."""
    for workload in ground.workloads_of(row.case.kind, name):
        await ground.manager.client.merge_patch(WORKLOAD, ObjectKey.of(workload), {"spec": {"active": active}})


async def nothing_left(ground: OperatorsGround, row: Row, name: str) -> None:
    """Wait until no worker has anything with the job's name, and see that the manager never ran a pod of it."""

    def left() -> list[Any]:
        return [
            (cluster.name, resource.plural, own)
            for cluster in ground.workers.values()
            for (resource, own) in cluster.now
            if own.startswith(name) and resource != WORKLOAD
        ]

    await ground.until(lambda: not left(), lambda: (left(), ground.story(row.case.kind, name)))
    assert ground.manager.name not in row.made(ground, name), "the manager's own controller ran it"
    on_manager = [
        own
        for resource, own in ground.manager.last
        if own.startswith(name) and resource in {POD, *ground.children} - {row.case.kind.resource}
        if not row.case.kind.gated
    ]
    assert on_manager == [], "the manager's own controller made something of it"
    assert dig(ground.manager.get(row.case.kind.resource, name), "metadata", "ownerReferences") is None


def ways(row: Row) -> list[Way]:
    """The ways of a kind that go at the same time. A worker is lost to all, so that one goes alone."""
    together = [finishes, deleted, foreign]
    if row.tells_of_stops:
        together += [evicted, pauses]
    if row.tells_of_stops and row.two_workers:
        together.append(moves)
    if row.case.kind.course.ends:
        together.append(fails)
    if row.robust is not None:
        together.append(loses_a_pod)
    return [*together, *row.more]
