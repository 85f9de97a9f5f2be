"""Which jobs are delegated while they are created, and by which patch."""

from __future__ import annotations

from typing import Any

import attrs
import jsonpatch
import pytest

from multikueue.adapters import AVAILABLE, CopyRules, Delegation, JobKind, SafeAdapter
from multikueue.adapters.admission import NOTHING, Admission, admit
from multikueue.adapters.declaration import Declaration
from multikueue.adapters.declared import declared_kind
from multikueue.adapters.pod import KINDS as POD_KINDS
from multikueue.adapters.rules import ALWAYS_DELEGATED
from multikueue.core.model.kinds import CLUSTER_QUEUE, LOCAL_QUEUE
from multikueue.core.model.labels import (
    ADMISSION_GATE,
    CONTROLLER_NAME,
    HOLDING_GATE,
    POD_PARENT_ANNOTATION,
    QUEUE_LABEL,
)
from multikueue.core.model.names import GVK, Json, ObjectKey, Resource

WIDGETS = Resource(GVK("example.com", "v1", "Widget"), "widgets")
PLAIN = JobKind(resource=WIDGETS, delegation=Delegation(own_controller="example.com/widgets"))
POLICY = JobKind(resource=WIDGETS, delegation=Delegation(path=("spec", "runPolicy", "managedBy")))
LABELLED = JobKind(
    resource=WIDGETS, delegation=Delegation(path=("metadata", "labels", "example.com/run~by"), value="workers")
)


@attrs.frozen
class Known:
    """Queues of a manager: `remote` leads to workers, `here` does not, `lost` to a ClusterQueue nobody knows."""

    controller: str = CONTROLLER_NAME
    queues: tuple[tuple[str, str], ...] = (("remote", "shared"), ("here", "local"), ("lost", "gone"))

    def lookup(self, resource: Resource, key: ObjectKey) -> Json | None:
        if resource == LOCAL_QUEUE:
            return self.local_queue(key)
        assert not key.namespace
        return self.cluster_queue(key.name) if resource == CLUSTER_QUEUE else self.admission_check(key.name)

    def local_queue(self, key: ObjectKey) -> Json | None:
        target = dict(self.queues).get(key.name) if key.namespace == "team" else None
        return {"spec": {"clusterQueue": target}} if target else None

    def cluster_queue(self, name: str) -> Json | None:
        checks = {"shared": ["prepare", "multikueue"], "local": ["prepare", "unseen"], "unchecked": None}
        if name not in checks:
            return None
        listed = [{"name": check} for check in checks[name] or ()]
        return {"spec": {"admissionChecksStrategy": {"admissionChecks": listed} if listed else None}}

    def admission_check(self, name: str) -> Json | None:
        controllers = {"multikueue": self.controller, "prepare": "kueue.x-k8s.io/provisioning-request"}
        return {"spec": {"controllerName": controllers[name]}} if name in controllers else None


def widget(queue: str | None = "remote", **spec: Any) -> Json:
    labels = {} if queue is None else {QUEUE_LABEL: queue}
    return {"metadata": {"generateName": "w-", "labels": labels}, "spec": spec}


def created(job: Json, kind: JobKind = PLAIN, known: Known | None = None, *, namespace: str = "team") -> Admission:
    known = known or Known()
    return admit(SafeAdapter(kind), job, namespace, known.lookup, known.controller)


def patched(job: Json, kind: JobKind = PLAIN, known: Known | None = None) -> Json:
    result: Json = jsonpatch.apply_patch(job, list(created(job, kind, known).patch))
    return result


class TestWhichJobs:
    def test_a_job_of_a_queue_that_leads_to_workers_is_delegated(self) -> None:
        assert patched(widget(size=3))["spec"] == {"size": 3, "managedBy": CONTROLLER_NAME}

    @pytest.mark.parametrize("manager", [None, "", "example.com/widgets"])
    def test_nobody_or_the_kinds_own_controller_is_replaced(self, manager: str | None) -> None:
        """TrainJob's API fills in its own controller before any webhook is asked."""
        assert patched(widget(managedBy=manager))["spec"]["managedBy"] == CONTROLLER_NAME

    def test_a_job_that_is_delegated_stays_as_it_is(self) -> None:
        assert created(widget(managedBy=CONTROLLER_NAME)) == NOTHING

    @pytest.mark.parametrize("queue", [None, "", "here", "lost", "unknown"])
    def test_jobs_of_other_queues_or_of_none_stay_as_they_are(self, queue: str | None) -> None:
        """They run on the manager, or wait there until somebody makes their queue."""
        assert created(widget(queue)) == NOTHING

    def test_a_queue_of_the_same_name_in_another_namespace_says_nothing(self) -> None:
        assert created(widget(), namespace="other") == NOTHING

    def test_a_queue_without_checks_leads_nowhere(self) -> None:
        assert created(widget("plain"), known=Known(queues=(("plain", "unchecked"),))) == NOTHING

    def test_the_check_of_another_controller_is_not_ours(self) -> None:
        """Beside the built-in MultiKueue each looks after its own queues."""
        assert admit(SafeAdapter(PLAIN), widget(), "team", Known().lookup, "example.com/other") == NOTHING

    def test_under_another_name_of_ours_jobs_still_get_kueues_own(self) -> None:
        """Most kinds' APIs refuse every other value, and the job with it."""
        assert patched(widget(), known=Known("example.com/ours"))["spec"]["managedBy"] == CONTROLLER_NAME

    def test_a_kind_without_the_field_is_never_patched(self) -> None:
        assert created(widget(), JobKind(resource=WIDGETS, delegation=ALWAYS_DELEGATED)) == NOTHING

    @pytest.mark.parametrize("labels", [None, [], "x", {QUEUE_LABEL: 5}, {QUEUE_LABEL: None}])
    def test_labels_that_are_none_name_no_queue(self, labels: object) -> None:
        assert created({"metadata": {"labels": labels}, "spec": {}}) == NOTHING


class TestThePatch:
    def test_what_holds_the_field_is_made_where_it_is_missing(self) -> None:
        assert patched(widget(), POLICY)["spec"] == {"runPolicy": {"managedBy": CONTROLLER_NAME}}
        assert patched(widget(runPolicy=None), POLICY)["spec"] == {"runPolicy": {"managedBy": CONTROLLER_NAME}}
        assert patched({"metadata": {"labels": {QUEUE_LABEL: "remote"}}})["spec"] == {"managedBy": CONTROLLER_NAME}

    def test_what_is_beside_the_field_stays(self) -> None:
        job = widget(runPolicy={"ttl": 5}, replicas=2)
        assert patched(job, POLICY)["spec"] == {"runPolicy": {"ttl": 5, "managedBy": CONTROLLER_NAME}, "replicas": 2}

    def test_a_kind_that_says_it_by_a_label_gets_the_label(self) -> None:
        assert patched(widget(), LABELLED)["metadata"]["labels"] == {
            QUEUE_LABEL: "remote",
            "example.com/run~by": "workers",
        }

    @pytest.mark.parametrize("policy", ["x", 5, ["x"]])
    def test_a_job_the_api_server_will_refuse_is_left_to_it(self, policy: object) -> None:
        """A patch that cannot be applied would make it our failure."""
        assert created(widget(runPolicy=policy), POLICY) == NOTHING


def test_whoever_creates_a_job_that_will_be_rejected_is_told_so() -> None:
    refusing = attrs.evolve(PLAIN, copies=CopyRules(refused=lambda job: "spec.grows is true"))
    warning = "spec.grows is true; as the queue leads to worker clusters, the job will be rejected"
    for managed_by in (None, CONTROLLER_NAME):
        assert created(widget(managedBy=managed_by), refusing) == Admission(warning=warning)
    assert created(widget("here"), refusing) == NOTHING


class TestHolding:
    """With `pods.check: Ready` new pods get our own gate beside Kueue's."""

    HELD = ({"op": "add", "path": "/spec/schedulingGates/-", "value": {"name": HOLDING_GATE}},)

    @staticmethod
    def pod(queue: str = "remote", *gates: str, parent: str | None = None) -> Json:
        noted = {} if parent is None else {POD_PARENT_ANNOTATION: parent}
        listed = [{"name": gate} for gate in gates or (ADMISSION_GATE,)]
        metadata = {"generateName": "p-", "labels": {QUEUE_LABEL: queue}, "annotations": noted}
        return {"metadata": metadata, "spec": {"schedulingGates": listed}}

    @staticmethod
    def made(pod: Json, *, holds: bool = True) -> Admission:
        (kind,) = POD_KINDS
        return admit(SafeAdapter(kind), pod, "team", Known().lookup, CONTROLLER_NAME, holds=holds)

    @pytest.mark.parametrize("parent", [None, "deployment"])
    def test_a_pod_whose_queue_leads_to_workers_is_held(self, parent: str | None) -> None:
        admission = self.made(self.pod(parent=parent))
        assert admission.patch == self.HELD
        held = jsonpatch.apply_patch(self.pod(), list(admission.patch))
        assert held["spec"]["schedulingGates"] == [{"name": ADMISSION_GATE}, {"name": HOLDING_GATE}]

    def test_only_if_that_is_wanted(self) -> None:
        assert self.made(self.pod(), holds=False) == NOTHING

    @pytest.mark.parametrize("queue", ["", "here", "lost", "unknown"])
    def test_pods_of_other_queues_are_left_alone(self, queue: str) -> None:
        """They run on the manager: nobody would ever open the gate."""
        assert self.made(self.pod(queue)) == NOTHING

    @pytest.mark.parametrize("gates", [("example.com/mine",), (ADMISSION_GATE, HOLDING_GATE)])
    def test_a_pod_that_kueue_does_not_queue_or_that_is_held_is_left_alone(self, gates: tuple[str, ...]) -> None:
        """Kueue leaves out pods of its own system namespaces, and those of jobs that it looks after."""
        assert self.made(self.pod("remote", *gates)) == NOTHING

    @pytest.mark.parametrize("parent", ["statefulset", "leaderworkerset"])
    def test_a_pod_of_a_set_is_left_alone(self, parent: str) -> None:
        """The set is copied, not its pods."""
        assert self.made(self.pod(parent=parent)) == NOTHING

    @pytest.mark.parametrize("spec", [None, {}, {"schedulingGates": ["x"]}, []])
    def test_a_pod_the_api_server_will_refuse_is_left_to_it(self, spec: object) -> None:
        assert self.made({"metadata": {"labels": {QUEUE_LABEL: "remote"}}, "spec": spec}) == NOTHING

    def test_kinds_that_say_who_runs_them_are_delegated_as_ever(self) -> None:
        admission = admit(SafeAdapter(PLAIN), widget(), "team", Known().lookup, CONTROLLER_NAME, holds=True)
        assert [change["path"] for change in admission.patch] == ["/spec/managedBy"]


class TestTheWarning:
    def test_somebody_elses_name_stays_and_whoever_wrote_it_is_warned(self) -> None:
        """It may be meant. But it cannot be changed later, so the best moment to say it is now."""
        admission = created(widget(managedBy="example.com/mine"))

        assert admission.patch == ()
        assert admission.warning == (
            'spec.managedBy is "example.com/mine", but the queue leads to worker clusters: the job will be rejected. '
            'Leave the field out, or set it to "kueue.x-k8s.io/multikueue"'
        )

    def test_it_fits_into_what_api_servers_pass_on(self) -> None:
        assert len(created(widget(runPolicy={"managedBy": "x" * 500}), POLICY).warning) <= 256


DECLARED = [
    declared_kind(Declaration(name=name)) for name in ("PipelineRun.v1.tekton.dev", "Workflow.v1alpha1.argoproj.io")
]


@pytest.mark.parametrize(
    "kind", [kind for kind in (*AVAILABLE, *DECLARED) if kind.delegation.path], ids=lambda kind: kind.resource.gvk.kind
)
def test_every_kind_with_the_field_is_delegated_by_its_patch(kind: JobKind) -> None:
    """What the webhook makes of a job is what the rest of the library takes as delegated."""
    for value in (None, kind.delegation.own_controller):
        job: Json = widget()
        if value:
            parent = job
            for step in (kind.delegation.path or ())[:-1]:
                parent = parent.setdefault(step, {})
            parent[(kind.delegation.path or ())[-1]] = value
        assert kind.not_delegated(job, CONTROLLER_NAME) is not None
        assert kind.not_delegated(patched(job, kind), CONTROLLER_NAME) is None
