"""What each worker of the config says about one Workload, from all that the manager was told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from types import MappingProxyType
from typing import Final

import attrs

from multikueue.core.model import placements as noted
from multikueue.core.model import workloads
from multikueue.core.model.conditions import timestamp
from multikueue.core.model.kinds import REFUSED
from multikueue.core.model.names import Json
from multikueue.core.model.refusal_facts import RefusalFacts, refusals_in
from multikueue.errors import Cause
from multikueued.reports.cluster_answers import ClusterAnswer, WorkerState
from multikueued.reports.events import EventReport
from multikueued.reports.jobs import ENDED_STATES, RUNNING_STATES, WAITING_STATES, JobReport, JobState
from multikueued.reports.objects import Chain
from multikueued.reports.worker_queues import quota_mismatch


class AnswerState(StrEnum):
    """How a worker stands with a job."""

    RUNNING = "Running"
    """It has the job, or is to have it."""
    FINISHED = "Finished"
    """It had the job at its end."""
    OFFERED = "Offered"
    """It is asked, and has said nothing yet."""
    WAITING = "Waiting"
    """It is asked, and something is said of why it has not admitted the job yet."""
    REFUSED = "Refused"
    """What the daemon sent it was refused, and is sent again later."""
    NOT_OFFERED = "NotOffered"
    """It is not asked."""
    ELSEWHERE = "Elsewhere"
    """Another worker has the job, or had it at its end."""
    LEFT = "Left"
    """The job was here before, and is not offered here."""
    LOST = "Lost"
    """It was connected, and cannot be reached."""
    NOT_CONNECTED = "NotConnected"
    """It never was, or its kubeconfig is refused."""
    UNUSABLE = "Unusable"
    """It does not serve the kind."""
    CORDONED = "Cordoned"
    """Or held as another name of a cluster."""
    MISSING = "Missing"
    """The config lists it, and there is no such MultiKueueCluster."""
    QUEUED = "Queued"
    """It has the job, which has lost its quota here."""
    STOPPING = "Stopping"
    """It has the job, which is being stopped."""
    RETRYING = "Retrying"
    """It has the job, which was sent back."""
    REJECTED = "Rejected"
    """It has the job, which a check has rejected."""
    INACTIVE = "Inactive"
    """It has the job, which was deactivated for another reason."""


class Source(StrEnum):
    """Where the words of an answer stand."""

    NOWHERE = ""
    CHECK = "check"
    EVENT = "event"
    CONDITION = "condition"
    ANNOTATION = "annotation"
    FINDINGS = "findings"
    """Of the daemon."""


_OF_TROUBLE: Final = (Source.CHECK, Source.EVENT, Source.CONDITION)


@attrs.frozen
class WorkerAnswer:
    """What one worker says about a job."""

    worker: str
    state: AnswerState
    told: str = ""
    """Its words, or those of the daemon about it."""
    source: Source = Source.NOWHERE
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
        return self.state not in (AnswerState.LOST, AnswerState.NOT_CONNECTED, AnswerState.MISSING)

    @property
    def is_trouble(self) -> bool:
        """Whether it says why it does not take the job."""
        return self.state is AnswerState.WAITING or self.source in _OF_TROUBLE or bool(self.cause)

    @property
    def is_word(self) -> bool:
        """Whether all that is known are words in the check: no fact says that anything is wrong."""
        return self.source is Source.CHECK and self.state is not AnswerState.REFUSED


def lacks_quota_there(job: JobReport, answers: Sequence[WorkerAnswer]) -> bool:
    """Whether its worker has the job, and gives it no quota as it is now: one that has grown, or is on hold."""
    return job.state is JobState.STARTING and any(answer.worker == job.worker and answer.is_word for answer in answers)


_FRESH: Final = timedelta(minutes=5)
"""How long a refusal that an event tells counts: the check tells of it a minute later, and as long as it lasts."""
_ASKED: Final = timedelta(seconds=30)
"""How long an answer takes to be told once a worker was asked again: what the check says waits for its turn."""
_LASTING: Final = timedelta(hours=1)
"""How long it may be until a worker is asked again."""


@attrs.frozen
class ReportedRefusal:
    """What one worker has refused."""

    why: str
    """In its words."""
    due: datetime | None = None
    """When it is asked again; None: that is not known."""
    facts: RefusalFacts = attrs.field(factory=RefusalFacts)


def refusals(
    workload: Json, events: Sequence[EventReport], parts: Mapping[str, str], now: datetime, message: str = ""
) -> dict[str, ReportedRefusal]:
    """What workers have refused lately, by worker; the newest counts.

    Args:
        workload: the manager's. It may have been sent back because of one.
        events: of the Workload, in the order of time.
        parts: what the check tells of workers: a refusal that lasts is told there. What stands beside that says why;
            an event says so of other workers alone, as whoever may create events says what is in it.
        now: the wall clock.
        message: the check's.
    """
    sent_back = (placement for placement in noted.placements(workload)[-1:] if placement.get("cause") == REFUSED)
    refused = {
        str(placement.get("worker")): ReportedRefusal(str(placement.get("why") or "")) for placement in sent_back
    }
    for event in events:
        if event.refused_by and _counts(event, now, in_check=event.refused_by in parts):
            due = event.asked_again if event.asked_again is not None and event.asked_again >= now else None
            why = RefusalFacts() if event.refused_by in parts else RefusalFacts(event.cause, event.about)
            refused[event.refused_by] = ReportedRefusal(event.note, due, why)
    for name, facts in refusals_in(workload, message).items():
        if name in refused or name in parts:
            refused[name] = attrs.evolve(refused.get(name) or ReportedRefusal(parts[name]), facts=facts)
    return refused


def _counts(event: EventReport, now: datetime, *, in_check: bool) -> bool:
    """Whether a worker still refuses what it has refused then: the check tells of it, or it was not asked since."""
    if event.last is not None and now - event.last > (_LASTING if in_check else _FRESH):
        return False
    return in_check or event.asked_again is None or now <= event.asked_again + _ASKED


@attrs.frozen
class _Asked:
    """A worker that is asked about a job, and what the manager was told of it."""

    name: str
    chain: Chain
    job: JobReport
    words: str
    """In the check; empty: none."""
    refusal: ReportedRefusal | None
    left: str | None
    """Why the job, which was here before, has left; None: it was not."""

    def answers(self, state: AnswerState, source: Source) -> WorkerAnswer:
        """In the words of the check, or of an event: that it refuses the job, or else this."""
        if (refusal := self.refusal) is None:
            return WorkerAnswer(self.name, state, self.words, source)
        words, facts = self.words if source is Source.CHECK else refusal.why, refusal.facts
        state = AnswerState.REFUSED
        return WorkerAnswer(self.name, state, words, source, refusal.due, cause=facts.cause, about=facts.about)


def ask_workers(chain: Chain, job: JobReport, events: Sequence[EventReport], now: datetime) -> tuple[WorkerAnswer, ...]:
    """The answers of all workers that matter, in the order of the config.

    Args:
        chain: of the Workload.
        job: its line.
        events: about it, in the order of time.
        now: the wall clock.
    """
    if job.state is JobState.LOCAL:
        return ()
    names = dict.fromkeys([*chain.workers, *job.offered_to, *([job.worker] if job.worker else [])])
    parts = chain.says.by_worker(names)
    may_refuse = job.state in (*WAITING_STATES, JobState.STARTING)
    refused = refusals(chain.workload, events, parts, now, chain.message) if may_refuse else {}
    left = {placement.get("worker"): placement.get("why", "") for placement in noted.placements(chain.workload)}
    asked = (_Asked(name, chain, job, parts.get(name, ""), refused.get(name), left.get(name)) for name in names)
    return tuple(map(_answer, asked))


def _answer(asked: _Asked) -> WorkerAnswer:
    name, job, said = asked.name, asked.job, asked.chain.objects.said_of(asked.name)
    if said.state is WorkerState.MISSING:
        return WorkerAnswer(name, AnswerState.MISSING, "there is no MultiKueueCluster of that name")
    if job.state in ENDED_STATES:
        return WorkerAnswer(name, AnswerState.FINISHED if name == job.worker else AnswerState.ELSEWHERE)
    if not said.connected:
        state = AnswerState(said.state)
        return WorkerAnswer(name, state, said.error, Source.CONDITION, said.next_attempt, said.cause)
    if name == job.worker:
        return _of_its_worker(asked)
    stops_there = job.state is JobState.STOPPING and name == workloads.noted_worker(asked.chain.workload)
    if said.unusable and (stops_there or job.state in WAITING_STATES):
        owner = workloads.owner(asked.chain.workload)
        kind = owner.gvk.dotted if owner is not None else ""
        if unusable := said.unusable.get(kind):
            cause = said.causes.get(kind, "")
            return WorkerAnswer(name, AnswerState.UNUSABLE, unusable, Source.CONDITION, cause=cause)
    if name not in job.offered_to and (away := _kept_away(asked, said)) is not None:
        return away
    return _of_one_that_may_take_it(asked)


def _of_its_worker(asked: _Asked) -> WorkerAnswer:
    name, state = asked.name, asked.job.state
    if state is JobState.STARTING and (asked.words or asked.refusal is not None):
        is_of_event = asked.refusal is not None and asked.refusal.why != asked.words
        return asked.answers(AnswerState.WAITING, Source.EVENT if is_of_event else Source.CHECK)
    return WorkerAnswer(name, AnswerState.RUNNING if state in RUNNING_STATES else AnswerState(state), asked.words)


def _kept_away(asked: _Asked, said: ClusterAnswer) -> WorkerAnswer | None:
    """Of a worker that is offered no job, or not this one that waits, as its MultiKueueCluster says, or its Kueue."""
    name, noted = asked.name, Source.ANNOTATION
    if said.cordon:
        return WorkerAnswer(name, AnswerState.CORDONED, said.cordon, noted, cause=Cause.CORDONED)
    if said.second is not None:
        return WorkerAnswer(name, AnswerState.CORDONED, said.hold, Source.CONDITION, cause=Cause.SECOND_NAME)
    if asked.job.state not in WAITING_STATES:
        return None
    if nowhere := said.names.why_none(asked.job.namespace):
        return WorkerAnswer(name, AnswerState.NOT_OFFERED, nowhere, noted, cause=Cause.NAMESPACE_UNNAMED)
    published = asked.chain.objects.published.get(name)
    kueue = published.facts.kueue if published is not None else None
    if kueue is None or not (lost := kueue.why_not_found(asked.chain.workload)):
        return None
    return WorkerAnswer(name, AnswerState.NOT_OFFERED, lost, Source.FINDINGS, cause=Cause.NAME_TOO_LONG)


def _of_one_that_may_take_it(asked: _Asked) -> WorkerAnswer:
    name, job = asked.name, asked.job
    is_asked, waits = name in job.offered_to, job.state in WAITING_STATES
    if waits and asked.words:
        return asked.answers(AnswerState.WAITING if is_asked else AnswerState.NOT_OFFERED, Source.CHECK)
    if asked.refusal is not None:
        return asked.answers(AnswerState.REFUSED, Source.EVENT)
    if waits and (is_asked or job.state is JobState.WAITING) and (seen := _seen_there(asked)) is not None:
        return seen
    if is_asked or job.worker:
        return WorkerAnswer(name, AnswerState.OFFERED if is_asked else AnswerState.ELSEWHERE)
    if asked.left is None:
        return WorkerAnswer(name, AnswerState.NOT_OFFERED)
    return WorkerAnswer(name, AnswerState.LEFT, asked.left, Source.ANNOTATION)


def _seen_there(asked: _Asked) -> WorkerAnswer | None:
    """That a worker could never admit it, by the queues and quotas that the daemon saw there; None: it could."""
    name, objects = asked.name, asked.chain.objects
    if (seen := objects.queues_seen(name)) is None:
        return None
    queues, at = seen
    seen_at = f"(as the daemon saw it at {timestamp(at)})"
    there = objects.names_on(name).namespace(asked.job.namespace)
    namespaces = objects.published[name].facts.namespaces
    if there and namespaces is not None and there not in namespaces:
        return WorkerAnswer(name, AnswerState.WAITING, f'namespaces "{there}" not found {seen_at}', Source.FINDINGS)
    if (wrong := quota_mismatch(asked.chain.workload, queues, objects.names_on(name))) is None:
        return None
    words = f"{wrong} {seen_at}"
    return WorkerAnswer(name, AnswerState.WAITING, words, Source.FINDINGS, cause=wrong.why, about=wrong.about)
