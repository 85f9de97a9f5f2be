"""What happens in a run besides the daemon's work: jobs come, users interfere, things break and are mended."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from typing import Final

import anyio
import anyio.abc
import attrs

from multikueue.core.conditions import is_true
from multikueue.core.kinds import JOB, MULTIKUEUE_CLUSTER, WORKLOAD
from multikueue.core.labels import ORIGIN_LABEL
from multikueue.core.names import Json, ObjectKey
from multikueue.core.objects import labels_of
from multikueue.errors import ApiError
from multikueue.sandbox.kueue import evict
from multikueue.sandbox.setting_up import LOCAL_QUEUE_NAME, cluster
from tests.simulation.daemon import Daemon
from tests.simulation.promises import Promises, objects
from tests.simulation.virtual_time import wall_clock
from tests.simulation.world import CANARY, SimCluster, World, kubeconfig

TROUBLE_ENDS: Final = 420.0
"""Virtual seconds after which nothing breaks any more."""


def draw_job(dice: random.Random, number: int) -> Json:
    """A Job as a user writes it; the smallest worker has room for it."""
    cpu, pods = dice.choice((("1", 1), ("1", 1), ("1", 2), ("2", 1), ("500m", 2)))
    request = {"cpu": cpu, "memory": "64Mi"}
    container = {"name": "main", "image": "busybox", "resources": {"requests": request}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": f"job-{number}",
            "namespace": "default",
            "labels": {"kueue.x-k8s.io/queue-name": LOCAL_QUEUE_NAME},
        },
        "spec": {
            "suspend": True,
            "parallelism": pods,
            "completions": pods,
            "managedBy": "kueue.x-k8s.io/multikueue",
            "template": {"spec": {"restartPolicy": "Never", "containers": [container]}},
        },
    }


@attrs.define(eq=False)
class Script:
    """Draws what happens and lets it happen."""

    world: World
    daemon: Daemon
    promises: Promises
    dice: random.Random
    left_out: frozenset[int] = frozenset()
    """Events that do not happen, by number: this is how a failing run is made smaller."""
    events: int = 0
    """How many were drawn."""
    _tokens: int = 0

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Play the whole script; at its end everything is mended."""
        task_status.started()
        async with anyio.create_task_group() as tasks:
            for number in range(1, self.dice.randint(3, 9) + 1):
                job, seconds = draw_job(self.dice, number), self.dice.uniform(0, 240)
                if self._happens():
                    tasks.start_soon(self._submit, job, seconds)
            for _ in range(self.dice.randint(2, 9)):
                trouble, seconds = self.dice.choice(self._troubles), self.dice.uniform(0, TROUBLE_ENDS - 60)
                if self._happens():
                    tasks.start_soon(self._later, trouble, seconds)
        await anyio.sleep_until(max(TROUBLE_ENDS, anyio.current_time()))
        await self._mend()

    @property
    def _troubles(self) -> list[Callable[[], Awaitable[None]]]:
        return [
            self._partition,
            self._partition,
            self._silence,
            self._bad_weather,
            self._bad_weather,
            self._cut,
            self._forget_history,
            self._kill_daemon,
            self._kill_daemon,
            self._evict_on_worker,
            self._evict_on_manager,
            self._deactivate,
            self._delete_job,
            self._delete_copy,
            self._reconfigure,
            self._remove_cluster,
            self._rotate_token,
            self._break_kubeconfig,
            self._mutate_copies,
        ]

    async def _later(self, what: Callable[[], Awaitable[None]], seconds: float) -> None:
        await anyio.sleep(seconds)
        self._note(what.__name__.strip("_"))
        try:
            await what()
        except ApiError as error:  # what a user does may fail as well: the object may be gone
            self._note(f"  {error}")

    def _happens(self) -> bool:
        self.events += 1
        return self.events - 1 not in self.left_out

    async def _submit(self, job: Json, seconds: float) -> None:
        await anyio.sleep(seconds)
        await self.world.manager.api.create(JOB, job)
        self._note(f"{job['metadata']['name']} is submitted")

    def _worker(self) -> SimCluster:
        return self.world.workers[self.dice.choice(sorted(self.world.workers))]

    async def _partition(self) -> None:
        link = self.dice.choice([*self.world.workers.values(), self.world.manager]).link
        self._note(f"  {link.name}")
        link.change(down=True)
        await anyio.sleep(self.dice.choice((2, 20, 60, 250)))
        link.change(down=False)

    async def _silence(self) -> None:
        link = self._worker().link
        self._note(f"  {link.name}")
        link.change(silent=True)
        await anyio.sleep(self.dice.choice((20, 120, 250)))
        link.change(silent=False)
        link.cut()

    async def _bad_weather(self) -> None:
        for cluster_ in self.world.clusters:
            cluster_.link.change(
                latency=self.dice.choice((0.002, 0.05, 0.5)),
                lost_requests=self.dice.choice((0.0, 0.05, 0.3)),
                lost_replies=self.dice.choice((0.0, 0.1, 0.3)),
                refused=self.dice.choice((0.0, 0.1)),
                expired_watches=self.dice.choice((0.0, 0.2)),
            )
        await anyio.sleep(self.dice.uniform(10, 120))
        self._fine_weather()

    def _fine_weather(self) -> None:
        for cluster_ in self.world.clusters:
            cluster_.link.change(latency=0.002, lost_requests=0.0, lost_replies=0.0, refused=0.0, expired_watches=0.0)

    async def _cut(self) -> None:
        for cluster_ in self.world.clusters:
            cluster_.link.cut()

    async def _forget_history(self) -> None:
        for cluster_ in self.world.clusters:
            cluster_.registry.compact()
            cluster_.link.cut()

    async def _kill_daemon(self) -> None:
        self.daemon.kill()

    async def _evict_on_worker(self) -> None:
        worker = self._worker()
        await self._evict(worker, _is_ours)

    async def _evict_on_manager(self) -> None:
        await self._evict(self.world.manager, lambda workload: True)

    async def _evict(self, where: SimCluster, wanted: Callable[[Json], bool]) -> None:
        admitted = sorted(
            (
                ObjectKey.of(workload)
                for workload in objects(where, WORKLOAD)
                if wanted(workload) and is_true(workload, "QuotaReserved") and not is_true(workload, "Finished")
            ),
        )
        if admitted:
            key = self.dice.choice(admitted)
            self._note(f"  {key} on {where.name}")
            await evict(where.api, key, clock=wall_clock(where.skew))

    async def _deactivate(self) -> None:
        keys = sorted(ObjectKey.of(workload) for workload in objects(self.world.manager, WORKLOAD))
        if not keys:
            return
        key = self.dice.choice(keys)
        self._note(f"  {key}")
        await self.world.manager.api.merge_patch(WORKLOAD, key, {"spec": {"active": False}})
        await anyio.sleep(self.dice.uniform(1, 60))
        await self.world.manager.api.merge_patch(WORKLOAD, key, {"spec": {"active": True}})

    async def _delete_job(self) -> None:
        keys = sorted(ObjectKey.of(job) for job in objects(self.world.manager, JOB))
        if keys:
            key = self.dice.choice(keys)
            self._note(f"  {key}")
            await self.world.manager.api.delete(JOB, key, propagation="Background")

    async def _delete_copy(self) -> None:
        worker, resource = self._worker(), self.dice.choice((JOB, WORKLOAD))
        keys = sorted(ObjectKey.of(copy) for copy in objects(worker, resource) if _is_ours(copy))
        if keys:
            key = self.dice.choice(keys)
            self._note(f"  {resource} {key} on {worker.name}")
            await worker.api.delete(resource, key, propagation="Background")

    async def _reconfigure(self) -> None:
        names = sorted(self.world.workers)
        kept = self.dice.sample(names, self.dice.randint(1, len(names) - 1))
        self._note(f"  only {kept}")
        await self.world.configure(kept)
        await anyio.sleep(self.dice.uniform(5, 120))
        await self.world.configure(names)

    async def _remove_cluster(self) -> None:
        worker = self._worker().name
        self._note(f"  {worker}")
        await self.world.manager.api.delete(MULTIKUEUE_CLUSTER, ObjectKey("", worker))
        await anyio.sleep(self.dice.uniform(5, 60))
        await self.world.manager.api.create(MULTIKUEUE_CLUSTER, cluster(worker))

    async def _rotate_token(self) -> None:
        worker = self._worker()
        self._tokens += 1
        worker.link.token = f"{CANARY}-{worker.name}-{self._tokens}"
        worker.link.cut()
        await anyio.sleep(self.dice.choice((0.0, 30.0)))
        await self.world.write_kubeconfig(worker.name, kubeconfig(worker.name, worker.link.token))

    async def _break_kubeconfig(self) -> None:
        worker = self._worker()
        self._note(f"  {worker.name}")
        await self.world.write_kubeconfig(worker.name, None)
        await anyio.sleep(self.dice.uniform(5, 90))
        await self.world.write_kubeconfig(worker.name, kubeconfig(worker.name, worker.link.token))

    async def _mutate_copies(self) -> None:
        self._worker().link.change(mutates_copies=True)

    async def _mend(self) -> None:
        self._note("everything is mended")
        self._fine_weather()
        for cluster_ in self.world.clusters:
            cluster_.link.change(down=False, silent=False)
        await self.world.configure(sorted(self.world.workers))
        for name, worker in self.world.workers.items():
            await self.world.write_kubeconfig(name, kubeconfig(name, worker.link.token))

    def _note(self, text: str) -> None:
        self.promises.history.append(f"{anyio.current_time():9.3f} {text}")


def _is_ours(copy: Json) -> bool:
    return labels_of(copy).get(ORIGIN_LABEL) == "multikueue"
