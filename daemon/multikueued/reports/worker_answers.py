"""What each worker of the config says about one Workload, from all that the manager was told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Final

import attrs

from multikueue.core.model import workloads
from multikueue.core.model.check_message import Message
from multikueue.core.model.conditions import timestamp
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import annotations_of
from multikueue.core.model.refusal_facts import RefusalFacts, refusals_in
from multikueue.core.model.second_names import held_as_second, second_name
from multikueue.core.model.worker_names import cordon_of
from multikueued.reports.answers import ReportedRefusal, cluster_state, placements, refusals
from multikueued.reports.events import EventReport
from multikueued.reports.jobs import RUNNING_STATES, WAITING_STATES, JobReport, JobState, check_message
from multikueued.reports.objects import ManagerObjects
from multikueued.reports.remedies.trouble import CORDONED, NO_NAMESPACE, SECOND_NAME
from multikueued.reports.worker_queues import local_queue_of, quota_mismatch

_TROUBLE: Final = ("Refused", "Waiting", "Lost", "NotConnected", "Unusable", "Cordoned")


@attrs.frozen
class WorkerAnswer:
    """What one worker says about a job."""

    worker: str
    state: str
    """`Running`, `Finished`, `Offered`, `Waiting` (asked, and something is said of why it has not admitted it yet),
    `Refused`, `NotOffered`,
    `Elsewhere` (another worker has it, or had it at its end), `Left` (it was here before, and is not asked), `Lost`,
    `NotConnected`, `Unusable` (it does not serve the kind), `Cordoned` (or held as another
    name of a cluster), `Missing` (listed, and there is no such
    MultiKueueCluster)."""
    told: str
    """Its words, or those of the daemon about it."""
    source: str
    """Where they stand: `check`, `event`, `condition`, `annotation`, `findings` (of the daemon); empty: nowhere."""
    next_attempt: datetime | None = None
    """When a worker that is not connected, or refuses the job, is asked again; None: that is not known."""
    cause: str = ""
    """What is wrong, as `SecretMissing` or `NameTaken`; empty: nothing, or the words alone tell."""
    reason: str = ""
    """Why the scored dispatcher does not offer the job there, as `NoRoom`; empty: it does, or that is not known."""
    about: Mapping[str, str] = MappingProxyType({})
    """What the cause is about, as `kind` and `name` of what the job needs there."""

    @property
    def is_connected(self) -> bool:
        """Whether the daemon can ask it."""
        return self.state not in ("Lost", "NotConnected", "Missing")

    @property
    def is_trouble(self) -> bool:
        """Whether it says why it does not take the job."""
        return self.state in _TROUBLE or self.is_word or bool(self.cause)

    @property
    def is_twin(self) -> bool:
        """Whether it is another name of a cluster: nothing is to be expected of it."""
        return self.cause == SECOND_NAME

    @property
    def is_word(self) -> bool:
        """Whether all that is known are words in the check: no fact says that anything is wrong."""
        return self.source == "check" and self.state != "Refused"


def lacks_quota_there(job: JobReport, answers: Sequence[WorkerAnswer]) -> bool:
    """Whether its worker has the job, and gives it no quota as it is now: one that has grown, or is on hold."""
    return job.state is JobState.STARTING and any(answer.worker == job.worker and answer.is_word for answer in answers)


def ask_workers(
    workload: Json, job: JobReport, objects: ManagerObjects, events: Sequence[EventReport], now: datetime
) -> tuple[WorkerAnswer, ...]:
    """The answers of all workers that matter, in the order of the config.

    Args:
        workload: the manager's.
        job: the same as a line.
        objects: of the manager.
        events: about it, in the order of time.
        now: the wall clock.
    """
    if job.state is JobState.LOCAL:
        return ()
    listed = objects.workers_of(objects.check_for(workload) or "")
    names = dict.fromkeys([*listed, *job.offered_to, *([job.worker] if job.worker else [])])
    message = check_message(workload, objects)
    parts = Message.read(message).by_worker(names)
    may_refuse = job.state in (*WAITING_STATES, JobState.STARTING)
    refused = refusals(workload, events, parts, now) if may_refuse else {}
    answers = (_answer(name, workload, job, objects, parts, refused) for name in names)
    why = refusals_in(workload, message) if parts else {}
    return tuple(_refusing(answer, refused.get(answer.worker), why.get(answer.worker)) for answer in answers)


def _refusing(answer: WorkerAnswer, refused: ReportedRefusal | None, noted: RefusalFacts | None) -> WorkerAnswer:
    """With when a worker that refuses it is asked again, and why.

    What stands beside the check's words counts. An event tells why where the check has no words of that worker, and
    nowhere else: whoever may create events says what is in it.
    """
    if refused is not None and answer.state == "Refused":
        answer = attrs.evolve(answer, next_attempt=refused.due)
    if answer.cause or (answer.state != "Refused" and answer.source != "check"):
        return answer
    by_event = refused.facts if refused is not None and answer.source == "event" else RefusalFacts()
    facts = by_event if noted is None else noted
    return attrs.evolve(answer, cause=facts.cause, about=facts.about)


def _answer(
    name: str,
    workload: Json,
    job: JobReport,
    objects: ManagerObjects,
    parts: Mapping[str, str],
    refused: Mapping[str, ReportedRefusal],
) -> WorkerAnswer:
    cluster = objects.clusters_by_name.get(name)
    if cluster is None:
        return WorkerAnswer(name, "Missing", "there is no MultiKueueCluster of that name", "")
    said = cluster_state(cluster)
    if job.state in (JobState.FINISHED, JobState.FAILED):
        return WorkerAnswer(name, "Finished" if name == job.worker else "Elsewhere", "", "")
    if not said.connected:
        state = "Lost" if said.reason == "ClientConnectionFailed" else "NotConnected"
        return WorkerAnswer(name, state, said.error, "condition", said.next_attempt, said.cause)
    if name == job.worker:
        return _of_its_worker(job, parts.get(name, ""), refused.get(name))
    owner = workloads.owner(workload)
    unusable = said.unusable.get(owner.gvk.dotted, "") if owner is not None else ""
    stops_there = job.state is JobState.STOPPING and name == workloads.noted_worker(workload)
    if unusable and (stops_there or job.state in WAITING_STATES):
        cause = said.causes.get(owner.gvk.dotted, "") if owner is not None else ""
        return WorkerAnswer(name, "Unusable", unusable, "condition", cause=cause)
    if name not in (*job.offered_to, *refused) and (away := _kept_away(name, workload, job, objects)) is not None:
        return away
    if job.state in WAITING_STATES and name in parts:
        state = "Refused" if name in refused else "Waiting" if name in job.offered_to else "NotOffered"
        return WorkerAnswer(name, state, parts[name], "check")
    if name in refused:
        return WorkerAnswer(name, "Refused", refused[name].why, "event")
    asked = name in job.offered_to or job.state is JobState.WAITING
    seen = _seen_there(name, workload, objects) if job.state in WAITING_STATES and asked else None
    return _without_words(name, workload, job) if seen is None else seen


def _of_its_worker(job: JobReport, words: str, refused: ReportedRefusal | None) -> WorkerAnswer:
    if job.state is JobState.STARTING and refused is not None:
        return WorkerAnswer(job.worker, "Refused", refused.why, "event")
    if job.state is JobState.STARTING and words:
        return WorkerAnswer(job.worker, "Waiting", words, "check")
    return WorkerAnswer(job.worker, "Running" if job.state in RUNNING_STATES else str(job.state), words, "")


def _kept_away(name: str, workload: Json, job: JobReport, objects: ManagerObjects) -> WorkerAnswer | None:
    """Of a worker whose MultiKueueCluster says that it is offered no job, or none of this namespace that waits."""
    cluster = objects.clusters_by_name[name]
    if cordon := cordon_of(annotations_of(cluster)):
        return WorkerAnswer(name, "Cordoned", cordon, "annotation", cause=CORDONED)
    if (second := second_name(cluster)) is not None:
        return WorkerAnswer(name, "Cordoned", held_as_second(second.first), "condition", cause=SECOND_NAME)
    if job.state not in WAITING_STATES:
        return None
    nowhere = objects.names_on(name).why_none(ObjectKey.of(workload).namespace)
    return WorkerAnswer(name, "NotOffered", nowhere, "annotation", cause=NO_NAMESPACE) if nowhere else None


def _without_words(name: str, workload: Json, job: JobReport) -> WorkerAnswer:
    """Of a worker that says nothing: whether it is asked, and if not, why it may be none that never was."""
    if name in job.offered_to:
        return WorkerAnswer(name, "Offered", "", "")
    if job.worker:
        return WorkerAnswer(name, "Elsewhere", "", "")
    left = next((placement for placement in reversed(placements(workload)) if placement.worker == name), None)
    return (
        WorkerAnswer(name, "NotOffered", "", "") if left is None else WorkerAnswer(name, "Left", left.why, "annotation")
    )


def _seen_there(name: str, workload: Json, objects: ManagerObjects) -> WorkerAnswer | None:
    """That a worker could never admit it, by the queues and quotas that the daemon saw there; None: it could."""
    if (seen := objects.queues_seen(name)) is None:
        return None
    queues, at = seen
    there = objects.names_on(name).local_queue(local_queue_of(workload)).namespace
    namespaces = objects.published[name].facts.namespaces
    if there and namespaces is not None and there not in namespaces:
        words = f'namespaces "{there}" not found (as the daemon saw it at {timestamp(at)})'
        return WorkerAnswer(name, "Waiting", words, "findings")
    if (wrong := quota_mismatch(workload, queues, objects.names_on(name))) is None:
        return None
    words = f"{wrong} (as the daemon saw it at {timestamp(at)})"
    return WorkerAnswer(name, "Waiting", words, "findings", cause=wrong.cause, about=wrong.about)
