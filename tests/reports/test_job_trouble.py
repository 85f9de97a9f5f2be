"""What a job's own status says of trouble, kind by kind; healthy runs, as real controllers write them, say none."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import attrs
import pytest

from multikueue.core.model.conditions import new_condition, timestamp
from multikueue.core.model.names import Json
from multikueued.reports.explanation import Explanation, explain
from multikueued.reports.jobs import JobState, job_report
from multikueued.reports.remedies.job_trouble import READY, TROUBLE, is_ready, own_trouble, should_have_pods
from multikueued.reports.seen import Seen
from tests.reports.objects import CHECK, NOW, fleet, job, stored, workload

OPERATORS: Final = Path(__file__).parents[1] / "data" / "operators"
TRAIN: Final = stored(job("train"))
RUNNING: Final = workload(TRAIN, cluster="worker1", checks={CHECK: "Ready"})
HOUR: Final = timedelta(hours=1)
MINUTES: Final = timedelta(minutes=10)


def of_kind(kind: str, **status: Any) -> Json:
    """A job of a kind, as `RayJob.ray.io`."""
    name, _, group = kind.partition(".")
    return {**TRAIN, "apiVersion": f"{group}/v1" if group else "v1", "kind": name, "status": status}


def saying(type: str, reason: str = "", message: str = "", *, status: bool = True) -> Json:
    return {"conditions": [new_condition(type, status, reason, message, now=NOW)]}


def explained(of: Json, after: timedelta = timedelta(0), made: Json = RUNNING) -> Explanation:
    return explain(Seen(made, of, fleet(made), (), NOW + after))


def serving(field: str, **application: str) -> Json:
    return {field: {"applicationStatuses": {"first": {"status": "RUNNING"}, "second": application}}}


@attrs.frozen
class Case:
    """A status that says that something is wrong, and what is told of it."""

    kind: str
    status: Json
    id: str
    words: str
    after: timedelta = timedelta(0)
    """From when on it counts."""


CASES: Final = (
    Case(
        "RayJob.ray.io",
        {"jobDeploymentStatus": "ValidationFailed", "message": "name is too long"},
        "job-refused",
        "ValidationFailed: name is too long",
    ),
    Case(
        "RayJob.ray.io", {"rayClusterStatus": {"state": "failed", "reason": "quota"}}, "job-unhealthy", "failed: quota"
    ),
    Case("RayCluster.ray.io", {"state": "failed", "reason": "no head"}, "job-unhealthy", "failed: no head"),
    Case(
        "RayCluster.ray.io",
        saying("ReplicaFailure", "FailedCreateHeadPod", "exceeded quota"),
        "job-unhealthy",
        "FailedCreateHeadPod: exceeded quota",
    ),
    Case(
        "RayCluster.ray.io",
        saying("HeadPodReady", "ImagePullBackOff", "Back-off", status=False),
        "job-unhealthy",
        "ImagePullBackOff: Back-off",
        timedelta(minutes=5),
    ),
    Case(
        "RayService.ray.io",
        saying("Ready", "InitializingTimeout", "not in 10m", status=False),
        "job-unhealthy",
        "InitializingTimeout: not in 10m",
    ),
    Case(
        "RayService.ray.io",
        saying("Ready", "ZeroServeEndpoints", status=False),
        "job-unhealthy",
        "ZeroServeEndpoints",
        MINUTES,
    ),
    Case(
        "RayService.ray.io",
        serving("pendingServiceStatus", status="DEPLOY_FAILED", message="no module named app"),
        "job-unhealthy",
        "DEPLOY_FAILED: no module named app",
    ),
    Case(
        "RayService.ray.io",
        serving("activeServiceStatus", status="UNHEALTHY", message="a replica died"),
        "job-unhealthy",
        "UNHEALTHY: a replica died",
    ),
    Case(
        "JobSet.jobset.x-k8s.io",
        saying("StartupPolicyInProgress", "InOrder", "startup policy is in progress"),
        "job-stuck",
        "InOrder: startup policy is in progress",
        HOUR,
    ),
    Case("JobSet.jobset.x-k8s.io", saying("RestartingJobSet", "Policy"), "job-unhealthy", "Policy", MINUTES),
    Case(
        "AppWrapper.workload.codeflare.dev", saying("Unhealthy", "FoundFailedPods"), "job-unhealthy", "FoundFailedPods"
    ),
    *(
        Case(
            f"{kind}.kubeflow.org",
            saying("Restarting", "Restarting", "a replica"),
            "job-unhealthy",
            "Restarting: a replica",
            MINUTES,
        )
        for kind in ("JAXJob", "PaddleJob", "PyTorchJob", "TFJob", "XGBoostJob")
    ),
    Case(
        "Job.batch",
        saying("FailureTarget", "BackoffLimitExceeded", "has reached the limit"),
        "job-failing",
        "BackoffLimitExceeded: has reached the limit",
    ),
    *(
        Case(
            f"{kind}.tekton.dev",
            {
                "conditions": [
                    {
                        **new_condition("Succeeded", False, "ExceededResourceQuota", "no cpu", now=NOW),
                        "status": "Unknown",
                    }
                ]
            },
            "job-unhealthy",
            "ExceededResourceQuota: no cpu",
        )
        for kind in ("PipelineRun", "TaskRun")
    ),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.kind} {case.words[:24]}")
def test_what_its_own_controller_says_needs_somebody(case: Case) -> None:
    (finding,) = explained(of_kind(case.kind, **case.status), case.after).findings

    assert (finding.id, finding.told, finding.blocking) == (case.id, case.words, True)
    assert "worker1" in finding.why
    assert "job/train" in finding.remedy
    if case.after:
        early = explained(of_kind(case.kind, **case.status), case.after - timedelta(seconds=1)).findings
        assert [finding.id for finding in early if finding.id == case.id] == [], "it may pass"


def test_each_row_has_a_case() -> None:
    now = NOW + HOUR
    signs = [
        (sign, sign.found_in(of_kind(case.kind, **case.status), NOW, now), case) for case in CASES for sign in TROUBLE
    ]
    used = {id(sign) for sign, words, case in signs if words == case.words and case.kind in sign.kinds}
    assert [sign for sign in TROUBLE if id(sign) not in used] == []


def test_the_summary_does_not_say_that_it_runs() -> None:
    explanation = explained(of_kind("RayJob.ray.io", jobDeploymentStatus="ValidationFailed", message="name"))

    why = "its own controller on worker1 does not run it as it is"
    assert explanation.summary == f'Worker cluster "worker1" has it, and somebody has to act: {why}.'


def test_words_about_an_earlier_spec_are_over() -> None:
    refused = of_kind("RayJob.ray.io", jobDeploymentStatus="ValidationFailed", observedGeneration=1)
    corrected = {**refused, "metadata": {**refused["metadata"], "generation": 2}}

    assert explained(corrected).findings == ()


@pytest.mark.parametrize("held", [True, False])
def test_of_a_job_that_waits_only_what_holds_it_counts(held: bool) -> None:
    """The rest may be of a run before."""
    waits = workload(TRAIN, quota=False)
    said: Json = {"jobDeploymentStatus": "ValidationFailed"} if held else {"rayClusterStatus": {"state": "failed"}}
    findings = explained(of_kind("RayJob.ray.io", **said), made=waits).findings

    assert [finding.id for finding in findings if finding.id.startswith("job-")] == (["job-refused"] if held else [])


STARTING: Final[Any] = {
    "Job.batch": {"active": 1, "ready": 0, "startTime": timestamp(NOW)},
    "JobSet.jobset.x-k8s.io": {"replicatedJobsStatus": [{"name": "workers", "active": 1, "ready": 0, "succeeded": 0}]},
    "TrainJob.trainer.kubeflow.org": {"jobsStatus": [{"name": "node", "active": 1, "ready": 0}]},
    "MPIJob.kubeflow.org": saying("Created", "MPIJobCreated", "is created"),
    "JAXJob.kubeflow.org": saying("Created"),
    "PaddleJob.kubeflow.org": saying("Created"),
    "PyTorchJob.kubeflow.org": {**saying("Created"), "replicaStatuses": {"Worker": {"active": 0}}},
    "TFJob.kubeflow.org": saying("Created"),
    "XGBoostJob.kubeflow.org": saying("Created"),
    "RayCluster.ray.io": saying("HeadPodReady", "Unknown", status=False),
    "RayJob.ray.io": {"jobDeploymentStatus": "Initializing"},
    "RayService.ray.io": saying("Ready", "Initializing", status=False),
    "AppWrapper.workload.codeflare.dev": saying("PodsReady", "InsufficientPodsReady", status=False),
    "Pod.": saying("Ready", "ContainersNotReady", status=False),
}


@pytest.mark.parametrize("kind", READY)
def test_a_job_of_which_no_pod_is_ready_for_minutes(kind: str) -> None:
    of = of_kind(kind, **STARTING[kind])
    early, notice, late = (explained(of, timedelta(minutes=minutes)).findings for minutes in (4, 6, 30))

    assert early == ()
    assert [(finding.id, finding.blocking) for finding in notice] == [("job-not-ready", False)]
    assert notice[0].remedy.startswith("multikueue pods job/train -n default says which")
    assert [(finding.id, finding.blocking) for finding in late] == [("job-not-ready", True)]


@pytest.mark.parametrize("count", ["parallelism", "replicas"])
def test_a_job_that_is_to_have_no_pods_has_none_that_should_be_ready(count: str) -> None:
    of = of_kind("Job.batch", **STARTING["Job.batch"])
    assert explained({**of, "spec": {**of["spec"], count: 0}}, timedelta(minutes=30)).findings == ()


def test_a_pod_says_itself_why_it_is_not_ready() -> None:
    waiting = {"name": "main", "state": {"waiting": {"reason": "ErrImagePull", "message": "not found"}}}
    (finding,) = explained(of_kind("Pod.", phase="Pending", containerStatuses=[waiting]), MINUTES).findings

    assert finding.told == "container main: ErrImagePull: not found"


def test_what_its_pods_name_is_told_with_it() -> None:
    """Nobody copies a Secret; whether it is there, the manager does not know."""
    needy = job("train")
    needy["spec"]["template"]["spec"]["containers"][0]["envFrom"] = [
        {"secretRef": {"name": "db"}},
        {"configMapRef": {"name": "extra", "optional": True}},
    ]
    made = workload(stored(needy), cluster="worker1", checks={CHECK: "Ready"})
    (finding,) = explained({**stored(needy), "status": {"active": 1, "ready": 0}}, MINUTES, made).findings

    assert finding.why.endswith('; they name Secret "db", and do not start where that is not in the job\'s namespace')
    assert "db" not in finding.remedy, "whoever submits a job names them: no command may"


def recorded() -> list[Any]:
    """Statuses as real controllers write them, but for those of runs that were made to fail."""
    cases = []
    for path in sorted(OPERATORS.glob("*/*.json")):
        if path.stem in ("finishes", "pauses"):
            statuses = json.loads(path.read_text().replace('"TIME"', f'"{timestamp(NOW)}"'))["statuses"]
            cases += [
                pytest.param(path.parent.name, status, id=f"{path.parent.name}-{path.stem}-{number}")
                for number, status in enumerate(statuses)
            ]
    return cases


KINDS: Final = {
    kind.partition(".")[0].lower(): kind
    for kind in (*READY, *(kind_of_sign for sign in TROUBLE for kind_of_sign in sign.kinds))
}


@pytest.mark.parametrize(("kind", "status"), recorded())
def test_healthy_runs_say_nothing_of_trouble(kind: str, status: Json) -> None:
    if kind in KINDS:
        of = of_kind(KINDS[kind], **status)
        assert own_trouble(of, job_report(fleet(RUNNING).chain(RUNNING)), None, NOW) is None


@pytest.mark.parametrize("kind", sorted({path.parent.name for path in OPERATORS.glob("*/finishes.json")} & set(KINDS)))
def test_each_real_run_was_ready_once(kind: str) -> None:
    statuses = json.loads((OPERATORS / kind / "finishes.json").read_text())["statuses"]
    if KINDS[kind] in READY:
        assert any(is_ready(of_kind(KINDS[kind], **status)) for status in statuses)


class TestAFailedJob:
    """Why, and where its words are."""

    MADE = workload(TRAIN, cluster="worker1", checks={CHECK: "Ready"}, finished="Failed")
    ENDED = of_kind("Job.batch", **saying("Failed", "BackoffLimitExceeded", "Job has reached the limit"))

    def test_it_says_why_and_until_when_its_logs_are_kept(self) -> None:
        explanation = explained(self.ENDED, made=self.MADE)

        assert explanation.job.state is JobState.FAILED
        (finding,) = explanation.findings
        assert (finding.id, finding.blocking) == ("job-failed", False)
        assert finding.told == "BackoffLimitExceeded: Job has reached the limit"
        until = timestamp(NOW + HOUR)
        assert finding.remedy.startswith(
            f"multikueue logs job/train -n default has its words: they are kept until {until}"
        )

    def test_later_they_are_gone_by_default(self) -> None:
        (finding,) = explained(self.ENDED, 2 * HOUR, self.MADE).findings

        assert finding.remedy.startswith(f"its logs were kept until {timestamp(NOW + HOUR)}, unless retention.failed")

    @pytest.mark.parametrize(
        ("of", "words"),
        [
            (of_kind("RayJob.ray.io", reason="AppFailed", message="exit 1"), "AppFailed: exit 1"),
            (of_kind("AppWrapper.workload.codeflare.dev", phase="Failed"), "Job finished: Failed"),
            (
                of_kind(
                    "Pod.",
                    phase="Failed",
                    containerStatuses=[
                        {"name": "main", "state": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}}
                    ],
                ),
                "container main: OOMKilled, exit code 137",
            ),
        ],
    )
    def test_each_kind_in_its_own_words_else_the_workloads(self, of: Json, words: str) -> None:
        (finding,) = explained(of, made=self.MADE).findings

        assert finding.told == words


@pytest.mark.parametrize("kind", READY)
def test_whether_there_should_be_pods_is_asked_long_before_that_is_told(kind: str) -> None:
    """A job whose pods nobody can make was Running for five minutes, and nothing more."""
    report = explained(of_kind(kind, **STARTING[kind])).job
    asked = [
        should_have_pods(of_kind(kind, **STARTING[kind]), report, NOW + timedelta(seconds=after)) for after in (10, 20)
    ]
    assert asked == [False, True]
    assert not should_have_pods(of_kind("StatefulSet.apps"), report, NOW + HOUR), "its kind does not tell"
