"""Where a job has run before, kept on its Workload: the last five placements, from when to when, and why they ended.

The worker that had it last is kept, too, while it is out of sight and may still run it.

The placement that lasts is not among them: `status.clusterName` and the conditions tell it. So a job that is never
moved costs no write, and each end of a placement costs one, which may carry another annotation of ours as well.

What has happened between two versions of a Workload is for the log and the metrics.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final, TypeAlias

import attrs

from multikueue.core.dispatchers.scored.penalties import FAULT, is_fault
from multikueue.core.model.conditions import condition, parse_timestamp, timestamp
from multikueue.core.model.kinds import REFUSED
from multikueue.core.model.labels import LAST_WORKER_ANNOTATION, PLACEMENTS_ANNOTATION
from multikueue.core.model.names import ClusterName, Json
from multikueue.core.model.objects import annotations_of, dig, uid
from multikueue.core.model.workload_facts import WORKLOADS
from multikueue.core.model.workloads import finish_reason
from multikueue.core.workload.check_message import plain
from multikueue.core.workload.effects import MANAGER, Effect, PatchWorkload
from multikueue.core.workload.facts.situation import Situation
from multikueue.core.workload.facts.snapshot import Placement, Worker
from multikueue.core.workload.facts.worker_states import Lost, Unusable

KEPT: Final = 5
"""How many placements stay on the Workload."""
_FIELDS: Final = ("worker", "since", "until", "why", "cause", "fault")
_AGAIN: Final = "Previously: "
"""How Kueue begins the message of an eviction that is over."""


def placement_of(workload: Json) -> Placement | None:
    """The placement that lasts: since the Workload was Admitted, or before that since it got its quota."""
    facts = WORKLOADS.of(workload)
    if facts.cluster_name is None:
        return None
    kind = "Admitted" if facts.is_admitted else "QuotaReserved"
    return Placement(facts.cluster_name, str((condition(workload, kind) or {}).get("lastTransitionTime") or ""))


def placements(workload: Json) -> list[Json]:
    """The placements that are over, the last one at the end; none if the annotation cannot be read."""
    try:
        noted: Any = json.loads(annotations_of(workload).get(PLACEMENTS_ANNOTATION) or "[]")
    except (ValueError, RecursionError):  # whoever may change the Workload writes there what they like
        return []
    entries = [entry for entry in noted if isinstance(entry, dict)] if isinstance(noted, list) else []
    return list(map(_shortened, entries[-KEPT:]))


def _shortened(entry: Json) -> Json:
    """The fields of an entry that are texts, in few printable characters: it is written again."""
    return {name: plain(entry[name]) for name in _FIELDS if isinstance(entry.get(name), str)}


def last_place(workload: Json) -> ClusterName | None:
    """The worker of the placement that ended last."""
    known = placements(workload)
    worker = dig(known[-1], "worker") if known else None
    return ClusterName(worker) if isinstance(worker, str) else None


def new_placements(situation: Situation) -> str | None:
    """The annotation to write, because a placement has ended; None: it says so, or none has."""
    ended = situation.snapshot.placement
    if ended is None or situation.assigned_to is not None:
        return None
    known = placements(situation.workload)
    if known and (known[-1].get("worker"), known[-1].get("since")) == (ended.worker, ended.since):
        return None
    evicted = condition(situation.workload, "Evicted") or {}
    lasts = evicted.get("status") == "True"
    entry = {
        "worker": ended.worker,
        "since": ended.since,
        "until": evicted.get("lastTransitionTime") if lasts else timestamp(situation.now),
        "why": plain(str(evicted.get("message") or "").removeprefix(_AGAIN)),
    }
    at = situation.snapshot.worker(ended.worker)
    if at is not None and (at.refusal is not None or isinstance(at.kind, Unusable)):
        entry["cause"] = REFUSED
    if at is not None and _failed_it(at, evicted):
        entry["fault"] = FAULT
    return json.dumps([*known, entry][-KEPT:], separators=(",", ":"))


def _failed_it(worker: Worker, evicted: Json) -> bool:
    """Whether a placement ended by the worker's fault: its Kueue says so, or it was lost and our check sent it back."""
    sent_back = evicted.get("reason") == "AdmissionCheck"
    lost = isinstance(worker.reach, Lost) and sent_back
    return lost or (worker.in_sight and worker.workload is not None and is_fault(worker.workload))


def note_last_worker(situation: Situation) -> Iterator[Effect]:
    """Keep the last recorded worker on the Workload while it is out of sight, so that a restart does not forget it.

    The same write notes a placement that has ended.
    """
    annotations: dict[str, str | None] = {}
    wanted = _in_doubt(situation)
    if situation.facts.noted_worker != wanted:
        annotations[LAST_WORKER_ANNOTATION] = wanted
    if (ended := new_placements(situation)) is not None:
        annotations[PLACEMENTS_ANNOTATION] = ended
    if annotations:
        yield _annotated(situation, annotations)


def note_worker(situation: Situation, worker: ClusterName) -> Iterator[Effect]:
    """Keep the worker that has it on the Workload until it can be recorded: a restart does not forget it then."""
    if situation.facts.noted_worker != worker:
        yield _annotated(situation, {LAST_WORKER_ANNOTATION: worker})


def _annotated(situation: Situation, annotations: Mapping[str, str | None]) -> Effect:
    metadata: Json = {"uid": uid(situation.workload), "annotations": dict(annotations)}
    return PatchWorkload(MANAGER, situation.snapshot.key, {"metadata": metadata})


def _in_doubt(situation: Situation) -> ClusterName | None:
    """The worker that had it last, if it may still run it and nobody is recorded."""
    last = situation.last_worker if situation.assigned_to is None else None
    return last if last is not None and any(run.worker == last for run in situation.possible_runs) else None


@attrs.frozen
class Offered:
    """A dispatcher has chosen workers beyond those so far: a round."""

    workers: tuple[str, ...]


@attrs.frozen
class Placed:
    """A worker was recorded."""

    worker: ClusterName
    seconds: float | None
    """Since the Workload got its quota; None if that cannot be read."""
    moved_from: ClusterName | None = None
    """The worker that had it before, if it is another one."""


@attrs.frozen
class JobEnded:
    """Its job has ended on the worker that had it."""

    worker: ClusterName
    seconds: float | None
    """Since it was placed there."""
    reason: str


@attrs.frozen
class WorkerFailed:
    """A placement has ended by the worker's fault."""

    worker: ClusterName
    again: bool = False
    """Whether the job has failed so before, as far as its Workload remembers: then the job may be to blame."""


Milestone: TypeAlias = Offered | Placed | JobEnded | WorkerFailed


def milestones(old: Json | None, new: Json | None, now: datetime) -> Iterator[Milestone]:
    """What has happened. A Workload that is seen for the first time is no news: its past was told by another process.

    Args:
        old: the Workload before; None for one that was not known.
        new: the Workload now; None for one that is gone.
        now: the manager's wall clock.
    """
    if old is None or new is None:
        return
    was, facts = WORKLOADS.of(old), WORKLOADS.of(new)
    worker = facts.cluster_name
    added = tuple(name for name in facts.nominated if name not in was.nominated)
    if added and worker is None:
        yield Offered(added)
    if worker is not None and worker != was.cluster_name:
        before = was.cluster_name or last_place(new)
        yield Placed(worker, _seconds(facts.reserved_at, now), before if before != worker else None)
    if worker is not None and facts.is_finished and not was.is_finished and not facts.is_replaced:
        placed = placement_of(new)
        since = parse_timestamp(placed.since) if placed is not None else None
        yield JobEnded(worker, _seconds(since, now), finish_reason(new))
    if annotations_of(old).get(PLACEMENTS_ANNOTATION) != annotations_of(new).get(PLACEMENTS_ANNOTATION):
        noted, failed = placements(new), last_place(new)
        if failed is not None and noted[-1:] != placements(old)[-1:] and noted[-1].get("fault") == FAULT:
            yield WorkerFailed(failed, again=any(one.get("fault") == FAULT for one in noted[:-1]))


def _seconds(since: datetime | None, now: datetime) -> float | None:
    return None if since is None else max(0.0, (now - since).total_seconds())
