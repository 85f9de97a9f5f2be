"""Pods: what a copy leaves behind, what the manager's pod shows, and how a group ends."""

from __future__ import annotations

import pytest

from multikueue.adapters.pod import group_name
from multikueue.core.model.names import Json
from multikueue.core.model.objects import dig, with_value
from multikueue.sandbox.apiserver.verbs.patching import merge_patch
from tests.adapters.kinds import AT, GATED, NOW, READY, SCHEDULED, STAMP, a_job, row

POD = row("Pod")
UNSCHEDULABLE: Json = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no node"}


def local(status: Json | None = None, *, gated: bool = True, deleting: bool = False) -> Json:
    pod = a_job(POD, status or {"phase": "Pending", "conditions": [GATED]})
    if not gated:
        pod["spec"].pop("schedulingGates")
    if deleting:
        pod["metadata"]["deletionTimestamp"] = AT
    return pod


def shown(pod: Json, remote: Json) -> Json:
    """The manager's status afterwards."""
    patch = POD.status_patch(pod, remote, NOW)
    status: Json = pod["status"] if patch is None else merge_patch(pod["status"], patch["status"])
    return status


def ended(name: str) -> Json:
    return {"name": name, "state": {"terminated": {"exitCode": 0}}}


def waiting(name: str) -> Json:
    return {"name": name, "state": {"waiting": {"reason": "ContainerCreating"}}}


class TestCopy:
    def test_the_managers_idea_of_its_priority_stays_behind(self) -> None:
        """adapters.md H10: a worker's class of that name may have another value, and it would refuse the pod."""
        made = POD.copy(a_job(POD), STAMP)
        assert made["spec"]["priorityClassName"] == "urgent"
        assert {"priority", "preemptionPolicy"}.isdisjoint(made["spec"])

    def test_no_replica_set_on_the_worker_takes_it(self) -> None:
        """adapters.md H7: one of the same Deployment would adopt it and delete what is too much."""
        made = POD.copy(a_job(POD), STAMP)
        assert made["metadata"]["labels"]["app"] == "x"
        assert "pod-template-hash" not in made["metadata"]["labels"]

    def test_what_the_workers_kueue_compares_is_copied_to_the_letter(self) -> None:
        """Its containers, with the mount the manager's admission gave them; their volume comes along. Gates, too."""
        original, made = a_job(POD), POD.copy(a_job(POD), STAMP)
        for field in ("containers", "volumes", "tolerations", "schedulingGates"):
            assert made["spec"][field] == original["spec"][field]

    def test_a_pod_without_those_fields_is_copied_as_well(self) -> None:
        plain = a_job(POD)
        plain["spec"] = {"containers": []}
        plain["metadata"].pop("labels")
        gates = [{"name": "kueue.x-k8s.io/admission"}]
        assert POD.copy(plain, STAMP)["spec"] == {"containers": [], "schedulingGates": gates}


class TestStatus:
    def test_while_the_copy_has_no_node_the_pod_shows_that_it_is_gated(self) -> None:
        """Or the manager's autoscaler would make room for it."""
        remote = a_job(POD, {"phase": "Pending", "conditions": [UNSCHEDULABLE]})
        assert POD.status_patch(local(), remote, NOW) is None
        assert shown(local(), a_job(POD, {"phase": "Pending", "qosClass": "BestEffort"})) == {
            "phase": "Pending",
            "qosClass": "BestEffort",
            "conditions": [GATED],
        }

    def test_once_it_has_one_it_says_so(self) -> None:
        status = {"phase": "Running", "conditions": [READY, SCHEDULED]}
        assert shown(local(), a_job(POD, status)) == status

    def test_it_has_no_address_of_another_network(self) -> None:
        """A headless Service of the manager would list it as ready; where networks overlap it is somebody else's."""
        there = {
            "podIP": "10.0.0.1",
            "podIPs": [{"ip": "10.0.0.1"}],
            "hostIP": "10.1.0.1",
            "hostIPs": [{"ip": "10.1.0.1"}],
        }
        status = {"phase": "Running", "conditions": [READY, SCHEDULED]}
        assert shown(local(), a_job(POD, {**status, **there})) == status
        before = POD.status_patch(local({**status, **there}), a_job(POD, {**status, **there}), NOW)
        assert before is not None, "one that an earlier version has written"
        assert before["status"] == dict.fromkeys(there)

    def test_a_pod_without_a_gate_shows_what_the_copy_does(self) -> None:
        """Somebody took the gate away: nothing is hidden then."""
        status = {"phase": "Pending", "conditions": [UNSCHEDULABLE]}
        assert shown(local(gated=False), a_job(POD, status)) == status
        assert shown(a_job(POD, {"phase": "Pending"}), a_job(POD, status)) == status

    def test_a_pod_that_is_being_deleted_is_left_as_it_is_until_its_copy_has_ended(self) -> None:
        assert POD.status_patch(local(deleting=True), a_job(POD, {"phase": "Running"}), NOW) is None
        assert shown(local(deleting=True), a_job(POD, {"phase": "Succeeded"}))["phase"] == "Succeeded"

    @pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
    def test_a_copy_that_is_being_deleted_has_not_ended_by_itself(self, phase: str) -> None:
        """A node is drained, or the worker's Kueue evicts it: it is tried again, so it must not look ended here."""
        going = a_job(POD, {"phase": phase})
        going["metadata"]["deletionTimestamp"] = AT
        assert POD.status_patch(local(), going, NOW) is None
        running = with_value(going, ("status", "phase"), "Running")
        assert shown(local(), running)["phase"] == "Running"

    def test_what_has_ended_stays_ended(self) -> None:
        """Whatever a copy of it says that should not be there."""
        over = local({"phase": "Succeeded"})
        assert POD.status_patch(over, a_job(POD, {"phase": "Running"}), NOW) is None

    def test_containers_of_an_earlier_attempt_are_removed_before_new_ones_are_shown(self) -> None:
        """API servers do not let a container that has ended run again."""
        before = local({"phase": "Running", "containerStatuses": [ended("a"), waiting("b")]})
        remote = a_job(POD, {"phase": "Pending", "containerStatuses": [waiting("a"), waiting("b")]})
        first = shown(before, remote)
        assert first["containerStatuses"] == [waiting("b")]
        assert shown({**before, "status": first}, remote)["containerStatuses"] == [waiting("a"), waiting("b")]
        again = a_job(POD, {"phase": "Running", "containerStatuses": [ended("a")]})
        assert shown(before, again)["containerStatuses"] == [ended("a")]

    def test_a_pod_that_was_released_is_shown_as_gated_again(self) -> None:
        """Nothing of the run is left, and what the scheduler said of it comes back."""
        run = {"phase": "Running", "startTime": AT, "podIP": "10.0.0.1", "containerStatuses": [ended("a")]}
        patch = POD.release_patch(local({**run, "qosClass": "Burstable", "conditions": [READY, SCHEDULED]}))
        assert patch is not None
        assert patch["status"].pop("conditions")[0]["reason"] == "SchedulingGated"
        gone: Json = dict.fromkeys(("startTime", "podIP", "containerStatuses"))
        assert patch["status"] == {"phase": "Pending", **gone}


class TestGroups:
    def member(self, phase: str, *, total: str = "2", **annotations: str) -> Json:
        pod = a_job(POD, {"phase": phase})
        pod["metadata"]["labels"]["kueue.x-k8s.io/pod-group-name"] = "g"
        pod["metadata"]["annotations"] = {"kueue.x-k8s.io/pod-group-total-count": total}
        for name, value in annotations.items():
            pod["metadata"]["annotations"][f"kueue.x-k8s.io/{name.replace('_', '-')}"] = value
        return pod

    def test_a_pod_says_which_group_it_is_of(self) -> None:
        """As a label; as an annotation where the name is too long for one."""
        assert group_name(self.member("Running")) == "g"
        pod = a_job(POD)
        assert group_name(pod) == ""
        pod["metadata"]["annotations"]["kueue.x-k8s.io/pod-group-name"] = "long"
        assert group_name(pod) == "long"

    def test_it_has_ended_when_as_many_have_succeeded_as_it_has_pods(self) -> None:
        """Those that failed and were replaced do not count."""
        outcome = POD.outcome_of([self.member("Failed"), self.member("Succeeded"), self.member("Succeeded")])
        assert outcome is not None
        assert (outcome.reason, outcome.message) == ("Succeeded", "Pods succeeded: 2/2.")

    @pytest.mark.parametrize("phases", [("Succeeded", "Running"), ("Succeeded", "Failed"), ("Succeeded",)])
    def test_one_that_failed_or_is_missing_may_be_replaced(self, phases: tuple[str, ...]) -> None:
        assert POD.outcome_of([self.member(phase) for phase in phases]) is None

    def test_unless_a_pod_says_that_nothing_is_retried(self) -> None:
        """Then it has ended as soon as nothing of it runs."""
        final = self.member("Failed", retriable_in_group="false")
        outcome = POD.outcome_of([self.member("Succeeded"), final])
        assert outcome is not None
        assert outcome.message == "Pods succeeded: 1/2."
        assert POD.outcome_of([self.member("Running"), final]) is None

    def test_a_group_that_serves_does_not_end(self) -> None:
        assert POD.outcome_of([self.member("Succeeded", total="1", pod_group_serving="true")]) is None

    def test_a_group_that_does_not_say_how_large_it_is_does_not_end(self) -> None:
        """The worker's Kueue tells."""
        assert POD.outcome_of([self.member("Succeeded", total="many")]) is None

    def test_each_of_its_copies_names_the_workload_and_the_pod_it_is_of(self) -> None:
        made = POD.copy(self.member("Pending"), STAMP)
        assert POD.carriers_of(made) == ("wl",)
        assert dig(made, "metadata", "annotations", "kueue.x-k8s.io/multikueue-origin-uid") == "uid-1"


def test_only_pods_that_kueue_manages_are_read_on_the_manager() -> None:
    """A cluster has many others."""
    assert POD.membership.selector == "kueue.x-k8s.io/managed=true"


@pytest.mark.parametrize(
    ("gated", "deleting", "gone"),
    [(True, True, True), (True, False, False), (False, True, False)],
    ids=["behind its gates", "not deleted", "may run"],
)
def test_a_pod_that_is_deleted_behind_its_gates_never_runs(gated: bool, deleting: bool, gone: bool) -> None:
    """Kueue's finalizer holds it until the Workload copy of its group goes, which waits for pods that may run."""
    assert POD.pods_are_gone(local(gated=gated, deleting=deleting)) is gone
