"""The fleet of a soak: two workers that stay, one server that is connected under ever new names, and one daemon."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Final, TypeVar

import attrs

from multikueue.adapters import AdapterRegistry
from multikueue.core.model.names import ClusterName, Resource
from multikueue.errors import ApiError
from multikueue.kube import ClusterConfig
from multikueue.protocols import ApiClient
from multikueue.runtime.manager import Manager
from multikueue.sandbox.jobs import RunnerOptions
from multikueue.sandbox.kinds.jobset import KINDS as JOB_SETS
from multikueue.sandbox.kinds.pods import POD
from multikueued.metrics.hooks import Metrics
from tests.simulation.daemon import SETTINGS
from tests.simulation.population import (
    Population,
    draw_elastic_job,
    draw_group,
    draw_job,
    draw_job_set,
    draw_placed_job,
    draw_pod,
    draw_prior_job,
)
from tests.simulation.session import Session
from tests.simulation.virtual_time import wall_clock
from tests.simulation.weather import Link
from tests.simulation.world import World

T = TypeVar("T")

VISITING: Final = "worker3"
"""The server that is connected under a new name each hour."""
STAYING: Final = ("worker1", "worker2")
POPULATION: Final = Population(
    "soak",
    (draw_job, draw_prior_job, draw_placed_job, draw_elastic_job, draw_job_set, draw_pod, draw_group),
    (*JOB_SETS, POD),
    preempting=True,
)
"""What users submit: jobs of three kinds. Each kind more is one more watch on each cluster."""
BOOKMARKS: Final = 80.0
"""Virtual seconds between two bookmarks of a watch that shows nothing; clients give one up after 90."""


@attrs.define(eq=False)
class ObservedSession(Session):
    """A session whose requests are counted in the daemon's metrics, as those of its real client are."""

    cluster: str = attrs.field(kw_only=True)
    metrics: Metrics = attrs.field(kw_only=True)

    async def _call(self, verb: str, resource: Resource, act: Callable[[], Awaitable[T]], *, writes: bool = False) -> T:
        status = 0
        try:
            answer = await Session._call(self, verb, resource, act, writes=writes)
            status = 200
            return answer
        except ApiError as error:
            status = error.status // 100 * 100  # codes that come once in weeks are new series for as long
            raise
        finally:
            self.metrics.observe(self.cluster, verb, resource.plural, status, 0.0)


def fill_series(metrics: Metrics) -> None:
    """Have each kind of request that is made to a cluster that stays be answered in each way, once.

    Some answers come once in weeks: their series would look like a leak.
    """
    for cluster, verb, resource, _ in list(metrics._requests._known):
        for status in (0, 200, 400, 500) if cluster in ("manager", *STAYING) else ():
            metrics.observe(cluster, verb, resource, status, 0.0)


def build_world(seed: int) -> World:
    """The clusters, each with a Kueue and what runs its jobs."""
    runner = RunnerOptions(mean=60.0, minimum=1.0, maximum=300.0, failure_rate=0.1)
    world = World.build(seed, (0.0, 3.0, -90.0), 6, runner, POPULATION)
    for place in world.clusters:
        place.registry.bookmark_interval = BOOKMARKS
    return world


def build_daemon(world: World, metrics: Metrics) -> Manager:
    """The one daemon that runs all the time."""

    def session(cluster: str, link: Link, token: str) -> ObservedSession:
        return ObservedSession(link, token, cluster=cluster, metrics=metrics)

    def connect(name: ClusterName, config: ClusterConfig) -> AbstractAsyncContextManager[ApiClient]:
        host = config.server.removeprefix("https://").partition(".")[0]
        return session(name, world.workers[host].link, config.token)

    home = world.manager.link
    return Manager(
        session("manager", home, home.token),
        AdapterRegistry(world.population.adapters),
        attrs.evolve(SETTINGS, kubeconfig_interval=60.0),
        connect,
        hook=metrics,
        controller_hook=metrics,
        clock=wall_clock(),
        fraction=random.Random(f"daemon/{world.seed}").random,
    )
