"""The pool of clusters alone: clients and caches that do as the test says, and no Kueue."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import anyio
import attrs
import pytest
import structlog
from structlog.testing import capture_logs

from multikueue.core.machinery.connection import Failing, Health, OpeningWatch, OpenWatch, Watch
from multikueue.core.model.names import ClusterName
from multikueue.errors import KubeconfigError, Unreachable
from multikueue.kube import ClusterConfig
from multikueue.protocols import ApiClient
from multikueue.runtime.cluster_pool import LINGER, Cluster, ClusterPool
from multikueue.sandbox.apiserver import DirectClient, Registry
from multikueue.testing.waiting import background
from tests.runtime.fleet import now

pytestmark = pytest.mark.looptime

A, B = ClusterName("a"), ClusterName("b")
OLD, NEW = ClusterConfig("https://a", token="old"), ClusterConfig("https://a", token="new")
ELSEWHERE = ClusterConfig("https://elsewhere", token="old")
READ = Health(OpenWatch(), complete=True)


@attrs.define(eq=False)
class FakeCaches:
    """Says of itself what the test wants."""

    report: Callable[[], None]
    earlier: FakeCaches | None
    health: Health = attrs.field(factory=lambda: Health(OpeningWatch(), complete=False))
    error: Exception | None = None
    running: bool = False

    async def run(self) -> None:
        self.running = True
        try:
            if self.error is not None:
                raise self.error
            await anyio.sleep_forever()
        finally:
            self.running = False

    def says(self, watch: Watch, *, complete: bool = True) -> None:
        self.health = Health(watch, complete)
        self.report()


@attrs.define(eq=False)
class World:
    """A pool, and what it did."""

    built: list[FakeCaches] = attrs.field(factory=list)
    open: list[str] = attrs.field(factory=list)
    """The tokens of the clients that are open."""
    contexts: list[object] = attrs.field(factory=list)
    replaced: list[tuple[FakeCaches, FakeCaches | None]] = attrs.field(factory=list)
    changed: list[str] = attrs.field(factory=list)
    errors: dict[str, Exception] = attrs.field(factory=dict)
    """What ends the connections to a server."""
    pool: ClusterPool[FakeCaches] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.pool = ClusterPool(
            self.connect, self.build, now, self._changed, lambda earlier, later: self.replaced.append((earlier, later))
        )

    def _changed(self, cluster: Cluster[FakeCaches]) -> None:
        self.changed.append(cluster.name)

    @asynccontextmanager
    async def connect(self, name: ClusterName, config: ClusterConfig) -> AsyncIterator[ApiClient]:
        self.contexts.append(structlog.contextvars.get_contextvars())
        if isinstance(error := self.errors.get(config.server), KubeconfigError):
            raise error
        self.open.append(config.token)
        try:
            yield DirectClient(Registry(config.server))
        finally:
            self.open.remove(config.token)

    def build(
        self, _name: ClusterName, client: ApiClient, earlier: FakeCaches | None, report: Callable[[], None]
    ) -> FakeCaches:
        assert isinstance(client, DirectClient)
        self.built.append(FakeCaches(report, earlier, error=self.errors.get(client.registry.name)))
        return self.built[-1]

    def cluster(self, name: str = A) -> Cluster[FakeCaches]:
        cluster = self.pool.get(name)
        assert cluster is not None
        return cluster


@asynccontextmanager
async def running() -> AsyncIterator[World]:
    world = World()
    async with background() as tasks:
        await tasks.start(world.pool.run)
        yield world


async def test_a_cluster_is_served_until_it_is_forgotten() -> None:
    async with running() as world:
        world.pool.assign(A, OLD)
        await anyio.sleep(1)
        (caches,) = world.built
        assert (world.pool.connected(A), world.pool.why(A)) == (None, "it has not answered yet")
        caches.says(OpenWatch())
        assert (world.pool.connected(A), world.pool.why(A)) == (caches, "")
        assert world.pool.why("b") == 'no cluster "b" is assigned'
        assert world.cluster().server == "https://a"
        world.pool.forget(A)
        await anyio.sleep(1)
        assert world.pool.get(A) is None
        assert not caches.running
        assert world.open == []
        assert world.changed == [A, A]


async def test_what_is_assigned_before_the_pool_runs_is_served_once_it_does() -> None:
    world = World()
    world.pool.assign(A, OLD)
    async with background() as tasks:
        await tasks.start(world.pool.run)
        await anyio.sleep(1)
        assert world.open == ["old"]
    assert world.open == []


async def test_a_configuration_replaced_at_once_leaves_nothing_behind() -> None:
    """Its task has not even begun."""
    async with running() as world:
        world.pool.assign(A, OLD)
        world.pool.assign(A, NEW)
        await anyio.sleep(1)
        assert world.open == ["new"]
        assert len(world.cluster().caches) == 1
        world.pool.forget(A)
        world.pool.assign(A, OLD)
        await anyio.sleep(1)
        assert world.open == ["old"]


async def test_tasks_know_nothing_of_the_log_context_of_whoever_assigned() -> None:
    """A cluster's log lines go on long after that reconcile has ended. Also those after a crash."""
    async with running() as world:
        world.errors["https://a"] = ZeroDivisionError()
        with structlog.contextvars.bound_contextvars(controller="clusters", key="a"):
            world.pool.assign(A, OLD)
            await anyio.sleep(1)
        await anyio.sleep(60)
    assert world.contexts == [{}, {}]


@pytest.mark.parametrize("error", [ZeroDivisionError(), Unreachable("reset")], ids=["a bug", "of the server"])
async def test_an_unexpected_exception_costs_its_cluster_alone_and_a_minute(error: Exception) -> None:
    """Caches are to answer for their server's errors themselves."""
    async with running() as world:
        world.errors["https://elsewhere"] = error
        world.pool.assign(A, OLD)
        with capture_logs() as logged:
            world.pool.assign(B, ELSEWHERE)
            await anyio.sleep(1)
        assert [(entry["event"], entry["cluster"]) for entry in logged] == [("unexpected exception", B), ("lost", B)]
        assert world.cluster(B).connection.error == "internal error: see the log of multikueue"
        assert world.built[0].running
        await anyio.sleep(58)
        assert len(world.built) == 2
        world.errors.clear()
        await anyio.sleep(2)
        assert world.built[2].running
        world.built[2].says(OpenWatch())
        assert world.pool.connected(B) is world.built[2]


async def test_a_client_that_cannot_be_made_waits_for_another_configuration() -> None:
    async with running() as world:
        world.errors["https://a"] = KubeconfigError("InsecureKubeConfig", "no PEM")
        world.pool.assign(A, OLD)
        await anyio.sleep(1)
        assert repr(world.cluster()) == "<Cluster a: lost: no PEM>"
        assert world.pool.why(A) == "no PEM"
        world.errors.clear()
        await anyio.sleep(1_000)
        assert world.built == []
        world.pool.assign(A, NEW)
        await anyio.sleep(1)
        assert world.built[0].running


async def test_a_new_token_takes_over_and_calls_with_the_old_one_may_end() -> None:
    async with running() as world:
        world.pool.assign(A, OLD)
        await anyio.sleep(1)
        world.built[0].says(OpenWatch())
        world.pool.assign(A, NEW)
        await anyio.sleep(1)
        old, new = world.built
        assert new.earlier is old
        assert repr(world.cluster()) == "<Cluster a: connected, tries another configuration>"
        assert world.pool.connected(A) is old
        new.says(OpenWatch())
        await anyio.sleep(1)
        assert world.pool.connected(A) is world.cluster().usable is new
        assert world.replaced == [(old, new)]
        assert (old.running, world.open) == (False, ["old", "new"])
        await anyio.sleep(LINGER)
        assert world.open == ["new"]


async def test_a_refused_configuration_leaves_what_is_known() -> None:
    async with running() as world:
        world.pool.assign(A, OLD)
        await anyio.sleep(1)
        world.built[0].says(OpenWatch())
        world.pool.refuse(A, "BadKubeConfig", "no key")
        world.pool.refuse(A, "BadKubeConfig", "no key")
        await anyio.sleep(1)
        assert world.open == []
        assert world.cluster().known is world.built[0]
        assert world.cluster().usable is None
        assert world.pool.connected(A) is None
        assert world.changed == [A, A]


async def test_of_another_server_nothing_is_known() -> None:
    async with running() as world:
        world.pool.assign(A, OLD)
        await anyio.sleep(1)
        world.built[0].says(OpenWatch())
        world.pool.assign(A, ELSEWHERE)
        await anyio.sleep(1)
        assert (world.cluster().known, world.cluster().server) == (None, "")
        assert world.replaced == [(world.built[0], None)]
        assert world.built[1].earlier is None


async def test_its_repr_counts_the_clusters() -> None:
    async with running() as world:
        assert repr(world.pool) == "<ClusterPool 0 clusters>"
        for name in ("a", "b", "c", "d"):
            world.pool.assign(ClusterName(name), ClusterConfig(f"https://{name}"))
        await anyio.sleep(1)
        for caches in world.built[:2]:
            caches.says(OpenWatch())
        world.built[2].says(Failing(1, "refused", 5.0), complete=False)
        assert repr(world.pool) == "<ClusterPool 4 clusters: 2 connected, 1 connecting, 1 lost>"
