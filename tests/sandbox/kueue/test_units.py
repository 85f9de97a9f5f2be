"""Gated pods, and what the small Kueue does about them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from multikueue.core.model.conditions import condition
from multikueue.core.model.labels import ORIGIN_LABEL
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.workloads import owner
from multikueue.sandbox.kinds.injecting import Injection
from multikueue.sandbox.kinds.pods import POD, POD_GROUP, POD_RESOURCE
from multikueue.sandbox.kinds.sets import LEADER_WORKER_SET, STATEFUL_SET
from multikueue.sandbox.kueue.building import unit_workload
from multikueue.sandbox.kueue.deciding_units import UnitSituation, decide_unit, unit_ending
from multikueue.sandbox.kueue.effects import NOTHING, ApplyStatus, Create, Delete, Replace, Step
from multikueue.sandbox.kueue.units import Unit, pod_place, set_workloads
from multikueue.sandbox.objects import owned_by

NOW = datetime(2026, 1, 1, tzinfo=UTC)
TEMPLATE: Json = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}
KEY = ObjectKey("default", "wl")


def stored(obj: Json, uid: str, **status: Any) -> Json:
    """The object as an API server has it."""
    return {**obj, "metadata": {**obj["metadata"], "uid": uid}, "status": status}


def single(**status: Any) -> Json:
    return stored(POD.example("p", TEMPLATE, queue="lq"), "u", **status)


def group(*phases: str) -> tuple[Json, ...]:
    pods = POD_GROUP.examples("g", TEMPLATE, queue="lq")
    return tuple(stored(pod, pod["metadata"]["name"], phase=phase) for pod, phase in zip(pods, phases, strict=True))


def running(pod: Json) -> Json:
    return {**pod, "spec": {**pod["spec"], "schedulingGates": []}, "status": {"phase": "Running"}}


def workload(unit: Unit, **conditions: str) -> Json:
    """The unit's Workload with these conditions."""
    listed = [{"type": kind, "status": status} for kind, status in conditions.items()]
    return {**unit_workload(unit), "status": {"conditions": listed, "admission": {"clusterQueue": "cq"}}}


def request(unit: Unit, workload: Json | None, **more: Any) -> Any:
    """What is written next; None if nothing is."""
    decision = decide_unit(UnitSituation(unit, workload, NOW, **more))
    if decision is NOTHING:
        return None
    assert isinstance(decision, Step)
    return decision.request


def test_a_group_gets_its_workload_once_it_is_complete() -> None:
    """Half a group would be admitted with half its quota."""
    both = group("Pending", "Pending")
    assert request(Unit(KEY, both[:1]), None) is None
    made = request(Unit(ObjectKey("default", "g"), both), None)
    assert isinstance(made, Create)
    assert (made.object["metadata"]["name"], made.object["spec"]["podSets"][0]["count"]) == ("g", 2)
    assert [reference["name"] for reference in made.object["metadata"]["ownerReferences"]] == ["g-0", "g-1"]
    assert made.object["metadata"]["annotations"] == {"kueue.x-k8s.io/is-group-workload": "true"}


def test_a_copy_waits_for_the_workload_that_is_made_with_it() -> None:
    """Two Workloads for one pod would take its quota twice."""
    pod = single()
    pod["metadata"]["labels"]["kueue.x-k8s.io/multikueue-origin"] = "multikueue"
    assert request(Unit(KEY, (pod,)), None) is None


def test_pods_that_were_let_go_with_their_workload_are_not_held_again() -> None:
    """A webhook puts the finalizer on as they come. Once their copy of a Workload is gone, nobody would take it off."""
    pods = group("Pending", "Pending")
    for pod in pods:
        pod["metadata"]["labels"]["kueue.x-k8s.io/multikueue-origin"] = "multikueue"
        del pod["metadata"]["finalizers"]
    assert request(Unit(KEY, pods), None) is None


def test_the_gate_opens_when_the_workload_is_admitted() -> None:
    """With what the admission adds, since a pod cannot be changed afterwards."""
    unit = Unit(KEY, (single(),))
    assert request(unit, workload(unit, QuotaReserved="True")) is None
    admitted = workload(unit, QuotaReserved="True", Admitted="True")
    started = request(unit, admitted, injections=lambda: {"main": Injection(node_selector={"zone": "z"})})
    assert isinstance(started, Replace)
    assert (started.object["spec"]["schedulingGates"], started.object["spec"]["nodeSelector"]) == ([], {"zone": "z"})


def test_a_pod_that_loses_its_quota_is_deleted_and_a_gated_one_stays() -> None:
    """A gate cannot be put back; the manager's pods were never started."""
    evicted = {"QuotaReserved": "True", "Evicted": "True"}
    gated, started = Unit(KEY, (single(),)), Unit(KEY, (running(single()),))
    assert isinstance(request(started, workload(started, **evicted)), Delete)
    released = request(gated, workload(gated, **evicted))
    assert isinstance(released, ApplyStatus)
    assert "admission" not in released.object["status"]


def test_a_started_pod_says_that_kueue_deletes_it() -> None:
    """Who sees it ended knows then that it did not end by itself."""
    ended = Unit(KEY, (running(single()),))
    decided = decide_unit(UnitSituation(ended, workload(ended, QuotaReserved="True", Evicted="True"), NOW))
    assert isinstance(decided, Step)
    assert decided.first is not None
    write = decided.first.request
    assert isinstance(write, Replace)
    assert [condition["type"] for condition in write.object["status"]["conditions"]] == ["TerminationTarget"]


def test_a_pod_of_a_group_that_has_failed_is_kept_until_there_is_another_in_its_place() -> None:
    """Deleted or not. On a worker, where the Workload was made by MultiKueue, it stays until the group ends."""
    failed, other = (running(pod) for pod in group("Failed", "Running"))
    failed["status"]["phase"] = "Failed"
    failed["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    before = Unit(KEY, (failed, other))
    admitted = workload(before, QuotaReserved="True", Admitted="True")
    owned = [owned_by(POD_RESOURCE, pod, controller=False) for pod in (failed, other)]
    admitted["metadata"]["ownerReferences"] = owned
    assert request(before, admitted) is None
    new = {**running(other), "metadata": {**other["metadata"], "name": "g-2", "uid": "g-2"}}
    admitted["metadata"]["ownerReferences"] = [*owned, owned_by(POD_RESOURCE, new, controller=False)]
    let_go = request(Unit(KEY, (failed, other, new)), admitted)
    assert isinstance(let_go, Replace)
    assert (let_go.object["metadata"]["uid"], let_go.object["metadata"]["finalizers"]) == ("g-0", [])
    for pod in (failed, other, new):
        pod["metadata"]["labels"] = {**pod["metadata"]["labels"], ORIGIN_LABEL: "multikueue"}
    assert request(Unit(KEY, (failed, other, new)), admitted) is None


def test_a_workload_takes_in_pods_that_come_later() -> None:
    """A group's copies arrive one by one."""
    both = group("Pending", "Pending")
    first = unit_workload(Unit(KEY, both[:1]))
    adopted = request(Unit(KEY, both), first)
    assert isinstance(adopted, Replace)
    assert [reference["name"] for reference in adopted.object["metadata"]["ownerReferences"]] == ["g-0", "g-1"]


def test_pods_end_by_their_phases() -> None:
    """A group ends when all have succeeded, or when none may be tried again."""

    def ended(*pods: Json) -> str | None:
        ending = unit_ending(Unit(KEY, pods))
        return None if ending is None else f"{ending.reason} {ending.message}".strip()

    assert ended(single(phase="Failed")) == "Failed"
    assert ended(single(phase="Running")) is None
    assert ended(*group("Succeeded", "Running")) is None
    assert ended(*group("Succeeded", "Succeeded")) == "Succeeded Pods succeeded: 2/2."
    assert ended(*group("Failed", "Failed")) == "Succeeded Pods succeeded: 0/2."


def test_the_workloads_of_a_set_are_named_after_the_set_they_are_a_copy_of() -> None:
    """Their names are known before the copy is there: by the UID it notes."""
    original = stored(LEADER_WORKER_SET.example("s", TEMPLATE, queue="lq"), "uid1")
    copied = stored(LEADER_WORKER_SET.example("s", TEMPLATE, queue="lq"), "other")
    copied["metadata"]["annotations"] = {"kueue.x-k8s.io/multikueue-origin-uid": "uid1"}
    assert dict(set_workloads(LEADER_WORKER_SET, copied)) == dict(set_workloads(LEADER_WORKER_SET, original))
    assert sorted(set_workloads(LEADER_WORKER_SET, original).values()) == ["0", "1"]
    (only,) = set_workloads(STATEFUL_SET, stored(STATEFUL_SET.example("sts1", TEMPLATE, queue="lq"), "uid1"))
    assert only.name == "statefulset-sts1-740e5", "what Kueue's own code makes"


def test_a_stateful_set_without_pods_is_on_hold_until_it_is_to_have_some() -> None:
    """Its Workload stays, as with Kueue from 0.18.4 on."""

    def of_size(replicas: int) -> Unit:
        made = stored(STATEFUL_SET.example("s", TEMPLATE, queue="lq"), "u")
        made["spec"]["replicas"] = replicas
        (key,) = set_workloads(STATEFUL_SET, made)
        return Unit(key, kind=STATEFUL_SET, set=made)

    def reserved(unit: Unit, workload: Json) -> Json | None:
        write = request(unit, workload)
        return condition(write.object, "QuotaReserved") if isinstance(write, ApplyStatus) else None

    assert request(of_size(0), None) is None
    given = workload(of_size(2), QuotaReserved="True", Admitted="True")
    assert reserved(of_size(2), given) is None
    taken = reserved(of_size(0), given)
    assert taken is not None
    assert (taken["status"], taken["reason"]) == ("False", "OnHold")
    held = {**given, "status": {"conditions": [taken]}}
    assert reserved(of_size(0), held) is None
    waits = reserved(of_size(1), held)
    assert waits is not None
    assert (waits["status"], waits["reason"]) == ("False", "Pending")


def test_the_workload_of_a_part_of_a_set_says_whose_part_it_is() -> None:
    stored_set = stored(LEADER_WORKER_SET.example("s", TEMPLATE, queue="lq"), "u")
    made = unit_workload(Unit(KEY, kind=LEADER_WORKER_SET, set=stored_set, component="1"))
    known = owner(made)
    assert known is not None
    assert (str(known.gvk), known.name) == (str(LEADER_WORKER_SET.resource.gvk), "s")
    assert made["metadata"]["annotations"]["kueue.x-k8s.io/component-workload-index"] == "1"
    assert [(pod_set["name"], pod_set["count"]) for pod_set in made["spec"]["podSets"]] == [
        ("leader", 1),
        ("worker", 1),
    ]


def test_pods_of_a_set_are_found_by_it_and_pods_of_a_deployment_by_themselves() -> None:
    pod = single()
    pod["metadata"]["ownerReferences"] = [{"kind": "StatefulSet", "name": "s", "uid": "s", "controller": True}]
    parent = "kueue.x-k8s.io/pod-suspending-parent"
    pod["metadata"]["annotations"] = {parent: "statefulset"}
    assert pod_place(pod) == ("statefulset", ObjectKey("default", "s"), "")
    pod["metadata"]["annotations"] = {parent: "deployment"}
    assert isinstance(pod_place(pod), ObjectKey)


def test_pods_of_a_leaderworkerset_are_found_by_its_label_whichever_statefulset_made_them() -> None:
    """LeaderWorkerSet has a StatefulSet for all leaders, and one for the workers of each group."""
    pod = single()
    pod["metadata"]["annotations"] = {"kueue.x-k8s.io/pod-suspending-parent": "leaderworkerset"}
    for owner_name in ("s", "s-1"):
        labels = {"leaderworkerset.sigs.k8s.io/name": "s", "leaderworkerset.sigs.k8s.io/group-index": "1"}
        pod["metadata"]["labels"] = labels
        pod["metadata"]["ownerReferences"] = [
            {"kind": "StatefulSet", "name": owner_name, "uid": "u", "controller": True}
        ]
        assert pod_place(pod) == ("leaderworkerset", ObjectKey("default", "s"), "1")
