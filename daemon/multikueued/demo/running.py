"""One demo from start to end: clusters up, daemon on, jobs in, watch them, clusters down."""

from __future__ import annotations

import random
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Final

import anyio
import attrs
import orjson

from multikueue.core.kinds import JOB, WORKLOAD
from multikueue.core.labels import ORIGIN_LABEL
from multikueue.core.names import Json, ObjectKey, Resource
from multikueue.kube import ClusterConfig, KubeClient, ObjectCache, parse_worker_kubeconfig
from multikueue.sandbox import RunnerOptions, Sandbox, SandboxCluster, SandboxOptions
from multikueued.demo.jobs import drawn_jobs
from multikueued.demo.tally import Tally

SETTLE_TIMEOUT: Final = 10.0
"""Seconds the copies may take to vanish after the last job has ended; they take well under one."""
CPUS: Final = 4
"""CPUs of each worker: a few jobs fit, the rest queue, so that there is something to see."""


@attrs.frozen
class DemoOptions:
    """What is asked for on the command line."""

    workers: int = 2
    jobs: int = 20
    own_jobs: tuple[Json, ...] = ()
    """The user's Jobs, instead of drawn ones."""
    seed: int = 0
    port: int = 0
    """The manager's; 0 is any free one."""
    timeout: float = 300.0
    """Seconds after which the demo gives up."""


@attrs.define(eq=False)
class Demo:
    """A running demo, as the view and the report see it."""

    sandbox: Sandbox
    tally: Tally = attrs.field(factory=Tally)
    started: float = 0.0
    _changed: anyio.Event = attrs.field(factory=anyio.Event)

    @classmethod
    def prepare(cls, options: DemoOptions) -> Demo:
        """A demo that has not started."""
        runner = RunnerOptions(mean=2.0, minimum=0.8, maximum=5.0)
        sandbox_options = SandboxOptions(quota={"cpu": str(CPUS), "memory": "16Gi"}, runner=runner, port=options.port)
        return cls(Sandbox(options.workers, seed=options.seed, options=sandbox_options))

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return anyio.current_time() - self.started

    @property
    def quota(self) -> Mapping[str, float]:
        """CPUs of each worker."""
        return dict.fromkeys(self.sandbox.workers, float(CPUS))

    def used(self) -> dict[str, float]:
        """CPUs that running jobs have asked for, by worker."""
        return {
            worker: sum(self.tally.cpus.get(story.key, 0.0) for story in self.tally.running_on(worker))
            for worker in self.sandbox.workers
        }

    def dispatcher_config(self) -> ClusterConfig:
        """How the dispatcher reaches the manager."""
        return parse_worker_kubeconfig(orjson.dumps(self.sandbox.manager.server.kubeconfig("multikueue")))

    async def submit(self, options: DemoOptions) -> None:
        """Create the Jobs on the manager, as a user would."""
        jobs = list(options.own_jobs) or drawn_jobs(options.jobs, random.Random(options.seed))
        config = parse_worker_kubeconfig(orjson.dumps(self.sandbox.manager.kubeconfig))
        async with KubeClient(config, name="manager") as client:
            for job in jobs:
                self.tally.submitted(job, self.elapsed)
                await client.create(JOB, job)

    async def observe(self) -> None:
        """Follow manager and workers until cancelled, as a user with a kubeconfig for each could."""
        async with AsyncExitStack() as stack:
            tasks = await stack.enter_async_context(anyio.create_task_group())
            for cluster in self.sandbox.clusters:
                config = parse_worker_kubeconfig(orjson.dumps(cluster.kubeconfig))
                client = await stack.enter_async_context(KubeClient(config, name=cluster.name))
                for resource in (WORKLOAD, JOB):
                    tasks.start_soon(self._cache(client, cluster, resource).run)
            await anyio.sleep_forever()

    async def wait_ended(self) -> None:
        """Wait until every job has ended."""
        while not self.tally.all_ended:
            await self._changed.wait()

    async def wait_clean(self) -> None:
        """Wait until no copy is left on a worker, for a limited time."""
        with anyio.move_on_after(SETTLE_TIMEOUT):
            while self.tally.leftovers:
                await self._changed.wait()

    def _cache(self, client: KubeClient, cluster: SandboxCluster, resource: Resource) -> ObjectCache:
        on_manager = cluster is self.sandbox.manager

        def changed(key: ObjectKey, old: Json | None, new: Json | None) -> None:
            del old
            if not on_manager:
                self.tally.saw_copy(cluster.name, resource.plural, key, new)
            elif new is not None and resource == WORKLOAD:
                self.tally.saw_workload(new, self.elapsed)
            elif new is not None:
                self.tally.saw_job(new, self.elapsed)
            self._changed.set()
            self._changed = anyio.Event()

        selector = "" if on_manager else ORIGIN_LABEL
        return ObjectCache(client, resource, label_selector=selector, on_change=changed)
