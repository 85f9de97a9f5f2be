"""What a placement check says of itself: OCM's reasons and messages to the letter, and our details behind them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

import attrs

from multikueue.core.model.conditions import condition, conditions, new_condition, updated
from multikueue.core.model.kinds import ADMISSION_CHECK
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import dig, resource_version
from multikueue.core.placement.effects import Effect, Patch
from multikueue.core.placement.filling import Filling
from multikueue.core.placement.names import ACTIVE, CONFLICT_CONDITION
from multikueue.core.placement.settings import Policy


@attrs.frozen
class Verdict:
    """The Active condition to have."""

    active: bool
    reason: str
    message: str


def active(filling: Filling, shared: list[str], policy: Policy) -> Verdict:
    """The verdict once the config lists what is selected."""
    told = f"MultiKueueConfig {filling.name} is generated successfully"
    return Verdict(True, "Active", "; ".join([told, *_details(filling, shared, policy)]))


def no_clusters(filling: Filling) -> Verdict:
    """The verdict while nothing is selected."""
    told = f"No clusters available for placement {filling.name}"
    if filling.live is not None:
        told += f"; MultiKueueConfig {filling.name} keeps what it lists, and running jobs go on"
    return Verdict(False, "NoClustersAvailable", f"{told}; {filling.belief.why}" if filling.belief.why else told)


def no_decision(filling: Filling) -> Verdict:
    """The verdict while there has never been a whole decision."""
    return Verdict(
        False, "PlacementDecisionError", f"Failed to refresh placement decision tracker: {filling.belief.why}"
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
    told = [one for one in conditions(check) if kind == CONFLICT_CONDITION or one.get("type") != CONFLICT_CONDITION]
    listed = updated(told, wanted)
    same = _without_time(condition(check, kind)) == _without_time(wanted) and len(told) == len(conditions(check))
    if same:
        return ()
    metadata = {"resourceVersion": resource_version(check)}
    patch: Json = {"metadata": metadata, "status": {"conditions": listed}}
    return (Patch(ADMISSION_CHECK, ObjectKey.of(check), patch, status=True),)


def _without_time(found: Json | None) -> Json | None:
    return {key: value for key, value in found.items() if key != "lastTransitionTime"} if found is not None else None


def _details(filling: Filling, shared: list[str], policy: Policy) -> Iterator[str]:
    members = filling.members
    yield f"clusters: {', '.join(members.target)}"
    if members.left_out:
        yield f"{members.left_out} more are selected than the config can list, and left out"
    if members.kept:
        what = "their jobs are sent back" if policy is Policy.EVICT else "they stay listed until their jobs have ended"
        yield f"no longer selected: {', '.join(members.kept)} ({what}, and new Workloads wait for that)"
    elif members.leaving:
        yield f"no longer selected, and still running jobs: {', '.join(sorted(members.leaving))}"
    if filling.scores.unknown:
        yield f"without a score, so last: {', '.join(filling.scores.unknown)}"
    if shared:
        yield f"shared with {', '.join(shared)}"
    if filling.belief.why:
        yield f"the last decision holds: {filling.belief.why}"
