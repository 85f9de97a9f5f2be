"""A hub as dictionaries: what a decision about a config asks for is done there, and nothing else happens."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import attrs

from multikueue.core.effects import Announce, Apply, Create, Delete, Effect, Patch
from multikueue.core.inventory.config import plan_check, plan_inventory
from multikueue.core.inventory.names import PLACEMENT_LABEL
from multikueue.core.inventory.settings import PLACEMENT_CONTROLLER, PlacementSettings
from multikueue.core.inventory.snapshot import (
    ConfigPlan,
    ConfigSnapshot,
    Labelled,
    Memory,
    Scheduled,
    Source,
    Unknown,
    WorkloadUse,
)
from multikueue.core.model.conditions import condition, new_condition, timestamp, updated
from multikueue.core.model.kinds import ADMISSION_CHECK, MULTIKUEUE_CLUSTER, MULTIKUEUE_CONFIG
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.workloads import check
from tests.core.applying import merged

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
FOREIGN = "example.com/multikueue"
OURS = "kueue.x-k8s.io/multikueue"


def placement_check(name: str = "placed", placement: str = "p", **parameters: str) -> Json:
    """An AdmissionCheck that stands for a Placement."""
    wanted = {"apiGroup": "cluster.open-cluster-management.io", "kind": "Placement", "name": placement, **parameters}
    metadata = {"name": name, "uid": f"uid-{name}", "resourceVersion": "1", "generation": 2, "finalizers": []}
    spec = {"controllerName": PLACEMENT_CONTROLLER, "parameters": wanted}
    return {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "AdmissionCheck", "metadata": metadata, "spec": spec}


def multikueue_check(config: str = "p", controller: str = OURS) -> Json:
    """The MultiKueue check beside it."""
    parameters = {"apiGroup": "kueue.x-k8s.io", "kind": "MultiKueueConfig", "name": config}
    spec = {"controllerName": controller, "parameters": parameters}
    return {"metadata": {"name": "mk", "uid": "uid-mk", "resourceVersion": "1"}, "spec": spec}


def placement(name: str = "p", **status: Any) -> Json:
    """A Placement; without a status nobody has scheduled it yet."""
    return {"metadata": {"name": name, "namespace": "ns", "uid": f"uid-{name}"}, "spec": {}, "status": status}


def decision(
    *names: str, number: int = 1, of: str = "p", labels: Json | None = None, score: Json | None = None
) -> Json:
    """A PlacementDecision as OCM makes them."""
    kept = {PLACEMENT_LABEL: of, "cluster.open-cluster-management.io/decision-group-index": "0"}
    owner = {"kind": "Placement", "name": of, "uid": f"uid-{of}", "controller": True}
    listed: list[Json] = [{"clusterName": name, "reason": ""} for name in names]
    for entry in listed:
        if entry["clusterName"] in (score or {}):
            entry["score"] = (score or {})[entry["clusterName"]]
    metadata = {"name": f"{of}-decision-{number}", "labels": kept if labels is None else labels}
    return {"metadata": {**metadata, "ownerReferences": [owner]}, "status": {"decisions": listed}}


def worker(name: str, *, active: bool = True) -> Json:
    """A MultiKueueCluster."""
    connected = new_condition("Active", active, "Active", "", now=NOW)
    metadata = {"name": name, "uid": f"uid-{name}", "resourceVersion": "1"}
    return {"metadata": metadata, "spec": {"clusterSource": {}}, "status": {"conditions": [connected]}}


def workload(
    name: str, *, cluster: str = "", offered: tuple[str, ...] = (), state: str = "Pending", **more: bool
) -> Json:
    """A Workload with quota and both checks."""
    kinds = {"QuotaReserved": True, "Admitted": False, "Finished": False, "Evicted": False, **more}
    listed = [new_condition(kind, value, kind, "", now=NOW) for kind, value in kinds.items()]
    checks = [{"name": "mk", "state": "Pending"}, {"name": "placed", "state": state}]
    status: Json = {"conditions": listed, "admissionChecks": checks}
    status |= {"clusterName": cluster} if cluster else {}
    status |= {"nominatedClusterNames": list(offered)} if offered else {}
    metadata = {"name": name, "namespace": "team", "uid": f"uid-{name}", "resourceVersion": "1"}
    return {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload", "metadata": metadata, "status": status}


@attrs.define
class Hub:
    """What the caches show."""

    settings: PlacementSettings = attrs.field(factory=PlacementSettings)
    checks: dict[str, Json] = attrs.field(factory=dict)
    configs: dict[str, Json] = attrs.field(factory=dict)
    clusters: dict[str, Json] = attrs.field(factory=dict)
    workloads: dict[str, Json] = attrs.field(factory=dict)
    placement: Json | None = None
    decisions: list[Json] = attrs.field(factory=list)
    scores: dict[tuple[str, str], Json] = attrs.field(factory=dict)
    profiles: set[str] | None = None
    memory: dict[str, Memory] = attrs.field(factory=dict)
    now: datetime = NOW
    writes: list[Effect] = attrs.field(factory=list)
    events: list[str] = attrs.field(factory=list)
    _version: int = 1

    def later(self, seconds: float) -> None:
        """Time passes."""
        self.now += timedelta(seconds=seconds)

    def decide(self, *names: str, score: Json | None = None) -> None:
        """OCM decides, and says so in the Placement's status."""
        self.decisions = [decision(*names, score=score)]
        group = {"decisionGroupIndex": 0, "decisions": ["p-decision-1"], "clusterCount": len(names)}
        met = new_condition("PlacementSatisfied", bool(names), "All", "", now=self.now)
        self.placement = placement(numberOfSelectedClusters=len(names), decisionGroups=[group], conditions=[met])

    def after(self, seconds: float) -> None:
        """Time passes, and everything settles."""
        self.later(seconds)
        self.settle()

    def select(self, *names: str, score: Json | None = None) -> None:
        """OCM decides, and everything settles."""
        self.decide(*names, score=score)
        self.settle()

    def settled(self) -> list[str] | None:
        """What the config lists once nothing changes any more."""
        self.settle()
        return self.listed()

    def look(self, name: str = "placed") -> ConfigPlan:
        """One decision about a check, not carried out."""
        return plan_check(self._snapshot(name, check=self.checks[name]), self.now)

    def step(self, name: str = "placed") -> ConfigPlan:
        """One decision about a check, carried out."""
        return self._done(name, self.look(name))

    def stock(self, name: str = "inv") -> ConfigPlan:
        """One decision about an inventory, carried out."""
        return self._done(name, plan_inventory(self._snapshot(name, name=name), self.now))

    def settle(self, name: str = "placed") -> ConfigPlan:
        """Decisions until nothing changes.

        Raises:
            AssertionError: it does not end.
        """
        for _ in range(10):
            before = len(self.writes)
            plan = self.step(name)
            if len(self.writes) == before:
                return plan
        raise AssertionError("it writes for ever")

    def listed(self, name: str = "p") -> list[str] | None:
        """What a config lists."""
        return list(self.configs[name]["spec"]["clusters"]) if name in self.configs else None

    def said(self, name: str = "placed") -> tuple[str, str, str]:
        """The Active condition of a check."""
        active = condition(self.checks[name], "Active") or {}
        return active.get("status", ""), active.get("reason", ""), active.get("message", "")

    def state(self, workload: str) -> str:
        """Our entry in a Workload."""
        return str((check(self.workloads[workload], "placed") or {}).get("state"))

    def _snapshot(self, key: str, check: Json | None = None, name: str = "") -> ConfigSnapshot:
        placed = {str(workload["status"].get("clusterName")) for workload in self.workloads.values()}
        return ConfigSnapshot(
            self._source(check),
            self.settings,
            check,
            name,
            dict(self.checks),
            dict(self.configs),
            dict(self.clusters),
            tuple(map(WorkloadUse.of, self.workloads.values())),
            frozenset(placed),
            self.memory.get(key, Memory()),
        )

    def _source(self, check: Json | None) -> Source:
        if check is None:
            return Labelled(frozenset(self.profiles or ()))
        if self.placement is None:
            return Unknown("PlacementNotFound", "Placement p not found")
        return Scheduled(self.placement, tuple(self.decisions), dict(self.scores))

    def _done(self, key: str, plan: ConfigPlan) -> ConfigPlan:
        self.memory[key] = plan.memory
        for effect in plan.effects:
            if isinstance(effect, Announce):
                self.events.append(f"{effect.type} {effect.reason}: {effect.note}")
                continue
            self.writes.append(effect)
            self._write(effect)
        return plan

    def _write(self, effect: Effect) -> None:
        stores = {ADMISSION_CHECK: self.checks, MULTIKUEUE_CONFIG: self.configs, MULTIKUEUE_CLUSTER: self.clusters}
        self._version += 1
        version = str(self._version)
        match effect:
            case Create(resource, body):
                name = body["metadata"]["name"]
                assert name not in stores[resource], f"{name} is there"
                metadata = {**body["metadata"], "uid": f"uid-{name}-{version}", "resourceVersion": version}
                stores[resource][name] = {**body, "metadata": metadata}
            case Patch(resource, seen):
                name = seen["metadata"]["name"]
                old, patch = stores[resource][name], effect.request
                assert patch["metadata"]["resourceVersion"] == old["metadata"]["resourceVersion"], "conflict"
                new = merged(old, patch)
                stores[resource][name] = merged(new, {"metadata": {"resourceVersion": version}})
                if new["metadata"].get("deletionTimestamp") and not new["metadata"].get("finalizers"):
                    del stores[resource][name]
            case Delete(resource, seen):
                old = stores[resource].pop(seen["metadata"]["name"])
                assert old["metadata"]["uid"] == seen["metadata"]["uid"], "conflict"
            case Apply(object=body):
                self._apply(body, version)

    def _apply(self, body: Json, version: str) -> None:
        old = self.workloads[ObjectKey.of(body).name]
        assert body["metadata"]["resourceVersion"] == old["metadata"]["resourceVersion"], "conflict"
        (entry,) = body["status"]["admissionChecks"]
        old["status"]["admissionChecks"] = [
            {**check, **entry} if check["name"] == entry["name"] else check
            for check in old["status"]["admissionChecks"]
        ]
        old["metadata"]["resourceVersion"] = version


def hub(*names: str, controller: str = OURS, **settings: Any) -> Hub:
    """A hub with a Placement that has selected these clusters, all of them workers, and both checks."""
    made = Hub(PlacementSettings(**settings))
    made.checks = {"placed": placement_check(), "mk": multikueue_check(controller=controller)}
    made.clusters = {name: worker(name) for name in names}
    made.decide(*names)
    return made


def set_condition(workload: Json, kind: str, value: bool) -> None:
    """Change a condition of a Workload."""
    listed = workload["status"]["conditions"]
    workload["status"]["conditions"] = updated(listed, new_condition(kind, value, kind, "", now=NOW))


def terminating(obj: Json) -> Json:
    """An object that somebody has deleted and a finalizer holds."""
    ending: Json = merged(obj, {"metadata": {"deletionTimestamp": timestamp(NOW)}})
    return ending
