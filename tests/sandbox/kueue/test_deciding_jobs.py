"""What Kueue does next about a job."""

from __future__ import annotations

import copy
from datetime import UTC, datetime
from typing import Any

import pytest

from multikueue.core.model.eviction import evicted, with_condition
from multikueue.core.model.names import Json
from multikueue.sandbox.kinds import BATCH_JOB, trainer
from multikueue.sandbox.kinds.injecting import Injection, TemplateConflictError
from multikueue.sandbox.kueue.building import build_workload
from multikueue.sandbox.kueue.deciding_jobs import JobSituation, decide_job
from multikueue.sandbox.kueue.effects import (
    NOTHING,
    ApplyStatus,
    Create,
    Decision,
    Delete,
    Replace,
    Request,
    Rest,
    Step,
)
from multikueue.sandbox.kueue.starting import start, suspended_when_queued
from multikueue.sandbox.kueue.statuses import finished, released, reserved
from tests.kinds.ground import TEMPLATE
from tests.sandbox.kueue.objects import condition, job

NOW = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)
STOPPING = "kueue.x-k8s.io/stopping"
PREBUILT = "kueue.x-k8s.io/prebuilt-workload-name"
ASSIGNED = [{"name": "main", "count": 1, "flavors": {"cpu": "default"}, "resourceUsage": {"cpu": "1"}}]


def stored(status: Json | None = None, *, uid: str = "job", **arguments: Any) -> Json:
    """A Job as the server has it; suspended unless it says otherwise."""
    batch_job = job(**{"suspend": True, **arguments})
    batch_job["metadata"].update(uid=uid, resourceVersion="5")
    batch_job["status"] = status or {}
    return batch_job


def running(status: Json | None = None, **arguments: Any) -> Json:
    """A Job that Kueue has started."""
    running_job = stored(status or {"startTime": "t"}, suspend=False, **arguments)
    running_job["spec"]["template"]["metadata"] = {"annotations": {"kueue.x-k8s.io/workload": "w"}}
    return running_job


def workload(of: Json) -> Json:
    """The Workload Kueue made for a Job, as the server has it; its pods were reported as not ready."""
    made = build_workload(BATCH_JOB, of, 0)
    made["metadata"].update(uid="workload", resourceVersion="7", generation=1)
    return with_condition(made, "PodsReady", False, "WaitForStart", "Not all pods are ready or succeeded", NOW)


def admitted(of: Json) -> Json:
    return reserved(workload(of), "cq", ASSIGNED, NOW)


def decide(job: Json, its: Json | None = None, **more: Any) -> Decision:
    before = copy.deepcopy((job, its))
    decision = decide_job(JobSituation(BATCH_JOB, job, its, NOW, **more))
    assert (job, its) == before, "deciding changes nothing"
    return decision


def request(decision: Decision, kind: type[Request]) -> Any:
    assert isinstance(decision, Step)
    assert isinstance(decision.request, kind)
    return decision.request


def notes_of(decision: Decision) -> list[tuple[str, str]]:
    assert isinstance(decision, Step | Rest)
    return [(note.reason, note.note) for note in decision.notes]


def after(job: Json, decision: Decision) -> Json:
    """The Job once a PUT of it has been done."""
    result: Json = copy.deepcopy(request(decision, Replace).object)
    return {**result, "metadata": {**result["metadata"], "resourceVersion": "6"}}


def test_a_job_without_a_queue_is_not_kueues() -> None:
    assert decide(stored(queue=None, suspend=False)) == NOTHING


def test_a_new_job_is_suspended_before_it_gets_a_workload() -> None:
    """Kueue's webhook would have done it; without one it is the first thing to do."""
    decision = decide(stored(suspend=False))
    assert request(decision, Replace).object["spec"]["suspend"] is True
    assert notes_of(decision) == []
    assert suspended_when_queued(job(suspend=False))["spec"]["suspend"] is True
    assert suspended_when_queued(job(queue=None, suspend=False))["spec"]["suspend"] is False


def test_a_suspended_job_gets_a_workload_that_it_owns() -> None:
    decision = decide(stored(), priority=7)
    made = request(decision, Create).object
    assert made["metadata"]["labels"] == {"kueue.x-k8s.io/job-uid": "job"}
    assert made["metadata"]["finalizers"] == ["kueue.x-k8s.io/resource-in-use"]
    assert made["metadata"]["ownerReferences"][0]["controller"] is True
    assert (made["spec"]["queueName"], made["spec"]["priority"]) == ("lq", 7)
    assert notes_of(decision) == [("CreatedWorkload", f"Created Workload: default/{made['metadata']['name']}")]


def test_a_workload_names_its_priority_class() -> None:
    made = request(decide(stored(labels={"kueue.x-k8s.io/priority-class": "high"}), priority=9), Create).object
    reference = {"group": "kueue.x-k8s.io", "kind": "WorkloadPriorityClass", "name": "high"}
    assert (made["spec"]["priorityClassRef"], made["spec"]["priority"]) == (reference, 9)


def test_pods_of_a_former_life_go_before_a_new_workload_comes() -> None:
    assert decide(stored({"active": 1})) == NOTHING


def test_an_ended_job_gets_no_workload() -> None:
    ended = {"conditions": [{"type": "Complete", "status": "True"}]}
    assert decide(stored(ended, suspend=False)) == NOTHING


def test_a_job_with_a_prebuilt_workload_waits_for_it() -> None:
    waiting = stored(annotations={PREBUILT: "w"})
    assert decide(waiting) == NOTHING
    assert notes_of(decide(running(annotations={PREBUILT: "w"}))) == [("Stopped", "missing workload")]


def test_a_prebuilt_workload_is_adopted() -> None:
    adopter = stored(annotations={PREBUILT: "w"})
    prebuilt = workload(adopter)
    prebuilt["metadata"].update(labels={"kueue.x-k8s.io/multikueue-origin": "multikueue"}, ownerReferences=[])
    adopted = request(decide(adopter, prebuilt), Replace).object["metadata"]
    assert adopted["ownerReferences"][0]["uid"] == "job"
    assert adopted["labels"] == {
        "kueue.x-k8s.io/multikueue-origin": "multikueue",
        "kueue.x-k8s.io/job-uid": "job",
    }


def test_another_jobs_workload_is_not_touched() -> None:
    another = stored(annotations={PREBUILT: "w"})
    assert decide(another, workload(stored(uid="another"))) == NOTHING


def test_a_job_that_is_not_what_its_prebuilt_workload_says_is_out_of_sync() -> None:
    changed = stored(annotations={PREBUILT: "w"}, cpu="2")
    its = workload(stored())
    body = request(decide(changed, its), ApplyStatus).object
    message = "The prebuilt workload is out of sync with its user job"
    assert condition(body, "Finished") == ("True", "OutOfSync", message)


def test_a_workload_of_a_changed_suspended_job_is_rewritten() -> None:
    decision = decide(stored(parallelism=2, completions=2), workload(stored()))
    assert request(decision, Replace).object["spec"]["podSets"][0]["count"] == 2
    assert notes_of(decision)[0][0] == "UpdatedWorkload"


def test_a_workload_of_a_changed_running_job_is_replaced_after_a_stop() -> None:
    grown = running({"startTime": "t", "active": 2}, parallelism=2, completions=2)
    its = admitted(stored())
    assert notes_of(decide(grown, its))[0][0] == "Stopped"
    stopped = stored(parallelism=2, completions=2)
    first = decide(stopped, its)
    assert request(first, Replace).object["metadata"]["finalizers"] == []
    bare = {**its, "metadata": {**its["metadata"], "finalizers": []}}
    assert request(decide(stopped, bare), Delete).uid == "workload"


def test_an_admitted_job_is_started_with_what_its_admission_adds() -> None:
    def injections() -> dict[str, Injection]:
        return {"main": Injection(labels={"kueue.x-k8s.io/podset": "main"}, node_selector={"pool": "spot"})}

    decision = decide(stored(), admitted(stored()), injections=injections)
    started = request(decision, Replace).object["spec"]
    assert started["suspend"] is False
    assert started["template"]["metadata"]["labels"]["kueue.x-k8s.io/podset"] == "main"
    assert started["template"]["spec"]["nodeSelector"] == {"pool": "spot"}
    assert notes_of(decision) == [("Started", "Admitted by clusterQueue cq")]


def test_a_job_whose_template_contradicts_its_admission_fails_to_start() -> None:
    def injections() -> dict[str, Injection]:
        raise TemplateConflictError("no way")

    body = request(decide(stored(), admitted(stored()), injections=injections), ApplyStatus).object
    assert condition(body, "Finished") == ("True", "FailedToStart", "no way")


def test_a_job_somebody_unsuspended_without_admission_is_stopped() -> None:
    suspended = {"conditions": [{"type": "Suspended", "status": "True"}]}
    stopped = [("Stopped", "Not admitted by cluster queue")]
    assert notes_of(decide(stored(suspended, suspend=False), workload(stored()))) == stopped
    assert notes_of(decide(stored(suspended, suspend=False), admitted(stored()))) == stopped, (
        "it lacks what admission adds"
    )


def test_stopping_goes_by_way_of_the_start_time() -> None:
    """The API refuses a new template while the status shows a start, so it takes three writes."""
    running_job = running()
    running_job["spec"]["template"]["metadata"]["labels"] = {"kueue.x-k8s.io/podset": "main", "controller-uid": "u"}
    its = evicted(admitted(stored()), "Preempted", "make room", NOW)

    first = decide(running_job, its)
    suspended = after(running_job, first)
    assert (suspended["spec"]["suspend"], suspended["metadata"]["annotations"][STOPPING]) == (True, "true")
    assert not BATCH_JOB.is_suspended(suspended), "it is only being stopped"
    assert notes_of(first) == [("Stopped", "make room")]

    second = decide(suspended, its)
    assert request(second, Replace).subresource == "status"
    cleared = after(suspended, second)
    assert "startTime" not in cleared["status"]

    restored = after(cleared, decide(cleared, its))
    assert restored["spec"]["template"]["metadata"] == {"labels": {"controller-uid": "u"}}
    assert STOPPING not in restored["metadata"]["annotations"]
    assert BATCH_JOB.is_suspended(restored)


def test_a_stop_goes_on_where_the_job_has_ended_meanwhile_and_its_workload_is_deleted() -> None:
    """The API refuses to take the start away from it, so Kueue does not let its Workload go before that is finished."""
    ended = stored({"startTime": "t", "conditions": [{"type": "Complete", "status": "True"}]})
    ended["metadata"]["annotations"] = {STOPPING: "true"}
    its = admitted(stored())
    its["metadata"].update(deletionTimestamp="t", finalizers=["kueue.x-k8s.io/resource-in-use"])
    decision = decide(ended, its)
    assert request(decision, Replace).subresource == "status"
    assert "startTime" not in after(ended, decision)["status"]


def test_a_trainjob_is_restored_only_once_its_pods_are_gone() -> None:
    """The trainer's webhook refuses a changed runtime patch while the JobSet has an active Job."""
    (kind,) = trainer.KINDS
    fresh = kind.example("t", TEMPLATE, queue="lq", delegated=False)
    fresh["metadata"].update(uid="job", resourceVersion="5")
    its = evicted(reserved(build_workload(kind, fresh, 0), "cq", ASSIGNED, NOW), "Preempted", "make room", NOW)
    its = with_condition(its, "PodsReady", False, "WaitForStart", "Not all pods are ready or succeeded", NOW)
    started = start(kind, fresh, {"node": Injection(labels={"kueue.x-k8s.io/podset": "node"})}).object
    started["status"] = {"jobsStatus": [{"name": "node", "active": 1}]}

    suspended = after(started, decide_job(JobSituation(kind, started, its, NOW)))
    assert (suspended["spec"]["suspend"], kind.is_suspended(suspended)) == (True, False)
    assert suspended["spec"]["runtimePatches"] == started["spec"]["runtimePatches"]
    assert decide_job(JobSituation(kind, suspended, its, NOW)) == NOTHING

    gone = {**suspended, "status": {"jobsStatus": [{"name": "node", "active": 0}]}}
    restored = after(gone, decide_job(JobSituation(kind, gone, its, NOW)))
    assert kind.is_suspended(restored)
    assert "runtimePatches" not in restored["spec"]


def test_quota_is_released_when_no_pod_is_left() -> None:
    """On the manager the number of pods is what MultiKueue copies from the worker."""
    its = evicted(admitted(stored()), "Preempted", "make room", NOW)
    assert decide(stored({"active": 1}), its) == NOTHING
    body = request(decide(stored({"active": 0}), its), ApplyStatus).object
    assert condition(body, "QuotaReserved") == ("False", "Preempted", "make room")
    assert decide(stored(), released(its, NOW)) == NOTHING


@pytest.mark.parametrize(("kind", "reason"), [("Complete", "Succeeded"), ("Failed", "Failed")])
def test_the_end_of_a_job_is_the_end_of_its_workload(kind: str, reason: str) -> None:
    """Whoever wrote the job's status: its controller, or MultiKueue on the manager."""
    ended = running({"conditions": [{"type": kind, "status": "True", "message": "over"}]})
    its = admitted(stored())
    decision = decide(ended, its)
    assert condition(request(decision, ApplyStatus).object, "Finished") == ("True", reason, "over")
    name = its["metadata"]["name"]
    assert notes_of(decision) == [("FinishedWorkload", f"Workload 'default/{name}' is declared finished")]
    assert decide(ended, finished(its, reason, "over", NOW)) == NOTHING


def test_readiness_of_pods_is_reported_under_a_name_of_its_own() -> None:
    apply = request(decide(running({"ready": 1, "active": 1}), admitted(stored())), ApplyStatus)
    assert apply.field_manager == "kueue-job-controller-PodsReady"
    assert [entry["type"] for entry in apply.object["status"]["conditions"]] == ["PodsReady"]
    message = "All pods reached readiness and the workload is running"
    assert condition(apply.object, "PodsReady") == ("True", "Started", message)


@pytest.mark.parametrize(
    ("ready", "was", "becomes"),
    [
        (0, ("True", "Started"), ("False", "WaitForRecovery")),
        (0, ("False", "WaitForRecovery"), None),
        (1, ("False", "WaitForRecovery"), ("True", "Recovered")),
        (1, ("True", "Recovered"), None),
        (0, ("False", "WaitForStart"), None),
    ],
)
def test_pods_that_fail_are_waited_for(ready: int, was: tuple[str, str], becomes: tuple[str, str] | None) -> None:
    its = with_condition(admitted(stored()), "PodsReady", was[0] == "True", was[1], "m", NOW)
    decision = decide(running({"ready": ready, "active": 1}), its)
    if becomes is None:
        assert decision == NOTHING
    else:
        assert (condition(request(decision, ApplyStatus).object, "PodsReady") or ())[:2] == becomes


def test_what_the_checks_say_is_told_on_the_job() -> None:
    its = workload(stored())
    its["status"]["admissionChecks"] = [{"name": "mk", "state": "Pending", "message": "looking"}]
    assert notes_of(decide(stored(), its)) == [], "without quota nobody has looked yet"
    its = reserved(its, "cq", ASSIGNED, NOW)
    assert notes_of(decide(stored(), its)) == [("UpdatedAdmissionCheck", "mk: looking")]


def test_a_waiting_job_may_change_its_queue() -> None:
    assert request(decide(stored(queue="other"), workload(stored())), Replace).object["spec"]["queueName"] == "other"


def test_a_deleted_workload_is_let_go_once_its_job_is_stopped() -> None:
    its = admitted(stored())
    its["metadata"]["deletionTimestamp"] = "t"
    assert notes_of(decide(running(), its))[0][0] == "Stopped"
    assert request(decide(stored(), its), Replace).object["metadata"]["finalizers"] == []


def test_a_job_that_is_being_deleted_is_left_alone() -> None:
    leaving = stored()
    leaving["metadata"]["deletionTimestamp"] = "t"
    assert decide(leaving, workload(stored())) == NOTHING
