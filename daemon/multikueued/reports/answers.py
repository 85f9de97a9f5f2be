"""What each worker has answered to one Workload, as far as the manager has been told."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

import attrs

from multikueue.core.config.cluster_profiles import BAD_PROFILE, FEATURE_DISABLED
from multikueue.core.machinery.connection import BAD_NAMES, CREDENTIALS, FROM_KUBECONFIG, UNREADABLE
from multikueue.core.machinery.connection_facts import ConnectionFacts, connection_facts
from multikueue.core.model import placements as noted
from multikueue.core.model import workloads
from multikueue.core.model.conditions import condition, is_true, parse_timestamp
from multikueue.core.model.kinds import REFUSED
from multikueue.core.model.names import Json
from multikueue.core.model.refusal_facts import RefusalFacts, refusals_in
from multikueue.errors import Cause
from multikueued.reports.events import EventReport

_FRESH: Final = timedelta(minutes=5)
"""How long a refusal that an event tells counts: the check tells of it a minute later, and as long as it lasts."""
_ASKED: Final = timedelta(seconds=30)
"""How long an answer takes to be told once a worker was asked again: what the check says waits for its turn."""
_LASTING: Final = timedelta(hours=1)
"""How long it may be until a worker is asked again."""


@attrs.frozen
class ReportedPlacement:
    """One worker that had the job."""

    worker: str
    since: datetime | None
    until: datetime | None
    why: str
    """Why it left."""
    ran: bool = True
    """Whether its job was there: one that refuses it, or where it is still to be created, has only admitted it."""


def placements(workload: Json) -> tuple[ReportedPlacement, ...]:
    """The last workers that had a Workload, the earliest first, the one that has it or had it at its end included.

    The annotation has those that are over; what cannot be read of it is left out.
    """
    return (*map(_placement, noted.placements(workload)), *_last_placement(workload))


def _placement(entry: Json) -> ReportedPlacement:
    since, until = _time(entry.get("since")), _time(entry.get("until"))
    ran = entry.get("cause") != REFUSED
    return ReportedPlacement(str(entry.get("worker") or ""), since, until, str(entry.get("why") or ""), ran)


def _last_placement(workload: Json) -> Iterator[ReportedPlacement]:
    """The worker that is recorded: since the Workload was Admitted, or before that since it got quota."""
    lasts = noted.placement_of(workload)
    if lasts is None:
        return
    ended = condition(workload, "Finished") if workloads.is_finished(workload) else None
    until, why = (ended.get("lastTransitionTime"), "it has ended") if ended is not None else (None, "")
    yield ReportedPlacement(lasts.worker, _time(lasts.since), _time(until), why)


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


@attrs.frozen(kw_only=True)
class ClusterAnswer(ConnectionFacts):
    """What a MultiKueueCluster says; the error and its cause also where another controller than ours watches it."""

    connected: bool
    since: datetime | None
    reason: str


def cluster_state(cluster: Json) -> ClusterAnswer:
    """What a MultiKueueCluster says of its connection; by another controller than ours, only whether there is one."""
    active, facts = condition(cluster, "Active") or {}, connection_facts(cluster) or ConnectionFacts()
    connected, reason = is_true(cluster, "Active"), str(active.get("reason") or "")
    if connected:
        known = ConnectionFacts(unusable=facts.unusable, causes=facts.causes, same_as=facts.same_as)
    else:
        error = facts.error or str(active.get("message") or "")
        error = error or "nobody has tried to connect to it: does the daemon run?"
        known = attrs.evolve(facts, error=error, cause=_cause(reason, facts), unusable={}, causes={}, same_as=())
    since = _time(active.get("lastTransitionTime"))
    return ClusterAnswer(**attrs.asdict(known, recurse=False), connected=connected, since=since, reason=reason)


_CAUSES: Final = {
    "BadKubeConfig": Cause.CONTENT,
    "InsecureKubeConfig": Cause.CONTENT,
    "BadRestConfig": Cause.CONTENT,
    BAD_PROFILE: Cause.CONTENT,
    FEATURE_DISABLED: Cause.PROFILES_OFF,
    UNREADABLE: Cause.ANSWERS_UNREADABLE,
}
"""By the reason of the condition, where no facts are beside it: Kueue's own controller writes it alone."""


def _cause(reason: str, facts: ConnectionFacts) -> str:
    if not reason:
        return Cause.NEVER_TRIED
    if reason == BAD_NAMES:
        return Cause.WORKER_IS_MANAGER if facts.is_manager else Cause.WORKER_NAMES
    return facts.cause or _CAUSES.get(reason, "")


def _time(value: Any) -> datetime | None:
    return parse_timestamp(value) if isinstance(value, str) else None


def digest_in_use(cluster: Json) -> str:
    """The digest of the kubeconfig that the daemon uses; empty if it does not say."""
    credentials = condition(cluster, CREDENTIALS) or {}
    return str(credentials.get("message") or "") if credentials.get("reason") == FROM_KUBECONFIG else ""
