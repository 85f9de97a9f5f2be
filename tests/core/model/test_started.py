"""What a Kueue puts into a job when it starts it."""

from __future__ import annotations

import pytest

from multikueue.core.model.labels import ADMISSION_GATE, STARTED_ANNOTATIONS, STARTED_LABELS, TOPOLOGY_GATE
from multikueue.core.model.names import Json
from multikueue.core.model.started import is_started, restore, runs_here, without_start

MARKS = [*(("labels", label) for label in STARTED_LABELS), *(("annotations", name) for name in STARTED_ANNOTATIONS)]


@pytest.mark.parametrize(("field", "mark"), MARKS)
def test_a_job_that_was_started_is_known_by_what_kueue_put_on_its_pods(field: str, mark: str) -> None:
    """Wherever its kind has its templates: in lists, mappings, beside what it wraps, or in itself (a pod)."""
    template: Json = {"metadata": {field: {"mine": "x", mark: "main"}}, "spec": {}}
    jobs: list[Json] = [
        {"metadata": {}, "spec": {"template": template}},
        {"spec": {"replicatedJobs": [{"template": {"spec": {"template": template}}}]}},
        {"spec": {"pytorchReplicaSpecs": {"Worker": {"template": template}}}},
        {"spec": {"components": [{"podSetInfos": [template["metadata"]]}]}},
        template,
    ]
    for job in jobs:
        assert is_started(job)
        assert not is_started(without_start(job))
        assert "'mine': 'x'" in str(without_start(job))


def test_a_job_in_a_queue_is_not_started() -> None:
    """Not every label of Kueue's says so."""
    labels = {"kueue.x-k8s.io/queue-name": "q", "kueue.x-k8s.io/managed": "true"}
    assert not is_started({"metadata": {"labels": labels}, "spec": {"template": {"metadata": {"labels": labels}}}})
    assert not is_started({"spec": {"labels": "no mapping", "annotations": None}})


def test_gates_of_one_cluster_go_with_the_marks() -> None:
    """A pod behind them would wait for ever where nobody opens them."""
    gates = [{"name": TOPOLOGY_GATE}, {"name": "multikueue.dev/hold"}, {"name": "example.com/license"}]
    assert without_start({"spec": {"schedulingGates": gates}}) == {
        "spec": {"schedulingGates": [{"name": "example.com/license"}]}
    }
    assert without_start({"spec": {"schedulingGates": gates[:2]}}) == {"spec": {}}


def test_a_template_is_restored_from_its_pod_set_and_keeps_what_the_api_server_filled_in() -> None:
    """As Kueue does when it stops the job; the pod set stays as it is."""
    original: Json = {
        "metadata": {"labels": {"app": "x"}},
        "spec": {"nodeSelector": {"disk": "fast"}, "containers": []},
    }
    template: Json = {
        "metadata": {"labels": {"app": "x", "job-name": "j", STARTED_LABELS[0]: "main"}, "annotations": {"a": "b"}},
        "spec": {"nodeSelector": {"disk": "fast", "pool": "manager"}, "tolerations": [{"key": "t"}], "containers": [1]},
    }
    restore(template, {"template": original}, ("job-name",))
    assert template == {
        "metadata": {"labels": {"app": "x", "job-name": "j"}},
        "spec": {"nodeSelector": {"disk": "fast"}, "containers": [1]},
    }
    template["spec"]["nodeSelector"]["disk"] = "slow"
    assert original["spec"]["nodeSelector"] == {"disk": "fast"}


@pytest.mark.parametrize(
    ("gates", "expected"),
    [([], True), (["example.com/license"], True), ([ADMISSION_GATE], False), (["multikueue.dev/hold"], False)],
)
def test_a_started_pod_that_no_gate_of_kueues_or_ours_holds_runs_where_it_is(gates: list[str], expected: bool) -> None:
    """One that was created from what was shown of another has its labels, and Kueue's gate."""
    pod = {
        "metadata": {"labels": {STARTED_LABELS[0]: "main"}},
        "spec": {"schedulingGates": [{"name": name} for name in gates]},
    }
    assert runs_here(pod) is expected
    assert not runs_here({**pod, "metadata": {}})
