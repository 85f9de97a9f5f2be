"""`tenants`: what one tenant's large jobs cost the others, and the daemon; and how soon they are gone.

Four fleets, one after the other: the victim alone; the victim beside the attacker, who deletes all at the end; the same
with a restart of the controller while all of it is there; and the victim beside as many jobs of the attacker's that the
controller has nothing to do with, as their Workloads have no check of its: somebody else copies as many of them.

API servers have work with large jobs, too, and the victim waits for them. So somebody else reads one small object of
each server meanwhile: how much longer that takes is not the controller's doing. What the victim waits in the fourth
fleet is not, either.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Final

import anyio
import attrs

from multikueue.core.model.conditions import condition
from multikueue.core.model.kinds import JOB, LOCAL_QUEUE, MULTIKUEUE_CLUSTER, NAMESPACE
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import dig, name_of, uid
from multikueue.core.model.workload_names import workload_name
from multikueue.kube import KubeClient
from multikueue.sandbox import setting_up
from tests.benchmarks import controller, moments, objects
from tests.benchmarks.children import Child, child
from tests.benchmarks.components import CONTROLLER, USER
from tests.benchmarks.controller import Controller
from tests.benchmarks.fleet import Fleet, fleet
from tests.benchmarks.measuring import Measured, Options, settled, spending, submit, until_active
from tests.benchmarks.moments import quantiles
from tests.benchmarks.scaling import has_read
from tests.benchmarks.scenarios import Scenario
from tests.controlplane.errors import NotReady

_AT_A_TIME: Final = 4
"""Requests of the attacker."""
_READ_EVERY: Final = 0.2
"""Seconds from one small read of each server to the next."""
_SETTLED: Final = 60.0
"""Seconds at most until the controller writes nothing more once all has been submitted."""
_GONE: Final = 300.0
"""Seconds for what the attacker has deleted to go; a minute is aimed at."""


@attrs.frozen
class During:
    """How long things take, in seconds."""

    attack: float = 60.0
    """In which the attacker submits all. At once, the two cores of a small machine have work with them for as long, in
    API servers and simulators, and the victim waits for these, whatever the controller does."""
    rest: float = 2.0
    """For which the controller writes nothing: then it has settled."""


@attrs.frozen
class Shown:
    """One fleet."""

    measured: Measured
    numbers: Json


async def measure_tenants(
    scenario: Scenario, options: Options, during: During = During(), *, unchecked: bool = True
) -> Measured:
    """Run the fleets. What is told of the victim's jobs as in other scenarios is of the second one.

    Args:
        scenario: how many jobs of whom.
        options: of the run.
        during: how long the attack takes, and rests.
        unchecked: whether the fourth is run.

    Raises:
        ControlPlaneError: something around the measurement does not work.
    """
    alone = await _fleet(attrs.evolve(scenario, attackers=0), options, during)
    beside = await _fleet(scenario, options, during)
    restarted = await _fleet(scenario, options, during, restart=True)
    shown = {"alone": alone, "beside": beside, "restarted": restarted}
    if unchecked:
        shown["unchecked"] = await measure_unchecked(
            scenario, options, during, dig(beside.numbers, "copies_of_attacker") or 0
        )
    complaints = (f"{name}: {load.measured.complaint}" for name, load in shown.items() if load.measured.complaint)
    beside.measured.complaint = "; ".join(complaints)
    beside.measured.extra["tenants"] = {
        "attackers": scenario.attackers,
        "bytes_each": objects.LARGE,
        **{name: load.numbers for name, load in shown.items()},
        "p99_ratio": _ratio(beside, alone, "created_ready_ms", "p99"),
        **{f"p99_ratio_{name}": _ratio(shown[name], alone, "created_ready_ms", "p99") for name in [*shown][2:]},
        "memory_ratio": _ratio(beside, alone, "peak_memory_mb"),
        "memory_ratio_restarted": _ratio(restarted, alone, "peak_memory_mb"),
    }
    return beside.measured


async def measure_unchecked(scenario: Scenario, options: Options, during: During, copies: int) -> Shown:
    """Run the fourth fleet: somebody else makes so many copies of the attacker's jobs."""
    return await _fleet(scenario, options, during, by_another=copies // scenario.workers)


def _ratio(first: Shown, other: Shown, *path: str) -> float | None:
    values = [float(dig(shown.numbers, *path) or 0) for shown in (first, other)]
    return round(values[0] / values[1], 2) if all(values) else None


async def _fleet(
    scenario: Scenario, options: Options, during: During, *, restart: bool = False, by_another: int | None = None
) -> Shown:
    with tempfile.TemporaryDirectory(prefix="benchmark-controller-") as folder:
        async with fleet(options.kind, scenario, options.manager_kueue) as around:
            await _open(around)
            measured = Measured(scenario, options, around.observer.moments)
            numbers: Json = {}
            attack = partial(_attack, around, scenario, during.attack)
            try:
                if restart:
                    async with _running(around, options, Path(folder) / "first") as tested:
                        await attack()
                        await settled(around, rest=during.rest, at_most=_SETTLED)
                    around.observer.moments.seen.clear()
                began = time.perf_counter()
                async with _running(around, options, Path(folder) / "second") as tested:
                    numbers["start_to_read_s"] = round(time.perf_counter() - began, 2)
                    await settled(around, rest=during.rest, at_most=_SETTLED)  # the workers are read as well
                    async with (
                        spending(around, tested, measured),
                        _reading(around) as reads,
                        anyio.create_task_group() as tasks,
                    ):
                        if by_another is not None:
                            tasks.start_soon(_copied_by_another, around, attack, by_another)
                        elif scenario.attackers and not restart:
                            tasks.start_soon(attack)
                        await _victim(around, tested, scenario, options)
                    numbers["small_read_ms"] = quantiles(reads)
                    numbers["controller_cpu_s"] = round(measured.controller_cpu, 2)
                    numbers["other_cpu_s"] = round(sum(measured.cpu.values()), 2)
                    await settled(around, rest=during.rest, at_most=_SETTLED)
                    numbers |= await _of_victim(around, measured)
                    if scenario.attackers and by_another is None:
                        numbers |= await _removal(around, tested, scenario)
                    numbers["peak_memory_mb"] = round(tested.usage().peak_memory / 1e6, 1)
                    numbers["memory_at_the_end_mb"] = round(tested.usage().memory / 1e6, 1)
            except NotReady as error:
                measured.complaint = str(error)
            return Shown(measured, numbers)


@asynccontextmanager
async def _running(around: Fleet, options: Options, folder: Path) -> AsyncIterator[Controller]:
    """The controller, once its check is active, with a folder of its own."""
    await anyio.Path(folder).mkdir()
    config = around.manager.kubeconfig(CONTROLLER)
    async with controller.running(options.command, config, folder) as tested:
        await until_active(around, tested)
        if tested.tells:
            await has_read(tested, options.timeout)  # after a restart the check is active already
        yield tested


@asynccontextmanager
async def _reading(around: Fleet) -> AsyncIterator[list[float]]:
    """Read one small object of each server again and again meanwhile; the seconds of each read."""
    seconds: list[float] = []

    async def read(client: KubeClient) -> None:
        while True:
            began = time.perf_counter()
            await client.get(NAMESPACE, ObjectKey("", objects.ATTACKER))
            seconds.append(time.perf_counter() - began)
            await anyio.sleep(_READ_EVERY)

    async with anyio.create_task_group() as tasks:
        for client in around.observer.clients.values():
            tasks.start_soon(read, client)
        yield seconds
        tasks.cancel_scope.cancel()


async def _open(around: Fleet) -> None:
    """The attacker's namespace and queue, everywhere."""
    for client in around.observer.clients.values():
        await setting_up.ensure(client, NAMESPACE, setting_up.namespace(objects.ATTACKER))
        await setting_up.ensure(client, LOCAL_QUEUE, setting_up.local_queue(objects.ATTACKER))


async def _attack(
    around: Fleet,
    scenario: Scenario,
    seconds: float,
    queue: str = setting_up.LOCAL_QUEUE_NAME,
    then: Callable[[int, Json], Awaitable[None]] | None = None,
) -> None:
    limiter = anyio.CapacityLimiter(_AT_A_TIME)

    async def create(number: int) -> None:
        async with limiter:
            job = await around.user.create(JOB, objects.large_job(number, queue))
            if then is not None:
                await then(number, job)

    began = anyio.current_time()
    async with anyio.create_task_group() as tasks:
        for number in range(scenario.attackers):
            await anyio.sleep_until(began + number * seconds / scenario.attackers)
            tasks.start_soon(create, number)


async def _copied_by_another(around: Fleet, attack: Callable[..., Awaitable[None]], most: int) -> None:
    """The attack on a queue without a check of the controller's; another process copies so many of its jobs."""
    workers = {worker.name: worker.kubeconfig(USER) for worker in around.workers}
    config = {"manager": around.manager.kubeconfig(USER), "workers": workers}
    async with child("tests.benchmarks.stand_in", config) as another:
        await attack(objects.UNCHECKED, partial(_copy, around, another, anyio.Lock(), most))


async def _copy(around: Fleet, another: Child, turn: anyio.Lock, most: int, number: int, job: Json) -> None:
    name = workload_name(JOB.gvk, name_of(job), uid(job))
    workload = ObjectKey(objects.ATTACKER, name)
    await around.observer.until(
        lambda: around.observer.queued(workload), seconds=_SETTLED, otherwise=f"{workload} has no quota"
    )
    if number >= most:
        return
    async with turn:  # it is asked one thing after the other
        await another.ask(job=[*ObjectKey.of(job)], workload=[*workload])


async def _victim(around: Fleet, tested: Controller, scenario: Scenario, options: Options) -> None:
    def ended() -> bool:
        tested.check()
        return around.observer.moments.count(moments.FINISHED) >= scenario.jobs

    await submit(around, scenario)
    await around.observer.until(ended, seconds=options.timeout, otherwise="not all of the victim's jobs have ended")


async def _of_victim(around: Fleet, measured: Measured) -> Json:
    """Latencies of the victim, and what its controller shows of workers meanwhile."""
    seen = measured.moments
    return {
        "ready": seen.count(moments.READY),
        "created_ready_ms": quantiles(seconds for _, seconds in seen.between(moments.CREATED, moments.READY)),
        "quota_ready_ms": quantiles(seconds for _, seconds in seen.between(moments.QUOTA, moments.READY)),
        "workers_readable": await _readable(around),
        "check_active": around.observer.active(),
        "copies_of_attacker": around.observer.there(objects.ATTACKER),
    }


async def _readable(around: Fleet) -> int:
    """How many workers the controller can read, as it says itself."""
    clusters = [
        await around.observer.manager.get(MULTIKUEUE_CLUSTER, ObjectKey("", worker.name)) for worker in around.workers
    ]
    return sum((condition(cluster, "Active") or {}).get("status") == "True" for cluster in clusters)


async def _removal(around: Fleet, tested: Controller, scenario: Scenario) -> Json:
    """The attacker deletes all; how long from the last deletion until nothing of it is anywhere."""
    limiter, began = anyio.CapacityLimiter(_AT_A_TIME), time.perf_counter()

    async def delete(number: int) -> None:
        async with limiter:
            key = ObjectKey(objects.ATTACKER, name_of(objects.large_job(number)))
            await around.user.delete(JOB, key, propagation="Background")

    async with anyio.create_task_group() as tasks:
        for number in range(scenario.attackers):
            tasks.start_soon(delete, number)
    deleted = time.perf_counter()

    def gone() -> bool:
        tested.check()
        return not around.observer.there(objects.ATTACKER) and not around.observer.here(objects.ATTACKER)

    await around.observer.until(gone, seconds=_GONE, otherwise="what the attacker has deleted is still there")
    now = time.perf_counter()
    return {"deleting_s": round(deleted - began, 2), "gone_s": round(now - deleted, 2)}
