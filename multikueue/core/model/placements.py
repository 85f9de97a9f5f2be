"""Where a job has run before, as its Workload says it; `core.workload.check_updates` writes it."""

from __future__ import annotations

import json
from typing import Any, Final

import attrs

from multikueue.core.model.conditions import condition, is_true
from multikueue.core.model.labels import PLACEMENTS_ANNOTATION
from multikueue.core.model.names import OBJECT_NAME, ClusterName, Json
from multikueue.core.model.objects import annotations_of, dig
from multikueue.core.model.outside_text import plain
from multikueue.core.model.workloads import cluster_name

KEPT: Final = 5
"""How many placements stay on the Workload."""
FAULT: Final = "worker"
"""What an entry of the placements has as `fault` if the worker is to blame."""
_FAULTY: Final = frozenset({"PodsReadyTimeout", "AdmissionCheck"})
"""Reasons of a worker's Kueue to evict a copy: pods never ready, or its own checks (provisioning) failed."""
_FIELDS: Final = ("worker", "since", "until", "why", "cause", "fault")


@attrs.frozen
class Placement:
    """A worker that had a Workload."""

    worker: ClusterName
    since: str
    """As Kubernetes writes times; empty if that is not known."""


def placement_of(workload: Json) -> Placement | None:
    """The placement that lasts: since the Workload was Admitted, or before that since it got its quota."""
    if (worker := cluster_name(workload)) is None:
        return None
    kind = "Admitted" if is_true(workload, "Admitted") else "QuotaReserved"
    return Placement(worker, str((condition(workload, kind) or {}).get("lastTransitionTime") or ""))


def placements(workload: Json) -> list[Json]:
    """The placements that are over, the last one at the end; none if the annotation cannot be read."""
    try:
        noted: Any = json.loads(annotations_of(workload).get(PLACEMENTS_ANNOTATION) or "[]")
    except (ValueError, RecursionError):  # whoever may change the Workload writes there what they like
        return []
    entries = [entry for entry in noted if isinstance(entry, dict)] if isinstance(noted, list) else []
    return list(map(_shortened, entries[-KEPT:]))


def _shortened(entry: Json) -> Json:
    """The fields of an entry that are texts, in few printable characters: it is written again. A worker may be called
    as an address."""
    texts = {name: entry[name] for name in _FIELDS if isinstance(entry.get(name), str)}
    return {
        name: text if name == "worker" and OBJECT_NAME.fullmatch(text) else plain(text) for name, text in texts.items()
    }


def with_placement(workload: Json, ended: Placement, why: str, until: str | None, more: Json) -> str | None:
    """The annotation with a placement that has ended; None: it is there."""
    known = placements(workload)
    if known and (known[-1].get("worker"), known[-1].get("since")) == (ended.worker, ended.since):
        return None
    entry = {"worker": ended.worker, "since": ended.since, "until": until, "why": plain(why), **more}
    return json.dumps([*known, entry][-KEPT:], separators=(",", ":"))


def last_place(workload: Json) -> ClusterName | None:
    """The worker of the placement that ended last."""
    known = placements(workload)
    worker = dig(known[-1], "worker") if known else None
    return ClusterName(worker) if isinstance(worker, str) else None


def former_places(workload: Json) -> set[str]:
    """The workers of the placements that are over, as far as they are kept."""
    return {placement["worker"] for placement in placements(workload) if "worker" in placement}


def is_fault(copy: Json) -> bool:
    """Whether a worker evicted its copy because something is wrong there. A lost worker is at fault, too."""
    evicted = condition(copy, "Evicted") or {}
    return is_true(copy, "Evicted") and str(evicted.get("reason")) in _FAULTY
