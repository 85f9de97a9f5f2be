"""A job of any kind that a Kueue has started is copied as if it had never been: worker's Kueues start it anew."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from multikueue.adapters import AVAILABLE, JobKind
from multikueue.adapters.declaration import Declaration
from multikueue.adapters.declared import declared_kind
from multikueue.core.model.adapter import Stamp
from multikueue.core.model.copies import workload_copy
from multikueue.core.model.labels import STARTED_LABELS
from multikueue.core.model.names import Json
from multikueue.core.model.objects import clone, dig, with_value, without
from multikueue.core.model.started import is_started
from multikueue.sandbox.kinds.injecting import Injection
from multikueue.sandbox.kueue.building import build_workload
from multikueue.testing.objects import stored
from tests.kinds.cases import Case, cases
from tests.kinds.ground import TEMPLATE

LEFT_TO_SETS = ("deployment", "statefulset", "leaderworkerset")
"""Kueue starts the pods of these, and leaves their templates alone."""
ALL = [pytest.param(case, id=case.name) for case in cases() if case.name not in LEFT_TO_SETS]
LABELS: Json = dict.fromkeys(STARTED_LABELS, "theirs")
CHANGED = Injection(
    labels=LABELS,
    annotations={"kueue.x-k8s.io/workload": "wl", "kueue.x-k8s.io/workload-slice-name": "wl"},
    node_selector={"cloud.example.com/pool": "of-the-manager"},
    tolerations=({"key": "spot", "operator": "Exists"},),
)
USERS: Json = with_value(
    with_value(TEMPLATE, ("spec", "nodeSelector"), {"disk": "fast"}),
    ("spec", "tolerations"),
    [{"key": "gpu", "operator": "Exists"}],
)


def submitted(case: Case) -> Json:
    """A job that has never been started."""
    return stored(case.kind.examples("sample", USERS, queue="q")[0])


def workload_of(case: Case, job: Json) -> Json:
    return build_workload(case.kind, job, 0)


def started(case: Case, job: Json, **changes: Any) -> Json:
    """The same after a Kueue has started it: with what is its cluster's in every template."""
    made = case.kind.with_suspend(job, False)
    names = [pod_set["name"] for pod_set in workload_of(case, job)["spec"]["podSets"]]
    case.kind.pods.inject(made, dict.fromkeys(names, attrs.evolve(CHANGED, **changes)))
    return made


def stamp(workload: Json) -> Stamp:
    return Stamp("multikueue", "wl", "attempt", pod_sets=tuple(workload["spec"]["podSets"]))


def held(case: Case, copied: Json) -> Json:
    """A TaskRun has no field that keeps it from starting: in the sandbox an annotation does, and nobody declared it."""
    return case.kind.with_suspend(copied, True) if case.name == "taskrun" else copied


def without_places(value: Any) -> Any:
    """Without node selectors and tolerations."""
    if isinstance(value, list):
        return [without_places(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {key: without_places(item) for key, item in value.items() if key not in ("nodeSelector", "tolerations")}


@pytest.mark.parametrize("case", ALL)
def test_the_copy_of_a_started_job_is_that_of_one_that_never_was(case: Case) -> None:
    """While the manager's Kueue has it started: the check is Ready, or the start before has not been put back yet."""
    before = submitted(case)
    workload = workload_of(case, before)
    expected = case.adapter.copy(before, stamp(workload))
    after = started(case, before)
    assert after != before
    assert is_started(after) == is_started(clone(after))
    assert is_started(after)
    untouched = clone(after)
    assert held(case, case.adapter.copy(after, stamp(workload))) == held(case, expected)
    assert after == untouched


@pytest.mark.parametrize("case", ALL)
def test_a_job_pasted_from_a_started_one_is_copied_without_its_marks(case: Case) -> None:
    """`kubectl get -o yaml | kubectl create`: its Workload has them in its pod sets as well, and nothing tells the node
    selectors and tolerations of that start from the user's."""
    expected = case.adapter.copy(submitted(case), stamp(workload_of(case, submitted(case))))
    pasted = case.kind.submitted(started(case, submitted(case)))
    workload = stored(workload_of(case, pasted))
    for job in (pasted, started(case, pasted)):
        copied = case.adapter.copy(job, stamp(workload))
        assert not is_started(copied)
        assert without_places(held(case, copied)) == without_places(held(case, expected))
    assert not is_started(workload_copy(workload, stamp(workload))["spec"])


@pytest.mark.parametrize("kind", AVAILABLE, ids=lambda kind: kind.resource.gvk.kind)
def test_every_kind_with_templates_says_where_they_are(kind: JobKind) -> None:
    """Kueue does not touch the templates of the others: it starts their pods, or writes beside what they wrap."""
    without_any = {"Pod", "StatefulSet", "LeaderWorkerSet", "TrainJob", "AppWrapper"}
    assert bool(kind.copies.templates) == (kind.resource.gvk.kind not in without_any)


JOB = next(case for case in cases() if case.name == "job")


def test_gates_of_a_topology_are_taken_out_and_the_users_stay() -> None:
    """On a worker without topologies nobody would open them."""
    gated = with_value(submitted(JOB), ("spec", "template", "spec", "schedulingGates"), [{"name": "example.com/mine"}])
    workload = workload_of(JOB, gated)
    after = started(JOB, gated)
    after["spec"]["template"]["spec"]["schedulingGates"].append({"name": "kueue.x-k8s.io/topology"})
    made = JOB.adapter.copy(after, stamp(workload))
    assert made == JOB.adapter.copy(gated, stamp(workload))
    assert dig(made, "spec", "template", "spec", "schedulingGates") == [{"name": "example.com/mine"}]


def test_a_job_that_the_managers_kueue_is_stopping_is_copied_as_any_other() -> None:
    """The worker's Kueue would take the copy for one that it is stopping itself."""
    job = submitted(JOB)
    workload = workload_of(JOB, job)
    stopping = with_value(started(JOB, job), ("spec", "suspend"), True)
    stopping["metadata"]["annotations"] = {"kueue.x-k8s.io/stopping": "true"}
    assert JOB.adapter.copy(stopping, stamp(workload)) == JOB.adapter.copy(job, stamp(workload))


@pytest.mark.parametrize("completions", [None, "true"])
def test_a_job_that_was_started_with_fewer_pods_is_copied_with_all_of_them(completions: str | None) -> None:
    """The worker may have more room than the manager's quota had."""
    job = submitted(JOB)
    job["metadata"]["annotations"] = {"kueue.x-k8s.io/job-min-parallelism": "1"}
    job["spec"] |= {"parallelism": 5, "completions": 5}
    fewer = {"parallelism": 2}
    if completions:
        job["metadata"]["annotations"]["kueue.x-k8s.io/job-completions-equal-parallelism"] = completions
        fewer["completions"] = 2
    workload = workload_of(JOB, job)
    after = started(JOB, job)
    after["spec"] |= fewer
    assert JOB.adapter.copy(after, stamp(workload)) == JOB.adapter.copy(job, stamp(workload))


def test_what_the_api_server_filled_in_stays_or_goes_as_ever() -> None:
    """Pod sets do not have these labels."""
    job, label = submitted(JOB), ("spec", "template", "metadata", "labels")
    generated = {"job-name": "sample", "controller-uid": "u", "batch.kubernetes.io/job-name": "sample"}
    job = with_value(job, label, {**dig(job, *label), **generated})
    workload = workload_of(JOB, with_value(job, label, {"team": "a"}))
    made = JOB.adapter.copy(started(JOB, job), stamp(workload))
    assert dig(made, *label) == {"team": "a", "batch.kubernetes.io/job-name": "sample"}


def test_what_a_user_has_edited_since_is_copied_while_the_job_was_not_started() -> None:
    """Kueue makes no other Workload for a changed node selector, and starts the job as it is."""
    job = submitted(JOB)
    workload = workload_of(JOB, job)
    edited = with_value(job, ("spec", "template", "spec", "nodeSelector"), {"disk": "slow"})
    made = JOB.adapter.copy(edited, stamp(workload))
    assert dig(made, "spec", "template", "spec", "nodeSelector") == {"disk": "slow"}


class TestPods:
    POD = next(case for case in cases() if case.name == "pod")

    def test_the_copy_waits_for_the_workers_kueue_alone(self) -> None:
        """The manager's Kueue may have opened its gate, with our own holding the pod on the manager."""
        gates = [{"name": "multikueue.dev/hold"}, {"name": "kueue.x-k8s.io/topology"}, {"name": "example.com/mine"}]
        pod = with_value(submitted(self.POD), ("spec", "schedulingGates"), gates)
        made = self.POD.adapter.copy(pod, stamp(workload_of(self.POD, pod)))
        assert dig(made, "spec", "schedulingGates") == [
            {"name": "example.com/mine"},
            {"name": "kueue.x-k8s.io/admission"},
        ]

    def test_one_of_a_group_is_restored_from_the_pod_set_of_its_role(self) -> None:
        """Only where it may run: labels and annotations are each pod's own."""
        pod_sets = [
            {"name": role, "count": 1, "template": {"metadata": {"labels": {"of": role}}, "spec": {"nodeSelector": n}}}
            for role, n in (("driver", {"disk": "fast"}), ("worker", {"disk": "slow"}))
        ]
        pod = submitted(self.POD)
        pod["metadata"]["annotations"] = {"kueue.x-k8s.io/role-hash": "worker"}
        after = started(self.POD, pod)
        for changed, expected in (
            (after, {"disk": "slow"}),
            (with_value(after, ("metadata", "labels", "kueue.x-k8s.io/podset"), "driver"), {"disk": "fast"}),
        ):
            made = self.POD.adapter.copy(changed, Stamp("here", "wl", "attempt", pod_sets=tuple(pod_sets)))
            assert made["spec"]["nodeSelector"] == expected
            assert "of" not in made["metadata"]["labels"]


class TestDeclared:
    """Kinds of other projects: what they do when they start a job is not known."""

    @staticmethod
    def widget(**selectors: str) -> Json:
        templates = [{"name": name, "pods": _template(selector)} for name, selector in selectors.items()]
        spec = {"suspend": False, "main": _template("main"), "parts": templates}
        return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w", "namespace": "ns"}} | {
            "spec": spec
        }

    def test_the_marks_are_taken_out_wherever_they_are(self) -> None:
        """All else stays."""
        job = self.widget(a="a")
        kind = declared_kind(Declaration(name="Widget.v1.example.com"))
        marked = with_value(job, ("spec", "main", "metadata"), {"labels": LABELS})
        marked["metadata"]["annotations"] = {"kueue.x-k8s.io/workload": "wl"}
        made = kind.copy(marked, Stamp("here", "wl", "attempt"))
        assert made["spec"] == with_value(job["spec"], ("main", "metadata"), {})
        assert set(made["metadata"]["annotations"]) == {
            "kueue.x-k8s.io/prebuilt-workload-name",
            "multikueue.dev/attempt",
        }

    def test_declared_templates_are_restored_in_the_order_of_the_pod_sets(self) -> None:
        """As the integration made them; if the numbers differ, nothing is known."""
        paths = (".spec.main", ".spec.parts[*].pods")
        kind = declared_kind(
            Declaration(name="Widget.v1.example.com", suspend_path=".spec.suspend", template_paths=paths)
        )
        before = self.widget(a="a", b="b")
        pod_sets = [{"name": name, "template": _template(name)} for name in ("main", "a", "b")]
        after = clone(before)
        for template in (after["spec"]["main"], *(part["pods"] for part in after["spec"]["parts"])):
            template["metadata"] = {"labels": LABELS}
            template["spec"]["nodeSelector"] = {"pool": "manager"}
        made = kind.copy(after, Stamp("here", "wl", "attempt", pod_sets=tuple(pod_sets)))
        assert made == kind.copy(before, Stamp("here", "wl", "attempt"))
        made = kind.copy(after, Stamp("here", "wl", "attempt", pod_sets=tuple(pod_sets[:2])))
        assert not is_started(made)
        assert made["spec"]["main"]["spec"]["nodeSelector"] == {"pool": "manager"}

    def test_config_maps_are_found_where_a_declaration_says_it_names_them(self) -> None:
        paths = (".spec.settings", ".spec.parts[*].settings", ".spec.more[*]", ".spec.main")
        kind = declared_kind(Declaration(name="Widget.v1.example.com", config_map_paths=paths))
        job: Json = {
            "spec": {"settings": "a", "parts": [{"settings": "b"}, {}, 3], "more": ["c", 1], "main": {"x": "y"}}
        }
        assert kind.config_maps(job) == ("a", "b", "c")
        assert kind.config_maps({"spec": {"settings": None}}) == ()

    def test_a_job_that_does_not_say_where_it_is_held_is_copied_as_it_is(self) -> None:
        """No field of that name may be there."""
        kind = declared_kind(Declaration(name="Widget.v1.example.com"))
        job = without(self.widget(), [("spec", "suspend")])
        marked = with_value(job, ("spec", "main", "metadata"), {"labels": LABELS})
        assert "suspend" not in kind.copy(marked, Stamp("here", "wl", "attempt"))["spec"]


def _template(name: str) -> Json:
    return {"spec": {"containers": [{"name": "c"}], "nodeSelector": {"disk": name}}}
