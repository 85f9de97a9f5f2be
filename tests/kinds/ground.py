"""What a journey does and sees, whatever servers it goes over."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Final, TypeVar

import anyio
import anyio.abc
import attrs
import orjson

from multikueue.core.model.conditions import is_true
from multikueue.core.model.kinds import CLUSTER_QUEUE, EVENT, JOB, LOCAL_QUEUE, MULTIKUEUE_CLUSTER, WORKLOAD
from multikueue.core.model.labels import HOLDING_GATE, NAMESPACES_ANNOTATION, ORIGIN_LABEL, QUEUES_ANNOTATION
from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.core.model.objects import clone, dig, labels_of, uid, with_value
from multikueue.core.model.workloads import cluster_name
from multikueue.errors import Conflict, NotFound
from multikueue.kube import Informer
from multikueue.protocols import ApiClient
from multikueue.sandbox.jobs import DURATION_ANNOTATION, OUTCOME_ANNOTATION, TRAP_ANNOTATION, JobRunner
from multikueue.sandbox.kinds import SandboxKind
from multikueue.sandbox.kinds.injecting import Injection
from multikueue.sandbox.kinds.pods import POD_RESOURCE
from multikueue.sandbox.kinds.sets import MemberPods
from multikueue.sandbox.kueue.performing import typed
from multikueue.sandbox.kueue.scheduling.podsets import CLUSTER_QUEUE_LABEL, LOCAL_QUEUE_LABEL, PODSET_LABEL
from multikueue.sandbox.setting_up import (
    CHECK,
    CLUSTER_QUEUE_NAME,
    LOCAL_QUEUE_NAME,
    connect_workers,
    local_queue,
    set_up_queues,
)
from tests.kinds.runs import Runs

NAMESPACE = "default"
TEMPLATE: Json = {
    "metadata": {"labels": {"team": "a"}, "annotations": {"note": "mine"}},
    "spec": {
        "restartPolicy": "Never",
        "containers": [
            {
                "name": "main",
                "image": "registry.k8s.io/pause:3.10",
                "resources": {"requests": {"cpu": "100m", "memory": "16Mi"}},
            }
        ],
    },
}
_OF_ITS_CLUSTER: Final = frozenset({"observedGeneration", "podIP", "serviceIP", "uncountedTerminatedPods"})
_SECONDS = 60.0  # what must happen takes a tenth of that

T = TypeVar("T")


@attrs.define(eq=False)
class Cluster:
    """One cluster, and everything it ever showed."""

    name: str
    client: ApiClient
    now: dict[tuple[Resource, str], Json] = attrs.field(factory=dict, init=False)
    """What there is, by kind and name."""
    first: dict[tuple[Resource, str], Json] = attrs.field(factory=dict, init=False)
    """The first version of each."""
    last: dict[tuple[Resource, str], Json] = attrs.field(factory=dict, init=False)
    """The newest version of each, gone or not."""
    uids: dict[tuple[Resource, str], set[str]] = attrs.field(factory=dict, init=False)
    status_log: dict[tuple[Resource, str], list[tuple[float, Json]]] = attrs.field(factory=dict, init=False)
    """Every status of each, with when it was seen, on the loop's clock."""

    def observe(self, resource: Resource, key: ObjectKey, old: Json | None, new: Json | None) -> None:
        """Take note of a change."""
        place = (resource, key.name)
        if new is None:
            self.now.pop(place, None)
            return
        self.now[place] = new
        if resource == EVENT:
            return  # they are thousands, and each is written once
        if old is None:
            self.first[place] = new
        self.last[place] = new
        self.uids.setdefault(place, set()).add(uid(new))
        self.status_log.setdefault(place, []).append((anyio.current_time(), new.get("status") or {}))

    def showed(self, resource: Resource, name: str, status: Json) -> bool:
        """Whether an object's status was this, at the end at least."""
        there: Json = self.last[resource, name].get("status") or {}
        return bool(of_any_cluster(there) == of_any_cluster(status))

    def get(self, resource: Resource, name: str) -> Json | None:
        """An object, if it is there."""
        return self.now.get((resource, name))


def of_any_cluster(status: Any) -> Any:
    """A status without what tells of the cluster that it was written on, and the manager does not show: generations,
    addresses, and the Job controller's own bookkeeping.
    """
    if isinstance(status, dict):
        return {field: of_any_cluster(value) for field, value in status.items() if field not in _OF_ITS_CLUSTER}
    return list(map(of_any_cluster, status)) if isinstance(status, list) else status


NAMESPACE_THERE = "mk-default"
QUEUE_THERE = "their-queue"


@attrs.define(eq=False)
class Ground:
    """A manager, workers, and the dispatcher between them, all running."""

    manager: Cluster
    workers: Mapping[str, Cluster]
    held: bool = attrs.field(default=False, kw_only=True)
    """Whether new pods carry our scheduling gate, as if the webhook had put it there."""
    seconds: float = attrs.field(default=_SECONDS, kw_only=True)
    """How long to wait for what must happen."""
    pace: float = attrs.field(default=0.0, kw_only=True)
    """Seconds between two looks, where looking at each change would be most of the work."""
    renamed: Collection[str] = attrs.field(default=(), kw_only=True)
    """Workers that have other names for the namespace and the queue."""
    late: float = attrs.field(default=0.0, kw_only=True)
    """Seconds by which what is seen of two kinds of objects may differ."""
    runners: dict[str, JobRunner] = attrs.field(factory=dict, init=False)
    """What runs the jobs of each worker."""
    labels: dict[str, str] = attrs.field(factory=dict, init=False)
    """Of everything that is submitted."""
    runs: Runs = attrs.field(factory=Runs, init=False)
    """What workers ever had of jobs and pods."""
    _changed: anyio.Event = attrs.field(factory=anyio.Event, init=False)

    @property
    def clusters(self) -> list[Cluster]:
        """The manager first."""
        return [self.manager, *self.workers.values()]

    def names_on(self, worker: str) -> tuple[str, str]:
        """How a worker calls the namespace and the queue."""
        return (NAMESPACE_THERE, QUEUE_THERE) if worker in self.renamed else (NAMESPACE, LOCAL_QUEUE_NAME)

    async def set_up(self, of_manager: Mapping[str, str], of_worker: Mapping[str, str], kubeconfigs: Json) -> None:
        """Create the queues with these quotas, connect the workers, and say which names those have."""
        await set_up_queues(self.manager.client, of_manager, [CHECK])
        for worker in self.workers.values():
            await set_up_queues(worker.client, of_worker, (), *self.names_on(worker.name))
        await connect_workers(self.manager.client, kubeconfigs)
        said = {
            NAMESPACES_ANNOTATION: orjson.dumps({"default": NAMESPACE_THERE}).decode(),
            QUEUES_ANNOTATION: orjson.dumps({LOCAL_QUEUE_NAME: QUEUE_THERE}).decode(),
        }
        for name in self.renamed:
            key = ObjectKey("", name)
            await self.manager.client.merge_patch(MULTIKUEUE_CLUSTER, key, {"metadata": {"annotations": said}})

    async def follow(
        self, resources: list[Resource], *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED
    ) -> None:
        """Watch these kinds, pods, queues and Workloads until cancelled; started once all there is has been seen."""
        followed = dict.fromkeys((WORKLOAD, CLUSTER_QUEUE, POD_RESOURCE, JOB, *resources))
        async with anyio.create_task_group() as tasks:
            caches = [
                Informer(cluster.client, resource, on_change=partial(self._observe, cluster, resource))
                for cluster in self.clusters
                for resource in (*followed, *([EVENT] if cluster is self.manager else []))
            ]
            for cache in caches:
                tasks.start_soon(cache.run)
            for cache in caches:
                await cache.wait_synced()
            task_status.started()

    async def until(self, look: Callable[[], T | None], otherwise: Callable[[], object]) -> T:
        """Look after every change until there is something to see.

        Raises:
            AssertionError: there was nothing in time; `otherwise` says what there was instead.
        """
        with anyio.move_on_after(self.seconds):
            while True:
                changed = self._changed
                value = look()
                if value:
                    return value
                await changed.wait()
                await anyio.sleep(self.pace)
        raise AssertionError(f"not within {self.seconds:g} s: {otherwise()}")

    async def submit(
        self,
        kind: SandboxKind,
        name: str,
        *,
        queue: str = LOCAL_QUEUE_NAME,
        duration: str = "1s",
        fails: bool = False,
        annotations: Mapping[str, str] | None = None,
        spec: Json | None = None,
        started: bool = False,
    ) -> list[Json]:
        """Create a job on the manager, as a user would; return the objects it is made of.

        Args:
            kind: of the job.
            name: of the job; each journey has its own.
            queue: the LocalQueue.
            duration: how long it runs.
            fails: whether it fails.
            annotations: more of them; how long it traps SIGTERM goes to its pods, too.
            spec: further fields of the spec.
            started: whether it has what Kueue puts into a job when it starts it.
        """
        noted = {DURATION_ANNOTATION: duration, OUTCOME_ANNOTATION: "fail" if fails else "complete"}
        noted |= annotations or {}
        made = []
        for job in kind.examples(name, _template(noted), queue=queue):
            job["metadata"]["labels"] |= self.labels
            job["metadata"]["annotations"] = {**(job["metadata"].get("annotations") or {}), **noted}
            job["spec"] |= spec or {}
            wanted = _started(kind, job, queue) if started else job
            wanted = _held(kind, wanted) if self.held else wanted
            made.append(await self.manager.client.create(kind.resource, wanted))
        return made

    async def resize(self, kind: SandboxKind, name: str, path: tuple[str, ...], size: int) -> None:
        """Change a number in a job on the manager; a step of digits is the index in a list."""
        while True:
            job = await self.manager.client.get(kind.resource, ObjectKey(NAMESPACE, name))
            holder: Any = job
            for step in path[:-1]:
                holder = holder[int(step) if step.isdecimal() else step]
            holder[path[-1]] = size
            try:
                await self.manager.client.replace(kind.resource, typed(kind.resource, job))
            except Conflict:
                continue
            return

    def size(self, job: Json, path: tuple[str, ...]) -> Any:
        """The number at such a path."""
        value: Any = job
        for step in path:
            value = value[int(step) if step.isdecimal() else step]
        return value

    async def delete(self, kind: SandboxKind, jobs: list[Json]) -> None:
        """Delete a job on the manager, as `kubectl delete --ignore-not-found` does: it may be going."""
        for job in jobs:
            with suppress(NotFound):
                await self.manager.client.delete(kind.resource, ObjectKey.of(job), propagation="Background")

    async def running(self, kind: SandboxKind, name: str) -> str:
        """Wait until a job is seen to run; return the worker's name, or some if its pods have spread."""

        def look() -> str | None:
            shown = [self.manager] if kind.reports else [*self.workers.values()]
            jobs = [job for cluster in shown for job in self.jobs(cluster, kind, name)]
            runs = bool(jobs) and all(kind.course.pods_ready(job) for job in jobs)
            places = {cluster_name(workload) for workload in self.workloads_of(kind, name)}
            return max(place for place in places if place) if runs and places and None not in places else None

        return await self.until(look, lambda: self.story(kind, name))

    async def shown(self, kind: SandboxKind, name: str, worker: str) -> None:
        """Wait until the manager shows what a worker does of a job, if it shows that at all for the kind."""

        def look() -> bool:
            jobs = self.jobs(self.manager, kind, name)
            copies = [self.workers[worker].get(kind.resource, job["metadata"]["name"]) or {} for job in jobs]
            shown, there = ([of_any_cluster(obj.get("status")) for obj in objs] for objs in (jobs, copies))
            return shown == there

        if kind.reports:
            await self.until(look, lambda: self.story(kind, name))

    async def ended(self, kind: SandboxKind, name: str, reason: str) -> list[Json]:
        """Wait until a job has ended so on the manager, and its Workload with it; return what it is made of."""

        def look() -> list[Json] | None:
            jobs = self.jobs(self.manager, kind, name)
            endings = [kind.ending(job) for job in jobs]
            so = bool(jobs) and all(ending is not None and ending.reason == reason for ending in endings)
            over = all(is_true(workload, "Finished") for workload in self.workloads_of(kind, name))
            return jobs if so and over else None

        return await self.until(look, lambda: self.story(kind, name))

    async def cleaned(self, kind: SandboxKind, name: str) -> None:
        """Wait until no worker has anything of ours for a job."""
        await self.until(lambda: not self.copies(kind, name), lambda: self.story(kind, name))

    async def gone(self, kind: SandboxKind, name: str) -> None:
        """Wait until the manager has neither the job nor its Workload."""
        await self.until(
            lambda: not self.jobs(self.manager, kind, name) and not self.workloads_of(kind, name),
            lambda: self.story(kind, name),
        )

    async def until_told(self, kind: SandboxKind, name: str, what: str) -> None:
        """Wait until an event on a Workload of a job says something."""

        def look() -> bool:
            workloads = self._workload_names(kind, name)
            events = [obj for (resource, _), obj in self.manager.now.items() if resource == EVENT]
            return any(
                dig(event, "regarding", "name") in workloads and what in str(event.get("note")) for event in events
            )

        await self.until(look, lambda: self.story(kind, name))

    def jobs(self, cluster: Cluster, kind: SandboxKind, name: str) -> list[Json]:
        """What a job is made of on a cluster; on workers only what is ours."""
        return [
            obj
            for (resource, _), obj in sorted(cluster.now.items(), key=lambda item: item[0][1])
            if resource == kind.resource
            and kind.job_name(obj) == name
            and (cluster is self.manager or ORIGIN_LABEL in labels_of(obj))
        ]

    async def open_queue(self, worker: str, queue: str) -> None:
        """Give a worker a LocalQueue, so that it can admit what is for it."""
        await self.workers[worker].client.create(LOCAL_QUEUE, _queue(queue, self.names_on(worker)[0]))

    async def queue_on(self, queue: str, *workers: str) -> None:
        """Create a LocalQueue on the manager and on these workers only."""
        await self.manager.client.create(LOCAL_QUEUE, _queue(queue))
        for worker in workers:
            await self.open_queue(worker, queue)

    def workloads_of(self, kind: SandboxKind, name: str) -> list[Json]:
        """The Workloads that Kueue made for a job."""
        wanted = self._workload_names(kind, name)
        return [obj for (resource, own), obj in self.manager.now.items() if resource == WORKLOAD and own in wanted]

    def copies(self, kind: SandboxKind, name: str) -> list[str]:
        """What workers have of ours for a job, as `worker1 Job sample`, and the pods of a set there."""
        jobs, workloads = self._names(kind, name), self._workload_names(kind, name)
        return [
            f"{worker.name} {obj['kind']} {own}"
            for worker in self.workers.values()
            for (resource, own), obj in worker.now.items()
            if (own in (workloads if resource == WORKLOAD else jobs) and ORIGIN_LABEL in labels_of(obj))
            or labels_of(obj).get("app") == name
        ]

    def ran_on(self, kind: SandboxKind, name: str) -> list[str]:
        """The workers that ever had a copy of a job."""
        return [
            worker.name
            for worker in self.workers.values()
            if any(
                resource == kind.resource and kind.job_name(obj) == name and ORIGIN_LABEL in labels_of(obj)
                for (resource, _), obj in worker.last.items()
            )
        ]

    def story(self, kind: SandboxKind, name: str) -> dict[str, Any]:
        """What there is to know when a journey does not go on."""
        names = self._names(kind, name) | self._workload_names(kind, name)
        return {
            cluster.name: {
                f"{obj['kind']} {own}": {"status": obj.get("status"), "metadata": obj["metadata"].get("annotations")}
                for (_, own), obj in cluster.now.items()
                if own in names or labels_of(obj).get("app") == name
            }
            for cluster in self.clusters
        }

    def _names(self, kind: SandboxKind, name: str) -> set[str]:
        """The names of a job's objects on the manager, and of the pods of a set, gone or not."""
        return {name} | {
            own
            for (resource, own), obj in self.manager.last.items()
            if (resource == kind.resource and kind.job_name(obj) == name) or labels_of(obj).get("app") == name
        }

    def _workload_names(self, kind: SandboxKind, name: str) -> set[str]:
        """The names of the Workloads of a job, gone or not."""
        jobs = self._names(kind, name)
        return {
            own
            for (resource, own), obj in self.manager.last.items()
            if resource == WORKLOAD
            and jobs & {owner["name"] for owner in dig(obj, "metadata", "ownerReferences") or []}
        }

    def _observe(
        self, cluster: Cluster, resource: Resource, key: ObjectKey, old: Json | None, new: Json | None
    ) -> None:
        cluster.observe(resource, key, old, new)
        if cluster is not self.manager and resource not in (WORKLOAD, CLUSTER_QUEUE):
            self.runs.observe(cluster.name, resource, old, new)
        self._changed.set()
        self._changed = anyio.Event()


def _template(noted: Mapping[str, str]) -> Json:
    """That of the pods: what controllers make of it has to know how long it takes to end."""
    kept = {name: noted[name] for name in (DURATION_ANNOTATION, TRAP_ANNOTATION) if name in noted}
    if noted.get(OUTCOME_ANNOTATION) == "fail":
        kept[OUTCOME_ANNOTATION] = "fail"
    return with_value(TEMPLATE, ("metadata", "annotations"), {**TEMPLATE["metadata"]["annotations"], **kept})


def _started(kind: SandboxKind, job: Json, queue: str) -> Json:
    """The job with what the manager's Kueue puts into it, held back once more. It refuses other queues' names."""
    made = kind.with_suspend(job, False)
    queues = {LOCAL_QUEUE_LABEL: queue, CLUSTER_QUEUE_LABEL: CLUSTER_QUEUE_NAME}
    names = [pod_set["name"] for pod_set in kind.pods.read(made)]
    kind.pods.inject(made, {name: Injection(labels={**queues, PODSET_LABEL: name}) for name in names})
    return kind.submitted(made)


def _held(kind: SandboxKind, job: Json) -> Json:
    """The job with our gate on its pods."""
    made: Json = clone(job)
    templates = kind.pods.templates(made) if isinstance(kind.pods, MemberPods) else (made,)
    for template in templates:
        template["spec"]["schedulingGates"] = [*template["spec"]["schedulingGates"], {"name": HOLDING_GATE}]
    return made


def _queue(name: str, namespace: str = NAMESPACE) -> Json:
    made = local_queue(namespace)
    return {**made, "metadata": {**made["metadata"], "name": name}}
