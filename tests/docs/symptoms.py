"""The tables of the troubleshooting page: each row is what the code says of a symptom.

`python -m tests.docs.symptoms` writes them. The words of workers are those by which
`tests/reports/test_remedies.py` reaches each row of the tables of remedies; those of the manager are made of objects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias

import attrs

from multikueue.core.dispatchers.scored.job_annotations import NAMES
from multikueue.core.dispatchers.scored.state import State
from multikueue.core.inventory.settings import PLACEMENT_CONTROLLER
from multikueue.core.machinery.connection_facts import ConnectionFacts
from multikueue.core.model.conditions import new_condition, timestamp
from multikueue.core.model.labels import DETACHED_ANNOTATION, FINDING_LABEL, QUEUE_LABEL, ToldFinding
from multikueue.core.model.names import Json
from multikueued.reports.chain import check_findings, queue_findings
from multikueued.reports.daemon_lease import daemon_findings
from multikueued.reports.events import EventReport
from multikueued.reports.explanation import explain
from multikueued.reports.job_findings import MANAGER_RULES, findings_of
from multikueued.reports.objects import ManagerObjects
from multikueued.reports.remedies.job_trouble import NOT_READY, READY, TROUBLE, Sign
from multikueued.reports.remedies.pod_remedies import BY_REASON, NEED_MISSING, NONE_MADE
from multikueued.reports.remedies.remedy import REMEDIES, Finding, RemedyRule
from multikueued.reports.remedies.told_findings import TOLD, told_findings
from multikueued.reports.remedies.trouble import BY_CAUSE, WORKER_RULES, about_worker, found_by, taken_away
from multikueued.reports.seen import Seen
from multikueued.reports.unqueued import unqueued
from tests.docs.marked import replaced
from tests.reports.objects import CHECK, NOW, fleet, job, saying, stored, worker, workload
from tests.reports.test_check_remedies import CASES, TestADeletedJob
from tests.reports.test_remedies import MANAGER, WORKERS

PAGE: Final = Path(__file__).parents[2] / "docs" / "troubleshooting.md"
CONTEXT: Final[Mapping[str, str]] = {
    "namespace": "team",
    "queue": "user-queue",
    "job": "job/train",
    "secrets": "kueue-system",
    "cluster_queue": "cluster-queue",
    "worker": "worker1",
    "workload": "job-train",
}
SILENT: Final[Json] = {"spec": {"holderIdentity": "multikueue-0"}}
"""A Lease that was never renewed."""
SOURCE: Final = {"secret": "worker1-secret", "profile": "worker1"}
NEED: Final = {"kind": "ConfigMap", "name": "settings", "user": "job-other"}
QUEUE: Final = {"kind": "ClusterQueue", "name": "cluster-queue", "missing": "user-queue", "resource": "cpu"}
_HEAD: Final = "| what you see | why | what to do |\n|---|---|---|"


@attrs.frozen
class Row:
    """A symptom, and what the code makes of it."""

    seen: str
    """In Markdown."""
    finding: Finding

    @property
    def text(self) -> str:
        """As Markdown."""
        return f"| {self.seen} | {_cell(self.finding.why)} (`{self.finding.id}`) | {_cell(self.finding.remedy)} |"


def rows_of(rules: tuple[RemedyRule, ...], samples: list[tuple[str, str]]) -> Iterator[Row]:
    """The first words of each rule, in the order of the table."""
    for rule in rules:
        words = next(words for _, words in samples if first(rules, words) is rule)
        plain = words.replace("w1: ", "").replace('"w1"', '"worker1"')
        finding = found_by(rules, "worker1", plain, CONTEXT)
        assert finding is not None, words
        yield Row(f"`{plain}`", finding)


def first(rules: tuple[RemedyRule, ...], words: str) -> RemedyRule | None:
    """The rule that decides about these words."""
    return next((rule for rule in rules if rule.pattern.search(words) is not None), None)


TRAIN: Final = stored(job("train"))
MADE: Final = workload(TRAIN)


def changed(field: str, **changes: Any) -> ManagerObjects:
    """A manager whose only check, config or queue is another."""
    objects = fleet(MADE)
    (known,) = getattr(objects, field)
    other: Any = {field: ({**known, **changes},)}
    return attrs.evolve(objects, **other)


def without_queue() -> Json:
    """A job that names no queue."""
    made = job("train")
    return {**made, "metadata": {**made["metadata"], "labels": {}}}


def inactive() -> ManagerObjects:
    """The queue does not admit anything."""
    stopped = new_condition("Active", False, "Stopped", "Can't admit new workloads: is stopped", now=NOW)
    return changed("cluster_queues", status={"conditions": [stopped]})


QUEUED: Final = workload(TRAIN, quota=False)


def held() -> ManagerObjects:
    """Somebody has stopped the LocalQueue."""
    (local,) = fleet(QUEUED).local_queues
    return changed("local_queues", spec={**local["spec"], "stopPolicy": "Hold"})


def unplaced() -> ManagerObjects:
    """Nor does a queue whose placement check is not active."""
    misplaced = new_condition("Active", False, "PlacementNotFound", "Placement gpu not found", now=NOW)
    placed: Json = {
        "metadata": {"name": "placed"},
        "spec": {"controllerName": PLACEMENT_CONTROLLER},
        "status": {"conditions": [misplaced]},
    }
    objects = inactive()
    (queue,) = objects.cluster_queues
    both = {"admissionChecks": [{"name": CHECK}, {"name": "placed"}]}
    queue = {**queue, "spec": {**queue["spec"], "admissionChecksStrategy": both}}
    return attrs.evolve(objects, checks=(*objects.checks, placed), cluster_queues=(queue,))


def narrowed() -> Json:
    """A Workload that names a worker that the config does not list."""
    made = saying(MADE, State(NOW).describe("worker1 worker2: the job does not name it"))
    return {**made, "metadata": {**made["metadata"], "annotations": {NAMES: "wroker1"}}}


def deactivated() -> Json:
    """A Workload that somebody has switched off."""
    made = workload(TRAIN, quota=False)
    return {**made, "spec": {**made["spec"], "active": False}}


RUNNING: Final = workload(TRAIN, cluster="worker1", checks={CHECK: "Ready"})
WAITING: Final = workload(TRAIN, checks={CHECK: "Pending"})


def started_early() -> Json:
    """A job that ran before it had quota, by the clock of its worker."""
    return {**TRAIN, "status": {"startTime": timestamp(NOW - timedelta(seconds=60))}}


def explained(made: Json, of: Json = TRAIN) -> Finding:
    """What `multikueue explain` finds."""
    (finding,) = explain(Seen(made, of, fleet(made), (), NOW)).findings
    return finding


Case: TypeAlias = tuple[str, Callable[[], Finding]]
"""What one sees, and how it is found."""


def manager_rows() -> Iterator[Row]:
    """What is wrong on the manager itself."""
    cases = (*_of_configuration(), *_of_workloads())
    for seen, find in cases:
        yield Row(seen, find())


def _of_configuration() -> tuple[Case, ...]:
    objects = fleet(MADE)
    checked = {"admissionChecks": [{"name": "multikueu"}]}
    unchecked: dict[str, list[Json]] = {"admissionChecks": []}
    return (
        (
            "`multikueue status` shows workers as they were long ago, and nothing is dispatched",
            lambda: daemon_findings(SILENT, NOW, "kueue-system")[0],
        ),
        (
            "the AdmissionCheck has no condition Active, its ClusterQueue is inactive",
            lambda: next(check_findings(changed("checks", status={}))),
        ),
        (
            "the AdmissionCheck is not Active; it has no `spec.parameters`",
            lambda: next(check_findings(changed("checks", spec={"controllerName": "kueue.x-k8s.io/multikueue"}))),
        ),
        (
            "the AdmissionCheck is not Active; its config has another name",
            lambda: next(check_findings(changed("configs", metadata={"name": "multikueu"}))),
        ),
        (
            "the AdmissionCheck says `Missing clusters: [wroker2]`",
            lambda: next(check_findings(fleet(MADE, listed=("worker1", "wroker2")))),
        ),
        (
            "jobs get quota and no worker; the ClusterQueue names no check",
            lambda: next(check_findings(changed("cluster_queues", spec={}))),
        ),
        (
            "the ClusterQueue is inactive, and names a check that nobody knows",
            lambda: _of_queue(objects, admissionChecksStrategy=checked),
        ),
        (
            "a job with `managedBy` never starts, and its Workload is Admitted",
            lambda: _of_queue(objects, admissionChecksStrategy=unchecked),
        ),
    )


def _of_workloads() -> tuple[Case, ...]:
    objects = fleet(MADE)
    misspelt = {**MADE, "spec": {**MADE["spec"], "queueName": "user-quee"}}
    return (
        (
            "the Workload has no quota: `LocalQueue user-quee doesn't exist`",
            lambda: next(queue_findings(objects.chain(misspelt))),
        ),
        (
            "the Workload has no quota: `ClusterQueue cluster-queue doesn't exist`",
            lambda: next(queue_findings(attrs.evolve(objects, cluster_queues=()).chain(MADE))),
        ),
        (
            "the Workload has no quota: `ClusterQueue cluster-queue is inactive`",
            lambda: next(queue_findings(inactive().chain(MADE))),
        ),
        (
            "the Workload has no quota, and its LocalQueue has a stopPolicy",
            lambda: next(queue_findings(held().chain(QUEUED))),
        ),
        (
            "the same, and the ClusterQueue names a placement check",
            lambda: list(queue_findings(unplaced().chain(MADE)))[-1],
        ),
        ("the check says that it is held: `the job does not name it`", lambda: explained(narrowed())),
        ("`spec.active` of the Workload is false", lambda: explained(deactivated())),
        ("`the clock of worker1 is at least 60 s behind`", lambda: explained(RUNNING, started_early())),
        *(
            (f"an event on the Workload has the label `{FINDING_LABEL}: {finding}`", partial(_of_event, finding))
            for finding in TOLD
        ),
        ("the event `Detached`; the worker answers", lambda: _taken(DETACHED)),
        ("the same, and the worker is lost since", lambda: _taken(DETACHED, ConnectionFacts(error="refused"))),
        ("a job has a worker without a MultiKueueCluster", lambda: _taken("")),
        ("the Workload of a pod group has the condition `WaitingForReplacementPods`", _lacking),
        ("the label `kueue.x-k8s.io/queue-name` of a job with quota was changed", _changed),
        (
            "the job is gone, and its Workload is not",
            lambda: _told("job-deleted", TestADeletedJob.LEFT),
        ),
        ("the job has no Workload, and runs here at once", lambda: _unqueued(without_queue())),
        ("the job has a queue and no Workload", lambda: _unqueued(job("train"))),
    )


def _told(id: str, made: Json, of: Json | None = None) -> Finding:
    findings = findings_of(Seen(made, of, fleet(made), (), NOW))
    return next(finding for finding in findings if finding.id == id)


def _lacking() -> Finding:
    waits = new_condition("WaitingForReplacementPods", True, "PodsFailed", "words", now=NOW - timedelta(minutes=5))
    of_group = {**RUNNING, "status": {"conditions": [waits]}}
    return _told("pod-missing", of_group)


def _changed() -> Finding:
    moved = {**TRAIN, "metadata": {**TRAIN["metadata"], "labels": {QUEUE_LABEL: "other-queue"}}}
    return _told("queue-changed", WAITING, moved)


def _unqueued(made: Json) -> Finding:
    (finding,) = unqueued(made, "job/train", fleet()).findings
    return finding


DETACHED: Final = "2026-11-28T12:00:00Z"


def _taken(since: str, facts: ConnectionFacts | None = None) -> Finding:
    """A worker that is taken away under a job; since when it is being detached, and what it is lost by."""
    how: dict[str, Any] = {"message": "refused", "reason": "ClientConnectionFailed", "facts": facts} if facts else {}
    made = worker("worker1", annotations={DETACHED_ANNOTATION: since}, **how)
    finding = taken_away("worker1", fleet(RUNNING, workers=(made if since else worker("worker2"),)))
    assert finding is not None
    return finding


def _of_event(finding: ToldFinding) -> Finding:
    event = EventReport("workload/w", "Warning", "MultiKueue", "", NOW, NOW, 1, "multikueue", finding=finding)
    (reported,) = told_findings((event,), WAITING, TRAIN, "job/train")
    return reported


def _of_queue(objects: ManagerObjects, **spec: Any) -> Finding:
    (queue,) = objects.cluster_queues
    made = attrs.evolve(objects, cluster_queues=({**queue, "spec": {**queue["spec"], **spec}},))
    return next(queue_findings(made.chain(MADE), delegated=True))


def sections() -> Mapping[str, list[Row]]:
    """All rows, by heading."""
    return {
        "On the manager": list(manager_rows()),
        "The job waits for quota on the manager": list(rows_of(MANAGER_RULES, MANAGER)),
        "The check is Rejected, or waits": [Row(case.seen, case.finding()) for case in CASES],
        "The job is on a worker, and its own status says that something is wrong": [*job_rows()],
        "Pods do not run, or have failed, as explain and pods name the reason": [*pod_rows()],
        "What is wrong with a worker, or with the job there, by its cause": [
            Row(f"`{cause}`", about_worker("worker1", "its words", {**CONTEXT, **SOURCE, **about(cause)}, cause=cause))
            for cause in BY_CAUSE
        ],
        "A worker says": [
            *rows_of(WORKER_RULES, WORKERS),
            Row("anything else of a worker", about_worker("worker1", "its words", CONTEXT)),
            Row(
                "anything else of a MultiKueueCluster that is not Active",
                about_worker("worker1", "its words", CONTEXT, connected=False),
            ),
        ],
    }


def job_rows() -> Iterator[Row]:
    """What the status of a job says, in the order of the table; and of one that has failed."""
    rows = dict.fromkeys(sign.row for sign in TROUBLE)
    for row in rows:
        seen = dict.fromkeys(shown(sign) for sign in TROUBLE if sign.row == row)
        yield Row("; ".join(seen), REMEDIES[row].about("job/train", "", CONTEXT))
    kinds = ", ".join(sorted({kind.partition(".")[0] for kind in READY}))
    seen_late = f"its status shows nothing that runs, for 5 min, and needs somebody after 30: {kinds}"
    yield Row(seen_late, NOT_READY.about("job/train", "", CONTEXT))
    over = workload(TRAIN, cluster="worker1", checks={CHECK: "Ready"}, finished="Failed")
    yield Row("the job has failed", explained(over))


def shown(sign: Sign) -> str:
    """A row of the table in Markdown."""
    kinds = ", ".join(kind.partition(".")[0] for kind in sign.kinds)
    reasons = f" ({', '.join(sign.reasons)})" if sign.reasons and "*" not in sign.reasons else ""
    said = f"{sign.condition}={sign.status}{reasons}" if sign.condition else f"{sign.field}: {' or '.join(sign.words)}"
    minutes = f" for {sign.after:g} min" if sign.after else ""
    return f"{kinds} `{said}`{minutes}"


def pod_rows() -> Iterator[Row]:
    """What kubelets say, and what is looked for by name."""
    words = {**CONTEXT, **NEED, "kind": "Secret", "name": "db", "what": "container main", "container": "main"}
    for remedy in dict.fromkeys(BY_REASON.values()):
        reasons = (reason for reason, known in BY_REASON.items() if known is remedy)
        yield Row(", ".join(f"`{reason}`" for reason in reasons), remedy.about("pod train-x", "", words))
    yield Row("it has no pods, and an event of its worker says why", NONE_MADE.about("job/train-x", "", words))
    yield Row("no pod is ready, and the worker lacks what they name", NEED_MISSING.about("worker1", "", words))


def about(cause: str) -> dict[str, str]:
    """What a cause is about: a queue there, or what the job needs."""
    return NEED if cause.startswith("Dependency") else QUEUE


def tables() -> str:
    """All of them as Markdown."""
    return "\n\n".join(
        f"## {title}\n\n{_HEAD}\n" + "\n".join(row.text for row in rows) for title, rows in sections().items()
    )


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("*", "\\*")


if __name__ == "__main__":
    PAGE.write_text(replaced(PAGE.read_text(), "tests/docs/symptoms.py", tables()))
