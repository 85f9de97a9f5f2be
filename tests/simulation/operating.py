"""What operators do to the daemon: stop it for long, change its settings, and take kinds away from it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Final

import anyio

from multikueue.core.model.kinds import JOB, WORKLOAD
from multikueue.core.model.names import Resource
from multikueue.core.model.workloads import CheckState, check_state
from multikueue.sandbox.setting_up import CHECK
from tests.simulation.breaking import Trouble
from tests.simulation.daemon import WORKER_LOST_TIMEOUT, Death, with_plan
from tests.simulation.electing import LeaseWeather
from tests.simulation.objects import find
from tests.simulation.scene import Scene


async def long_absence(scene: Scene) -> None:
    """No daemon runs for a while, which may be longer than `workerLostTimeout`."""
    await _absent(scene, scene.dice.choice((40.0, 120.0, 400.0)))


async def absence_beside_a_loss(scene: Scene) -> None:
    """No daemon runs while a worker that runs something is lost; both are back at about the same time."""
    run = await scene.running()
    if run is None:
        return
    link, seconds = run[0].link, scene.dice.choice((60.0, 250.0))
    link.change(down=True)
    await anyio.sleep(scene.seconds(0.0, 30.0))
    await _absent(scene, seconds)
    await anyio.sleep(seconds + scene.seconds(0.0, 25.0))
    link.change(down=False)


async def _absent(scene: Scene, seconds: float) -> None:
    scene.note(f"for {seconds:g} s")
    scene.daemon.absence = seconds
    await scene.daemon.kill(scene.dice.choice((Death.CRASH, Death.CANCEL)))


async def change_timeout(scene: Scene) -> None:
    """`workerLostTimeout` is changed, by a restart; the least of the run is what is promised from then on."""
    seconds = scene.dice.choice((120.0, 240.0, 600.0))
    scene.note(f"{seconds:g} s")
    scene.promises.lost_timeout = min(scene.promises.lost_timeout, seconds)
    await _restart(scene, timedelta(seconds=seconds))
    await anyio.sleep(scene.seconds(30.0, 120.0))
    await _restart(scene, WORKER_LOST_TIMEOUT)


async def _restart(scene: Scene, timeout: timedelta) -> None:
    scene.daemon.settings = with_plan(scene.daemon.settings, worker_lost_timeout=timeout)
    await scene.daemon.kill(Death.DRAIN)


async def take_out_a_kind(scene: Scene) -> None:
    """A kind is taken out of the settings while something of it runs, by a restart, and put back by another."""
    run = await scene.running()
    if run is None:
        return
    scene.note(f"without {run[1].plural}")
    with _without(scene, run[1].plural):
        await scene.daemon.kill(scene.dice.choice(list(Death)))
        await anyio.sleep(scene.seconds(5.0, 90.0))
    await scene.daemon.kill(Death.DRAIN)


@contextmanager
def _without(scene: Scene, plural: str) -> Iterator[None]:
    daemon, every = scene.daemon, scene.world.population.adapters
    daemon.adapters = tuple(row for row in daemon.adapters if row.resource.plural != plural)
    yield
    back = {row.resource for row in daemon.adapters} | {row.resource for row in every if row.resource.plural == plural}
    daemon.adapters = tuple(row for row in every if row.resource in back)


async def restart_without_a_worker(scene: Scene) -> None:
    """A worker that runs something is removed from the config while no daemon runs, and added again later."""
    run = await scene.running()
    if run is None:
        return
    await _absent(scene, 10.0)
    names = sorted(scene.world.workers)
    await scene.world.configure([name for name in names if name != run[0].name])
    await anyio.sleep(scene.seconds(40.0, 120.0))
    await scene.world.configure(names)


async def erase_the_worker(scene: Scene) -> None:
    """Somebody erases `clusterName` of a Workload that is Ready, while its job runs."""
    run = await scene.running()
    workload = find(scene.world.manager, WORKLOAD, run[2]) if run is not None else None
    if run is not None and workload is not None and check_state(workload, CHECK) is CheckState.READY:
        scene.note(f"of {run[2]}")
        patch = {"status": {"clusterName": None}}
        await scene.world.manager.api.merge_patch(WORKLOAD, run[2], patch, subresource="status")


async def hide_a_kind(scene: Scene) -> None:
    """A worker does not serve a kind any more as far as the daemon can see, and then it does again."""
    link = scene.worker().link
    await _hidden(scene, link.name, (_any_kind(scene),))


async def forbid_a_kind_on_the_manager(scene: Scene) -> None:
    """The daemon may not read a kind on the manager for a while; a restart may come in between."""
    scene.daemon.kill_at(scene.dice.choice((1, 10_000)), 0)
    await _hidden(scene, scene.world.manager.name, (_any_kind(scene),))


async def _hidden(scene: Scene, cluster: str, kinds: tuple[Resource, ...]) -> None:
    link = next(place.link for place in scene.world.clusters if place.name == cluster)
    scene.note(f"{', '.join(map(str, kinds))} on {cluster}")
    link.change(hidden=frozenset(kinds))
    link.cut()
    await anyio.sleep(scene.dice.choice((10.0, 60.0, 250.0)))
    link.change(hidden=frozenset())


def _any_kind(scene: Scene) -> Resource:
    rows = [row.resource for row in scene.daemon.adapters]
    return scene.dice.choice(rows or [JOB])


async def lose_the_lease(scene: Scene) -> None:
    """The leader's requests for its Lease are slow, and then lost; its other requests do not notice."""
    terms = scene.daemon.terms
    line = terms.line if terms is not None else None
    if line is None:
        return
    slow, seconds = scene.dice.choice((0.0, 2.0, 4.5)), scene.dice.choice((12.0, 40.0))
    requests = scene.dice.random() < 0.7
    line.lease_weather = LeaseWeather(slow=slow)
    await anyio.sleep(scene.seconds(5.0, 15.0))
    scene.note(
        f"answered after {slow:g} s, and then {'requests' if requests else 'replies'} are lost for {seconds:g} s"
    )
    line.lease_weather = LeaseWeather(slow=slow, lost_requests=requests, lost_replies=not requests)
    await anyio.sleep(seconds)
    line.lease_weather = LeaseWeather()


ELECTION: Final[tuple[Trouble, ...]] = (lose_the_lease, lose_the_lease)
"""What two daemons with one Lease have to bear."""
TROUBLES: Final[tuple[Trouble, ...]] = (
    long_absence,
    change_timeout,
    hide_a_kind,
    forbid_a_kind_on_the_manager,
    take_out_a_kind,
    take_out_a_kind,
    restart_without_a_worker,
    erase_the_worker,
    erase_the_worker,
    absence_beside_a_loss,
)
