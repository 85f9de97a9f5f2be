"""Where a job has run before, kept on its Workload: the last five placements, from when to when, and why they ended.

The worker that had it last is kept, too, while it is out of sight and may still run it.

The placement that lasts is not among them: `status.clusterName` and the conditions tell it. So a job that is never
moved costs no write, and each end of a placement costs one, which may carry another annotation of ours as well.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Final

from multikueue.core.model.conditions import condition, timestamp
from multikueue.core.model.kinds import REFUSED
from multikueue.core.model.labels import LAST_WORKER_ANNOTATION, PLACEMENTS_ANNOTATION
from multikueue.core.model.names import ClusterName, Json
from multikueue.core.model.objects import uid
from multikueue.core.model.outside_text import plain
from multikueue.core.model.placements import FAULT, KEPT, is_fault, placements
from multikueue.core.workload.effects import MANAGER, Effect, PatchWorkload
from multikueue.core.workload.facts.runs import possible_runs
from multikueue.core.workload.facts.situation import Situation, once
from multikueue.core.workload.facts.snapshot import Worker
from multikueue.core.workload.facts.worker_states import Lost, Unusable

_AGAIN: Final = "Previously: "
"""How Kueue begins the message of an eviction that is over."""


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


@once
def note_last_worker(situation: Situation) -> tuple[Effect, ...]:
    """Keep the last recorded worker on the Workload while it is out of sight, so that a restart does not forget it.

    The same write notes a placement that has ended.
    """
    annotations: dict[str, str | None] = {}
    last = situation.last_worker if situation.assigned_to is None else None
    is_in_doubt = last is not None and any(run.worker == last for run in possible_runs(situation))
    if situation.facts.noted_worker != (wanted := last if is_in_doubt else None):
        annotations[LAST_WORKER_ANNOTATION] = wanted
    if (ended := new_placements(situation)) is not None:
        annotations[PLACEMENTS_ANNOTATION] = ended
    return (_annotated(situation, annotations),) if annotations else ()


def note_worker(situation: Situation, worker: ClusterName) -> Iterator[Effect]:
    """Keep the worker that has it on the Workload until it can be recorded: a restart does not forget it then."""
    if situation.facts.noted_worker != worker:
        yield _annotated(situation, {LAST_WORKER_ANNOTATION: worker})


def _annotated(situation: Situation, annotations: Mapping[str, str | None]) -> Effect:
    metadata: Json = {"uid": uid(situation.workload), "annotations": dict(annotations)}
    return PatchWorkload(MANAGER, situation.snapshot.key, {"metadata": metadata})
