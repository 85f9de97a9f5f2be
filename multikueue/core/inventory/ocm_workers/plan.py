"""The decision about one spoke: what to make, to change and to delete now.

Three cases. A spoke that is *wanted* gets what it lacks, one after the other: an account, its role, and once both are
in force the MultiKueueCluster. One that is not wanted any more and *in use* is only kept up, so that its jobs end
there. Everything of one that is *gone* is deleted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

import attrs

from multikueue.core.effects import Create, Delete, Patch, Write
from multikueue.core.inventory.names import TOKEN_LABEL
from multikueue.core.inventory.ocm_workers import objects
from multikueue.core.inventory.ocm_workers.objects import kubeconfig_of
from multikueue.core.inventory.ocm_workers.readiness import expires_at, lives_too_long, obstacle
from multikueue.core.inventory.ocm_workers.spoke import Parts, Spoke, SpokeObject, Standing, standing
from multikueue.core.inventory.settings import Adopt, SpokeSettings
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import is_terminating, labels_of


@attrs.frozen
class SpokePlan:
    """What to do about one spoke now."""

    effects: tuple[Write, ...] = ()
    """In this order; after one that fails the others wait for the next decision."""
    problem: str = ""
    """Why it is not a worker yet, or is not kept up; empty: nothing is wrong."""
    left: str = ""
    """What whoever was taken over from has made for a cluster that is not selected, and what to do; empty: nothing."""
    conflict: Json | None = None
    """Why nothing at all is written: an object of somebody else under a name that is ours to use."""
    draining: bool = False
    """Whether it is kept only until it is not in use any more."""
    again: datetime | None = None
    """When to look again without a change."""


def plan_spoke(spoke: Spoke, settings: SpokeSettings, now: datetime) -> SpokePlan:
    """What to do about a spoke.

    Args:
        spoke: as the caches show it.
        settings: of the workers that are made.
        now: the manager's wall clock.
    """
    parts = Parts.of(spoke, settings)
    former = [part for part in parts.all() if part.standing is Standing.FORMER]
    if former or spoke.managed is None:
        problem = "its objects of an earlier ManagedCluster of that name are deleted first" if spoke.wanted else ""
        return SpokePlan(tuple(_removals(former)), problem=problem)
    if not spoke.wanted:
        return _not_wanted(spoke, settings, parts, now)
    foreign = next((part for part in parts.needed() if part.standing is Standing.FOREIGN), None)
    if foreign is not None and foreign.seen is not None:
        whose = f"{foreign.resource.gvk.kind} {ObjectKey.of(foreign.seen)} is somebody else's"
        return SpokePlan(problem=f"Conflict: {whose}: {_advice(foreign, spoke, settings)}", conflict=foreign.seen)
    return _kept_up(spoke, settings, parts, now)


def _advice(foreign: SpokeObject, spoke: Spoke, settings: SpokeSettings) -> str:
    """What to do about an object of somebody else; a take-over only if one takes this object."""

    def takes(adopt: Adopt) -> bool:
        whose = standing(foreign.seen, foreign.resource, spoke.name, spoke.uid, settings.owner, adopt)
        return whose is Standing.ADOPTABLE

    mode = next(filter(takes, Adopt), None)
    done = f", or take it over with ocm.adopt: {mode}" if mode is not None else " to have it made"
    return f"nothing is written; delete it{done}"


def _not_wanted(spoke: Spoke, settings: SpokeSettings, parts: Parts, now: datetime) -> SpokePlan:
    """Keep up what is in use, and delete the rest; what is not ours stays."""
    if any(part.in_use and part.ours for part in parts.workers):
        plan = _kept_up(spoke, settings, parts.only_ours(), now)
        detached = spoke.managed is not None and is_terminating(spoke.managed)  # its namespace takes nothing new
        effects = tuple(effect for effect in plan.effects if not (detached and isinstance(effect, Create)))
        return attrs.evolve(plan, effects=effects, draining=True)
    ours = _removals(part for part in parts.all() if part.ours)
    return SpokePlan(tuple(ours), problem=spoke.why_unwanted, left=_left(spoke, parts))


def _left(spoke: Spoke, parts: Parts) -> str:
    """Nobody renews or removes it any more: the account's token is good for a year, and its role lets it do all."""
    adoptable = [part for part in parts.all() if part.standing is Standing.ADOPTABLE and part.seen is not None]
    if not adoptable:
        return ""
    named = ", ".join(f"{part.resource.gvk.kind} {ObjectKey.of(part.seen or {})}" for part in adoptable)
    return (
        f"no Placement selects ManagedCluster {spoke.name}, and what ocm.adopt would take over there stays; nobody "
        f"renews or removes it: {named}: delete it once no job of yours runs there"
    )


def _removals(parts: Iterable[SpokeObject]) -> Iterator[Write]:
    for part in parts:
        if part.seen is not None and not part.leaving:
            yield Delete(part.resource, part.seen)


def _kept_up(spoke: Spoke, settings: SpokeSettings, parts: Parts, now: datetime) -> SpokePlan:
    """Make what is missing and correct what differs, in the order in which one needs the other."""
    why_not = obstacle(spoke, settings, now)
    effects: list[Write] = []
    if parts.uses_account:
        changes = tuple(_ensured(parts.account, objects.account(spoke, settings)))
        renewed = spoke.wanted and not changes and parts.account.ours and lives_too_long(spoke.account, settings, now)
        # Its agent would renew a token that was taken over after four fifths of its own 360 days.
        effects += _removals([parts.account]) if renewed else changes
    if parts.uses_permission:
        effects += _ensured(parts.permission, objects.permission(spoke, settings))
    connects = bool(spoke.workers) or not why_not
    labelled = labels_of(spoke.token or {}).get(TOKEN_LABEL) == "true"
    kubeconfig = kubeconfig_of(spoke.managed, spoke.token) if spoke.managed is not None and labelled else None
    if parts.uses_secret and connects and kubeconfig is not None:
        effects += _ensured(parts.secret, objects.secret(spoke, settings, kubeconfig))
    for part in parts.kept_workers() if connects else ():
        # What it is reached by stays while what it is to be reached by is not there.
        wanted = objects.worker(spoke, settings, part.name)
        effects += _ensured(part, wanted, only_metadata=bool(why_not))
    effects += [*_other_names(spoke, settings, parts), *_left_over(parts)]
    leaving = next((part for part in parts.needed() if part.leaving), None)
    if leaving is not None:
        why_not = why_not or f"{leaving.resource.gvk.kind} is being deleted: it is made again once it is gone"
    end = expires_at(spoke.account) if settings.accounts else None
    return SpokePlan(tuple(effects), problem=why_not, again=end if end is not None and end > now else None)


def _ensured(part: SpokeObject, wanted: Json, *, only_metadata: bool = False) -> Iterator[Write]:
    """The request that brings one object in line, if there is any."""
    if part.standing is Standing.ABSENT:
        yield Create(part.resource, wanted)
    elif part.seen is not None and not part.leaving:
        patch = objects.difference(part.seen, wanted, only_metadata=only_metadata)
        if patch:
            yield Patch(part.resource, part.seen, patch, adopts=part.standing is Standing.ADOPTABLE)


def _other_names(spoke: Spoke, settings: SpokeSettings, parts: Parts) -> Iterator[Write]:
    """Workers of the recipe of 2024 that nobody uses: they become ours, and are deleted then."""
    kept = parts.kept_workers()
    for part in parts.workers:
        if part in kept or part.in_use:
            continue
        if part.standing is Standing.ADOPTABLE:
            yield from _ensured(part, objects.worker(spoke, settings, part.name), only_metadata=True)
        elif part.ours:
            yield from _removals([part])


def _left_over(parts: Parts) -> Iterator[Write]:
    """What another setting, or who made what was taken over, needed: it goes once nothing is reached by it."""
    takes = (Standing.OURS, Standing.ADOPTABLE)
    for part, used in ((parts.secret, parts.uses_secret), (parts.older_secret, False)):
        if part.standing in takes and not used and not parts.names(part):
            yield from _removals([part])
    for part, used in ((parts.account, parts.uses_account), (parts.permission, parts.uses_permission)):
        if part.ours and not used:
            yield from _removals([part])
