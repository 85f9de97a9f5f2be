"""The daemon under test: started, killed at any await, started again."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from datetime import datetime, timedelta
from enum import Enum
from functools import partial
from typing import Any

import anyio
import anyio.abc
import anyio.lowlevel
import attrs

from multikueue import PlanSettings
from multikueue.adapters import AdapterRegistry, JobKind
from multikueue.core.inventory.settings import PlacementSettings
from multikueue.core.model.names import ClusterName, ObjectKey
from multikueue.errors import ApiError
from multikueue.kube import ClusterConfig
from multikueue.kube.client_options import ClientOptions
from multikueue.kube.http.response_limits import LISTS_UNLIMITED, AnswerLimits
from multikueue.protocols import ApiClient
from multikueue.runtime.caches.unregistered_kinds import RunningKinds, with_running_kinds
from multikueue.runtime.election import Elector
from multikueue.runtime.inventory.service import PlacementOptions
from multikueue.runtime.inventory_part import InventoryOptions
from multikueue.runtime.manager import Manager, ManagerSettings
from multikueue.sandbox.setting_up import CHECK, KUEUE_NAMESPACE
from tests.simulation.electing import LEASE_SETTINGS, LeaseLine, Terms
from tests.simulation.inventory import PROFILES
from tests.simulation.objects import MARKS
from tests.simulation.serving import Net
from tests.simulation.session import Session
from tests.simulation.virtual_time import wall_clock
from tests.simulation.weather import Life
from tests.simulation.world import World

WORKER_LOST_TIMEOUT = timedelta(minutes=3)
LEASE = ObjectKey(KUEUE_NAMESPACE, "multikueue")
FILLED = PlacementOptions(PlacementSettings(), namespace=KUEUE_NAMESPACE)
LIMITS = AnswerLimits(answer_bytes=1 << 20, list_bytes=4 << 20, list_pages=20, list_objects=2_000)
"""Of a worker's answers: as small as a fleet of a few jobs needs them, so that what exceeds them costs little."""
PREEMPTION_TIMEOUT = timedelta(minutes=1)
SETTINGS = ManagerSettings(plan=PlanSettings(mark_key=MARKS.key, worker_lost_timeout=WORKER_LOST_TIMEOUT))


def with_plan(settings: ManagerSettings, **changes: Any) -> ManagerSettings:
    """The settings with other choices of the operator."""
    return attrs.evolve(settings, plan=attrs.evolve(settings.plan, **changes))


class Death(Enum):
    """How a process ends."""

    CRASH = "crash"
    """At once. What was sent may still arrive, nothing is sent any more."""
    CANCEL = "cancel"
    """It loses its lease: everything is cancelled and cleans up after itself."""
    DRAIN = "drain"
    """It is told to stop, and ends what it has begun."""


@attrs.define(eq=False)
class Daemon:
    """Runs one manager after the other, as a Deployment would."""

    world: World
    pause: tuple[float, float] = (0.1, 20.0)
    """Seconds until the next one has the lease."""
    terms: Terms | None = None
    """Of the election, if two daemons share a Lease; None: one runs after the other."""
    net: Net | None = None
    """Servers that are reached by the real HTTP client; None: by sessions without HTTP."""
    settings: ManagerSettings = SETTINGS
    """Of the next process; whoever changes them ends the one that runs."""
    adapters: tuple[JobKind, ...] = ()
    """The kinds in the settings of the next process."""
    absence: float = 0.0
    """Seconds for which the next one does not come, beside the pause; once."""
    restarts: int = 0
    manager: Manager | None = None
    alive_since: float = 0.0
    _absences: list[tuple[float, float]] = attrs.field(factory=list)
    """From when to when none ran."""
    _led_until: datetime | None = None
    """What its Lease says of the last process."""
    absent_until: float = 0.0
    """Until when none comes back."""
    _ended_at: float = 0.0
    """When the last leader ended."""
    _draining: bool = False
    _replicas: dict[anyio.CancelScope, Life] = attrs.field(factory=dict)
    _life: Life = attrs.field(factory=Life)
    _scope: anyio.CancelScope | None = None
    _moments_left: int = 0
    _steps_left: int = 0
    _doomed: anyio.Event = attrs.field(factory=anyio.Event)

    def __attrs_post_init__(self) -> None:
        self.adapters = self.world.population.adapters
        if self.world.inventory is not None:
            self.settings = attrs.evolve(self.settings, profiles=PROFILES)
        if self.world.retention:
            self.settings = with_plan(self.settings, finished_retention=timedelta(seconds=self.world.retention))
        if self.world.needing:
            self.settings = with_plan(self.settings, dependencies={CHECK: frozenset(("ConfigMap",))})
        if self.world.orchestrated:
            self.settings = with_plan(
                self.settings, orchestrated_preemption=True, preemption_timeout=PREEMPTION_TIMEOUT
            )

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Run managers until cancelled."""
        for cluster in self.world.clusters:
            cluster.link.on_moment = self._moment
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._reap)
            self.alive_since = anyio.current_time()
            task_status.started()
            if self.terms is None:
                tasks.start_soon(self._run_alone)
            for number, skew in enumerate(self.world.replica_skews if self.terms is not None else ()):
                tasks.start_soon(self._run_replica, f"replica{number}", skew)

    async def _run_alone(self) -> None:
        while True:
            self.alive_since = anyio.current_time()
            with anyio.CancelScope() as self._scope:
                self._life = Life()
                async with self._home(self._life) as home:
                    self.manager = self._build(home, self._life, await self._kinds(home), self._clock, self._led_until)
                    await self.manager.run()
            self.restarts += 1
            self.alive_since, ended = float("inf"), anyio.current_time()
            self._led_until = self._clock()
            self.absent_until, self.absence = ended + self.absence, 0.0
            await anyio.sleep(self.absent_until - ended + self.world.dice.uniform(*self.pause))
            self._absences.append((ended, anyio.current_time()))

    async def _run_replica(self, name: str, skew: float) -> None:
        """One of two daemons: it waits for the Lease, leads, and comes again when it has ended."""
        home, restarts = self.world.manager.link, 0
        clock = wall_clock(self.world.daemon_skew + skew, self.world.step_of(""))
        while True:
            await anyio.sleep_until(self.absent_until)
            life, restarts = Life(), restarts + 1
            line = LeaseLine(home, home.token, life)
            fraction = random.Random(f"lease/{self.world.seed}/{name}/{restarts}").random
            elector = Elector(line, LEASE, f"{name}-{restarts}", LEASE_SETTINGS, clock, fraction=fraction)
            with anyio.CancelScope() as scope:
                self._replicas[scope] = life
                await elector.run(partial(self._lead, elector, line, scope))
            del self._replicas[scope]
            await anyio.sleep(self.world.dice.uniform(*self.pause))

    async def _lead(self, elector: Elector, line: LeaseLine, scope: anyio.CancelScope) -> None:
        assert self.terms is not None, "two daemons run"
        self.terms.began(elector.identity, line)
        self._life, self._scope = line.life, scope
        self._absences.append((self._ended_at, anyio.current_time()))
        self.alive_since = anyio.current_time()
        self._draining = False
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._until_told, scope)
                async with self._home(line.life) as home:
                    kinds = await self._kinds(home)
                    self.manager = self._build(home, line.life, kinds, elector.clock, elector.led_until)
                    await self.manager.run()
                self._draining = True
                tasks.cancel_scope.cancel()
        finally:
            self.restarts += 1
            self.alive_since, self._ended_at = float("inf"), anyio.current_time()
            self.terms.ended(elector.identity)

    async def _until_told(self, scope: anyio.CancelScope) -> None:
        try:
            await anyio.sleep_forever()
        finally:
            assert self.terms is not None, "two daemons run"
            self.terms.told_to_stop(lost=not (scope.cancel_called or self._draining))

    def absent_since(self, time: float) -> float:
        """For how many seconds since then none ran, as far as that is noted: it takes a process a moment to note it."""
        ends = [*(begin for begin, _ in self._absences[1:]), float("inf")]
        noted = [(begin, back) for (begin, back), end in zip(self._absences, ends, strict=False) if end - back >= 1.0]
        return sum(max(0.0, back - max(begin, time)) for begin, back in noted)

    async def kill(self, death: Death) -> None:
        """End the process that runs now, wherever it is."""
        doomed = self._life
        if death is Death.DRAIN and self.manager is not None:
            self.manager.drain()
            await anyio.sleep(30.0)  # what a Pod is given
        if doomed is self._life:
            self._end(death)

    def kill_now(self) -> None:
        """Crash."""
        self._end(Death.CRASH)

    def kill_at(self, moments: int, steps: int) -> None:
        """Crash at a certain await.

        Args:
            moments: how many more times a call is about to take effect or has just done so.
            steps: how many more turns of the event loop follow.
        """
        self._moments_left, self._steps_left = moments, steps

    def _end(self, death: Death) -> None:
        self._life.alive = death is not Death.CRASH
        if self._scope is not None:
            self._scope.cancel()
        if self.terms is not None and self.absence:  # nobody is there for a while, the other one neither
            self.absent_until, self.absence = anyio.current_time() + self.absence, 0.0
            for scope in self._replicas:
                scope.cancel()

    def _moment(self) -> None:
        self._moments_left -= 1
        if self._moments_left == 0:
            self._doomed.set()

    async def _reap(self) -> None:
        while True:
            await self._doomed.wait()
            self._doomed = anyio.Event()
            for _ in range(self._steps_left):
                await anyio.lowlevel.checkpoint()
            self._end(Death.CRASH)

    def _home(self, life: Life) -> AbstractAsyncContextManager[ApiClient]:
        """A client of the manager's API, for one process."""
        link = self.world.manager.link
        if self.net is None:
            session: Session = Session(link, link.token, life)
            return session
        config = ClusterConfig(f"https://{link.name}.example.com:6443", token=link.token)
        return self.net.client("", config, link.name, life, ClientOptions(limits=LISTS_UNLIMITED))

    async def _kinds(self, home: ApiClient) -> RunningKinds:
        """The kinds of the settings, and those that still run: as `multikueued` finds them before it starts."""
        chosen = AdapterRegistry(self.adapters)
        while True:
            try:
                return await with_running_kinds(chosen, home)
            except ApiError:
                await anyio.sleep(1.0)

    @property
    def _clock(self) -> Callable[[], datetime]:
        return wall_clock(self.world.daemon_skew, self.world.step_of(""))

    def _build(
        self,
        home: ApiClient,
        life: Life,
        kinds: RunningKinds,
        clock: Callable[[], datetime],
        led_until: datetime | None,
    ) -> Manager:
        manager = Manager(
            home,
            kinds.adapters,
            self.settings,
            partial(self._connect, life),
            dispatcher=self.world.dispatcher,
            clock=clock,
            led_until=led_until,
            before=kinds.before,
            fraction=random.Random(f"daemon/{self.world.seed}/{self.restarts}").random,
            parts=[InventoryOptions(FILLED).part] if self.world.inventory is not None else [],
        )
        workers = manager.workers
        workers.settings = attrs.evolve(workers.settings, unused_after=self.world.unused_after)
        return manager

    def _connect(self, life: Life, name: ClusterName, config: ClusterConfig) -> AbstractAsyncContextManager[ApiClient]:
        host = config.server.removeprefix("https://").partition(".")[0]
        if self.net is not None:
            return self.net.client(name, config, host, life, ClientOptions(limits=LIMITS))
        session: Session = Session(self.world.workers[host].link, config.token, life)
        return session
