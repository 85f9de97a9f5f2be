"""Runs a demo: submits jobs to sandbox clusters, follows them, and waits for their end; what `--break` does."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from typing import Final

import anyio
import anyio.abc
import attrs
import orjson

from multikueue import Informer, Json, KubeClient, NotFound, ObjectKey, parse_worker_kubeconfig
from multikueue.core.model.conditions import condition
from multikueue.core.model.kinds import MULTIKUEUE_CLUSTER, WORKLOAD
from multikueue.core.model.labels import ORIGIN_LABEL
from multikueue.core.model.quantities import MILLI, thousandths
from multikueue.errors import SettingsError
from multikueue.kube import ClusterConfig
from multikueue.sandbox import RunnerOptions, Sandbox, SandboxCluster, SandboxKind, SandboxOptions
from multikueue.sandbox.apiserver.faults import Match, Reset
from multikueued.demo.files import Files
from multikueued.demo.jobs import Submission
from multikueued.demo.tally import WORKLOAD_KIND, JobRecord, Tally
from multikueued.run.daemon import work
from multikueued.settings.config import Settings

SETTLE_TIMEOUT: Final = 10.0
"""Seconds until the copies are gone after the last job has ended; it takes less than one."""
SERVING_TIME: Final = 2.0
"""Seconds for which a job that does not end by itself runs."""


@attrs.define(eq=False)
class Demo:
    """A demo: its clusters, and what has been seen of its jobs."""

    sandbox: Sandbox
    tally: Tally = attrs.field(factory=Tally)
    started: float = attrs.field(factory=anyio.current_time)
    _changed: anyio.Event = attrs.field(factory=anyio.Event)

    @classmethod
    def prepare(
        cls, kinds: Iterable[SandboxKind], workers: int, *, seed: int, room: Mapping[str, str], port: int = 0
    ) -> Demo:
        """A demo that has not started; see `multikueue demo --help` for the arguments; `room`: what each worker has."""
        runner = RunnerOptions(mean=2.0, minimum=0.8, maximum=5.0)
        options = SandboxOptions(quota=room, runner=runner, port=port)
        return cls(Sandbox(workers, seed=seed, options=options, kinds=kinds))

    @property
    def cpus(self) -> float:
        """Of each worker."""
        return thousandths(self.sandbox.options.quota["cpu"]) / MILLI

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return anyio.current_time() - self.started

    @property
    def dispatcher(self) -> ClusterConfig:
        """How the daemon reaches the manager."""
        return config_of(self.sandbox.manager.server.kubeconfig("multikueue"))

    @asynccontextmanager
    async def dispatched(self, daemon: Settings) -> AsyncIterator[anyio.abc.TaskGroup]:
        """While the body runs, the daemon dispatches the jobs, and they are followed; what it starts ends with it."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(work, daemon, self.dispatcher)
            tasks.start_soon(self.follow_workers)
            for cluster in self.sandbox.clusters:
                tasks.start_soon(self.follow, cluster)
            tasks.start_soon(self.retire)
            yield tasks
            tasks.cancel_scope.cancel()

    def lay_out(self, files: Files) -> None:
        """Make what jobs of a user's files are in, on all clusters, and what stands beside them, on the manager."""
        for cluster in self.sandbox.clusters:
            objects = (*files.everywhere, *(files.beside if cluster is self.sandbox.manager else ()))
            for obj in objects:
                cluster.server.registry.create_object(obj)

    async def submit(self, jobs: Iterable[Submission], pace: float = 0.0) -> None:
        """Create the jobs on the manager, as a user would; with a pause of so many seconds after each."""
        async with self.user() as client:
            for job in jobs:
                self.tally.submitted(job, self.elapsed)
                for obj in job.objects:
                    await client.create(job.kind.resource, obj)
                await anyio.sleep(pace)

    async def retire(self) -> None:
        """Delete jobs that do not end by themselves, `SERVING_TIME` after they run, on a worker in reach; until
        cancelled."""
        async with self.user() as client, anyio.create_task_group() as tasks:
            while True:
                changed = self._changed
                for story in self.tally.stories.values():
                    if story.ready and story.serves and not story.retired:
                        story.retired = True
                        tasks.start_soon(self._delete, client, story)
                await changed.wait()

    async def _delete(self, client: KubeClient, story: JobRecord) -> None:
        await anyio.sleep(SERVING_TIME)
        while self._is_out_of_reach(story):
            await self.changed()
            if not self._is_out_of_reach(story):
                await anyio.sleep(SERVING_TIME)  # where it has moved, it is seen to run, too
        for name in list(story.objects):
            key = ObjectKey(story.key.namespace, name)
            with suppress(NotFound):
                await client.delete(story.kind.resource, key, propagation="Background")

    def _is_out_of_reach(self, story: JobRecord) -> bool:
        """Whether no worker has a job, or one that is lost."""
        return not story.clusters or bool(story.clusters & self.tally.lost.keys())

    def user(self) -> KubeClient:
        """A client of the manager, as a user has it."""
        return KubeClient(config_of(self.sandbox.manager.kubeconfig), name="manager")

    async def follow(self, cluster: SandboxCluster) -> None:
        """Follow the jobs and Workloads of a cluster until cancelled, as a user with its kubeconfig can."""
        worker = "" if cluster is self.sandbox.manager else cluster.name
        client = KubeClient(config_of(cluster.kubeconfig), name=cluster.name)
        async with client, anyio.create_task_group() as tasks:
            for kind in (None, *self.sandbox.kinds):
                resource, saw = kind.resource if kind else WORKLOAD, functools.partial(self._saw, worker, kind)
                informer = Informer(client, resource, label_selector=ORIGIN_LABEL if worker else "", on_change=saw)
                tasks.start_soon(informer.run)

    async def follow_workers(self) -> None:
        """Follow which workers the manager can reach, until cancelled."""
        async with self.user() as client:
            await Informer(client, MULTIKUEUE_CLUSTER, on_change=self._saw_worker).run()

    def _saw_worker(self, key: ObjectKey, _: Json | None, new: Json | None) -> None:
        active = condition(new or {}, "Active")
        if active is not None:
            self.tally.saw_worker(key.name, active["status"] == "True", self.elapsed)
            self.noticed()

    async def reached(self) -> None:
        """Wait until the manager reaches every worker."""
        while len(self.tally.reached) < len(self.sandbox.workers):
            await self._changed.wait()

    async def wait(self) -> None:
        """Wait until every job has ended, and then until no copy is left on a worker, for `SETTLE_TIMEOUT`."""
        while not self.tally.all_ended:
            await self._changed.wait()
        with anyio.move_on_after(SETTLE_TIMEOUT):
            while self.tally.leftovers:
                await self._changed.wait()

    def _saw(self, worker: str, kind: SandboxKind | None, key: ObjectKey, _: Json | None, new: Json | None) -> None:
        """An object was added, changed or deleted; `worker` is empty for the manager, `kind` is None for a Workload."""
        tally = self.tally
        if worker:
            tally.saw_copy(worker, kind.name if kind else WORKLOAD_KIND, key, new)
        if kind is not None and not worker:
            tally.saw_job(kind, new, key.name, self.elapsed)
        elif kind is not None and new is not None:
            tally.saw_running(worker, kind, new)
        elif new is not None and not worker:
            tally.saw_workload(new, self.elapsed)
        elif new is not None:
            tally.saw_offer(worker, new)
        self.noticed()

    def noticed(self) -> None:
        """Something has changed: whoever waits looks again."""
        self._changed.set()
        self._changed = anyio.Event()

    async def changed(self) -> None:
        """Wait for the next event."""
        await self._changed.wait()


def config_of(kubeconfig: Json) -> ClusterConfig:
    """The configuration of a client."""
    return parse_worker_kubeconfig(orjson.dumps(kubeconfig))


LOST_AFTER: Final = timedelta(seconds=2)
"""`workerLostTimeout` of the demo: nobody wants to watch for a quarter of an hour."""
BREAKS_AFTER: Final = 0.5
"""Seconds for which the worker has jobs before it is taken away."""
BACK_AFTER: Final = 2.0
"""Seconds after the last of its jobs has moved until it is back."""
_DISPATCHER = Match(user="multikueue")


def check_broken(worker: str, workers: int) -> None:
    """Refuse a worker that does not exist, or has nobody to take its jobs.

    Raises:
        SettingsError: it cannot be broken.
    """
    names = [f"worker{number}" for number in range(1, workers + 1)]
    if worker not in names:
        raise SettingsError(f"--break: there is no {worker}: the workers are {', '.join(names)}")
    if workers == 1:
        raise SettingsError("--break: its jobs could go nowhere: raise --workers")


def with_short_patience(settings: Settings) -> Settings:
    """The daemon's settings for such a demo."""
    return attrs.evolve(settings, worker_lost_timeout=LOST_AFTER)


async def break_worker(demo: Demo, worker: str) -> None:
    """Cut the way from the manager to a worker while jobs run there; what runs there does not notice.

    It is back once the manager has given its jobs to others, or they have ended.
    """
    while not any(demo.tally.running_on(worker)):
        await demo.changed()
    await anyio.sleep(BREAKS_AFTER)
    there = list(demo.tally.running_on(worker))
    faults = demo.sandbox.workers[worker].server.faults
    fault = faults.add(Reset(), on=_DISPATCHER)
    faults.connections.drop()
    demo.tally.news.append((demo.elapsed, f"the way to {worker} is cut"))
    while any(story.ended is None and story.clusters <= {worker} for story in there):
        await demo.changed()  # evicted, it waits for quota: back now, its worker would tell how it has ended there
    await anyio.sleep(BACK_AFTER)
    faults.remove(fault)
    demo.tally.news.append((demo.elapsed, f"the way to {worker} is mended"))
