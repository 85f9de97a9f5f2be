"""One run: a seed in, what became of it out."""

from __future__ import annotations

import random
from collections.abc import MutableMapping
from typing import Any, Final

import anyio
import attrs
import structlog

from multikueue.core.kinds import JOB
from multikueue.core.names import Json
from tests.simulation.daemon import Daemon
from tests.simulation.promises import BrokenPromise, Promises, leaks, objects, orphans, unfinished
from tests.simulation.script import Script
from tests.simulation.virtual_time import run_on_virtual_time
from tests.simulation.world import CANARY, SimCluster, World

STEP: Final = 15.0
"""Virtual seconds between two looks at whether all is done."""
PATIENCE: Final = 3_600.0
"""Virtual seconds after the last trouble within which everything must be done."""


@attrs.frozen
class Run:
    """What became of one seed."""

    seed: int
    broken: str
    """What went wrong; empty if nothing did."""
    history: tuple[str, ...]
    virtual_seconds: float
    starts: int
    """How often a job was started on a worker."""
    events: int
    """How many events were drawn."""


def simulate(seed: int, left_out: frozenset[int] = frozenset()) -> Run:
    """Run one seed, without the events that are left out."""
    logged: list[str] = []

    def capture(logger: Any, name: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        del logger, name
        logged.append(repr(event))
        raise structlog.DropEvent

    structlog.configure(processors=[structlog.processors.format_exc_info, capture], cache_logger_on_first_use=False)
    try:
        return run_on_virtual_time(_simulate, seed, left_out, logged)
    finally:
        structlog.reset_defaults()


async def _simulate(seed: int, left_out: frozenset[int], logged: list[str]) -> Run:
    world = World.draw(seed)
    promises = Promises(world)
    daemon = Daemon(world)
    broken, events = "", 0
    try:
        async with anyio.create_task_group() as tasks:
            promises.listen()
            await tasks.start(world.run)
            foreign = await _plant_foreign_objects(world)
            await tasks.start(daemon.run)
            script = Script(world, daemon, promises, random.Random(f"script/{seed}"), left_out)
            await script.run()
            events = script.events
            await _wait_until_done(world, promises)
            _check_the_end(world, promises, foreign, logged)
            tasks.cancel_scope.cancel()
    except* BrokenPromise as failures:
        broken = "; ".join(str(failure) for failure in failures.exceptions)
    return Run(seed, broken, tuple(promises.history), anyio.current_time(), promises.starts, events)


async def _wait_until_done(world: World, promises: Promises) -> None:
    deadline = anyio.current_time() + PATIENCE
    while unfinished(world) or orphans(world):
        promises.check()
        if anyio.current_time() > deadline:
            raise BrokenPromise(f"never finished: {unfinished(world)}; left over: {orphans(world)}")
        await anyio.sleep(STEP)


def _check_the_end(world: World, promises: Promises, foreign: dict[str, list[Json]], logged: list[str]) -> None:
    promises.check()
    for name, worker in world.workers.items():
        if _foreign(worker) != foreign[name]:
            raise BrokenPromise(
                f"somebody else's objects on {name} were touched: {foreign[name]} became {_foreign(worker)}"
            )
    if found := leaks(world):
        raise BrokenPromise(f"a credential is in {found}")
    if told := [line for line in logged if CANARY in line]:
        raise BrokenPromise(f"a credential was logged: {told[0].replace(CANARY, '***')}")
    if failed := [line for line in logged if "Traceback" in line]:
        raise BrokenPromise(f"a bug was logged: {failed[0][-1500:]}")


async def _plant_foreign_objects(world: World) -> dict[str, list[Json]]:
    """Somebody else's jobs: one with the name of a job to come, one that carries another manager's label."""
    for worker in world.workers.values():
        for name, labels in (("job-2", {}), ("theirs", {"kueue.x-k8s.io/multikueue-origin": "another"})):
            if name == "job-2" and worker is not next(iter(world.workers.values())):
                continue
            await worker.api.create(JOB, _foreign_job(name, labels))
    return {name: _foreign(worker) for name, worker in world.workers.items()}


def _foreign_job(name: str, labels: dict[str, str]) -> Json:
    container = {"name": "main", "image": "busybox"}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "default", "labels": {**labels, "owner": "somebody-else"}},
        "spec": {"suspend": True, "template": {"spec": {"restartPolicy": "Never", "containers": [container]}}},
    }


def _foreign(worker: SimCluster) -> list[Json]:
    found = [job for job in objects(worker, JOB) if job["metadata"].get("labels", {}).get("owner") == "somebody-else"]
    kept = [{"spec": job["spec"], "labels": job["metadata"]["labels"], "uid": job["metadata"]["uid"]} for job in found]
    return sorted(kept, key=lambda job: str(job["uid"]))
