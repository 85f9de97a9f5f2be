"""Whom a Workload is offered to: the library's dispatchers, one of somebody's own, and a controller that nominates."""

from __future__ import annotations

import random
import zlib
from datetime import datetime, timedelta
from typing import Final

import anyio
import attrs

from multikueue.core.dispatchers.dispatcher import AllAtOnce, Candidates, Dispatcher, External, Nomination
from multikueue.core.dispatchers.incremental import Incremental, Order
from multikueue.core.model.kinds import WORKLOAD
from multikueue.core.model.marks import mark_of
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import is_terminating
from multikueue.core.model.workloads import (
    cluster_name,
    component_index,
    has_quota,
    is_evicted,
    is_finished,
    nominated,
)
from multikueue.errors import ApiError
from multikueue.sandbox.apiserver import DirectClient
from multikueue.sandbox.apiserver.kinds.resources import ResourceType
from tests.simulation.objects import find, is_ours, objects
from tests.simulation.promises import Promises
from tests.simulation.world import SimCluster, World

NOMINATOR: Final = "example.com/nominator"
"""Field manager of the controller that nominates."""
PATIENCE: Final = 40.0
"""Virtual seconds for which it waits for those it has nominated."""


@attrs.frozen
class OneByOne:
    """Asks one worker after the other, as one of a user's own may: what it remembers is the check's message.

    For some Workloads it is broken at times: it raises, or names a worker that nobody knows.
    """

    patience: int = 30
    """Seconds for which each is asked."""

    def nominate(self, workload: Json, candidates: Candidates, now: datetime) -> Nomination:
        """See `Dispatcher.nominate`."""
        self._fail(workload, now)
        asked, _, since = candidates.message.removeprefix("asking ").partition(" since ")
        left = self.patience - (int(now.timestamp()) - int(since)) if since.isdecimal() else 0
        if asked in candidates.kept and left > 0:
            return Nomination((asked,), look_again=left)
        able = candidates.available
        if not able:
            return Nomination(candidates.kept)
        turn = able.index(asked) + 1 if asked in able else zlib.crc32(workload["metadata"]["name"].encode())
        name = able[turn % len(able)]
        message = f"asking {name} since {int(now.timestamp())}"
        return Nomination((name,), look_again=float(self.patience), message=message)

    def remembers(self, message: str) -> bool:
        """See `Remembering`."""
        return message.startswith("asking ")

    def _fail(self, workload: Json, now: datetime) -> None:
        broken = zlib.crc32(workload["metadata"]["uid"].encode()) % 4 == 0
        if broken and int(now.timestamp()) % 7 == 0:
            raise LookupError("a dispatcher of somebody's own")


OPEN: Final = "example.com/open"
"""Label of the MultiKueueClusters that `ByLabel` offers to."""


@attrs.frozen
class ByLabel:
    """Offers to the workers whose MultiKueueCluster has a label, as the guide's own dispatcher does."""

    def nominate(self, workload: Json, candidates: Candidates, now: datetime) -> Nomination:
        """See `Dispatcher.nominate`."""
        del workload, now
        opened = (worker.name for worker in candidates.workers if worker.available and OPEN in worker.labels)
        return Nomination(tuple(dict.fromkeys((*candidates.kept, *opened))))


DISPATCHERS: Final[tuple[Dispatcher, ...]] = (
    *(5 * (AllAtOnce(),)),
    Incremental(step=1, round=timedelta(seconds=20)),
    Incremental(step=2, order=Order.ALPHABETICAL, round=timedelta(seconds=45)),
    External(),
    OneByOne(),
)


@attrs.define(eq=False)
class Nominator:
    """The controller that nominates where `External` leaves that to it: other workers after a while, for ever."""

    world: World
    promises: Promises
    _since: dict[ObjectKey, float] = attrs.field(factory=dict)
    """When it last nominated workers for a Workload."""
    _chosen: dict[tuple[ObjectKey, str], float] = attrs.field(factory=dict)
    """When it last had a worker among them."""

    async def run(self) -> None:
        """Nominate until cancelled."""
        for worker in self.world.workers.values():

            def changed(row: ResourceType, old: Json | None, new: Json | None, worker: SimCluster = worker) -> None:
                if row.plural != WORKLOAD.plural or old is not None or new is None:
                    return
                if is_ours(new) and mark_of(new):  # what a user of the worker makes has our label, and no mark
                    self._offered(worker.name, ObjectKey.of(new))

            worker.registry.cluster.listeners.append(changed)
        dice = random.Random(f"nominator/{self.world.seed}")
        while True:
            await anyio.sleep(2.0)
            for workload in sorted(objects(self.world.manager, WORKLOAD), key=ObjectKey.of):
                due = anyio.current_time() - self._since.get(ObjectKey.of(workload), float("-inf")) > PATIENCE
                if _waits(workload) and (due or not nominated(workload)):
                    await self._nominate(workload, dice)

    async def _nominate(self, workload: Json, dice: random.Random) -> None:
        client = DirectClient(self.world.manager.registry, user="nominator")
        key, workers = ObjectKey.of(workload), sorted(self.world.workers)
        names = dice.sample(workers, dice.randint(1, min(2, len(workers))))
        self._since[key] = anyio.current_time()
        self._chosen.update({(key, name): anyio.current_time() for name in names})
        try:
            await client.apply(WORKLOAD, _body(workload, names), field_manager=NOMINATOR, subresource="status")
        except ApiError:
            self._since.pop(key)  # a worker was recorded in between, perhaps

    def _offered(self, worker: str, key: ObjectKey) -> None:
        workload = find(self.world.manager, WORKLOAD, key)
        recorded = workload is not None and cluster_name(workload) == worker
        follows = workload is not None and component_index(workload) not in (None, 0)  # where the first part is
        if not (recorded or follows) and (key, worker) not in self._chosen:
            self.promises.broken.append(f"{key} is offered to {worker}, which nobody has nominated")


def _waits(workload: Json) -> bool:
    over = is_finished(workload) or is_evicted(workload) or is_terminating(workload)
    return has_quota(workload) and not over and cluster_name(workload) is None


def _body(workload: Json, names: list[str]) -> Json:
    metadata = workload["metadata"]
    return {
        "apiVersion": workload["apiVersion"],
        "kind": workload["kind"],
        "metadata": {"name": metadata["name"], "namespace": metadata["namespace"]},
        "status": {"nominatedClusterNames": names},
    }
