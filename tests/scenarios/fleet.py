"""What a scenario can do to a fleet and see of it, wherever its clusters are."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from base64 import b64encode
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, suppress
from datetime import datetime
from typing import Protocol

import anyio
import attrs

from multikueue.core.model.conditions import condition, new_condition, updated
from multikueue.core.model.kinds import (
    ADMISSION_CHECK,
    EVENT,
    JOB,
    MULTIKUEUE_CLUSTER,
    MULTIKUEUE_CONFIG,
    SECRET,
    WORKLOAD,
)
from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.core.model.objects import dig
from multikueue.core.model.workloads import check, cluster_name, nominated
from multikueue.errors import NotFound
from multikueue.runtime.manager import ManagerSettings
from multikueue.sandbox.setting_up import CHECK, KUEUE_NAMESPACE
from multikueue.testing import job
from tests.scenarios.plane import Plane
from tests.simulation.daemon import SETTINGS

Change = Callable[[Json], object]
NONE = ObjectKey("default", "")


@attrs.define(eq=False)
class Fleet(ABC):
    """One manager, some workers, and the daemon between them."""

    manager: Plane
    workers: Mapping[str, Plane]
    key: ObjectKey = NONE
    """The Workload of the job that was submitted last."""
    seen: list[str] = attrs.field(factory=list)
    """Every message our check has had on a Workload, in order; some last for no time at all."""
    _changed: anyio.Event = attrs.field(factory=anyio.Event)

    def noticed(self, resource: Resource, new: Json | None) -> None:
        """An object changed on some cluster."""
        if resource == WORKLOAD and new is not None:
            self._remember((check(new, CHECK) or {}).get("message", ""))
        self._changed.set()

    @abstractmethod
    def now(self) -> datetime:
        """The clusters' wall clock."""

    @abstractmethod
    async def rest(self, seconds: float = 10.0) -> None:
        """Let time pass: what has not happened by then does not happen."""

    @abstractmethod
    def kubeconfig(self, number: int) -> Json:
        """The kubeconfig of a worker that works."""

    @abstractmethod
    def kill_daemon(self) -> None:
        """Break the daemon off wherever it is; another one starts in a moment."""

    def worker(self, number: int) -> Plane:
        """A worker, counted from 1."""
        return self.workers[f"worker{number}"]

    @property
    def numbers(self) -> range:
        """The workers' numbers."""
        return range(1, len(self.workers) + 1)

    async def write_kubeconfig(self, number: int, text: str | None = None) -> None:
        """Change the Secret with a worker's kubeconfig; without a text to the one that works."""
        text = json.dumps(self.kubeconfig(number)) if text is None else text
        key = ObjectKey(KUEUE_NAMESPACE, f"worker{number}-secret")
        await self.manager.api.merge_patch(SECRET, key, {"data": {"kubeconfig": b64encode(text.encode()).decode()}})

    async def submit(
        self, name: str = "job", change: Change = lambda job: None, *, quota: bool = True, to: int = 0
    ) -> None:
        """Create a Job on the manager and wait until it has a Workload, with quota as a rule; then `assign` it."""
        made = job(name, cpu="1")
        change(made)
        await self.manager.api.create(JOB, made)
        await self.until(lambda: self._workload_of(name) is not None)
        workload = self._workload_of(name)
        assert workload is not None
        self.key = ObjectKey.of(workload)
        if quota:
            await self.until(lambda: self.says("QuotaReserved"))
        if to:
            await self.assign(to)

    async def until(self, holds: Callable[[], object], seconds: float = 30.0) -> None:
        """Wait until something about objects holds; fail after `seconds`, telling what the Workload says instead."""
        with anyio.move_on_after(seconds):
            while not holds():
                self._changed = anyio.Event()
                await self._changed.wait()
            return
        copies = {number: self.copy(number) is not None for number in self.numbers}
        raise AssertionError(
            f"not within {seconds:g} s; status: {dig(self.workload or {}, 'status')}; copies: {copies}"
        )

    @property
    def workload(self) -> Json | None:
        """The manager's Workload."""
        return self.manager.find(WORKLOAD, self.key)

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
        return self.worker(number).find(WORKLOAD, self.key)

    def job(self, number: int = 0, name: str = "job") -> Json | None:
        """The job on a worker, or the manager's."""
        return (self.worker(number) if number else self.manager).find(JOB, ObjectKey("default", name))

    def events(self) -> list[tuple[str, str]]:
        """What users were told about the Workload: type and note, in order."""
        events = sorted(self.manager.all(EVENT), key=lambda event: str(event.get("eventTime")))
        ours = (event for event in events if event.get("reason") == "MultiKueue")
        return [(event["type"], event["note"]) for event in ours if event["regarding"]["name"] == self.key.name]

    def writes(self, number: int, verb: str) -> int:
        """How many requests of a verb the daemon made on a worker, for Workloads and jobs."""
        requests = self.worker(number).link.requests
        return sum(count for what, count in requests.items() if what.startswith(f"{verb} "))

    async def set_status(self, number: int, status: Json) -> None:
        """Change the status of a copy, as the worker's Kueue would."""
        kueue = self.worker(number).user("kueue")
        await kueue.merge_patch(WORKLOAD, self.key, {"status": status}, subresource="status")

    async def say(self, number: int, *conditions: str, reason: str = "Said", message: str = "said") -> None:
        """Set conditions of a copy, as the worker's Kueue would; `!Admitted` sets it to False."""
        copy = await self.worker(number).api.get(WORKLOAD, self.key)
        listed = dig(copy, "status", "conditions") or []
        for entry in conditions:
            kind, status, now = entry.lstrip("!"), not entry.startswith("!"), self.now()
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
        await (
            self.worker(number)
            .user("runner")
            .merge_patch(JOB, ObjectKey("default", name), {"status": status}, subresource="status")
        )

    async def end(
        self, number: int, status: Json, *said: str, reason: str = "Succeeded", message: str = "said"
    ) -> None:
        """Set the last status of a job copy, then what its Kueue says of that, as a rule `Finished`.

        The daemon may have removed both copies between the two.
        """
        await self.set_job_status(number, status)
        with suppress(NotFound):
            await self.say(number, *(said or ("Finished",)), reason=reason, message=message)

    async def change_config(self, *workers: int) -> None:
        """List these workers in the MultiKueueConfig."""
        patch = {"spec": {"clusters": [f"worker{number}" for number in workers]}}
        await self.manager.api.merge_patch(MULTIKUEUE_CONFIG, ObjectKey("", CHECK), patch)

    def active(self, number: int) -> tuple[str, str, str]:
        """Status, reason and message of the Active condition of a MultiKueueCluster."""
        return _active(self.manager.find(MULTIKUEUE_CLUSTER, ObjectKey("", f"worker{number}")))

    def check_active(self) -> tuple[str, str, str]:
        """Status, reason and message of the Active condition of the AdmissionCheck."""
        return _active(self.manager.find(ADMISSION_CHECK, ObjectKey("", CHECK)))

    async def connected(self) -> None:
        """Wait until every worker is, and the check says so."""
        await self.until(lambda: self.check_active()[1] == "Active")
        await self.until(lambda: all(self.active(number)[0] == "True" for number in self.numbers))

    async def delete_config(self) -> None:
        """Delete the MultiKueueConfig."""
        await self.manager.api.delete(MULTIKUEUE_CONFIG, ObjectKey("", CHECK))

    def _remember(self, message: str) -> None:
        if message and message not in self.seen[-1:]:
            self.seen.append(message)

    def _workload_of(self, name: str) -> Json | None:
        for workload in self.manager.all(WORKLOAD):
            if any(owner["name"] == name for owner in workload["metadata"].get("ownerReferences") or ()):
                return workload
        return None


class Scenario(Protocol):
    """Makes a fleet whose manager has a small Kueue, connected and at rest; the test plays the workers' Kueue."""

    def __call__(self, workers: int = 2, *, settings: ManagerSettings = SETTINGS) -> AbstractAsyncContextManager[Fleet]:
        """Return it, to enter.

        Args:
            workers: how many; real ones are always two.
            settings: the daemon's, where it is in memory.
        """


def _active(obj: Json | None) -> tuple[str, str, str]:
    active = condition(obj or {}, "Active") or {}
    return str(active.get("status", "")), str(active.get("reason", "")), str(active.get("message", ""))
