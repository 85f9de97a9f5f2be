"""One run: a seed in, what became of it out."""

from __future__ import annotations

import random
from collections.abc import MutableMapping
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any, Final

import anyio
import anyio.abc
import attrs
import structlog

from multikueue.core.dispatchers.dispatcher import External
from multikueue.sandbox.setting_up import CHECK
from tests.simulation.adversity import ROWS
from tests.simulation.beside import THEIRS, Neighbour
from tests.simulation.choosing import Choosing
from tests.simulation.daemon import WORKER_LOST_TIMEOUT, Daemon
from tests.simulation.electing import Terms
from tests.simulation.endings import leaks, orphans, overspent, unfinished, unshown, wait_until_shown
from tests.simulation.foreign import Foreigners
from tests.simulation.gating import Gating
from tests.simulation.holding import Holding
from tests.simulation.impostors import Impostors
from tests.simulation.inventory import Inventory
from tests.simulation.leaving import Leaving
from tests.simulation.listing import Listing
from tests.simulation.needing import Needs
from tests.simulation.nominating import DISPATCHERS, Nominator
from tests.simulation.offering import Offering
from tests.simulation.promises import BrokenPromise, Promises
from tests.simulation.reach import Reach
from tests.simulation.recording import Recording
from tests.simulation.remapping import Mapping
from tests.simulation.room import Rooms
from tests.simulation.scene import Scene
from tests.simulation.script import Script
from tests.simulation.serving import Net, served
from tests.simulation.taking import Taking
from tests.simulation.virtual_time import run_on_virtual_time
from tests.simulation.world import CANARY, World

STEP: Final = 15.0
"""Virtual seconds between two looks at what must not last."""
PATIENCE: Final = 3_600.0
"""Virtual seconds after the last trouble within which everything must be done."""
MOST_REQUESTS: Final = 20_000
"""More than twice what any of 300 seeds needs."""
MOST_AT_ONCE: Final = 800
"""Requests between two looks: three times what any of 50 seeds needs. A loop makes more."""
SETTLED: Final = 120.0
"""Virtual seconds within which configs list what is decided: a cluster that was busy is kept for a while."""


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
    requests: int
    """How many requests the daemon made."""


def simulate(seed: int, left_out: frozenset[int] = frozenset(), extra: tuple[str, ...] = ()) -> Run:
    """Run one seed, without the events that are left out, and with rows of `adversity.ROWS`."""
    logged: list[str] = []

    def capture(logger: Any, name: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        del logger, name
        logged.append(repr(event))
        raise structlog.DropEvent

    structlog.configure(processors=[structlog.processors.format_exc_info, capture], cache_logger_on_first_use=False)
    try:
        return run_on_virtual_time(_simulate, seed, left_out, extra, logged)
    finally:
        structlog.reset_defaults()


def _draw(seed: int, extra: tuple[str, ...]) -> World:
    world = World.draw(seed)
    world.give_to(Inventory.draw(world))
    world.dispatcher = random.Random(f"dispatcher/{seed}").choice(DISPATCHERS)
    world.choose_by(Choosing.draw(world))
    for name in extra:
        ROWS[name].prepare(world)
    return world


def _described(world: World) -> str:
    return (
        f"{world.population.name}, {world.dispatcher}"
        + ", one preempts" * world.orchestrated
        + ", two elect" * bool(world.replica_skews)
        + ", over HTTP" * world.over_http
        + ", with ConfigMaps" * world.needing
        + f", {world.own} is the manager" * bool(world.own)
        + ", by an inventory" * (world.inventory is not None)
        + ", mappings change" * world.remapped
        + f", {world.runner}, retention {world.retention}" * world.ending
        + (f", by {world.choosing.sites}" if world.choosing is not None else "")
    )


async def _simulate(seed: int, left_out: frozenset[int], extra: tuple[str, ...], logged: list[str]) -> Run:
    world = _draw(seed, extra)
    reach = Reach(world)
    promises = Promises(world, reach, WORKER_LOST_TIMEOUT.total_seconds())
    taking, holding = Taking(world, reach, promises), Holding(world, reach, promises)
    daemon = Daemon(world)
    if world.replica_skews:
        daemon.terms = terms = Terms(promises.broken.append)
        world.manager.registry.cluster.listeners.append(terms.lease_changed)
        promises.skew = lambda: terms.changes * (max(world.replica_skews) - min(world.replica_skews))
    reach.absent_since = daemon.absent_since
    scene = Scene(world, daemon, promises, taking, reach, Foreigners(world), random.Random(f"script/{seed}"))
    script = Script(scene, left_out, extra)
    promises.note(_described(world))
    broken = ""
    try:
        async with _net(world) as daemon.net, anyio.create_task_group() as tasks:
            reach.listen()
            promises.listen()
            taking.listen()
            _watch_rules(world, reach, promises)
            leaving = Leaving(world, promises, taking)
            leaving.listen()
            impostors = Impostors(world, promises)
            impostors.listen()
            await tasks.start(world.run)
            listings = await _inventory(world, reach, promises, tasks)
            _follow_dispatching(scene, tasks)
            await scene.foreigners.plant_first(in_the_way=not script.calm)
            await Needs(world, promises, scene.foreigners).begin(tasks)
            await tasks.start(scene.daemon.run)
            tasks.start_soon(_keep_checking, scene, holding)
            if not script.calm:
                tasks.start_soon(impostors.run)
            await script.run()
            await _wait_until_done(scene, serving=True)
            await script.end_serving()
            await _wait_until_done(scene)
            await wait_until_shown(world, promises.removed, reach, daemon.absent_until)
            _check_the_end(scene, logged, calm=script.calm)
            await _check_what_is_left(world, leaving)
            await _check_listings(scene, listings)
            tasks.cancel_scope.cancel()
    except* BrokenPromise as failures:
        broken = "; ".join(str(failure) for failure in failures.exceptions)
    ended = anyio.current_time()
    return Run(seed, broken, tuple(promises.history), ended, promises.starts, script.events, _requests(world))


def _requests(world: World) -> int:
    return sum(cluster.link.requests.total() for cluster in world.clusters)


async def _inventory(world: World, reach: Reach, promises: Promises, tasks: anyio.abc.TaskGroup) -> list[Listing]:
    """Start what belongs to a run with a hub, and follow what is written to configs."""
    if world.inventory is None:
        return []
    neighbour = Neighbour(world.inventory, world.seed)
    await neighbour.set_up()
    tasks.start_soon(neighbour.run)
    listings = [Listing(world, reach, promises, name) for name in (CHECK, THEIRS)]
    for listing in listings:
        listing.listen()
    return listings


def _watch_rules(world: World, reach: Reach, promises: Promises) -> None:
    Gating(world, reach, promises).listen()
    Recording(world, reach, promises).listen()


def _follow_dispatching(scene: Scene, tasks: anyio.abc.TaskGroup) -> None:
    """Start who nominates where the daemon does not; follow where mappings and the scored dispatcher have jobs go."""
    world, choosing = scene.world, scene.world.choosing
    Mapping(world, scene.reach, scene.promises).listen()
    if world.dispatcher == External():
        tasks.start_soon(Nominator(world, scene.promises).run)
    if choosing is not None:
        rooms = Rooms(world, choosing, scene.reach, scene.daemon)
        tasks.start_soon(Offering(world, choosing, rooms, scene.promises).run)


def _net(world: World) -> AbstractAsyncContextManager[Net | None]:
    return served(world) if world.over_http else nullcontext()


async def _keep_checking(scene: Scene, holding: Holding) -> None:
    made = 0
    while True:
        before, made = made, _requests(scene.world)
        if made > MOST_REQUESTS or made - before > MOST_AT_ONCE:
            raise BrokenPromise(f"{made} requests, {made - before} of them in {STEP:g} s, which is a loop")
        holding.check(scene.daemon.alive_since)
        scene.promises.check(scene.daemon.alive_since)
        await anyio.sleep(STEP)


async def _wait_until_done(scene: Scene, *, serving: bool = False) -> None:
    deadline = anyio.current_time() + PATIENCE
    while (left := unfinished(scene.world, serving=serving)) or orphans(scene.world):
        if anyio.current_time() > deadline + scene.promises.most_stepped:
            raise BrokenPromise(f"never finished: {left}; left over: {orphans(scene.world)}")
        await anyio.sleep(STEP)


async def _check_listings(scene: Scene, listings: list[Listing]) -> None:
    """Hold configs against what is decided, once a daemon has had the time: all may have ended while none ran."""
    if not listings:
        return
    await anyio.sleep_until(scene.daemon.absent_until)
    await anyio.sleep(SETTLED)
    for listing in listings:
        listing.check_the_end()


async def _check_what_is_left(world: World, leaving: Leaving) -> None:
    """Pods whose copies somebody has removed end by themselves, each in its time."""
    if leaving.left():
        await anyio.sleep(world.runner.trap + STEP)
    if left := leaving.left():
        raise BrokenPromise(f"left over: {', '.join(left)}")


def _check_the_end(scene: Scene, logged: list[str], *, calm: bool) -> None:
    scene.promises.check(scene.daemon.alive_since)
    if touched := scene.foreigners.touched():
        raise BrokenPromise("; ".join(touched))
    if unseen := unshown(scene.world, scene.promises.removed, scene.reach):
        raise BrokenPromise(f"nothing shows how these have ended: {', '.join(unseen)}")
    if leaked := leaks(scene.world):
        raise BrokenPromise(f"a credential is in {leaked}")
    if leaked_lines := [line for line in logged if CANARY in line]:
        raise BrokenPromise(f"a credential was logged: {leaked_lines[0].replace(CANARY, '***')}")
    if failed := [line for line in logged if "Traceback" in line]:
        raise BrokenPromise(f"a bug was logged: {failed[0][-1500:]}")
    rotates = scene.world.inventory is not None  # a hub replaces tokens by itself: everything is listed again
    read = rotates or scene.world.needing  # what is copied is read on both sides
    if calm and not read and (excesses := overspent(scene.world)):
        raise BrokenPromise(f"too many requests: {'; '.join(excesses)}")
