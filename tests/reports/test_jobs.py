"""One line about each job and worker: states, reasons, filters, counts."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import attrs
import pytest

from multikueue.core.machinery.connection_facts import ConnectionFacts
from multikueue.core.model.conditions import conditions, new_condition, timestamp
from multikueue.core.model.labels import (
    CORDON_ANNOTATION,
    NAMESPACES_ANNOTATION,
    ORIGIN_LABEL,
    ORIGIN_NAMESPACE_ANNOTATION,
)
from multikueue.core.model.names import Json
from multikueue.core.model.objects import name_of
from multikueued.commands.report_text import mirrors_lines, workers_table
from multikueued.diagnosis.fleet import status_report
from multikueued.reports import objects
from multikueued.reports.cluster_answers import ClusterAnswer, cluster_answer
from multikueued.reports.events import event_reports
from multikueued.reports.jobs import JobFilter, JobReport, JobState, job_report, job_reports
from multikueued.reports.published import Published, config_map, written
from multikueued.reports.typenames import JobName, matching, meant, suggestions, type_name
from multikueued.reports.worker_facts import ShownPods, WorkerFacts
from multikueued.reports.workers import worker_reports
from tests.reports.objects import CHECK, NOW, fleet, job, saying, stored, worker, workload

TRAIN = stored(job("train"))
BOTH = ("worker1", "worker2")


def inactive(made: Json) -> Json:
    return {**made, "spec": {**made["spec"], "active": False}}


def deleted(made: Json) -> Json:
    return {**made, "metadata": {**made["metadata"], "deletionTimestamp": timestamp(NOW)}}


BY_CHECK = "DeactivatedDueToAdmissionCheck"
ADMITTED = 'The workload was admitted on "worker1"'


@pytest.mark.parametrize(
    ("made", "state"),
    [
        (workload(TRAIN, quota=False), JobState.QUEUED),
        (workload(TRAIN, quota=False, checks={}), JobState.QUEUED),
        (workload(TRAIN), JobState.WAITING),
        (workload(TRAIN, nominated=BOTH), JobState.OFFERED),
        (workload(TRAIN, cluster="worker1"), JobState.STARTING),
        (workload(TRAIN, cluster="worker1", checks={CHECK: "Ready"}), JobState.RUNNING),
        (workload(TRAIN, cluster="worker9", checks={CHECK: "Ready"}), JobState.LOST),
        (workload(TRAIN, evicted="Preempted"), JobState.STOPPING),
        (deleted(workload(TRAIN)), JobState.STOPPING),
        (inactive(workload(TRAIN)), JobState.STOPPING),
        (inactive(workload(TRAIN, quota=False)), JobState.INACTIVE),
        (workload(TRAIN, checks={CHECK: "Retry"}), JobState.RETRYING),
        (workload(TRAIN, checks={CHECK: "Rejected"}), JobState.REJECTED),
        (inactive(workload(TRAIN, quota=False, evicted=BY_CHECK)), JobState.REJECTED),  # a second later, and for good
        (inactive(workload(TRAIN, evicted=BY_CHECK)), JobState.STOPPING),
        (workload(TRAIN, checks={CHECK: "Ready"}, finished="Succeeded"), JobState.FINISHED),
        (workload(TRAIN, checks={CHECK: "Ready"}, finished="Failed"), JobState.FAILED),
    ],
)
def test_the_state_of_a_job(made: Json, state: JobState) -> None:
    report = job_report(fleet(made).chain(made))
    assert report.state is state
    assert report.job == "job/train"
    assert (report.queue, report.cluster_queue) == ("user-queue", "cluster-queue")


def test_a_job_is_rejected_since_kueue_has_deactivated_it() -> None:
    """Its check is Pending by then; where another check rejected it, ours has been all along, and told of its start."""
    made = inactive(workload(TRAIN, quota=False, evicted=BY_CHECK))
    (check,) = made["status"]["admissionChecks"]
    check["lastTransitionTime"] = timestamp(NOW - timedelta(days=1))
    (evicted,) = [entry for entry in conditions(made) if entry["type"] == "Evicted"]
    evicted["lastTransitionTime"] = timestamp(NOW)
    assert job_report(fleet(made).chain(made)).since == NOW


def test_a_report_of_one_job_reads_what_its_own_worker_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """The API makes one for each change of a job, and a fleet may have a hundred workers."""
    read: list[str] = []

    def noting(cluster: Json) -> ClusterAnswer:
        read.append(name_of(cluster))
        return cluster_answer(cluster)

    monkeypatch.setattr(objects, "cluster_answer", noting)
    runs = workload(stored(job("train")), cluster="worker1", checks={CHECK: "Ready"})
    assert job_report(fleet(runs).chain(runs)).state is JobState.RUNNING
    assert read == ["worker1"]


def test_a_pod_that_a_worker_has_runs_though_its_check_stays_pending() -> None:
    made = workload(TRAIN, cluster="worker1")
    made["metadata"]["ownerReferences"][0] |= {"apiVersion": "v1", "kind": "Pod"}
    assert job_report(fleet(made).chain(made)).state is JobState.RUNNING


def test_the_reason_of_a_job_that_runs_is_empty_unless_there_is_one() -> None:
    made = workload(TRAIN, cluster="worker1", checks={CHECK: "Ready"})
    assert job_report(fleet().chain(saying(made, ADMITTED))).reason == ""
    reason = "new jobs like it are not dispatched: add it"
    assert job_report(fleet().chain(saying(made, f"{ADMITTED} — {reason}"))).reason == reason


def test_one_that_was_sent_back_tells_for_what_beside_what_its_queue_says() -> None:
    """Kueue's scheduler soon writes another reason over it, which says nothing of the first try."""
    queued = workload(TRAIN, quota=False, evicted="AdmissionCheck")
    listed = conditions(queued)
    said = {entry["type"]: entry["message"] for entry in listed}
    listed.append(new_condition("QuotaReserved", False, "Pending", "no room", now=NOW))
    report = job_report(fleet(queued).chain(queued))
    assert report.reason == f"no room; it was evicted: {said['Evicted']}"


def test_the_reason_of_a_lost_job_is_its_workers() -> None:
    made = workload(TRAIN, cluster="worker1", checks={CHECK: "Ready"})
    lost = worker("worker1", "cannot connect", reason="ClientConnectionFailed")
    assert job_report(fleet(made, workers=(lost,)).chain(made)).reason == "cannot connect"


def reports(*jobs: Json) -> tuple[JobReport, ...]:
    return job_reports(fleet(*jobs).chains, JobFilter(), user_label="team")


def test_the_user_is_found_on_the_workload_or_its_pods() -> None:
    plain, labelled = workload(TRAIN), workload(TRAIN)
    plain["spec"]["podSets"][0]["template"]["metadata"] = {"labels": {"team": "red"}}
    labelled["spec"]["podSets"][0]["template"]["metadata"] = {"labels": {"team": "red"}}
    labelled["metadata"]["labels"] = {"team": "blue"}
    assert [report.user for report in reports(plain, labelled)] == ["red", "blue"]


@pytest.mark.parametrize(
    ("chosen", "names"),
    [
        ({}, ["job/a", "job/b"]),
        ({"namespace": "other"}, []),
        ({"queue": "user-queue"}, ["job/a", "job/b"]),
        ({"queue": "cluster-queue"}, ["job/a", "job/b"]),
        ({"queue": "another"}, []),
        ({"worker": "worker1"}, ["job/a", "job/b"]),
        ({"worker": "worker2"}, ["job/b"]),
        ({"states": frozenset({JobState.OFFERED})}, ["job/b"]),
        ({"user": "nobody"}, []),
    ],
)
def test_filters(chosen: dict[str, Any], names: list[str]) -> None:
    runs = workload(stored(job("a")), cluster="worker1", checks={CHECK: "Ready"})
    asked = workload(stored(job("b")), nominated=BOTH)
    assert [report.job for report in job_reports(fleet(runs, asked).chains, JobFilter(**chosen))] == names


def test_workloads_of_other_queues_are_left_out() -> None:
    made = workload(TRAIN, checks={})
    objects = fleet(made)
    free = {**objects.cluster_queues[0], "spec": {}}
    assert job_reports(attrs.evolve(objects, cluster_queues=(free,)).chains, JobFilter()) == ()


def test_workers() -> None:
    runs = workload(stored(job("a")), cluster="worker1", checks={CHECK: "Ready"})
    runs["status"]["admission"]["podSetAssignments"][0]["resourceUsage"] = {"cpu": "1500m", "memory": "1Gi"}
    asked = workload(stored(job("b")), nominated=BOTH)
    known = (
        worker("worker1", annotations={CORDON_ANNOTATION: "true"}),
        worker("worker2", facts=ConnectionFacts(unusable={"Job.v1.batch": "404"})),
        worker("worker3", "Unauthorized", reason="BadKubeConfig", facts=ConnectionFacts(2, None, "Unauthorized")),
    )
    workers = worker_reports(fleet(runs, asked, workers=known, listed=("worker1", "worker2", "wroker3")))

    assert [(worker.name, worker.state, worker.running, worker.waiting, worker.checks) for worker in workers] == [
        ("worker1", "Connected", 1, 0, (CHECK,)),
        ("worker2", "Degraded", 0, 1, (CHECK,)),
        ("worker3", "NotConnected", 0, 0, ()),
        ("wroker3", "Missing", 0, 0, (CHECK,)),
    ]
    assert workers[0].used == {"cpu": "1500m", "memory": "1Gi"}
    assert [worker.cordoned for worker in workers] == [True, False, False, False]
    assert workers[1].error == "Job.v1.batch: 404"
    assert (workers[2].error, workers[2].attempts) == ("Unauthorized", 2)


def test_two_names_of_one_cluster_are_told() -> None:
    known = (worker("worker1", facts=ConnectionFacts(same_as=("worker2",))), worker("worker2"))
    workers = worker_reports(fleet(workers=known))

    assert [worker.same_as for worker in workers] == [("worker2",), ()]
    assert "the same cluster as worker2" in "\n".join(workers_table(workers, NOW, None, wide=False))


def test_the_status_of_a_fleet() -> None:
    runs = workload(stored(job("a")), cluster="worker1", checks={CHECK: "Ready"})
    queued = workload(stored(job("b")), quota=False)
    lost = worker("worker2", "connect: connection refused", reason="ClientConnectionFailed")
    status = status_report(fleet(runs, queued, workers=(worker("worker1"), lost)), NOW)

    assert status.totals == {"Queued": 1, "Running": 1}
    (queue,) = status.queues
    assert (queue.name, queue.queued, queue.waiting, queue.running) == ("cluster-queue", 1, 0, 1)
    assert queue.total == {"cpu": "4"}
    assert queue.local_queues == ("default/user-queue",)
    assert [(finding.id, finding.blocking) for finding in status.findings] == [("worker-down", True)]
    assert not status.daemon.seen


def test_the_status_counts_pods_that_are_shown_and_refused() -> None:
    """As the daemon has published it; where it shows none, nothing is said."""
    none = status_report(fleet(workers=(worker("worker1"),)), NOW)
    assert (none.mirrors, mirrors_lines(none)) == (None, [])
    counts = {"worker1": ShownPods(12), "worker2": ShownPods(3, 2), "removed": ShownPods(7, 7)}
    documents = {name: written(Published(WorkerFacts(name, mirrors=count), NOW)) for name, count in counts.items()}
    objects = attrs.evolve(
        fleet(workers=(worker("worker1"), worker("worker2"))),
        findings=config_map("multikueue", "multikueue-findings", documents),
    )
    status = status_report(objects, NOW)
    assert status.mirrors == ShownPods(15, 2)
    assert mirrors_lines(status) == ["Pods shown: 15 (2 refused; events PodNotShown on their jobs say why)"]
    assert mirrors_lines(attrs.evolve(status, mirrors=ShownPods(4))) == ["Pods shown: 4"]


def test_workers_that_nobody_uses_or_that_lack_a_kind_need_nobody_at_once() -> None:
    lost = worker("unused", "cannot connect: refused", reason="ClientConnectionFailed")
    gone = {"RayJob.v1.ray.io": "the server could not find the requested resource"}
    degraded = worker("worker1", facts=ConnectionFacts(unusable=gone, is_manager=False))
    status = status_report(fleet(workers=(degraded, lost), listed=("worker1",)), NOW)

    assert [(finding.where, finding.blocking) for finding in status.findings] == [("unused", False), ("worker1", False)]


def test_an_inactive_queue_says_why() -> None:
    objects = fleet()
    stopped_condition = new_condition("Active", False, "Stopped", "is stopped", now=NOW)
    stopped = {**objects.cluster_queues[0], "status": {"conditions": [stopped_condition]}}
    status = status_report(attrs.evolve(objects, cluster_queues=(stopped,)), NOW)
    assert [(queue.active, queue.message) for queue in status.queues] == [(False, "is stopped")]


@pytest.mark.parametrize("text", ["job/train", "jobs/train", "job.batch/train", "JOB/train", "train"])
def test_names_of_a_job(text: str) -> None:
    made = workload(TRAIN)
    assert matching(JobName.parse(text), [made]) == [made]
    assert type_name(made) == "job/train"


def test_a_workload_by_its_own_name() -> None:
    made = workload(TRAIN)
    assert matching(JobName.parse(f"workload/{made['metadata']['name']}"), [made]) == [made]


def of_kind(api_version: str, kind: str) -> Json:
    """The Workload of a job named train."""
    owner = {"apiVersion": api_version, "kind": kind, "name": "train", "uid": kind + api_version, "controller": True}
    return {"metadata": {"name": f"w-{api_version}", "namespace": "default", "ownerReferences": [owner]}}


VOLCANO = of_kind("batch.volcano.sh/v1alpha1", "Job")


def test_a_kind_of_another_group_does_not_answer_for_a_built_in_one() -> None:
    train = workload(TRAIN)
    for text in ("job/train", "jobs/train", "job.batch/train"):
        assert matching(JobName.parse(text), [VOLCANO, train]) == [train]
        assert matching(JobName.parse(text), [VOLCANO]) == []
    for text in ("job.batch.volcano.sh/train", "jobs.batch.volcano.sh/train", type_name(VOLCANO)):
        assert matching(JobName.parse(text), [VOLCANO, train]) == [VOLCANO]
    assert matching(JobName.parse("workload/train"), [of_kind("example.com/v1", "Workload")]) == []
    assert meant(matching(JobName.parse("train"), [VOLCANO, train])) == ["job.batch.volcano.sh/train", "job/train"]


def test_two_kinds_that_differ_in_their_group_alone_are_told_apart() -> None:
    widgets = [of_kind("a.example/v1", "Widget"), of_kind("b.example/v1", "Widget")]
    widget_jobs = matching(JobName.parse("widget/train"), widgets)
    assert meant(widget_jobs) == ["widget.a.example/train", "widget.b.example/train"]
    assert meant(widget_jobs[:1]) == ["widget/train"]


@pytest.mark.parametrize("text", ["rayjob/train", "job/trian", "job/"])
def test_names_of_other_jobs(text: str) -> None:
    assert matching(JobName.parse(text), [workload(TRAIN)]) == []


def test_of_several_workloads_the_one_that_goes_on_comes_first() -> None:
    ended = workload(TRAIN, finished="Succeeded", cluster="worker1")
    going = workload(TRAIN)
    ended["metadata"]["creationTimestamp"] = timestamp(NOW + timedelta(hours=1))
    assert matching(JobName.parse("train"), [ended, going]) == [going, ended]


def test_a_group_of_pods_goes_by_its_workload_and_its_pods() -> None:
    pods = [{"apiVersion": "v1", "kind": "Pod", "name": f"p{number}", "uid": str(number)} for number in (1, 2)]
    noted = {"kueue.x-k8s.io/is-group-workload": "true"}
    group: Json = {"metadata": {"name": "group", "namespace": "n", "annotations": noted, "ownerReferences": pods}}
    assert type_name(group) == "podgroup/group"
    for text in ("podgroup/group", "pod/p2", "group", "p1"):
        assert matching(JobName.parse(text), [group]) == [group]


@pytest.mark.parametrize(
    ("text", "namespace", "meaning"),
    [
        ("job/trian", "default", 'did you mean "job/train"?'),
        ("rayjob/train", "default", 'did you mean "job/train"?'),
        ("trian", "default", 'did you mean "job/train"?'),
        ("job/train", "other", "there is one in namespace default: use -n default"),
        ("job/xxxxxxx", "default", "the jobs here are job/train"),
        ("job/xxxxxxx", "other", ""),
    ],
)
def test_what_was_meant(text: str, namespace: str, meaning: str) -> None:
    assert suggestions(JobName.parse(text), [workload(TRAIN)], namespace) == meaning


def event(name: str, at: int, note: str, **more: Any) -> Json:
    regarding = {"kind": "Workload", "name": name, "uid": "uid-of-" + name}
    when = timestamp(NOW + timedelta(seconds=at))
    return {"regarding": regarding, "note": note, "type": "Normal", "reason": "R", "eventTime": when} | more


def test_events_in_the_order_of_time_with_the_counts_of_series() -> None:
    last = timestamp(NOW + timedelta(seconds=90))
    old = {"eventTime": None, "deprecatedFirstTimestamp": timestamp(NOW), "deprecatedLastTimestamp": last}
    events = [
        event("a", 5, "second", series={"count": 4, "lastObservedTime": last}),
        event("a", 0, "first", **old, deprecatedCount=3, deprecatedSource={"component": "kueue"}),
        event("b", 1, "another's"),
        {**event("a", 2, "an earlier object's"), "regarding": {"kind": "Workload", "name": "a", "uid": "old"}},
    ]
    about = [{"kind": "Workload", "metadata": {"name": "a", "uid": "uid-of-a"}}]
    reported = event_reports(events, about)

    assert [(event.note, event.count) for event in reported] == [("first", 3), ("second", 4)]
    assert [event.last for event in reported] == [NOW + timedelta(seconds=90)] * 2
    assert reported[0].source == "kueue"
    assert reported[0].object == "workload/a"


def test_a_copy_on_the_manager_itself_is_nobodys_job() -> None:
    """Also where somebody has put our check on the queue for copies."""
    copy = workload(TRAIN)
    metadata = {**copy["metadata"], "namespace": "local-default", "labels": {ORIGIN_LABEL: "multikueue"}}
    copy = {**copy, "metadata": {**metadata, "annotations": {ORIGIN_NAMESPACE_ANNOTATION: "default"}}}
    names = {NAMESPACES_ANNOTATION: '{"default": "local-default"}'}
    itself = worker("worker1", facts=ConnectionFacts(is_manager=True), annotations=names)
    objects = fleet(workload(TRAIN), copy, workers=(itself, worker("worker2")))
    assert [report.namespace for report in job_reports(objects.chains, JobFilter())] == ["default"]
    elsewhere = fleet(copy, workers=(worker("worker1", annotations=names), worker("worker2")))
    assert [report.namespace for report in job_reports(elsewhere.chains, JobFilter())] == ["local-default"]
    unchecked = attrs.evolve(objects, cluster_queues=tuple(map(without_checks, objects.cluster_queues)))
    copy = {**copy, "status": {**copy["status"], "admissionChecks": []}}
    assert 'the copy of Workload "default/' in job_report(unchecked.chain(copy)).reason


def without_checks(queue: Json) -> Json:
    return {
        **queue,
        "spec": {name: field for name, field in queue["spec"].items() if name != "admissionChecksStrategy"},
    }


def test_why_a_quota_is_not_known_is_told_of_a_worker_that_is_connected() -> None:
    """The list said "not checked", and its JSON why."""
    lost = worker("worker2", "connect: connection refused", reason="ClientConnectionFailed")
    lines = workers_table(worker_reports(fleet(workers=(worker("worker1"), lost))), NOW, None, wide=False)

    note = "its quota: the daemon has not published it, or you may not read that"
    assert [note in line for line in lines[1:]] == [True, False]
