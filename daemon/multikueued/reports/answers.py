"""What each worker has answered to one Workload, as far as the manager has been told."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

import attrs

from multikueue.core.machinery.connection import CONNECTION_FAILED, UNREADABLE
from multikueue.core.machinery.connection_facts import ConnectionFacts, connection_facts
from multikueue.core.model import workloads
from multikueue.core.model.conditions import condition, is_true, parse_timestamp
from multikueue.core.model.names import Json
from multikueue.core.workload import history as noted
from multikueue.core.workload.words import BEFORE_REASONS, BETWEEN_REASONS
from multikueued.reports.events import EventReport

_ASKED_AGAIN: Final = re.compile(r"refuses it, is asked again at (\S+): (.+)", re.DOTALL)
_FRESH: Final = timedelta(minutes=5)
"""How long a refusal that an event tells counts: the check tells of it a minute later, and as long as it lasts."""
_REFUSAL_EVENT: Final = re.compile(r'^worker cluster "(?P<worker>[^"]+)" refuses (?P<text>.+)$', re.DOTALL)
_TAKEN_EVENT: Final = re.compile(r'^(?P<text>\S+ "[^"]+" exists on worker cluster "(?P<worker>[^"]+)" .+)$', re.DOTALL)
_SENT_BACK: Final = re.compile(
    r'Worker cluster "(?P<worker>[^"]+)" (?:refuses|cannot run) the job: (?P<text>.+?)(?:, Previously: "\w*")?\)?$',
    re.DOTALL,
)


@attrs.frozen
class Placement:
    """One worker that had the job."""

    worker: str
    since: datetime | None
    until: datetime | None
    why: str
    """Why it left."""


def placements(workload: Json) -> tuple[Placement, ...]:
    """The last workers that had a Workload, the earliest first, the one that has it or had it at its end included.

    The annotation has those that are over; what cannot be read of it is left out.
    """
    return (*map(_placement, noted.placements(workload)), *_last_placement(workload))


def _placement(entry: Json) -> Placement:
    since, until = _time(entry.get("since")), _time(entry.get("until"))
    return Placement(str(entry.get("worker") or ""), since, until, str(entry.get("why") or ""))


def _last_placement(workload: Json) -> Iterator[Placement]:
    """The worker that is recorded: since the Workload was Admitted, or before that since it got quota."""
    lasts = noted.placement_of(workload)
    if lasts is None:
        return
    ended = condition(workload, "Finished") if workloads.is_finished(workload) else None
    until, why = (ended.get("lastTransitionTime"), "it has ended") if ended is not None else (None, "")
    yield Placement(lasts.worker, _time(lasts.since), _time(until), why)


def parts_of(message: str, workers: Iterable[str]) -> dict[str, str]:
    """The workers' parts of a check's message, by worker.

    They stand behind ` — `, separated by ` · `; messages of earlier versions have `...: worker1: why; worker2: why`.

    Args:
        message: of our check.
        workers: the names that may begin a part.
    """
    names = "|".join(re.escape(name) for name in sorted(workers, key=len, reverse=True))
    if not names:
        return {}
    if BEFORE_REASONS in message:
        begin = re.compile(rf"({names})(?::? )(.+)", re.DOTALL)
        found = (begin.match(part) for part in message.rpartition(BEFORE_REASONS)[2].split(BETWEEN_REASONS))
        return {one[1]: one[2] for one in found if one is not None}
    begin = re.compile(rf"(?:^|(?<=: )|(?<=; ))({names}): ")
    return _pieces(begin, message, between=2)


def refusals(events: Sequence[EventReport], now: datetime) -> dict[str, str]:
    """What workers have refused lately, by worker, as events tell it; the newest counts.

    Args:
        events: of the Workload, in the order of time.
        now: the wall clock.
    """
    found: dict[str, str] = {}
    for event in events:
        match = _REFUSAL_EVENT.match(event.note) or _TAKEN_EVENT.match(event.note)
        old = event.last is not None and now - event.last > _FRESH
        if match is not None and not old:
            found[match["worker"]] = match["text"]
    return found


def asked_again(part: str) -> tuple[str, datetime | None]:
    """A worker's part without the moment at which it is asked again, and that moment."""
    found = _ASKED_AGAIN.match(part)
    return (found[2], _time(found[1])) if found is not None else (part, None)


def sent_back(message: str) -> tuple[str, str] | None:
    """Worker and reason of a Workload that was sent back because a worker refused its job."""
    found = _SENT_BACK.search(message)
    return (found["worker"], found["text"]) if found is not None else None


@attrs.frozen
class ClusterState:
    """What a MultiKueueCluster says."""

    connected: bool
    since: datetime | None
    reason: str
    error: str
    """Why it is not connected; empty while it is."""
    attempts: int
    next_attempt: datetime | None
    unusable: Mapping[str, str]
    """The kinds that cannot be used there, as `Job.v1.batch`, and why."""

    @property
    def is_ours(self) -> bool:
        """Whether the error is in words of ours, about its configuration; else a worker's answer may be in it."""
        return not self.connected and self.reason not in (CONNECTION_FAILED, UNREADABLE)


def cluster_state(cluster: Json) -> ClusterState:
    """What a MultiKueueCluster says of its connection; by another controller than ours, only whether there is one."""
    active, facts = condition(cluster, "Active") or {}, connection_facts(cluster) or ConnectionFacts()
    connected = is_true(cluster, "Active")
    error = facts.error or str(active.get("message") or "")
    return ClusterState(
        connected=connected,
        since=_time(active.get("lastTransitionTime")),
        reason=str(active.get("reason") or ""),
        error="" if connected else error or "nobody has tried to connect to it: does the daemon run?",
        attempts=0 if connected else facts.failures,
        next_attempt=None if connected else facts.next_attempt,
        unusable=facts.unusable if connected else {},
    )


def _pieces(begin: re.Pattern[str], text: str, *, between: int) -> dict[str, str]:
    """The pieces of a text by name: each from behind its beginning to `between` characters before the next one."""
    starts = list(begin.finditer(text))
    ends = [found.start() - between for found in starts[1:]] + [len(text)]
    return {found[1]: text[found.end() : end] for found, end in zip(starts, ends, strict=False)}


def _time(value: Any) -> datetime | None:
    return parse_timestamp(value) if isinstance(value, str) else None
