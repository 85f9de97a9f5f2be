"""The fleet: clusters with their Kueues and job runners, and the links to them."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, cast

import anyio
import anyio.abc
import attrs

from multikueue.core.dispatchers.dispatcher import AllAtOnce, Dispatcher
from multikueue.core.model.kinds import (
    CLUSTER_QUEUE,
    MULTIKUEUE_CONFIG,
    SECRET,
    WORKLOAD_PRIORITY_CLASS,
)
from multikueue.core.model.labels import NAMESPACES_ANNOTATION
from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.runtime.workers.kind_watch import UNUSED_AFTER
from multikueue.sandbox.apiserver import DirectClient, Faults, StatusError
from multikueue.sandbox.crds import load_crds
from multikueue.sandbox.jobs import JobRunner, RunnerOptions
from multikueue.sandbox.kinds import define
from multikueue.sandbox.kueue import SmallKueue
from multikueue.sandbox.setting_up import (
    CHECK,
    CLUSTER_QUEUE_NAME,
    KUEUE_NAMESPACE,
    cluster,
    connect_workers,
    set_up_queues,
)
from tests.simulation.own import Apart, OwnClient, Part
from tests.simulation.population import JOBS, POPULATIONS, PRIORITIES, Population
from tests.simulation.renaming import SAID, THERE, MovingClient, RenamingClient, say
from tests.simulation.virtual_time import wall_clock
from tests.simulation.weather import Link
from tests.simulation.webhooks import GuardedRegistry

if TYPE_CHECKING:
    from tests.simulation.choosing import Choosing
    from tests.simulation.inventory import Inventory

DAEMON: Final = "multikueue"
"""Who the daemon is for the API servers, but over HTTP."""
CANARY = "canary-credential"
"""Part of every token: found in a log, an event or a status, it is a leak."""

ORCHESTRATED: Final = 0.5
"""Share of the runs with priorities in which one worker at a time may preempt."""
UNUSUAL: Final = 0.5
"""Share of the runs in which elections, HTTP and hostile workers are drawn; the others stay what they were before."""
NEEDING: Final = 0.5
"""Share of those in which the pods of Jobs mount ConfigMaps."""
RARELY_WATCHED: Final = 0.5
"""Share of unusual runs in which the watch of a kind ends soon after the last job of it."""
RENAMED: Final = 0.5
"""Share of those without HTTP in which some workers call the namespace otherwise."""
REMAPPED: Final = 0.6
"""Share of those with Jobs of a fixed size in which that changes."""
ENDING: Final = 0.5
"""Share of the runs in which pods take time to end, and more of how runs end is drawn; the others stay as they were."""
OWN: Final = 0.5
"""Share of those with Jobs alone, and nobody who looks after the workers, in which one worker is the manager itself."""
BLOCKING: Final = 0.85
"""Share of these in which pods keep their job until they have ended."""
OVER_HTTP: Final = 0.25
"""Share of those in which the daemon uses its real HTTP client."""
ELECTIONS: Final = 0.5
"""Share of those in which two daemons elect a leader."""


@attrs.define(eq=False)
class SimCluster:
    """One cluster: its API, and the daemon's link to it."""

    name: str
    registry: GuardedRegistry
    link: Link
    skew: float
    names: set[str] = attrs.field(factory=set)
    """The names of other MultiKueueClusters that lead, or led, to it."""
    answered: set[str] = attrs.field(factory=set)
    """The UIDs of what the daemon has created there, and has got the answer."""

    def serves(self, resource: Resource) -> bool:
        """Whether its API server has that kind."""
        try:
            self.registry.type_of(resource)
        except StatusError:
            return False
        return True

    @property
    def api(self) -> DirectClient:
        """Straight to the API, as the cluster's own components and its users go."""
        return DirectClient(self.registry, user="user")


class OwnCluster(SimCluster):
    """The manager as a worker."""

    @property
    def api(self) -> DirectClient:
        """See `SimCluster`."""
        return OwnClient(cast("Part", self.registry).whole, user="user")


def kubeconfig(name: str, token: str) -> Json:
    """A kubeconfig that names a link."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "clusters": [{"name": name, "cluster": {"server": f"https://{name}.example.com:6443"}}],
        "users": [{"name": "multikueue", "user": {"token": token}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": "multikueue"}}],
    }


@attrs.define(eq=False)
class World:
    """Everything outside of the daemon."""

    seed: int
    quota: int
    """CPUs of each worker."""
    manager: SimCluster
    workers: dict[str, SimCluster]
    runner: RunnerOptions
    population: Population = JOBS
    """What users submit."""
    orchestrated: bool = False
    """Whether one worker at a time may preempt for a Workload."""
    dispatcher: Dispatcher = attrs.field(factory=AllAtOnce)
    """Whom the daemon offers jobs to."""
    daemon_skew: float = 0.0
    """How far the daemon's clock is ahead of the manager's."""
    replica_skews: tuple[float, ...] = ()
    """Two daemons elect a leader, with clocks ahead of `daemon_skew` by so much; empty: there is one daemon."""
    ending: bool = False
    """Whether pods take time to end, and what may happen meanwhile is drawn."""
    retention: float = 0.0
    """Seconds for which the daemon keeps the copies of what has finished."""
    runners: dict[str, JobRunner] = attrs.field(factory=dict)
    """The job runners of the clusters that have one, by cluster."""
    away: dict[str, anyio.Event] = attrs.field(factory=dict)
    """The Kueues that are away, by cluster: until when."""
    kueue_faults: Faults = attrs.field(factory=Faults)
    """What happens on the way from Kueues to their API servers."""
    unusual: bool = False
    unused_after: float = UNUSED_AFTER
    """Seconds after which a kind is not watched on a worker that has nothing of it."""
    """Whether hostile neighbours, elections and more are drawn."""
    over_http: bool = False
    """Whether the daemon uses its real HTTP client."""
    renamed: frozenset[str] = frozenset()
    """Workers that call the namespace of all jobs otherwise."""
    needing: bool = False
    """Whether the pods of Jobs mount ConfigMaps, which the daemon copies."""
    orphaned: set[str] = attrs.field(factory=set)
    """UIDs of what was left on workers by somebody who has deleted its owner without it."""
    images: dict[str, tuple[str, float]] = attrs.field(factory=dict)
    """What these have called it last, and since when; empty: nobody can read it."""
    remapped: bool = False
    """Whether that changes."""
    bare: frozenset[str] = frozenset()
    """Clusters without a Kueue and a job runner: whoever uses the world plays them."""
    own: str = ""
    """The worker that is the manager itself; empty: none is."""
    pool_checked: bool = False
    """Whether somebody has put our check on the queue for copies there: then nothing runs there."""
    own_said: bool = True
    """Whether it says that namespaces have other names there: else it must be refused."""
    inventory: Inventory | None = None
    """The hub that looks after the workers and the config; None: they are configured by hand."""
    choosing: Choosing | None = None
    """What the scored dispatcher chooses by; None: the daemon has another one."""
    gone: set[str] = attrs.field(factory=set)
    """Workers whose MultiKueueCluster was deleted for good."""
    steps: dict[str, float] = attrs.field(factory=dict)
    """By how many seconds somebody has set the clock of a cluster, or of the daemon's host, whose name is empty."""
    dice: random.Random = attrs.field(init=False)
    _kueues: dict[str, anyio.CancelScope] = attrs.field(factory=dict, init=False)

    def __attrs_post_init__(self) -> None:
        self.dice = random.Random(f"world/{self.seed}")

    @classmethod
    def build(
        cls, seed: int, skews: Sequence[float], quota: int, runner: RunnerOptions, population: Population = JOBS
    ) -> World:
        """A fleet of so many workers as there are skews: how far each one's clock is ahead of the manager's."""
        steps: dict[str, float] = {}

        def cluster(name: str, skew: float) -> SimCluster:
            clock = wall_clock(skew, lambda: steps.get(name, 0.0))
            registry = GuardedRegistry(name, clock=clock, seed=seed, bookmark_interval=60.0)
            define(registry, population.all_kinds, load_crds())
            dice = random.Random(f"link/{seed}/{name}")
            link = Link(name, DirectClient(registry, user=DAEMON), dice, f"{CANARY}-{name}-0")
            registry.link = link
            return SimCluster(name, registry, link, skew)

        workers = {f"worker{number}": cluster(f"worker{number}", skew) for number, skew in enumerate(skews, 1)}
        return cls(seed, quota, cluster("manager", 0.0), workers, runner, population, steps=steps)

    @classmethod
    def draw(cls, seed: int) -> World:
        """A fleet of two to five workers, with clocks that disagree."""
        dice = random.Random(f"fleet/{seed}")
        skews = [dice.choice((0.0, 0.0, -90.0, 3.0, 45.0)) for _ in range(dice.choice((2, 2, 2, 3, 3, 3, 4, 5)))]
        runner = RunnerOptions(mean=20.0, minimum=1.0, maximum=120.0, failure_rate=0.1)
        mix = random.Random(f"mix/{seed}")
        population = mix.choice(POPULATIONS)
        quota = dice.choice((2, 3, 4)) + population.serving
        world = cls.build(seed, skews, quota, runner, population)
        world.orchestrated = population.preempting and mix.random() < ORCHESTRATED
        world.daemon_skew = dice.choice((0.0, 0.0, 0.0, -1.5, 2.5))
        unusual = random.Random(f"unusual/{seed}")
        world.unusual = unusual.random() < UNUSUAL
        if world.unusual and unusual.random() < ELECTIONS:
            world.replica_skews = (0.0, unusual.choice((0.0, 0.0, -2.0, 3.0)))
        if (ends := random.Random(f"ends/{seed}")).random() < ENDING:
            world.end_slowly(ends)
        world.over_http = world.unusual and unusual.random() < OVER_HTTP
        world.needing = world.unusual and random.Random(f"needing/{seed}").random() < NEEDING
        if world.unusual and (watching := random.Random(f"watching/{seed}")).random() < RARELY_WATCHED:
            world.unused_after = watching.choice((0.5, 5.0, 30.0))
        if world.unusual and not world.over_http and (naming := random.Random(f"naming/{seed}")).random() < RENAMED:
            drawn = random.Random(f"remapping/{seed}").random() < REMAPPED
            world.remapped = drawn and not (population.kinds or population.elastic)
            world.rename(name for name in world.workers if naming.random() < 0.7)
        return world

    def end_slowly(self, dice: random.Random) -> None:
        """Have pods go on after SIGTERM, and the daemon keep what has finished for a while, perhaps."""
        self.ending = True
        self.runner = attrs.evolve(
            self.runner, trap=dice.choice((5.0, 25.0, 25.0, 300.0)), blocking=dice.random() < BLOCKING
        )
        self.retention = dice.choice((0.0, 0.0, 30.0, 200.0))

    def place_of(self, name: str | None) -> str | None:
        """The worker that a MultiKueueCluster leads to, by its first name; other names as they are."""
        return next((worker.name for worker in self.workers.values() if name in worker.names), name)

    def give_to(self, inventory: Inventory | None) -> None:
        """Have somebody look after the workers: who makes them says nothing of names there."""
        self.inventory = inventory
        if inventory is not None:
            self.rename(())
        elif self.unusual and not self.over_http and self.population == JOBS:
            dice = random.Random(f"own/{self.seed}")
            if dice.random() < OWN:
                self.become_a_worker(dice)

    def become_a_worker(self, dice: random.Random) -> None:
        """Have the last worker be the manager itself."""
        self.own = max(self.workers)
        fine, unchecked = dice.random() < 0.7, dice.random() < 0.6
        self.own_said = fine or len(self.workers) < 3  # somebody must be left to run jobs
        self.pool_checked = self.own_said and not unchecked and len(self.workers) > 2
        worker, whole = self.workers[self.own], self.manager.registry
        worker.link.client = DirectClient(whole, user=DAEMON)
        self.workers[self.own] = OwnCluster(self.own, cast("GuardedRegistry", Part(whole)), worker.link, 0.0)
        self.renamed = self.renamed | {self.own} if self.own_said else self.renamed - {self.own}
        self.bare = self.bare | {self.own}
        whole.cluster.listeners = Apart(whole.cluster.listeners)

    def choose_by(self, choosing: Choosing | None) -> None:
        """Have the daemon use the scored dispatcher, if there is something to choose by."""
        self.choosing = choosing
        if choosing is not None:
            self.dispatcher = choosing.dispatcher

    def rename(self, workers: Iterable[str]) -> None:
        """Have these workers call the namespace of all jobs otherwise."""
        self.renamed = frozenset(workers)
        for name, worker in self.workers.items():
            renaming = MovingClient if self.remapped else RenamingClient
            client = renaming if name in self.renamed else DirectClient
            worker.link.client = client(worker.registry, user=DAEMON)

    @property
    def unfit(self) -> frozenset[str]:
        """Workers on which nothing runs, as is documented: the manager, without names of its own or by our check."""
        return frozenset((self.own,) if self.own and (self.pool_checked or not self.own_said) else ())

    def step_of(self, name: str) -> Callable[[], float]:
        """How far the clock of a cluster, or of the daemon's host, is off now because somebody has set it."""
        return lambda: self.steps.get(name, 0.0)

    @property
    def clusters(self) -> list[SimCluster]:
        """The manager and the workers."""
        return [self.manager, *self.workers.values()]

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Set the clusters up and run their components until cancelled."""
        await self._set_up()
        async with anyio.create_task_group() as tasks:
            for cluster in self.clusters:
                cluster.link.late = tasks
                clock = wall_clock(cluster.skew, self.step_of(cluster.name))
                tasks.start_soon(cluster.registry.run_collector)
                if cluster.name in self.bare:
                    continue
                kinds = self.population.all_kinds
                client = DirectClient(cluster.registry, user="runner")
                runner = JobRunner(client, seed=self.seed, clock=clock, options=self.runner, kinds=kinds, events=False)
                self.runners[cluster.name] = runner
                await tasks.start(self._run_kueue, cluster)
                await tasks.start(runner.run)
            if self.inventory is not None:
                await tasks.start(self.inventory.run)
            if self.choosing is not None:
                tasks.start_soon(self.choosing.run, self)
            task_status.started()
            try:
                await anyio.sleep_forever()
            finally:  # what is cancelled after this sends nothing late
                for cluster in self.clusters:
                    cluster.link.late = None

    async def _run_kueue(
        self, cluster: SimCluster, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED
    ) -> None:
        """Run a cluster's Kueue, one after the other."""
        clock, kinds = wall_clock(cluster.skew, self.step_of(cluster.name)), self.population.all_kinds
        client = DirectClient(cluster.registry, user="kueue", faults=self.kueue_faults)
        while True:
            kueue = SmallKueue(client, clock=clock, kinds=kinds, events=False)
            with anyio.CancelScope() as self._kueues[cluster.name]:
                await kueue.run(task_status=task_status)
            task_status = anyio.TASK_STATUS_IGNORED
            await self.away[cluster.name].wait()
            del self.away[cluster.name]

    def stop_kueue(self, worker: str) -> anyio.Event:
        """Have a worker's Kueue be away until this event."""
        back = self.away[worker] = anyio.Event()
        self._kueues[worker].cancel()
        return back

    def cluster_of(self, worker: str) -> Json:
        """The MultiKueueCluster of a worker."""
        if self.inventory is not None:
            return self.inventory.cluster_of(worker)
        made = cluster(worker)
        if worker in self.renamed:
            made = {**made, "metadata": {**made["metadata"], "annotations": SAID}}
        return made if self.choosing is None else self.choosing.cluster_of(worker, made)

    async def configure(self, clusters: list[str]) -> None:
        """Change which workers the MultiKueueConfig lists, or which ones the Placement is to select."""
        if self.inventory is not None:
            await self.inventory.list(clusters)
            return
        patch = {"spec": {"clusters": clusters}}
        await self.manager.api.merge_patch(MULTIKUEUE_CONFIG, ObjectKey("", CHECK), patch)

    async def write_kubeconfig(self, worker: str, text: str | None = None) -> None:
        """Change the Secret with a worker's kubeconfig, or its token; without a text to the one that works."""
        if self.inventory is not None:
            await self.inventory.write_token(worker, self.workers[worker].link.token if text is None else "broken")
            return
        text = json.dumps(kubeconfig(worker, self.workers[worker].link.token)) if text is None else text
        data = {"kubeconfig": base64.b64encode(text.encode()).decode()}
        key = ObjectKey(KUEUE_NAMESPACE, f"{worker}-secret")
        await self.manager.api.merge_patch(SECRET, key, {"data": data})

    async def _set_up(self) -> None:
        quota = {"cpu": str(self.quota), "memory": "64Gi"}
        total: Mapping[str, str] = {"cpu": str(self.quota * len(self.workers)), "memory": "1024Gi"}
        for worker in self.workers.values():
            await set_up_queues(worker.api, quota)
        await set_up_queues(self.manager.api, total, [CHECK])
        if self.population.preempting:
            for cluster in self.clusters:
                await self._set_up_priorities(cluster)
        if self.inventory is not None:
            await self.inventory.set_up()
            return
        kubeconfigs = {name: kubeconfig(name, worker.link.token) for name, worker in self.workers.items()}
        await connect_workers(self.manager.api, kubeconfigs)
        for name in sorted(self.renamed - {self.own}):
            await set_up_queues(self.workers[name].api, quota, (), THERE)
            await say(self.manager.api, name, SAID[NAMESPACES_ANNOTATION])
        if self.choosing is not None:
            await self.choosing.set_up(self)
        if self.own and self.own_said:
            await say(self.manager.api, self.own, SAID[NAMESPACES_ANNOTATION])
        if self.pool_checked:
            checked = {"spec": {"admissionChecksStrategy": {"admissionChecks": [{"name": CHECK}]}}}
            await self.workers[self.own].api.merge_patch(CLUSTER_QUEUE, ObjectKey("", CLUSTER_QUEUE_NAME), checked)

    async def _set_up_priorities(self, cluster: SimCluster) -> None:
        gvk = WORKLOAD_PRIORITY_CLASS.gvk
        for name, value in PRIORITIES.items():
            made = {"apiVersion": gvk.api_version, "kind": gvk.kind, "metadata": {"name": name}, "value": value}
            await cluster.api.create(WORKLOAD_PRIORITY_CLASS, made)
        patch = {"spec": {"preemption": {"withinClusterQueue": "LowerPriority"}}}
        await cluster.api.merge_patch(CLUSTER_QUEUE, ObjectKey("", CLUSTER_QUEUE_NAME), patch)
