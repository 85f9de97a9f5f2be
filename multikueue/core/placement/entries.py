"""Our entry in the checks of Workloads: Ready once the config lists what is selected and a worker is there.

Kueue's MultiKueue offers a Workload to nobody before all other checks are Ready, so without this nothing ever runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

import attrs

from multikueue.core.model import workloads
from multikueue.core.model.conditions import is_true, parse_timestamp, timestamp
from multikueue.core.model.labels import MAX_CONDITION_MESSAGE
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import annotations_of, identity, name_of, shortened
from multikueue.core.model.workloads import CheckState
from multikueue.core.placement.effects import ApplyEntry, Effect
from multikueue.core.placement.filling import Filling
from multikueue.core.placement.names import WRITTEN_ANNOTATION
from multikueue.core.placement.settings import Policy
from multikueue.core.placement.snapshot import Snapshot
from multikueue.core.placement.work import Work

SEEN: Final = timedelta(seconds=3)
"""How long after a write of the config Workloads wait beside another controller: its cache must show it first, or it
offers them to a cluster that has just been dropped. The annotation has whole seconds."""


@attrs.frozen
class Gate:
    """What Workloads that wait are told."""

    state: CheckState
    message: str
    look_again: float | None = None


def gate(filling: Filling, snapshot: Snapshot, now: datetime) -> Gate:
    """Whether Workloads may go on to the clusters of a config."""
    name, members = filling.name, filling.members
    if filling.belief.names is None or not members.target:
        why = filling.belief.why
        told = f"No clusters available for placement {name}"
        return Gate(CheckState.PENDING, f"{told}: {why}" if why else told)
    if not filling.is_reached:
        return Gate(CheckState.PENDING, f"MultiKueueConfig {name} is being written")
    if members.kept:
        listed = ", ".join(members.kept)
        return Gate(
            CheckState.PENDING, f"Waiting until MultiKueueConfig {name} no longer lists {listed}, whose jobs end"
        )
    if filling.beside and (left := _unseen(filling, now)) > 0:
        return Gate(CheckState.PENDING, f"MultiKueueConfig {name} has just been written", left)
    if not any(is_true(snapshot.clusters.get(one) or {}, "Active") for one in members.target):
        return Gate(CheckState.PENDING, f"No cluster of MultiKueueConfig {name} is active: {', '.join(members.target)}")
    return Gate(CheckState.READY, f"Placement {name} has selected clusters, and MultiKueueConfig {name} lists them")


def _unseen(filling: Filling, now: datetime) -> float:
    written = parse_timestamp(annotations_of(filling.live or {}).get(WRITTEN_ANNOTATION))
    return (written + SEEN - now).total_seconds() if written is not None and written <= now else 0.0


def write_entries(
    check: Json, snapshot: Snapshot, filling: Filling | None, found: Gate, now: datetime
) -> Iterator[Effect]:
    """The writes of our entry, at most one a Workload.

    Args:
        check: the AdmissionCheck.
        snapshot: all that belongs to it.
        filling: what its config should list; None: that is not known.
        found: what Workloads that wait are told.
        now: the manager's wall clock.
    """
    name, made = name_of(check), list[ApplyEntry]()
    for work in snapshot.workloads:
        wanted = _wanted(work, name, snapshot, filling, found) if work.open and name in work.states else None
        if wanted is not None:
            entry = workloads.check(work.object, name) or {}
            if (entry.get("state"), entry.get("message")) != (str(wanted.state), wanted.message):
                made.append(ApplyEntry(_applied(work.object, entry, name, wanted, now)))
    return iter(sorted(made, key=lambda effect: ObjectKey.of(effect.object)))


def _wanted(work: Work, name: str, snapshot: Snapshot, filling: Filling | None, found: Gate) -> Gate | None:
    """What our entry should say; None: as it does."""
    state = work.states[name]
    if state in (CheckState.RETRY, CheckState.REJECTED):
        return None  # Kueue is about to evict it
    left = _leaves(work, filling) if snapshot.settings.policy is Policy.EVICT and filling is not None else ""
    if left:
        return Gate(CheckState.RETRY, f"Cluster {left} is no longer selected: the Workload is sent elsewhere")
    if state != CheckState.PENDING or _is_rejected(work, name):
        return None  # once Ready it stays so: Kueue takes the admission of a Workload whose check is Pending
    if work.cluster is None:
        return found
    return Gate(CheckState.READY, f"It is on {work.cluster}") if filling is not None else None


def _leaves(work: Work, filling: Filling) -> str:
    """The cluster that a Workload is to leave: it runs there, or is offered to it by another controller."""
    if not filling.members.target:
        return ""
    if work.cluster is not None:
        return work.cluster if work.cluster in filling.members.leaving else ""
    offered = work.nominated if filling.beside else ()
    return next((one for one in offered if one in filling.members.leaving), "")


def _is_rejected(work: Work, name: str) -> bool:
    return any(state == CheckState.REJECTED for one, state in work.states.items() if one != name)


def _applied(workload: Json, entry: Json, name: str, wanted: Gate, now: datetime) -> Json:
    """The object to apply: our entry and nothing else, so that the other checks stay as they are."""
    since = entry.get("lastTransitionTime") if entry.get("state") == str(wanted.state) else None
    made = {
        "name": name,
        "state": str(wanted.state),
        "message": shortened(wanted.message, MAX_CONDITION_MESSAGE),
        "lastTransitionTime": since or timestamp(now),
    }
    body = {"apiVersion": workload["apiVersion"], "kind": workload["kind"], **identity(workload)}
    return {**body, "status": {"admissionChecks": [made]}}
