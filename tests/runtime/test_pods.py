"""Pod groups and LeaderWorkerSets from the caches to the clusters: no Kueue runs, the test says what it would."""

from __future__ import annotations

from typing import Any

import anyio
import attrs
import pytest

from multikueue.adapters import AdapterRegistry
from multikueue.adapters.pod import KINDS as POD_KINDS
from multikueue.adapters.pod import PODS
from multikueue.adapters.sets import LEADER_WORKER_SET
from multikueue.core.model.conditions import is_true, message
from multikueue.core.model.kinds import WORKLOAD
from multikueue.core.model.labels import (
    ADMISSION_GATE,
    GIVE_UP_ANNOTATION,
    GROUP_WORKLOAD_ANNOTATION,
    MANAGED_LABEL,
    POD_GROUP_NAME,
    POD_GROUP_TOTAL_ANNOTATION,
)
from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.core.model.objects import dig
from multikueue.core.model.workloads import check_state, cluster_name
from multikueue.errors import NotFound
from multikueue.runtime.manager import Manager, ManagerSettings
from multikueue.sandbox.apiserver import DirectClient, Match, Refuse
from multikueue.sandbox.setting_up import CHECK, LOCAL_QUEUE_NAME
from tests.runtime.fleet import Fleet, now, until

pytestmark = pytest.mark.looptime

AT = "2026-01-01T00:00:00Z"
GROUP = "group"
SETS = LEADER_WORKER_SET.resource
ANYTHING: Json = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
TEMPLATE: Json = {"spec": {"containers": [{"name": "c", "image": "x"}]}}


def said(*kinds: str) -> list[Json]:
    return [
        {"type": kind, "status": "True", "reason": "Said", "message": "m", "lastTransitionTime": AT} for kind in kinds
    ]


def definition(resource: Resource) -> Json:
    """A CustomResourceDefinition that takes anything."""
    gvk = resource.gvk
    schema = {"type": "object", "properties": {"spec": ANYTHING, "status": ANYTHING}}
    version: Json = {"name": gvk.version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    version["subresources"] = {"status": {}}
    names = {"kind": gvk.kind, "listKind": f"{gvk.kind}List", "plural": resource.plural, "singular": gvk.kind.lower()}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": resource.qualified},
        "spec": {"group": gvk.group, "names": names, "scope": "Namespaced", "versions": [version]},
    }


@attrs.define
class Bench:
    """Clusters on which the test plays Kueue and the kubelets."""

    fleet: Fleet

    @classmethod
    async def of(cls, *workers: str) -> Bench:
        bench = cls(Fleet.of(*workers))
        for server in (bench.fleet.manager, *bench.fleet.workers.values()):
            server.registry.create_object(definition(SETS))
        await bench.fleet.connect()
        return bench

    def manager(self) -> Manager:
        """A manager for pods and sets of them."""
        rows = AdapterRegistry([*POD_KINDS, LEADER_WORKER_SET])
        client = DirectClient(self.fleet.manager, user="multikueue")
        return Manager(client, rows, ManagerSettings(), self.fleet.build().connect, clock=now)

    def client(self, where: str = "") -> DirectClient:
        return DirectClient(self.fleet.workers[where] if where else self.fleet.manager, user="kueue")

    async def get(self, resource: Resource, name: str, where: str = "") -> Json | None:
        try:
            return await self.client(where).get(resource, ObjectKey("default", name))
        except NotFound:
            return None

    async def pods(self, where: str = "") -> dict[str, str]:
        """The pods of a cluster and their phases."""
        pods = (await self.client(where).list(PODS)).items
        return {pod["metadata"]["name"]: dig(pod, "status", "phase") or "" for pod in pods}

    async def make_pod(self, name: str, where: str = "", **labels: str) -> Json:
        metadata: Json = {"name": name, "namespace": "default", "labels": labels}
        if not where:
            metadata["labels"] = {MANAGED_LABEL: "true", POD_GROUP_NAME: GROUP}
            metadata["annotations"] = {POD_GROUP_TOTAL_ANNOTATION: "2"}
        spec = {**TEMPLATE["spec"], "schedulingGates": [{"name": ADMISSION_GATE}]}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
        return await self.client(where).create(PODS, pod)

    async def make_workload(self, name: str, owners: list[Json], annotations: dict[str, str]) -> None:
        references = [
            {field: owner.get(field) or owner["metadata"][field] for field in ("apiVersion", "kind", "name", "uid")}
            for owner in owners
        ]
        metadata = {"name": name, "namespace": "default", "annotations": annotations, "ownerReferences": references}
        pod_sets = [{"name": "main", "count": len(owners), "template": TEMPLATE}]
        spec = {"queueName": LOCAL_QUEUE_NAME, "podSets": pod_sets}
        made = {"apiVersion": WORKLOAD.gvk.api_version, "kind": "Workload", "metadata": metadata, "spec": spec}
        await self.client().create(WORKLOAD, made)
        admission = {"clusterQueue": "cluster-queue", "podSetAssignments": [{"name": "main", "count": len(owners)}]}
        await self.say(name, admission=admission, conditions=said("QuotaReserved"))

    async def make_group(self, *names: str) -> None:
        """A group of pods with quota."""
        pods = [await self.make_pod(name) for name in names]
        await self.make_workload(GROUP, pods, {GROUP_WORKLOAD_ANNOTATION: "true"})

    async def say(self, name: str, where: str = "", **status: Any) -> None:
        if not where:
            entry = {"name": CHECK, "state": "Pending", "message": "", "lastTransitionTime": AT}
            status["admissionChecks"] = [entry]
        key = ObjectKey("default", name)
        await self.client(where).merge_patch(WORKLOAD, key, {"status": status}, subresource="status")

    async def admit(self, name: str, where: str) -> None:
        """Let a worker's Kueue admit a copy."""

        async def is_there() -> bool:
            return await self.get(WORKLOAD, name, where) is not None

        await until(is_there)
        await self.say(name, where, conditions=said("QuotaReserved", "Admitted"))

    async def evict_and_reserve(self, name: str, times: int) -> None:
        """Kueue evicts it, frees its quota at once, as it does for pods, and gives it quota again."""
        again = [
            {**condition, "lastTransitionTime": f"2026-11-21T12:00:0{times}Z"} for condition in said("QuotaReserved")
        ]
        await self.say(name, clusterName=None, conditions=again)

    async def placed(self, name: str, where: str) -> None:
        """Wait until a Workload is assigned."""

        async def is_placed() -> bool:
            return cluster_name(await self.get(WORKLOAD, name) or {}) == where

        await until(is_placed)

    async def set_phase(self, name: str, where: str, phase: str) -> None:
        patch = {"status": {"phase": phase}}
        await self.client(where).merge_patch(PODS, ObjectKey("default", name), patch, subresource="status")

    async def shows(self, expected: dict[str, str], where: str = "") -> None:
        """Wait until the pods of a cluster are these."""

        async def holds() -> bool:
            return await self.pods(where) == expected

        await until(holds)


async def test_a_pod_that_is_somebody_elses_is_left_alone_and_the_group_goes_elsewhere() -> None:
    """Every member is guarded, not the first one only; what was already made there is removed."""
    bench = await Bench.of("worker1", "worker2")
    theirs = await bench.make_pod("b", "worker1", app="theirs")
    async with bench.fleet.dispatching(bench.manager()):
        await bench.make_group("a", "b")
        await bench.admit(GROUP, "worker1")
        await bench.shows({"a": "Pending", "b": "Pending"}, "worker1")

        async def sent_back() -> bool:
            return check_state(await bench.get(WORKLOAD, GROUP) or {}, CHECK) == "Retry"

        await until(sent_back)
        await bench.evict_and_reserve(GROUP, 1)
        await bench.shows({"b": "Pending"}, "worker1")
        await bench.admit(GROUP, "worker2")
        await bench.placed(GROUP, "worker2")
        await bench.shows({"a": "Pending", "b": "Pending"}, "worker2")
        assert (await bench.get(PODS, "b", "worker1") or {})["metadata"] == theirs["metadata"]


@pytest.mark.parametrize("held_by", ["webhook", "finalizer"])
async def test_a_group_whose_pods_are_not_let_go_runs_nowhere_else(held_by: str) -> None:
    """It ran on a second worker after 82 s (the webhook refused) and after 1 s (the finalizer held)."""
    bench = await Bench.of("worker1", "worker2")
    async with bench.fleet.dispatching(bench.manager()):
        await bench.make_group("a", "b")
        await bench.admit(GROUP, "worker1")
        await bench.placed(GROUP, "worker1")
        await bench.shows({"a": "Pending", "b": "Pending"}, "worker1")
        for name in ("a", "b"):
            await bench.set_phase(name, "worker1", "Running")
        left = [await bench.get(PODS, name, "worker1") or {} for name in ("a", "b")]
        await _hold_pods(bench, held_by)

        await bench.evict_and_reserve(GROUP, 1)
        await bench.admit(GROUP, "worker2")
        await anyio.sleep(300)
        assert (await bench.pods("worker1"), await bench.pods("worker2")) == ({"a": "Running", "b": "Running"}, {})
        copy = await bench.get(WORKLOAD, GROUP, "worker1") or {}
        assert is_true(copy, "DeactivationTarget"), "its quota is not free before the pods are gone"
        given_back = await bench.get(WORKLOAD, GROUP) or {}
        assert is_true(given_back, "Evicted")
        assert f'worker cluster "worker1": Pod "a" (UID {left[0]["metadata"]["uid"]})' in message(given_back, "Evicted")

        await bench.evict_and_reserve(GROUP, 2)
        given_up = ", ".join(f"worker1/{pod['metadata']['uid']}" for pod in left)
        patch = {"metadata": {"annotations": {GIVE_UP_ANNOTATION: given_up}}}
        await bench.client().merge_patch(WORKLOAD, ObjectKey("default", GROUP), patch)
        await anyio.sleep(5)
        await bench.admit(GROUP, "worker2")
        await bench.shows({"a": "Pending", "b": "Pending"}, "worker2")


async def _hold_pods(bench: Bench, held_by: str) -> None:
    """Let nobody remove the pods of worker1."""
    if held_by == "webhook":
        bench.fleet.workers["worker1"].faults.add(Refuse(403), on=Match(verbs=("delete",), resource="pods"))
        return
    for name in await bench.pods("worker1"):
        patch = {"metadata": {"finalizers": ["example.com/held"]}}
        await bench.client("worker1").merge_patch(PODS, ObjectKey("default", name), patch)


async def test_pods_that_kueue_does_not_manage_are_nobodys_concern() -> None:
    """They are not even read on the manager."""
    bench = await Bench.of("worker1")
    manager = bench.manager()
    async with bench.fleet.dispatching(manager):
        await bench.client().create(
            PODS,
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": "plain", "namespace": "default"},
                "spec": TEMPLATE["spec"],
            },
        )
        await bench.make_pod("a")
        cache = manager.cluster.jobs[PODS.gvk]
        await until(lambda: len(list(cache.informer.keys())) == 1)


async def test_only_pods_may_have_another_spec_of_the_same_generation() -> None:
    """A node that a pod gets changes its spec alone. Of all other kinds that is decoded once."""
    bench = await Bench.of("worker1")
    manager = bench.manager()
    async with bench.fleet.dispatching(manager):
        await until(lambda: all(worker.known is not None for worker in manager.workers))
        targets = [manager.cluster, *(worker.known for worker in manager.workers if worker.known is not None)]
        assert len(targets) == 2
        for target in targets:
            assert target.workloads.informer.knows_specs
            known = {gvk: cache.informer.knows_specs for gvk, cache in target.jobs.items()}
            assert known == {gvk: gvk != PODS.gvk for gvk in known}
            assert PODS.gvk in known
