"""Explanations of values: what workers say, what happens next, what is wrong on the manager."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any

import attrs
import pytest

from multikueue.core.machinery.connection_facts import ConnectionFacts
from multikueue.core.model.conditions import new_condition, timestamp
from multikueue.core.model.kinds import ADMISSION_CHECK, CLUSTER_QUEUE, MULTIKUEUE_CLUSTER, MULTIKUEUE_CONFIG
from multikueue.core.model.labels import (
    CORDON_ANNOTATION,
    GROUP_WORKLOAD_ANNOTATION,
    LAST_WORKER_ANNOTATION,
    NAMESPACES_ANNOTATION,
    ORIGIN_LABEL,
    PLACEMENTS_ANNOTATION,
    QUEUE_LABEL,
    RETRIABLE_ANNOTATION,
)
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.second_names import SecondName, second_name_status
from multikueue.errors import Cause
from multikueue.sandbox.kinds.pods import POD
from multikueued.commands.report_text import explanation_lines
from multikueued.reports.events import EventReport
from multikueued.reports.explanation import Explanation, explain
from multikueued.reports.jobs import JobState
from multikueued.reports.objects import ManagerObjects
from multikueued.reports.published import Published, config_map, written
from multikueued.reports.remedies.audience import Audience
from multikueued.reports.remedies.remedy import Finding, finding
from multikueued.reports.seen import Seen
from multikueued.reports.unqueued import unqueued
from multikueued.reports.worker_facts import WorkerFacts
from multikueued.reports.worker_queues import QueuesOnWorker
from tests.core.building import condition
from tests.reports.objects import CHECK, NOW, fleet, job, judged, saying, stored, worker, workload

TRAIN = stored(job("train"))
BOTH = ("worker1", "worker2")


def explained(
    made: Json, objects: ManagerObjects | None = None, *, of: Json | None = TRAIN, now: datetime = NOW
) -> Explanation:
    return explain(Seen(made, of, objects or fleet(made), (), now))


def findings_of(explanation: Explanation, id: str) -> list[Finding]:
    return [finding for finding in explanation.findings if finding.id == id]


def offered(words: str) -> Explanation:
    return explained(saying(workload(TRAIN, nominated=BOTH), f"Offered to worker1, worker2 — {words}"))


def test_quota_too_small_everywhere() -> None:
    quota = "insufficient quota for cpu in flavor default-flavor (3 > 1)"
    explanation = offered(f"worker1: {quota} · worker2: {quota}")

    assert [finding.where for finding in explanation.findings] == ["worker1, worker2"]
    assert all(finding.blocking for finding in explanation.findings)
    first = explanation.findings[0]
    assert (first.id, first.workers) == ("quota-too-small", BOTH)
    assert first.why == "the job asks for more cpu than its ClusterQueue on worker1, worker2 has in all"
    assert "raise nominalQuota of cpu" in first.remedy
    assert explanation.summary == f"It does not run, and somebody has to act: {first.why}."


def test_quota_too_small_on_one_of_them_needs_nobody() -> None:
    explanation = offered("worker1: insufficient quota for cpu in flavor f (3 > 1)")

    (small,) = explanation.findings
    assert not small.blocking
    assert [worker.state for worker in explanation.workers] == ["Waiting", "Offered"]
    assert explanation.next[0].text.startswith("the first of worker1, worker2 that admits it gets it")


def test_a_slice_that_never_fits_on_its_worker_is_not_said_to_be_created_there() -> None:
    """As a real Kueue words it of an elastic job that has grown beyond its worker."""
    made = workload(TRAIN, cluster="worker1")
    quota = "holds it: insufficient quota for cpu in flavor default-flavor (3 > 2)"
    explanation = explained(saying(made, f'Waiting for worker cluster "worker1" — worker1: {quota}'))

    assert explanation.job.state is JobState.STARTING
    assert explanation.summary == 'Worker cluster "worker1" has its job, and gives it no quota as it is now.'
    assert [worker.state for worker in explanation.workers] == ["Waiting", "Elsewhere"]
    (small,) = findings_of(explanation, "quota-too-small")
    assert (small.where, small.blocking) == ("worker1", False), "what had quota before runs on"
    assert [step.text for step in explanation.next] == ["its worker gives it quota, and then the check becomes Ready"]


def test_quota_that_others_use_needs_nobody() -> None:
    quota = "insufficient unused quota for cpu in flavor f, 1 more needed"
    explanation = offered(f"worker1: {quota} · worker2: {quota}")

    assert len(findings_of(explanation, "quota-in-use")) == 2
    assert not any(finding.blocking for finding in explanation.findings)


def test_missing_local_queue_on_the_workers() -> None:
    explanation = offered("worker1: LocalQueue user-queue doesn't exist · worker2: LocalQueue user-queue doesn't exist")

    (missing,) = explanation.findings
    assert (missing.where, missing.workers, missing.blocking) == ("worker1, worker2", BOTH, True)
    assert missing.why == 'LocalQueue "user-queue" does not exist in namespace "default" on worker1, worker2'
    mirror = "multikueue queues mirror user-queue -n default --worker-context {0} --worker {0}"
    both = "; ".join(mirror.format(name) for name in BOTH)
    assert missing.remedy == f"make it there: {both}; the job is then taken by itself"


def test_what_the_daemon_saw_of_a_worker_is_told_where_the_check_says_nothing_of_it() -> None:
    made = saying(workload(TRAIN, nominated=BOTH), "Offered to worker1, worker2")
    empty = Published(WorkerFacts("worker1", queues=QueuesOnWorker({}, {})), NOW, (), NOW)
    unread = Published(WorkerFacts("worker2"), NOW)
    documents = {"worker1": written(empty), "worker2": written(unread)}
    objects = attrs.evolve(fleet(made), findings=config_map("kueue-system", "multikueue-findings", documents))
    explanation = explained(made, objects)

    first, second = explanation.workers
    assert (first.state, first.source) == ("Waiting", "findings")
    assert first.told == f'LocalQueue "default/user-queue" does not exist (as the daemon saw it at {timestamp(NOW)})'
    assert [finding.where for finding in findings_of(explanation, "local-queue-missing")] == ["worker1"]
    assert (second.state, second.told) == ("Offered", "")


def test_a_refusal_is_told_as_the_check_tells_it() -> None:
    """That it is one is known by an event; when the worker is asked again, the words say."""
    refusal = f'refuses it, is asked again at {timestamp(NOW)}: admission webhook "p" denied the request: no'
    made = saying(workload(TRAIN, nominated=BOTH), f"Offered to worker1, worker2 — worker1: {refusal}")
    said = EventReport("workload/x", "Warning", "MultiKueue", "no", NOW, NOW, 1, "multikueue", "worker1")
    explanation = explain(Seen(made, TRAIN, fleet(made), (said,), NOW))

    assert [(worker.state, worker.told) for worker in explanation.workers] == [("Refused", refusal), ("Offered", "")]
    assert any(step.text.startswith("worker1: asked again by itself") for step in explanation.next)
    assert [finding.id for finding in explanation.findings] == ["webhook"]


def test_an_event_is_not_believed_where_the_check_says_something_else_of_that_worker() -> None:
    """Whoever may create events could have a person delete a job there, by a cause that the check does not tell."""
    made = saying(
        workload(TRAIN, nominated=BOTH), "Offered to worker1, worker2 — worker1: LocalQueue user-queue doesn't exist"
    )
    forged = EventReport(
        "workload/x", "Warning", "MultiKueue", "no", NOW, NOW, 1, "anybody", "worker1", cause=Cause.NAME_TAKEN
    )
    (finding,) = explain(Seen(made, TRAIN, fleet(made), (forged,), NOW)).findings

    assert (finding.id, finding.where) == ("local-queue-missing", "worker1")
    assert "delete" not in finding.remedy


@pytest.mark.parametrize("name", ["$(reboot)", "x; reboot", "-x", "x y"])
def test_what_somebody_has_named_a_job_becomes_no_command(name: str) -> None:
    """Whoever may create Workloads writes their owners, whose names nobody checks."""
    made = workload(TRAIN, quota=False)
    rejected = condition("Evicted", "DeactivatedDueToAdmissionCheck")
    made = {**made, "spec": {**made["spec"], "active": False}, "status": {"conditions": [rejected]}}
    made["metadata"]["ownerReferences"][0]["name"] = name
    explanation = explained(made)
    assert explanation.next
    assert explanation.findings
    texts = (*(step.text for step in explanation.next), *(wrong.remedy for wrong in explanation.findings))
    assert not any(name in text for text in texts)


def test_when_a_worker_that_refuses_is_asked_again_is_a_fact_of_the_event() -> None:
    due = NOW + timedelta(minutes=5)
    made = workload(TRAIN, nominated=BOTH)
    said = EventReport("workload/x", "Warning", "MultiKueue", "no", NOW, NOW, 1, "multikueue", "worker1", due)
    explanation = explain(Seen(made, TRAIN, fleet(made), (said,), NOW))
    late = explain(Seen(made, TRAIN, fleet(made), (attrs.evolve(said, asked_again=NOW - timedelta(seconds=1)),), NOW))

    assert [worker.next_attempt for worker in explanation.workers] == [due, None]
    (step,) = [step for step in explanation.next if step.at is not None]
    assert (step.text, step.at) == ("worker1 is asked again; at once with multikueue retry job/train -n default", due)
    assert [worker.next_attempt for worker in late.workers] == [None, None], "what is over says nothing"


def test_a_webhook_that_is_down_there_is_told_before_the_check_tells_it() -> None:
    """For a minute it is tried in place: an event of that minute says why."""
    made = saying(workload(TRAIN, nominated=BOTH), "Offered to worker1, worker2")
    words = 'Internal error occurred: failed calling webhook "vworkload.kb.io": no endpoints available'
    due = NOW + timedelta(seconds=50)
    said = EventReport("workload/x", "Warning", "MultiKueue", words, NOW, NOW, 1, "multikueue", "worker1", due)
    explanation = explain(Seen(made, TRAIN, fleet(made), (said,), NOW))

    assert [answer.state for answer in explanation.workers] == ["Refused", "Offered"]
    (down,) = explanation.findings
    assert (down.id, down.where, down.told) == ("webhook-down", "worker1", words)


def test_words_that_no_rule_knows_are_no_finding() -> None:
    explanation = offered("worker1: not nominated yet · worker2: the moon is in the wrong house")

    assert explanation.findings == ()
    assert [worker.told for worker in explanation.workers] == ["not nominated yet", "the moon is in the wrong house"]
    assert [worker.state for worker in explanation.workers] == ["Waiting", "Waiting"], (
        "both are asked, whatever they say"
    )


def test_a_lost_worker_with_the_deadline_that_the_check_tells() -> None:
    moves = timestamp(NOW + timedelta(minutes=15))
    made = workload(TRAIN, cluster="worker1", checks={CHECK: "Ready"})
    message = f'The workload was admitted on "worker1" — worker1: unreachable since {timestamp(NOW)}; moves at {moves}'
    facts = ConnectionFacts(1, None, "cannot connect", moves_at=NOW + timedelta(minutes=15), cause=Cause.OUT_OF_REACH)
    lost = worker("worker1", "cannot connect: Connection refused", reason="ClientConnectionFailed", facts=facts)
    explanation = explained(saying(made, message), fleet(saying(made, message), workers=(lost, worker("worker2"))))

    assert explanation.job.state is JobState.LOST
    assert any(finding.blocking for finding in explanation.findings)
    assert explanation.next[0].text.endswith(
        f"unless this one is back before: unreachable since {timestamp(NOW)}; moves at {moves}"
    )
    assert explanation.next[0].at == NOW + timedelta(minutes=15), "for programs: from facts, not from words"
    assert [finding.id for finding in explanation.findings] == ["worker-down"]


def test_a_lost_worker_without_a_deadline_goes_by_the_default() -> None:
    made = workload(TRAIN, cluster="worker1", checks={CHECK: "Ready"})
    lost = worker("worker1", "no answer to anything for 20 s", reason="ClientConnectionFailed")
    explanation = explained(made, fleet(made, workers=(lost, worker("worker2"))))

    assert explanation.next[0].at == NOW + timedelta(minutes=15)
    assert "workerLostTimeout" in explanation.next[0].text


def test_where_a_job_ran_and_why_it_moved() -> None:
    noted = (
        f'[{{"worker": "worker1", "since": "{timestamp(NOW)}", "until": "{timestamp(NOW)}", "why": "lost for 15m"}}]'
    )
    made = workload(TRAIN, cluster="worker2", checks={CHECK: "Ready"})
    made["metadata"]["annotations"] = {PLACEMENTS_ANNOTATION: noted}
    explanation = explained(made)

    assert [(placement.worker, placement.until, placement.why) for placement in explanation.placements] == [
        ("worker1", NOW, "lost for 15m"),
        ("worker2", None, ""),
    ]


def test_a_cordoned_worker() -> None:
    made = workload(TRAIN, nominated=("worker2",))
    known = (worker("worker1", annotations={CORDON_ANNOTATION: "disks are changed"}), worker("worker2"))
    explanation = explained(made, fleet(made, workers=known))

    assert explanation.workers[0].told == "cordoned: disks are changed"
    assert [(finding.id, finding.blocking) for finding in explanation.findings] == [("cordoned", False)]


def test_a_worker_cordoned_after_the_offer_is_not_asked() -> None:
    message = "Offered to worker2 — worker1: cordoned: disks are changed · worker2: LocalQueue user-queue doesn't exist"
    made = saying(workload(TRAIN, nominated=("worker1", "worker2")), message)
    known = (worker("worker1", annotations={CORDON_ANNOTATION: "disks are changed"}), worker("worker2"))
    explanation = explained(made, fleet(made, workers=known))

    assert explanation.job.offered_to == ("worker2",)
    assert [worker.state for worker in explanation.workers] == ["Cordoned", "Waiting"]
    assert [(finding.id, finding.blocking) for finding in explanation.findings] == [
        ("cordoned", True),
        ("local-queue-missing", True),
    ]


def test_another_name_of_a_cluster_that_is_asked_takes_nothing() -> None:
    message = "Offered to worker1 — worker1: insufficient quota for cpu in flavor f (3 > 1)"
    made = saying(workload(TRAIN, nominated=("worker1",)), message)
    second = worker("worker2")
    held = second_name_status(second, SecondName("worker1", "uid"), NOW)
    second["status"]["conditions"].append(held)
    explanation = explained(made, fleet(made, workers=(worker("worker1"), second)))

    assert explanation.workers[1].told == "it leads to the same cluster as worker1, and gets nothing beside it"
    assert [(finding.id, finding.blocking) for finding in explanation.findings] == [
        ("quota-too-small", True),
        ("second-name", False),
    ]


def test_a_cluster_queue_that_may_not_be_read_has_its_name_all_the_same() -> None:
    message = "insufficient quota for cpu in flavor f, current podset request (9) > maximum capacity (8)"
    reserved = condition("QuotaReserved", "Pending", status=False, message=message)
    made = {**workload(TRAIN), "status": {"conditions": [reserved]}}
    explanation = explained(made, attrs.evolve(fleet(made), cluster_queues=()))

    (too_small,) = findings_of(explanation, "quota-too-small")
    assert too_small.why == "the job asks for more cpu than ClusterQueue cluster-queue has here in all"


def test_a_job_is_offered_to_nobody_while_all_are_cordoned() -> None:
    made = workload(TRAIN, nominated=("worker1",))
    explanation = explained(made, fleet(made, workers=(worker("worker1", annotations={CORDON_ANNOTATION: "true"}),)))

    assert (explanation.job.state, explanation.job.offered_to) == (JobState.WAITING, ())


@pytest.mark.parametrize("said", ["", "worker1: words of anybody"])
def test_a_worker_without_a_namespace_for_it(said: str) -> None:
    made = saying(workload(TRAIN, nominated=("worker2",)), f"Offered to worker2 — {said}")
    known = (worker("worker1", annotations={NAMESPACES_ANNOTATION: "{}"}), worker("worker2"))
    explanation = explained(made, fleet(made, workers=known))

    assert explanation.workers[0].told == 'multikueue.dev/namespaces gives namespace "default" none there'
    assert [(finding.id, finding.blocking) for finding in explanation.findings] == [("namespace-unnamed", False)]


@pytest.mark.parametrize(
    ("started", "why"),
    [
        (-60, "its clock is at least 60 s behind the manager's: its job started before it got quota"),
        (60, "its clock is at least 60 s ahead of the manager's: its job is yet to start"),
        (5, None),
        (-5, None),
    ],
)
def test_clock_skew(started: int, why: str | None) -> None:
    running = {**TRAIN, "status": {"startTime": timestamp(NOW + timedelta(seconds=started))}}
    made = workload(TRAIN, cluster="worker1", checks={CHECK: "Ready"})
    explanation = explained(made, of=running)

    assert [finding.why for finding in findings_of(explanation, "clock-skew")] == ([why] if why else [])
    assert all("NTP" in finding.remedy for finding in explanation.findings)


def test_a_manager_whose_clock_is_ahead_of_this_machine() -> None:
    made = workload(TRAIN, cluster="worker1", checks={CHECK: "Ready"})
    (skew,) = findings_of(explained(made, now=NOW - timedelta(minutes=2)), "clock-skew")

    assert skew.why == "this cluster's clock is at least 120 s ahead of this machine's"


def changed(objects: ManagerObjects, **changes: Any) -> ManagerObjects:
    return attrs.evolve(objects, **changes)


def test_a_missing_local_queue_here_and_what_was_meant() -> None:
    made = workload(TRAIN, quota=False, checks={})
    made["spec"]["queueName"] = "user-quee"
    explanation = explained(made)

    (wrong,) = explanation.findings
    assert wrong.id == "local-queue-missing"
    assert wrong.sentence == 'LocalQueue default/user-quee: it does not exist (did you mean "user-queue"?)'
    assert explanation.job.state is JobState.QUEUED
    assert [(link.kind, link.state) for link in explanation.chain][-1] == ("LocalQueue", "Missing")


def test_a_check_that_names_a_config_that_does_not_exist() -> None:
    made = workload(TRAIN, nominated=BOTH)
    objects = fleet(made)
    renamed = {**objects.configs[0], "metadata": {"name": "multikueu"}}
    explanation = explained(made, changed(objects, configs=(renamed,)))

    (wrong,) = findings_of(explanation, "config-missing")
    assert 'did you mean "multikueu"?' in wrong.why
    assert wrong.blocking
    assert explanation.chain[-1].state == "Missing"


@pytest.mark.parametrize("alone", [True, False], ids=["nothing is set up yet", "there are workers"])
def test_a_config_that_a_placement_check_is_to_make_is_not_to_be_made_by_hand(alone: bool) -> None:
    """One that somebody makes is a conflict."""
    made = workload(TRAIN, nominated=BOTH)
    objects = fleet(made)
    parameters = {"apiGroup": "cluster.open-cluster-management.io", "kind": "Placement", "name": CHECK}
    spec = {"controllerName": "open-cluster-management.io/placement", "parameters": parameters}
    checks = (*objects.checks, {"metadata": {"name": "placed"}, "spec": spec})
    without = changed(objects, configs=(), clusters=() if alone else objects.clusters, checks=checks)

    (wrong,) = findings_of(explained(made, without), "config-missing")
    assert wrong.remedy.startswith("nothing: the placement check of that name makes it")


def test_a_queue_whose_check_does_not_exist() -> None:
    made = workload(TRAIN, quota=False, checks={})
    objects = fleet(made)
    other = {**objects.checks[0], "metadata": {"name": "multikueeu"}}
    explanation = explained(made, changed(objects, checks=(other,)))

    (wrong,) = findings_of(explanation, "check-missing")
    assert 'names AdmissionCheck "multikueue", which does not exist (did you mean "multikueeu"?)' in wrong.why


def test_a_queue_whose_placement_check_is_not_active() -> None:
    """Only that check knows why: the ClusterQueue just names it."""
    made = workload(TRAIN, quota=False)
    objects = fleet(made)
    (queue,) = objects.cluster_queues
    both = {"admissionChecks": [{"name": CHECK}, {"name": "placed"}]}
    stopped = condition(
        "Active",
        status=False,
        reason="AdmissionCheckInactive",
        message="references inactive AdmissionCheck(s): placed.",
    )
    queue = {
        **queue,
        "spec": {**queue["spec"], "admissionChecksStrategy": both},
        "status": {"conditions": [stopped]},
    }
    placed: Json = {
        "metadata": {"name": "placed"},
        "spec": {"controllerName": "open-cluster-management.io/placement"},
        "status": {
            "conditions": [
                condition("Active", status=False, reason="PlacementNotFound", message="Placement p not found")
            ]
        },
    }
    explanation = explained(made, changed(objects, cluster_queues=(queue,), checks=(*objects.checks, placed)))

    assert findings_of(explanation, "queue-inactive") == []
    (wrong,) = findings_of(explanation, "placement-inactive")
    assert (wrong.where, wrong.told) == ("AdmissionCheck placed", "PlacementNotFound: Placement p not found")


def test_a_queue_without_a_check_runs_its_jobs_here() -> None:
    made = workload(TRAIN, checks={})
    objects = fleet(made)
    queue = {**objects.cluster_queues[0], "spec": {**objects.cluster_queues[0]["spec"], "admissionChecksStrategy": {}}}
    here = stored(job("train", delegated=False))
    explanation = explained(made, changed(objects, cluster_queues=(queue,)), of=here)

    assert explanation.job.state is JobState.LOCAL
    assert [(finding.id, finding.blocking) for finding in explanation.findings] == [("queue-without-check", False)]
    assert explanation.workers == ()
    (delegated,) = explained(made, changed(objects, cluster_queues=(queue,))).findings
    assert delegated.blocking
    assert "nobody runs it" in delegated.why


def test_a_copy_that_is_asked_about_on_its_worker_is_explained_where_it_comes_from() -> None:
    """Its queue there needs no check, and nobody is to submit it anew."""
    made = workload(TRAIN, checks={})
    made["metadata"]["labels"] = {ORIGIN_LABEL: "multikueue"}
    objects = fleet(made)
    queue = {**objects.cluster_queues[0], "spec": {}}
    explanation = explained(made, changed(objects, cluster_queues=(queue,)))
    assert (explanation.job.state, explanation.findings, explanation.next) == (JobState.LOCAL, (), ())
    assert explanation.job.reason == f'it is the copy of Workload "{ObjectKey.of(made)}" of a manager: ask there'


def test_nobody_has_looked_at_the_check() -> None:
    made = workload(TRAIN, nominated=BOTH)
    objects = fleet(made)
    unseen = {**objects.checks[0], "status": {}}
    (wrong,) = findings_of(explained(made, changed(objects, checks=(unseen,))), "check-unseen")

    assert "start the daemon" in wrong.remedy


@pytest.mark.parametrize(("age", "dead"), [(10, False), (40, False), (120, True)])
def test_a_daemon_that_does_not_lead_any_more(age: int, dead: bool) -> None:
    made = workload(TRAIN, nominated=BOTH)
    renewed = timestamp(NOW - timedelta(seconds=age))
    lease = {"spec": {"holderIdentity": "pod-1", "renewTime": renewed, "leaseDurationSeconds": 15}}
    explanation = explained(made, changed(fleet(made), lease=lease))

    assert bool(findings_of(explanation, "daemon-not-running")) is dead


def test_a_rejected_job_whose_events_are_gone() -> None:
    undelegated = stored(job("train", delegated=False))
    made = workload(undelegated, quota=False, evicted="DeactivatedDueToAdmissionCheck")
    made["spec"]["active"] = False

    (by_job,) = explained(made, of=undelegated).findings
    assert by_job.id == "not-delegated"
    assert "managedBy" in by_job.why
    (by_kind,) = explained(judged(made, "KindNotEnabled"), of=TRAIN).findings
    assert by_kind.id == "kind-not-enabled"
    assert 'add "batch/job" to integrations.frameworks' in by_kind.remedy


def test_an_evicted_job_whose_worker_hides_its_kind_tells_what_to_do_there() -> None:
    """Its Kueue may be down as well: then the eviction waits for one of the two."""
    made = workload(TRAIN, evicted="Preempted")
    made["metadata"]["annotations"] = {LAST_WORKER_ANNOTATION: "worker1"}
    hidden = ConnectionFacts(unusable={"Job.v1.batch": 'User "x" cannot list resource "jobs" in API group "batch"'})
    objects = attrs.evolve(fleet(made), clusters=tuple(worker(name, facts=hidden) for name in BOTH))
    explanation = explained(made, objects)

    assert explanation.job.state is JobState.STOPPING
    assert explanation.workers[0].state == "Unusable"
    assert [(finding.id, finding.where) for finding in explanation.findings] == [("rbac", "worker1")]


def test_a_deactivated_job() -> None:
    made = workload(TRAIN, quota=False)
    made["spec"]["active"] = False

    (inactive,) = explained(made).findings
    assert inactive.id == "inactive"
    assert "kubectl -n default patch workload" in inactive.remedy


@pytest.mark.parametrize(
    ("owner", "remedy"), [("Job", "kubectl -n default delete workload"), ("Pod", "create it again with more time")]
)
def test_a_job_out_of_time_is_not_told_to_set_active(owner: str, remedy: str) -> None:
    """Kueue v0.19.2 takes that back; and whoever deletes the Workload of pods ends them."""
    made = workload(TRAIN, quota=False, evicted="DeactivatedDueToMaximumExecutionTimeExceeded")
    made["spec"]["active"] = False
    if owner == "Pod":
        made["metadata"]["ownerReferences"][0] |= {"apiVersion": "v1", "kind": "Pod"}

    (over,) = findings_of(explained(made), "time-is-over")
    assert remedy in over.remedy
    assert "active" not in over.remedy


def test_a_job_that_was_deactivated_by_hand_was_not_rejected_whatever_was_said_before() -> None:
    made = workload(TRAIN, quota=False)
    made["spec"]["active"] = False
    note = "Jobs of this kind are not dispatched: add it"
    event = EventReport("workload/x", "Warning", "MultiKueue", note, NOW, NOW, 1, "multikueue")
    explanation = explain(Seen(made, TRAIN, fleet(made), (event,), NOW))

    assert [finding.id for finding in explanation.findings] == ["inactive"]


def test_a_config_with_a_misspelt_name_and_a_worker_that_is_away() -> None:
    """Nobody is left who could take it."""
    made = workload(TRAIN)
    lost = worker("worker1", "no route to host", reason="ClientConnectionFailed")
    explanation = explained(made, fleet(made, workers=(lost,), listed=("worker1", "wroker2")))

    assert [finding.blocking for finding in findings_of(explanation, "worker-down")] == [True]
    assert [finding.blocking for finding in findings_of(explanation, "cluster-missing")] == [False]


def test_a_selected_cluster_that_is_no_worker_yet_is_the_daemons_to_make() -> None:
    """Its name is right, and what is missing is told of its ManagedCluster."""
    made = workload(TRAIN, nominated=("worker1",))
    objects = fleet(made)
    (config,) = objects.configs
    filled = {**config, "metadata": {**config["metadata"], "labels": {"multikueue.dev/placement": CHECK}}}
    explanation = explained(made, changed(objects, configs=(filled,), clusters=objects.clusters[:1]))

    (missing,) = findings_of(explanation, "cluster-missing")
    assert "kubectl describe managedcluster worker2" in missing.remedy, "where that event is shown"


def test_many_clusters_that_are_no_workers_yet_are_one_finding() -> None:
    """For each there was one, with the whole list in it; a name that is meant is told beside them."""
    made = workload(TRAIN, nominated=("worker1",))
    listed = ("worker1", *(f"spoke-{number}" for number in range(17)), "wroker2")
    explanation = explained(made, fleet(made, listed=listed))
    misspelt, others = findings_of(explanation, "cluster-missing")
    assert 'lists "wroker2"' in misspelt.why
    assert others.why == 'it lists "spoke-0" and 16 more, and there is no MultiKueueCluster of these names'
    assert len(others.told) <= 200


def test_names_that_look_like_those_of_other_workers_are_none_that_is_meant() -> None:
    """Whoever numbers workers had a finding for each: worker3 looked like worker2, which is listed and there."""
    made = workload(TRAIN, nominated=("worker1",))
    listed = ("worker1", *(f"worker{number}" for number in range(3, 20)))
    (missing,) = findings_of(explained(made, fleet(made, listed=listed)), "cluster-missing")
    assert 'lists "worker3" and 16 more' in missing.why


def test_a_job_that_has_ended_needs_nothing() -> None:
    explanation = explained(workload(TRAIN, cluster="worker1", checks={CHECK: "Ready"}, finished="Succeeded"))

    assert explanation.summary == 'It has finished on worker cluster "worker1".'
    assert explanation.findings == ()
    assert explanation.next == ()


@pytest.mark.parametrize(
    ("queue", "id", "words"),
    [
        ("", "no-queue", "label it kueue.x-k8s.io/queue-name with a LocalQueue of namespace default: user-queue"),
        ("user-que", "local-queue-missing", "correct the label"),
        ("user-queue", "no-workload", "look whether Kueue runs here"),
    ],
)
def test_a_job_without_a_workload(queue: str, id: str, words: str) -> None:
    made = job("train", queue=queue)
    if not queue:
        made["metadata"]["labels"] = {}
    (wrong,) = unqueued(made, "job/train", fleet()).findings

    assert wrong.id == id
    assert words in wrong.remedy
    assert queue != "user-que" or 'did you mean "user-queue"?' in wrong.why


def test_ran_on_has_only_where_it_ran_and_nobody_it_was_withdrawn_from_is_not_offered_it() -> None:
    """A worker that refused its job only had it recorded; where it is being created it has not run yet."""
    was = [
        {"worker": "worker1", "since": "2026-01-01T00:00:00Z", "until": "2026-01-01T00:10:00Z", "why": "Preempted"},
        {"worker": "worker2", "since": "2026-01-01T00:20:00Z", "until": "2026-01-01T00:21:00Z", "cause": "Refused"},
    ]
    waits = workload(TRAIN)
    waits["metadata"]["annotations"] = {PLACEMENTS_ANNOTATION: json.dumps(was)}
    explanation = explained(waits)
    assert [(placement.worker, placement.ran) for placement in explanation.placements] == [
        ("worker1", True),
        ("worker2", False),
    ]
    first = explanation.workers[0]
    assert (first.worker, first.state, first.told) == ("worker1", "Left", "Preempted")
    lines = explanation_lines(explanation, NOW, 100)
    (head,) = [number for number, line in enumerate(lines) if line.startswith("RAN ON")]
    assert [line.split()[0] for line in lines[head + 1 : head + 3] if line] == ["worker1"]

    starts = workload(TRAIN, cluster="worker1")
    explanation = explained(starts)
    assert [(placement.worker, placement.ran) for placement in explanation.placements] == [("worker1", False)]
    assert [worker.state for worker in explanation.workers] == ["Running", "Elsewhere"]


@pytest.mark.parametrize("policy", ["Hold", "HoldAndDrain"])
@pytest.mark.parametrize(
    ("field", "where", "command"),
    [
        ("local_queues", "LocalQueue user-queue", "kubectl -n default patch localqueue user-queue --type merge"),
        ("cluster_queues", "ClusterQueue cluster-queue", "kubectl patch clusterqueue cluster-queue --type merge"),
    ],
)
def test_a_stopped_queue_is_named_with_who_resumes_it(field: str, where: str, command: str, policy: str) -> None:
    """Once it has quota, a stopped queue keeps nothing from a job."""
    waits = workload(TRAIN, quota=False)
    objects = fleet(waits)
    (queue,) = getattr(objects, field)
    spec: Json = {**queue["spec"], "stopPolicy": policy}
    stopped = changed(objects, **{field: ({**queue, "spec": spec},)})
    explanation = explained(waits, stopped)

    (wrong,) = explanation.findings
    assert (wrong.id, wrong.where, wrong.blocking) == ("queue-stopped", where, True)
    assert command in wrong.remedy
    assert [step.text for step in explanation.next] == []
    assert findings_of(explained(workload(TRAIN, nominated=BOTH), stopped), "queue-stopped") == []


def replaced(*, retriable: bool = True, age: timedelta = timedelta(0)) -> Explanation:
    """Of a group of pods on a worker, one of which has failed: as a real Kueue says it, while the others run on."""
    pod = stored(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"namespace": "default", "name": "train-0"},
            "spec": {"containers": []},
        }
    )
    made = workload(pod, kind=POD, cluster="worker1")
    waits = new_condition("WaitingForReplacementPods", True, "PodsFailed", "Some Failed pods need replacement", now=NOW)
    made["status"]["conditions"].append(waits)
    made["metadata"] |= {"name": "train", "annotations": {GROUP_WORKLOAD_ANNOTATION: "true"}}
    if not retriable:
        made["spec"]["podSets"][0]["template"]["metadata"] = {"annotations": {RETRIABLE_ANNOTATION: "false"}}
    return explained(made, of=None, now=NOW + age)


def test_a_pod_group_that_waits_for_a_replacement_says_so() -> None:
    explanation = replaced(age=timedelta(minutes=2))

    (lacking,) = findings_of(explanation, "pod-missing")
    assert lacking.why == "a pod of the group has failed or is gone, and Kueue waits for a new one in its place"
    assert (lacking.told, lacking.blocking) == ("Some Failed pods need replacement", True)
    assert lacking.remedy == (
        "create a pod of this group in its place, under another name; or end the group: "
        "kubectl -n default delete pods --wait=false -l kueue.x-k8s.io/pod-group-name=train; then ask an "
        "operator to delete Workload train, as Kueue waits for other pods until that goes"
    )
    assert explanation.summary == f'Worker cluster "worker1" has it, and somebody has to act: {lacking.why}.'


def test_who_replaces_the_pods_of_a_group_has_a_moment() -> None:
    explanation = replaced()

    (lacking,) = findings_of(explanation, "pod-missing")
    assert not lacking.blocking
    assert explanation.summary == f'Worker cluster "worker1" has it: {lacking.why}.'


def test_a_group_whose_pods_are_not_replaced_waits_for_none() -> None:
    explanation = replaced(retriable=False, age=timedelta(minutes=2))

    assert findings_of(explanation, "pod-missing") == []
    assert explanation.summary == 'It runs on worker cluster "worker1".'


def test_a_queue_that_was_changed_after_the_quota_was_given_is_told() -> None:
    """Kueue tries it again and again, and its own webhook refuses it."""
    labels = {**TRAIN["metadata"]["labels"], QUEUE_LABEL: "other-queue"}
    moved = {**TRAIN, "metadata": {**TRAIN["metadata"], "labels": labels}}
    explanation = explained(workload(TRAIN, nominated=BOTH), of=moved)

    (changed,) = explanation.findings
    assert (changed.id, changed.blocking) == ("queue-changed", False), "it goes on by the queue that it had"
    assert changed.why == (
        'the job names LocalQueue "other-queue" since it got quota in "user-queue": Kueue moves no job that has quota'
    )
    assert changed.remedy == (
        "delete the job and create it in the other queue; or let it stay: "
        "kubectl -n default label job/train kueue.x-k8s.io/queue-name=user-queue --overwrite"
    )
    assert explained(workload(TRAIN, quota=False), of=moved).findings == (), "then Kueue moves it"


def test_a_worker_that_is_asked_and_has_lost_its_namespace_for_the_job_has_a_remedy() -> None:
    """The daemon has seen its queues, and the check has no words of it yet."""
    made = saying(workload(TRAIN, nominated=("worker1",)), "Offered to worker1")
    known = (worker("worker1", annotations={NAMESPACES_ANNOTATION: "{}"}), worker("worker2"))
    documents = {"worker1": written(Published(WorkerFacts("worker1", queues=QueuesOnWorker({}, {})), NOW, (), NOW))}
    findings = config_map("kueue-system", "multikueue-findings", documents)
    explanation = explained(made, attrs.evolve(fleet(made, workers=known), findings=findings))

    assert explanation.workers[0].cause == "NamespaceUnnamed"
    assert [finding.id for finding in explanation.findings] == ["namespace-unnamed"]


def test_of_several_checks_the_one_that_holds_it_up_is_told() -> None:
    """The finding said that others say more about checks, and there were none."""
    made = workload(TRAIN, quota=False)
    objects = fleet(made)
    (check,), (queue,) = objects.checks, objects.cluster_queues
    second = {**check, "metadata": {"name": "second"}, "status": {}}
    active = {**check, "status": {"conditions": [new_condition("Active", True, "Active", "", now=NOW)]}}
    words = "Can't admit new workloads: references inactive AdmissionCheck(s): second."
    inactive = {"conditions": [new_condition("Active", False, "AdmissionCheckInactive", words, now=NOW)]}
    spec = {**queue["spec"], "admissionChecksStrategy": {"admissionChecks": [{"name": CHECK}, {"name": "second"}]}}
    queues = ({**queue, "spec": spec, "status": inactive},)
    explanation = explained(made, changed(objects, checks=(active, second), cluster_queues=queues))

    assert [(wrong.id, wrong.where) for wrong in explanation.findings] == [("check-unseen", "AdmissionCheck second")]
    assert "AdmissionCheck second: nobody has looked at this check" in "\n".join(
        explanation_lines(explanation, NOW, 200)
    )


def test_who_may_not_read_the_cluster_queue_is_told_that_it_admits_no_jobs() -> None:
    """It said that the job waits for quota, and gets it once there is room."""
    words = "ClusterQueue cluster-queue is inactive"
    made = workload(TRAIN, quota=False)
    made = {**made, "status": {"conditions": [new_condition("QuotaReserved", False, "Inadmissible", words, now=NOW)]}}
    objects = fleet(made)
    (local,) = objects.local_queues
    stopped = new_condition("Active", False, "ClusterQueueIsInactive", "Can't submit new workloads", now=NOW)
    unread = frozenset({CLUSTER_QUEUE, ADMISSION_CHECK, MULTIKUEUE_CONFIG, MULTIKUEUE_CLUSTER})
    hidden = changed(
        objects,
        cluster_queues=(),
        checks=(),
        configs=(),
        clusters=(),
        local_queues=({**local, "status": {"conditions": [stopped]}},),
        unread=unread,
    )
    explanation = explain(Seen(made, TRAIN, hidden, (), NOW, audience=Audience.SUBMITTER))

    (wrong,) = explanation.findings
    assert (wrong.id, wrong.where, wrong.blocking) == ("queue-inactive", "LocalQueue user-queue", True)
    assert wrong.why == f"it admits no jobs: {words}"
    assert wrong.remedy == "ask whoever runs the queues: it is theirs to mend"
    assert explanation.next == ()


def test_a_job_that_waits_has_the_doctors_remedy_for_its_queue_there() -> None:
    """The check says that it is inactive; the daemon has seen that somebody has stopped it."""
    words = "ClusterQueue cluster-queue is inactive"
    made = saying(workload(TRAIN, nominated=BOTH), f"Offered to worker1, worker2 — worker1: {words} · worker2: {words}")
    leads = QueuesOnWorker({ObjectKey("default", "user-queue"): "cluster-queue"}, {})
    documents = {name: written(Published(WorkerFacts(name, queues=leads), NOW, (), NOW)) for name in BOTH}
    objects = attrs.evolve(fleet(made), findings=config_map("kueue-system", "multikueue-findings", documents))
    seen = finding(
        "worker-cluster-queue", "worker1, worker2, LocalQueue default/user-queue", worker="worker1", name="x"
    )
    stopped = attrs.evolve(seen, object="ClusterQueue cluster-queue", workers=BOTH)
    other = attrs.evolve(seen, object="ClusterQueue of-others", workers=BOTH)
    explanation = explain(Seen(made, TRAIN, objects, (), NOW, fleet=(stopped, other)))

    (wrong,) = explanation.findings
    assert (wrong.id, wrong.remedy, wrong.blocking) == (stopped.id, stopped.remedy, True)


def test_an_explanation_says_since_when_and_each_workers_words_once() -> None:
    quota = "insufficient quota for cpu in flavor default-flavor (3 > 1)"
    explanation = offered(f"worker1: {quota} · worker2: {quota}")
    lines = explanation_lines(explanation, NOW + timedelta(seconds=90), 200)

    assert lines[0] == f"job/train in namespace default: Offered since {NOW:%m-%d %H:%M:%SZ} (90s)"
    (check,) = [line for line in lines if line.startswith("AdmissionCheck")]
    assert check.split(maxsplit=3)[-1] == "Offered to worker1, worker2"
    (head,) = [line for line in lines if line.startswith("- ")]
    assert head == "- the job asks for more cpu than its ClusterQueue on worker1, worker2 has in all"


@pytest.mark.parametrize("delegated", [True, False])
def test_a_job_that_kueue_lets_run_here_is_not_said_to_wait_for_a_worker(delegated: bool) -> None:
    """Who may not read ClusterQueues was told that it is offered as soon as a worker can take it."""
    made = workload(TRAIN, checks={})
    unread = frozenset({CLUSTER_QUEUE, ADMISSION_CHECK, MULTIKUEUE_CONFIG, MULTIKUEUE_CLUSTER})
    hidden = changed(fleet(made), cluster_queues=(), checks=(), configs=(), clusters=(), unread=unread)
    of = TRAIN if delegated else {**TRAIN, "spec": {**TRAIN["spec"], "managedBy": None}}
    explanation = explain(Seen(made, of, hidden, (), NOW, audience=Audience.SUBMITTER))

    assert (explanation.job.state, explanation.next) == (JobState.LOCAL, ())
    (wrong,) = explanation.findings
    assert (wrong.id, wrong.where, wrong.blocking) == ("queue-without-check", "LocalQueue user-queue", delegated)
    assert wrong.remedy.startswith("submit the job to another queue; or ask whoever runs the queues")


def test_what_happens_next_does_not_contradict_what_to_do() -> None:
    """A job without managedBy has to be created again: to have it looked at once more is in vain."""
    made = judged(workload(TRAIN, checks={CHECK: "Rejected"}, quota=False), "NotDelegated")
    words = "The workload is deactivated due to Admission check(s): multikueue, were rejected"
    evicted = new_condition("Evicted", True, "DeactivatedDueToAdmissionCheck", words, now=NOW)
    status = {**made["status"], "conditions": [*made["status"]["conditions"], evicted], "admissionChecks": []}
    made = {**made, "spec": {**made["spec"], "active": False}, "status": status}
    explanation = explained(made)

    assert [wrong.id for wrong in explanation.findings] == ["not-delegated"]
    assert not any("retry" in step.text for step in explanation.next)


def test_a_worker_whose_multikueuecluster_is_gone_is_not_said_to_be_out_of_reach() -> None:
    """The daemon reaches it as before; and what the check says of it is no condition for a move."""
    words = "has no MultiKueueCluster any more: the job runs there to its end"
    made = workload(TRAIN, cluster="worker1", checks={CHECK: "Ready"})
    made = saying(made, f'The workload was admitted on "worker1" — worker1: {words}')
    explanation = explained(made, fleet(made, workers=(worker("worker2"),)))

    assert explanation.job.state is JobState.LOST
    assert explanation.summary == 'It is assigned to worker cluster "worker1", whose MultiKueueCluster is gone.'
    assert [step.text for step in explanation.next] == [f"worker1 {words}"]
    assert [wrong.id for wrong in explanation.findings] == ["worker-gone"]


def test_a_priority_class_that_may_be_missing_is_named_where_kueue_makes_no_workload() -> None:
    """It was said that Kueue does not run, or does not know the kind; other jobs of the kind ran."""
    labels = {**TRAIN["metadata"]["labels"], "kueue.x-k8s.io/priority-class": "urgent"}
    of = {**TRAIN, "metadata": {**TRAIN["metadata"], "labels": labels}}
    (wrong,) = unqueued(of, "job/train", fleet()).findings

    assert (wrong.id, 'WorkloadPriorityClass "urgent"' in wrong.why) == ("no-workload", True)
    assert "kubectl get workloadpriorityclasses" in wrong.remedy
    assert "multikueue events job/train -n default" in wrong.remedy
