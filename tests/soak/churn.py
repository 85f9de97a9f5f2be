"""What happens in each hour of a soak: jobs, teams, workers, Secrets and kinds come and go, and links break.

All of it is over after three quarters of the hour. What is there at its end is there at the end of each hour.
"""

from __future__ import annotations

import contextlib
import copy
import json
import random
from collections.abc import Awaitable, Callable
from typing import Final

import anyio
import attrs

from multikueue.core.model.kinds import (
    CLUSTER_QUEUE,
    LOCAL_QUEUE,
    MULTIKUEUE_CLUSTER,
    NAMESPACE,
    SECRET,
    WORKLOAD,
)
from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.errors import ApiError, NotFound
from multikueue.sandbox.setting_up import (
    CHECK,
    KUEUE_NAMESPACE,
    cluster,
    cluster_queue,
    kubeconfig_secret,
    local_queue,
    namespace,
)
from tests.simulation.objects import objects
from tests.simulation.population import Submission
from tests.simulation.weather import FINE
from tests.simulation.world import CANARY, SimCluster, World, kubeconfig
from tests.soak.fleet import STAYING, VISITING

HOUR: Final = 3_600.0
OVER: Final = 0.6 * HOUR
"""Seconds after which nothing new happens in an hour."""
WITHDRAWN: Final = 0.75 * HOUR
"""Seconds after which users delete what is left."""
QUEUES: Final = 6
"""ClusterQueues whose names recur. Series of those that are gone stay, up to a limit: nobody tells the daemon."""


@attrs.define(eq=False)
class Churn:
    """Lets hours happen."""

    world: World
    jobs_per_hour: int
    dice: random.Random
    hour: int = 0

    async def run_hour(self) -> None:
        """Let one hour happen, but for its last seconds."""
        began = anyio.current_time()
        self.hour += 1
        async with anyio.create_task_group() as tasks:
            for happening in (self._visit, self._change_token, self._other_secret, self._hide_kind, self._trouble):
                tasks.start_soon(self._during, happening)
            tasks.start_soon(self._team)
            for number in range(self.jobs_per_hour):
                tasks.start_soon(self._job, number)
            await anyio.sleep_until(began + OVER)
            self._mend()
            await anyio.sleep_until(began + WITHDRAWN)
        await self._withdraw_all()
        await anyio.sleep_until(began + HOUR - 1.0)
        for place in self.world.clusters:
            place.registry.compact()  # as API servers do every five minutes

    async def start(self) -> None:
        """Leave only the workers that stay."""
        await self._remove_worker(VISITING)
        await self.world.configure(list(STAYING))

    def left_over(self) -> list[str]:
        """The Workloads and jobs of users that are still somewhere."""
        kinds = (WORKLOAD, *(kind.resource for kind in self.world.population.all_kinds))
        return [
            f"{kind} {ObjectKey.of(obj)} on {place.name}"
            for place in self.world.clusters
            for kind in kinds
            for obj in objects(place, kind)
        ]

    async def _during(self, happening: Callable[[], Awaitable[None]]) -> None:
        await anyio.sleep(self.dice.uniform(0.0, 0.3 * HOUR))
        await happening()

    async def _visit(self) -> None:
        """A worker of a name that never was is connected, listed and removed."""
        name = f"visitor-{self.hour}"
        host = kubeconfig(VISITING, self.world.workers[VISITING].link.token)
        await self._create(self.world.manager, SECRET, kubeconfig_secret(name, host))
        await self._create(self.world.manager, MULTIKUEUE_CLUSTER, cluster(name))
        await self.world.configure([*STAYING, name])
        await anyio.sleep(self.dice.uniform(300.0, 900.0))
        if self.hour % 2:
            self.world.workers[VISITING].link.change(down=True)
            await anyio.sleep(60.0)
        await self.world.configure(list(STAYING))
        await self._remove_worker(name)
        await anyio.sleep(60.0)
        self.world.workers[VISITING].link.change(down=False)

    async def _remove_worker(self, name: str) -> None:
        await self._delete(self.world.manager, MULTIKUEUE_CLUSTER, ObjectKey("", name))
        await self._delete(self.world.manager, SECRET, ObjectKey(KUEUE_NAMESPACE, f"{name}-secret"))

    async def _change_token(self) -> None:
        """The credential of a worker is replaced: first there, then here."""
        name = self.dice.choice(STAYING)
        link = self.world.workers[name].link
        link.token = f"{CANARY}-{name}-{self.hour}"
        link.cut()
        await anyio.sleep(self.dice.uniform(0.0, 120.0))
        await self.world.write_kubeconfig(name, json.dumps(kubeconfig(name, link.token)))

    async def _other_secret(self) -> None:
        """Secrets that are none of ours come and go beside the kubeconfigs."""
        made = kubeconfig_secret(f"other-{self.hour}", {})
        await self._create(self.world.manager, SECRET, made)
        await anyio.sleep(self.dice.uniform(1.0, 300.0))
        await self._delete(self.world.manager, SECRET, ObjectKey.of(made))

    async def _hide_kind(self) -> None:
        """A worker does not serve a kind for a while."""
        link = self.world.workers[self.dice.choice(STAYING)].link
        kind = self.dice.choice(self.world.population.all_kinds).resource
        link.change(hidden=frozenset((kind,)))
        link.cut()
        await anyio.sleep(self.dice.uniform(30.0, 300.0))
        link.change(hidden=frozenset())

    async def _trouble(self) -> None:
        """Something is wrong with a link for a while."""
        place = self.dice.choice([*(self.world.workers[name] for name in STAYING), self.world.manager])
        match self.hour % 6:
            case 0:
                place.link.change(down=True)
            case 1:
                place.link.change(silent=True)
            case 2:
                place.link.change(deaf=True)
            case 3:
                place.link.change(lag=6.0, latency=0.5)
            case 4:
                place.link.change(lost_requests=0.2, lost_replies=0.2, refused=0.1, expired_watches=0.2)
            case 5:
                for cluster in self.world.clusters:
                    cluster.registry.compact()
                    cluster.link.cut()
        await anyio.sleep(self.dice.choice((10.0, 100.0, 400.0)))
        self._mend()

    def _mend(self) -> None:
        for place in self.world.clusters:
            if place.name == VISITING:
                continue
            broken = place.link.weather.silent or place.link.weather.deaf
            place.link.change(**{**_FAIR, "hidden": place.link.weather.hidden})
            if broken:
                place.link.cut()

    async def _team(self) -> None:
        """A namespace with queues of its own is made on all clusters, and removed when its jobs are gone."""
        made = self._team_objects()
        for place in self.world.clusters:
            for resource, obj in made:
                checked = place.name == "manager" and resource == CLUSTER_QUEUE
                await self._create(place, resource, _with_check(obj) if checked else obj)
        await anyio.sleep(0.7 * HOUR)
        await self._withdraw_all(self._team_name)
        await anyio.sleep(60.0)
        for place in self.world.clusters:
            for resource, obj in reversed(made):
                await self._delete(place, resource, ObjectKey.of(obj))

    @property
    def _team_name(self) -> str:
        return f"team-{self.hour}"

    def _team_objects(self) -> list[tuple[Resource, Json]]:
        name = self._team_name
        queue, local = cluster_queue({"cpu": "6", "memory": "64Gi"}), local_queue(name)
        queue["metadata"]["name"] = local["spec"]["clusterQueue"] = f"queue-{self.hour % QUEUES}"
        return [(NAMESPACE, namespace(name)), (CLUSTER_QUEUE, queue), (LOCAL_QUEUE, local)]

    async def _job(self, number: int) -> None:
        """A user submits something, in the team's namespace or in one that stays, and deletes it when it has ended."""
        await anyio.sleep(self.dice.uniform(5.0, OVER))
        draw = self.dice.choice(self.world.population.draws)
        drawn = draw(self.dice, 1000 * self.hour + number)
        where = self.dice.choice(("default", self._team_name))
        made = tuple(_moved(obj, where) for obj in drawn.objects)
        for obj in made:
            await self._create(self.world.manager, drawn.resource, obj)
        await anyio.sleep(drawn.lifetime or self.dice.uniform(30.0, 500.0))
        await self._withdraw(Submission(drawn.resource, made))

    async def _withdraw(self, submission: Submission) -> None:
        for obj in submission.objects:
            await self._delete(self.world.manager, submission.resource, ObjectKey.of(obj))

    async def _withdraw_all(self, where: str = "") -> None:
        for kind in self.world.population.all_kinds:
            for obj in list(objects(self.world.manager, kind.resource)):
                if where in ("", ObjectKey.of(obj).namespace):
                    await self._delete(self.world.manager, kind.resource, ObjectKey.of(obj))

    async def _create(self, place: SimCluster, resource: Resource, obj: Json) -> None:
        with contextlib.suppress(ApiError):  # its queue is gone by now
            await place.api.create(resource, obj)

    async def _delete(self, place: SimCluster, resource: Resource, key: ObjectKey) -> None:
        with contextlib.suppress(NotFound):
            await place.api.delete(resource, key, propagation="Background")


_FAIR: Final = {name: value for name, value in attrs.asdict(FINE, recurse=False).items() if name != "mutates_copies"}


def _with_check(queue: Json) -> Json:
    return {**queue, "spec": {**queue["spec"], "admissionChecksStrategy": {"admissionChecks": [{"name": CHECK}]}}}


def _moved(obj: Json, where: str) -> Json:
    moved = copy.deepcopy(obj)
    moved["metadata"]["namespace"] = where
    return moved
