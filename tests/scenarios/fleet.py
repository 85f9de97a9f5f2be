"""What a scenario can do to a fleet and see of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import attrs

from multikueue.core.conditions import condition, new_condition, updated
from multikueue.core.kinds import ADMISSION_CHECK, EVENT, JOB, MULTIKUEUE_CLUSTER, MULTIKUEUE_CONFIG, WORKLOAD
from multikueue.core.names import Json, ObjectKey
from multikueue.core.objects import dig
from multikueue.core.workloads import check, cluster_name, nominated
from multikueue.runtime.manager import ManagerSettings
from multikueue.sandbox.apiserver import DirectClient
from multikueue.sandbox.apiserver.resources import ResourceType
from multikueue.sandbox.jobs import RunnerOptions
from multikueue.sandbox.setting_up import CHECK, LOCAL_QUEUE_NAME
from tests.simulation.daemon import SETTINGS, Daemon
from tests.simulation.objects import find, objects
from tests.simulation.virtual_time import wall_clock
from tests.simulation.world import SimCluster, World

Change = Callable[[Json], object]
NONE = ObjectKey("default", "")


@attrs.define(eq=False)
class Fleet:
    """One manager, some workers, and the daemon between them."""

    world: World
    daemon: Daemon
    key: ObjectKey = NONE
    """The Workload of the job that was submitted last."""
    seen: list[str] = attrs.field(factory=list)
    """Every message our check has had on a Workload, in order; some last for no time at all."""
    _changed: anyio.Event = attrs.field(factory=anyio.Event)

    def listen(self) -> None:
        """Notice every change of an object, for `until`."""

        def changed(row: ResourceType, old: Json | None, new: Json | None) -> None:
            del old
            if row.plural == WORKLOAD.plural and new is not None:
                self._remember((check(new, CHECK) or {}).get("message", ""))
            self._changed.set()

        for cluster in self.world.clusters:
            cluster.registry.cluster.listeners.append(changed)

    @property
    def manager(self) -> SimCluster:
        """The manager cluster."""
        return self.world.manager

    def worker(self, number: int) -> SimCluster:
        """A worker, counted from 1."""
        return self.world.workers[f"worker{number}"]

    async def submit(self, name: str = "job", change: Change = lambda job: None, *, quota: bool = True) -> None:
        """Create a Job on the manager and wait until it has a Workload, with quota as a rule."""
        job = _job(name)
        change(job)
        await self.manager.api.create(JOB, job)
        await self.until(lambda: self._workload_of(name) is not None)
        found = self._workload_of(name)
        assert found is not None
        self.key = ObjectKey.of(found)
        if quota:
            await self.until(lambda: self.says("QuotaReserved"))

    async def until(self, holds: Callable[[], object], seconds: float = 30.0) -> None:
        """Wait until something about objects holds; fail after `seconds`, telling what the Workload says instead."""
        with anyio.move_on_after(seconds):
            while not holds():
                self._changed = anyio.Event()
                await self._changed.wait()
            return
        copies = {name: self.copy(number) is not None for number, name in enumerate(self.world.workers, 1)}
        raise AssertionError(
            f"not within {seconds:g} s; status: {dig(self.workload or {}, 'status')}; copies: {copies}"
        )

    async def rest(self, seconds: float = 10.0) -> None:
        """Let time pass: what has not happened by then does not happen."""
        await anyio.sleep(seconds)

    @property
    def workload(self) -> Json | None:
        """The manager's Workload."""
        return find(self.manager, WORKLOAD, self.key)

    @property
    def assigned(self) -> str | None:
        """`status.clusterName`."""
        return cluster_name(self.workload or {})

    @property
    def nominated(self) -> tuple[str, ...]:
        """`status.nominatedClusterNames`."""
        return nominated(self.workload or {})

    @property
    def check(self) -> tuple[str, str]:
        """State and message of our check on the Workload."""
        entry = check(self.workload or {}, CHECK) or {}
        return str(entry.get("state", "")), str(entry.get("message", ""))

    def says(self, kind: str) -> bool:
        """Whether a condition of the manager's Workload is true."""
        return (condition(self.workload or {}, kind) or {}).get("status") == "True"

    def copy(self, number: int) -> Json | None:
        """The Workload copy on a worker."""
        return find(self.worker(number), WORKLOAD, self.key)

    def job(self, number: int = 0, name: str = "job") -> Json | None:
        """The job on a worker, or the manager's."""
        return find(self.worker(number) if number else self.manager, JOB, ObjectKey("default", name))

    def events(self) -> list[tuple[str, str]]:
        """What users were told about Workloads: type and note, in order."""
        told = sorted(objects(self.manager, EVENT), key=lambda event: str(event["eventTime"]))
        return [(event["type"], event["note"]) for event in told if event.get("reason") == "MultiKueue"]

    def writes(self, number: int, verb: str) -> int:
        """How many requests of a verb the daemon made on a worker, for Workloads and jobs."""
        requests = self.worker(number).link.requests
        return sum(count for what, count in requests.items() if what.startswith(f"{verb} "))

    async def set_status(self, number: int, status: Json) -> None:
        """Change the status of a copy, as the worker's Kueue would."""
        await DirectClient(self.worker(number).registry, user="kueue").merge_patch(
            WORKLOAD, self.key, {"status": status}, subresource="status"
        )

    async def say(self, number: int, *told: str, reason: str = "Said", message: str = "said") -> None:
        """Set conditions of a copy, as the worker's Kueue would; `!Admitted` sets it to False."""
        copy = self.copy(number)
        assert copy is not None, "there is no copy"
        listed = dig(copy, "status", "conditions") or []
        for entry in told:
            kind, status, now = entry.lstrip("!"), not entry.startswith("!"), wall_clock()()
            generation = dig(copy, "metadata", "generation")
            listed = updated(listed, new_condition(kind, status, reason, message, now=now, generation=generation))
        await self.set_status(number, {"conditions": listed})

    async def admit(self, number: int) -> None:
        """Have a bare worker admit its copy."""
        await self.until(lambda: self.copy(number) is not None)
        await self.say(number, "QuotaReserved", "Admitted")

    async def assign(self, number: int) -> None:
        """Have a bare worker admit the Workload, and wait until it has it."""
        await self.admit(number)
        await self.until(lambda: self.check[0] == "Ready" and self.assigned == f"worker{number}")

    async def set_job_status(self, number: int, status: Json, name: str = "job") -> None:
        """Change the status of a job copy, as the worker's job controller would."""
        client = DirectClient(self.worker(number).registry, user="runner")
        await client.merge_patch(JOB, ObjectKey("default", name), {"status": status}, subresource="status")

    async def change_config(self, *workers: int) -> None:
        """List these workers in the MultiKueueConfig."""
        await self.world.configure([f"worker{number}" for number in workers])

    def active(self, number: int) -> tuple[str, str, str]:
        """Status, reason and message of the Active condition of a MultiKueueCluster."""
        return _told(find(self.manager, MULTIKUEUE_CLUSTER, ObjectKey("", f"worker{number}")))

    def check_active(self) -> tuple[str, str, str]:
        """Status, reason and message of the Active condition of the AdmissionCheck."""
        return _told(find(self.manager, ADMISSION_CHECK, ObjectKey("", CHECK)))

    async def connected(self) -> None:
        """Wait until every worker is, and the check says so."""
        numbers = range(1, len(self.world.workers) + 1)
        await self.until(lambda: self.check_active()[1] == "Active")
        await self.until(lambda: all(self.active(number)[0] == "True" for number in numbers))

    async def delete_config(self) -> None:
        """Delete the MultiKueueConfig."""
        await self.manager.api.delete(MULTIKUEUE_CONFIG, ObjectKey("", CHECK))

    def _remember(self, message: str) -> None:
        if message and message not in self.seen[-1:]:
            self.seen.append(message)

    def _workload_of(self, name: str) -> Json | None:
        for workload in objects(self.manager, WORKLOAD):
            if any(owner["name"] == name for owner in workload["metadata"].get("ownerReferences") or ()):
                return workload
        return None


@asynccontextmanager
async def scenario(
    workers: int = 2, *, bare: bool = True, quota: int = 4, settings: ManagerSettings = SETTINGS
) -> AsyncIterator[Fleet]:
    """A fleet whose manager has a small Kueue, connected and at rest.

    Args:
        workers: how many.
        bare: whether the test plays the workers' Kueue; else they have small ones, and jobs run for 10 seconds.
        quota: CPUs of each worker.
        settings: the daemon's.
    """
    runner = RunnerOptions(mean=10.0, minimum=10.0, maximum=10.0)
    world = World.build(0, [0.0] * workers, quota, runner)
    world.bare = frozenset(world.workers) if bare else frozenset()
    daemon = Daemon(world, pause=(0.1, 0.1), settings=settings)
    async with anyio.create_task_group() as tasks:
        await tasks.start(world.run)
        await tasks.start(daemon.run)
        fleet = Fleet(world, daemon)
        fleet.listen()
        await fleet.connected()
        yield fleet
        tasks.cancel_scope.cancel()


def _job(name: str) -> dict[str, Any]:
    container = {"name": "main", "image": "busybox", "resources": {"requests": {"cpu": "1", "memory": "64Mi"}}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name,
            "namespace": "default",
            "labels": {"kueue.x-k8s.io/queue-name": LOCAL_QUEUE_NAME},
        },
        "spec": {
            "suspend": True,
            "managedBy": "kueue.x-k8s.io/multikueue",
            "template": {"spec": {"restartPolicy": "Never", "containers": [container]}},
        },
    }


def _told(obj: Json | None) -> tuple[str, str, str]:
    active = condition(obj or {}, "Active") or {}
    return str(active.get("status", "")), str(active.get("reason", "")), str(active.get("message", ""))
