"""The one observer: it watches the manager and all workers directly, and notes when it sees what."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Final

import anyio
import anyio.abc
import attrs

from multikueue.core.model.conditions import is_true
from multikueue.core.model.kinds import ADMISSION_CHECK, JOB, WORKLOAD
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import dig, uid
from multikueue.core.model.workload_names import workload_name
from multikueue.core.model.workloads import CheckState, check_state, has_quota, is_admitted, is_finished
from multikueue.kube import Informer, KubeClient
from multikueue.sandbox.setting_up import CHECK
from tests.benchmarks import moments, objects
from tests.benchmarks.moments import Moments
from tests.controlplane.errors import NotReady

_LOOK: Final = 0.5


@attrs.define(eq=False)
class Observer:
    """Sees what anybody can see of public API objects."""

    manager: KubeClient
    workers: Mapping[str, KubeClient]
    moments: Moments = attrs.field(factory=Moments)
    _here: Informer = attrs.field(init=False)
    """The manager's Workloads."""
    _checks: Informer = attrs.field(init=False)
    _copies: dict[str, Informer] = attrs.field(factory=dict, init=False)
    placed: dict[str, str] = attrs.field(factory=dict, init=False)
    """The worker of each job, as its Workload on the manager says."""
    _jobs: dict[str, str] = attrs.field(factory=dict, init=False)
    """Names of jobs by the names of their Workloads."""
    _changed: anyio.Event = attrs.field(factory=anyio.Event, init=False)

    def __attrs_post_init__(self) -> None:
        self._checks = Informer(self.manager, ADMISSION_CHECK, on_change=self._seen)
        self._here = Informer(self.manager, WORKLOAD, transform=_without_spec, on_change=self._workload)

    async def start(self, tasks: anyio.abc.TaskGroup) -> None:
        """Begin to watch; returns once everything that was there is known."""
        caches = [
            self._checks,
            Informer(self.manager, JOB, transform=_without_spec, on_change=self._job),
            self._here,
        ]
        for name, worker in self.workers.items():
            self._copies[name] = Informer(worker, WORKLOAD, transform=_without_spec, on_change=self._copy)
            caches += [
                self._copies[name],
                Informer(worker, JOB, transform=_without_spec, on_change=self._job_copy),
            ]
        for cache in caches:
            tasks.start_soon(cache.run)
        for cache in caches:
            await cache.wait_synced()

    async def until(self, holds: Callable[[], bool], *, seconds: float, otherwise: str) -> None:
        """Wait until something holds; it is asked again after each event, and now and then.

        Raises:
            NotReady: it does not hold in time.
        """
        with anyio.move_on_after(seconds):
            while not holds():
                with anyio.move_on_after(_LOOK):
                    await self._changed.wait()
            return
        raise NotReady(f"{otherwise} (after {seconds:g} s)")

    def active(self) -> bool:
        """Whether the controller under test says that our AdmissionCheck works."""
        check = self._checks.get(ObjectKey("", CHECK))
        return check is not None and is_true(check, "Active")

    def copies(self, without: frozenset[str] = frozenset()) -> int:
        """How many Workloads lie on workers, but for some of these."""
        return sum(len(cache) for name, cache in self._copies.items() if name not in without)

    @property
    def clients(self) -> dict[str, KubeClient]:
        """Of all clusters."""
        return {"manager": self.manager, **self.workers}

    def there(self, namespace: str) -> int:
        """How many Workloads of a namespace lie on workers."""
        return sum(_in(cache, namespace) for cache in self._copies.values())

    def queued(self, key: ObjectKey) -> bool:
        """Whether a Workload of the manager has quota."""
        workload = self._here.get(key)
        return workload is not None and has_quota(workload)

    def here(self, namespace: str) -> int:
        """How many Workloads of a namespace the manager has."""
        return _in(self._here, namespace)

    def _seen(self, key: ObjectKey, old: Json | None, new: Json | None) -> None:
        del key, old, new
        self._changed.set()
        self._changed = anyio.Event()

    def _note(self, job: str | None, what: str, holds: bool) -> None:
        if job is not None and holds:
            self.moments.note(job, what, time.perf_counter())

    def _job(self, key: ObjectKey, old: Json | None, new: Json | None) -> None:
        if new is not None and key.namespace == objects.NAMESPACE:
            self._jobs[workload_name(JOB.gvk, key.name, uid(new))] = key.name
            self._note(key.name, moments.CREATED, True)
            self._note(key.name, moments.COMPLETE, is_true(new, "Complete"))
        self._seen(key, old, new)

    def _workload(self, key: ObjectKey, old: Json | None, new: Json | None) -> None:
        if new is not None and key.namespace == objects.NAMESPACE:
            owners = new["metadata"].get("ownerReferences") or [{}]
            job = owners[0].get("name")
            self._note(job, moments.QUOTA, has_quota(new))
            self._note(job, moments.ADMITTED_HERE, is_admitted(new))
            if job is not None and (worker := dig(new, "status", "clusterName")):
                self.placed[job] = worker
            self._note(job, moments.READY, check_state(new, CHECK) is CheckState.READY)
            self._note(job, moments.FINISHED, is_finished(new))
        self._seen(key, old, new)

    def _copy(self, key: ObjectKey, old: Json | None, new: Json | None) -> None:
        if new is not None and key.namespace == objects.NAMESPACE:
            job = self._jobs.get(key.name)
            self._note(job, moments.ADMITTED, is_admitted(new))
            self._note(job, moments.FINISHED_THERE, is_finished(new))
        self._seen(key, old, new)

    def _job_copy(self, key: ObjectKey, old: Json | None, new: Json | None) -> None:
        if new is not None and key.namespace == objects.NAMESPACE:
            self._note(key.name, moments.COMPLETE_THERE, is_true(new, "Complete"))
        self._seen(key, old, new)


def _in(cache: Informer, namespace: str) -> int:
    return sum(key.namespace == namespace for key in [*cache.keys()])


def _without_spec(obj: Json) -> Json:
    obj["metadata"].pop("managedFields", None)
    obj.pop("spec", None)
    return obj
