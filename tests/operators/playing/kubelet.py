"""Plays the kubelets and the scheduler of one cluster: pods get a node, run, and end as their job says."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Final

import aiohttp
import anyio
import attrs

from multikueue.core.machinery.action import Action
from multikueue.core.model.conditions import timestamp
from multikueue.core.model.names import GVK, Json, ObjectKey, Resource
from multikueue.core.model.objects import controller_of, uid
from multikueue.errors import ApiError
from multikueue.kube import Informer, KubeClient
from multikueue.runtime.controller import Controller
from tests.controlplane.errors import RequestFailed
from tests.controlplane.interface import Cluster
from tests.integration.view import POD
from tests.operators.playing.pods import NODE, Fate, Step, ended, next_step, running
from tests.operators.workflows import inside

_AGAIN: Final = 0.5
"""Seconds until a job is looked for again that could not be read."""
_UNSEEN: Final = 5.0
"""Seconds until a write is repeated that failed, or whose effect is not seen: events of a busy server are late."""
_AT_A_TIME: Final = 8
"""Pods that are written to."""
_BINDING: Final = Resource(GVK("", "v1", "Binding"), "bindings")
_NODE: Final = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": NODE},
    "status": {"capacity": {"cpu": "64", "memory": "64Gi", "pods": "110"}},
}


@attrs.define(eq=False)
class Kubelet:
    """Looks after every pod of a cluster."""

    cluster: Cluster
    client: KubeClient
    fates: Callable[[Json], Fate] | None = attrs.field(default=None, kw_only=True)
    """How a pod does; what the job at the end of its owners says, if not told."""
    seen: Callable[[Json], None] = attrs.field(default=lambda _pod: None, kw_only=True)
    """Told every version of every pod."""
    _pods: Informer = attrs.field(init=False)
    _controller: Controller[ObjectKey] = attrs.field(init=False)
    _fates: dict[str, Fate] = attrs.field(factory=dict, init=False)
    """By the pod's UID; and so the following two."""
    _ran_since: dict[str, float] = attrs.field(factory=dict, init=False)
    _killed: set[str] = attrs.field(factory=set, init=False)

    def __attrs_post_init__(self) -> None:
        def changed(key: ObjectKey, old: Json | None, new: Json | None) -> None:
            del old
            self._controller.enqueue(key)
            if new is not None:
                self.seen(new)

        self._pods = Informer(self.client, POD, on_change=changed)
        self._controller = Controller("kubelet", self, concurrency=_AT_A_TIME)

    def kill(self, pod: Json) -> None:
        """Let the containers of a pod die, as those of a node that is out of memory."""
        self._killed.add(uid(pod))
        self._controller.enqueue(ObjectKey.of(pod))

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Do what is due until cancelled."""
        await self.cluster.admin.apply(_NODE)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._pods.run)
            await self._pods.wait_synced()
            tasks.start_soon(self._controller.run)
            task_status.started()

    async def reconcile(self, key: ObjectKey) -> Action:
        """Do what is due with a pod."""
        pod = self._pods.get(key)
        if pod is None:
            return Action.done()
        fate = await self._fate(pod)
        if fate is None:
            return Action.after(_AGAIN)
        now, own = anyio.current_time(), uid(pod)
        step = next_step(pod, fate, now=now, ran_since=self._ran_since.get(own), killed=own in self._killed)
        if step is None:
            return Action.done()
        if step.at > now:
            return Action.after(step.at - now)
        with suppress(ApiError, RequestFailed, aiohttp.ClientError, TimeoutError):  # gone or away: the next look tells
            await self._do(pod, step)
        return Action.after(_UNSEEN)

    async def _do(self, pod: Json, step: Step) -> None:
        key, time = ObjectKey.of(pod), timestamp(datetime.now(UTC))
        if step.deed == "bind":
            target = {"apiVersion": "v1", "kind": "Node", "name": NODE}
            metadata = {"name": key.name, "namespace": key.namespace}
            binding = {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target}
            await self.client.create(_BINDING, binding)
        elif step.deed == "run":
            self._ran_since.setdefault(uid(pod), anyio.current_time())
            await inside.begins(self.client, pod)
            address = f"10.{len(self._ran_since) >> 8}.{len(self._ran_since) & 255}.7"
            await self._status(key, running(pod, time, address))
        else:
            if pod["status"].get("phase") not in ("Succeeded", "Failed"):
                if step.deed == "end":
                    await inside.ends(self.client, pod, step.exit_code)
                await self._status(key, ended(pod, time, step.exit_code))
            if step.deed == "remove":
                body = {"gracePeriodSeconds": 0, "preconditions": {"uid": uid(pod)}}
                path = f"/api/v1/namespaces/{key.namespace}/pods/{key.name}"
                await self.cluster.admin.call("DELETE", path, body)

    async def _status(self, key: ObjectKey, status: Json) -> None:
        await self.client.merge_patch(POD, key, {"status": status}, subresource="status")

    async def _fate(self, pod: Json) -> Fate | None:
        """What the job at the end of the pod's owners says; None while that cannot be read."""
        own = uid(pod)
        if own not in self._fates and self.fates is not None:
            self._fates[own] = self.fates(pod)
        if own not in self._fates:
            holder = pod
            while owner := controller_of(holder):
                kind = _RESOURCES.get(owner["kind"])
                if kind is None:
                    break
                try:
                    holder = await self.client.get(kind, ObjectKey(pod["metadata"]["namespace"], owner["name"]))
                except ApiError:
                    return Fate() if pod["metadata"].get("deletionTimestamp") else None
            self._fates[own] = Fate.of(holder)
        return self._fates[own]


_RESOURCES: Final = {
    kind: Resource(GVK(group, version, kind), f"{kind.lower()}s")
    for group, version, kind in (
        ("batch", "v1", "Job"),
        ("jobset.x-k8s.io", "v1alpha2", "JobSet"),
        ("ray.io", "v1", "RayCluster"),
        ("ray.io", "v1", "RayJob"),
        ("ray.io", "v1", "RayService"),
        ("kubeflow.org", "v2beta1", "MPIJob"),
        *(("kubeflow.org", "v1", f"{name}Job") for name in ("JAX", "Paddle", "PyTorch", "TF", "XGBoost")),
        ("trainer.kubeflow.org", "v1alpha1", "TrainJob"),
        ("workload.codeflare.dev", "v1beta2", "AppWrapper"),
        ("tekton.dev", "v1", "TaskRun"),
        ("tekton.dev", "v1", "PipelineRun"),
        ("argoproj.io", "v1alpha1", "Workflow"),
    )
}
"""Kinds between a pod and its job."""
