"""What a placement check says of itself, and its entries in Workloads.

Reasons and messages of the check are OCM's to the letter, with our details behind them. An entry is Ready once the
config lists what is selected and a worker is there: Kueue's MultiKueue offers a Workload to nobody before all other
checks are Ready, so without it nothing ever runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

import attrs

from multikueue.core.effects import Apply, Effect, Patch
from multikueue.core.inventory.names import ACTIVE, CONFLICT_CONDITION, HUB, WRITTEN_ANNOTATION
from multikueue.core.inventory.settings import PLACEMENT_CONTROLLER, Policy
from multikueue.core.inventory.snapshot import ConfigSnapshot, WorkloadUse
from multikueue.core.inventory.target import ConfigTarget
from multikueue.core.model import workloads
from multikueue.core.model.conditions import (
    conditions,
    is_true,
    new_condition,
    parse_timestamp,
    timestamp,
    updated,
)
from multikueue.core.model.kinds import ADMISSION_CHECK, WORKLOAD
from multikueue.core.model.labels import MAX_CONDITION_MESSAGE
from multikueue.core.model.name_lists import listed
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import annotations_of, dig, identity, name_of, shortened
from multikueue.core.model.workloads import CheckState


@attrs.frozen
class Verdict:
    """The Active condition to have."""

    active: bool
    reason: str
    message: str


def active(target: ConfigTarget, shared: list[str], policy: Policy) -> Verdict:
    """The verdict once the config lists what is selected."""
    message = f"MultiKueueConfig {target.name} is generated successfully"
    return Verdict(True, "Active", "; ".join([message, *_details(target, shared, policy)]))


def no_clusters(target: ConfigTarget) -> Verdict:
    """The verdict while nothing is selected."""
    message = f"No clusters available for placement {target.name}"
    if target.live is not None:
        message += f"; MultiKueueConfig {target.name} keeps what it lists, and running jobs go on"
    return Verdict(False, "NoClustersAvailable", "; ".join(filter(None, [message, target.accepted.why])))


def no_decision(target: ConfigTarget) -> Verdict:
    """The verdict while there has never been a whole decision."""
    return Verdict(
        False, "PlacementDecisionError", f"Failed to refresh placement decision tracker: {target.accepted.why}"
    )


def config_error(name: str, error: str, *, deleting: bool = False) -> Verdict:
    """The verdict after a write of the config has failed."""
    if deleting:
        return Verdict(False, "MultiKueueConfigDeleteError", f"Failed to delete multi kueue config {name}: {error}")
    return Verdict(False, "MultiKueueConfigError", f"Failed to create/update multi kueue config {name}: {error}")


def write_condition(check: Json, verdict: Verdict, now: datetime) -> tuple[Effect, ...]:
    """The write of the Active condition; empty: it says so."""
    return _written(check, ACTIVE, verdict, now)


def write_conflict(check: Json, message: str, now: datetime) -> tuple[Effect, ...]:
    """The write that says who else handles the check, in a condition that the other leaves alone."""
    return _written(check, CONFLICT_CONDITION, Verdict(True, "Conflict", message), now)


def _written(check: Json, kind: str, verdict: Verdict, now: datetime) -> tuple[Effect, ...]:
    generation = dig(check, "metadata", "generation")
    wanted = new_condition(kind, verdict.active, verdict.reason, verdict.message, now=now, generation=generation)
    kept = [
        entry for entry in conditions(check) if kind == CONFLICT_CONDITION or entry.get("type") != CONFLICT_CONDITION
    ]
    listed = updated(kept, wanted)
    if listed == conditions(check):
        return ()
    return (Patch(ADMISSION_CHECK, check, {"status": {"conditions": listed}}, status=True),)


def _details(target: ConfigTarget, shared: list[str], policy: Policy) -> Iterator[str]:
    members = target.members
    yield f"clusters: {', '.join(members.target)}"
    if stay := [f"{name} (until {timestamp(end)})" for name, end in target.dwelling.items() if name in members.target]:
        yield f"not selected any more, and listed for ocm.minDwell: {', '.join(stay)}"
    if members.left_out:
        yield f"{members.left_out} more are selected than the config can list, and left out"
    if target.without_hub:
        yield f"the hub itself ({HUB}) is selected and left out: there is no MultiKueueCluster of that name"
    if members.kept:
        what = "their jobs are sent back" if policy is Policy.EVICT else "they stay listed until their jobs have ended"
        yield f"no longer selected: {', '.join(members.kept)} ({what}, and new Workloads wait for that)"
    elif members.leaving:
        yield f"no longer selected, and still running jobs: {', '.join(sorted(members.leaving))}"
    if target.scores.unknown:
        yield f"without a score, so last: {listed(target.scores.unknown)}"
    if shared:
        yield f"shared with {', '.join(shared)}"
    if target.accepted.why:
        yield f"the last decision holds: {target.accepted.why}"


SEEN: Final = timedelta(seconds=3)
"""How long after a write of the config Workloads wait beside another controller: its cache must show it first, or it
offers them to a cluster that has just been dropped. The annotation has whole seconds."""


@attrs.frozen
class WaitingEntries:
    """What entries of Workloads that wait say."""

    state: CheckState
    message: str
    look_again: float | None = None


def gate(target: ConfigTarget, snapshot: ConfigSnapshot, now: datetime) -> WaitingEntries:
    """Whether Workloads may go on to the clusters of a config."""
    name, members = target.name, target.members
    if target.accepted.names is None or not members.target:
        why = target.accepted.why
        message = f"No clusters available for placement {name}"
        return WaitingEntries(CheckState.PENDING, f"{message}: {why}" if why else message)
    if not target.is_reached:
        return WaitingEntries(CheckState.PENDING, f"MultiKueueConfig {name} is being written")
    if members.kept:
        listed = ", ".join(members.kept)
        return WaitingEntries(
            CheckState.PENDING, f"Waiting until MultiKueueConfig {name} no longer lists {listed}, whose jobs end"
        )
    if target.beside and (left := _unseen(target, now)) > 0:
        return WaitingEntries(CheckState.PENDING, f"MultiKueueConfig {name} has just been written", left)
    if not any(is_true(snapshot.clusters.get(cluster) or {}, "Active") for cluster in members.target):
        return WaitingEntries(
            CheckState.PENDING, f"No cluster of MultiKueueConfig {name} is active: {', '.join(members.target)}"
        )
    return WaitingEntries(
        CheckState.READY, f"Placement {name} has selected clusters, and MultiKueueConfig {name} lists them"
    )


def _unseen(target: ConfigTarget, now: datetime) -> float:
    written = parse_timestamp(annotations_of(target.live or {}).get(WRITTEN_ANNOTATION))
    return (written + SEEN - now).total_seconds() if written is not None and written <= now else 0.0


def write_entries(
    check: Json, snapshot: ConfigSnapshot, target: ConfigTarget | None, waiting: WaitingEntries, now: datetime
) -> Iterator[Effect]:
    """The writes of our entry, at most one a Workload.

    Args:
        check: the AdmissionCheck.
        snapshot: all that belongs to it.
        target: what its config should list; None: that is not known.
        found: what entries of Workloads that wait say.
        now: the manager's wall clock.
    """
    name, made = name_of(check), list[Apply]()
    for work in snapshot.workloads:
        wanted = _wanted(work, name, snapshot, target, waiting) if work.open and name in work.states else None
        if wanted is not None:
            entry = workloads.check(work.object, name) or {}
            if (entry.get("state"), entry.get("message")) != (str(wanted.state), wanted.message):
                made.append(Apply(WORKLOAD, _applied(work.object, entry, name, wanted, now), PLACEMENT_CONTROLLER))
    return iter(sorted(made, key=lambda effect: ObjectKey.of(effect.object)))


def _wanted(
    work: WorkloadUse, name: str, snapshot: ConfigSnapshot, target: ConfigTarget | None, waiting: WaitingEntries
) -> WaitingEntries | None:
    """What our entry should say; None: as it does."""
    state = work.states[name]
    if state in (CheckState.RETRY, CheckState.REJECTED):
        return None  # Kueue is about to evict it
    left = _leaves(work, target) if snapshot.settings.policy is Policy.EVICT and target is not None else ""
    if left:
        return WaitingEntries(CheckState.RETRY, f"Cluster {left} is no longer selected: the Workload is sent elsewhere")
    if state != CheckState.PENDING or _is_rejected(work, name):
        return None  # once Ready it stays so: Kueue takes the admission of a Workload whose check is Pending
    if work.cluster is None:
        return waiting
    return WaitingEntries(CheckState.READY, f"It is on {work.cluster}") if target is not None else None


def _leaves(work: WorkloadUse, target: ConfigTarget) -> str:
    """The cluster that a Workload is to leave: it runs there, or is offered to it by another controller."""
    if not target.members.target:
        return ""
    if work.cluster is not None:
        return work.cluster if work.cluster in target.members.leaving else ""
    offered = work.nominated if target.beside else ()
    return next((cluster for cluster in offered if cluster in target.members.leaving), "")


def _is_rejected(work: WorkloadUse, name: str) -> bool:
    return any(state == CheckState.REJECTED for check, state in work.states.items() if check != name)


def _applied(workload: Json, entry: Json, name: str, wanted: WaitingEntries, now: datetime) -> Json:
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
