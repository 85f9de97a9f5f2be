"""The decision about one spoke: what to make, to mend and to delete now.

Three cases. A spoke that is *wanted* gets what it lacks, one after the other: an account, its role, and once both are
in force the MultiKueueCluster. One that is not wanted any more and *in use* is only kept up, so that its jobs end
there. Everything of one that is *gone* is deleted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

import attrs

from multikueue.core.model.names import Json
from multikueue.core.model.objects import is_terminating, labels_of
from multikueue.core.spokes import objects
from multikueue.core.spokes.effects import Conflicting, Create, Effect, Mend, Remove, SpokePlan
from multikueue.core.spokes.kubeconfig import kubeconfig_of
from multikueue.core.spokes.names import TOKEN_LABEL
from multikueue.core.spokes.ownership import Standing
from multikueue.core.spokes.parts import Part, Parts
from multikueue.core.spokes.readiness import expires_at, lives_too_long, obstacle
from multikueue.core.spokes.settings import SpokeSettings
from multikueue.core.spokes.spoke import Spoke


def plan(spoke: Spoke, settings: SpokeSettings, now: datetime) -> SpokePlan:
    """What to do about a spoke.

    Args:
        spoke: as the caches show it.
        settings: of the workers that are made.
        now: the manager's wall clock.
    """
    parts = Parts.of(spoke, settings)
    former = [part for part in parts.all() if part.standing is Standing.FORMER]
    if former or spoke.managed is None:
        told = "its objects of an earlier ManagedCluster of that name are deleted first" if spoke.wanted else ""
        return SpokePlan(tuple(_removals(former)), problem=told)
    if not spoke.wanted:
        return _not_wanted(spoke, settings, parts, now)
    foreign = next((part for part in parts.needed() if part.standing is Standing.FOREIGN), None)
    if foreign is not None and foreign.seen is not None:
        conflict = Conflicting(foreign.resource, foreign.seen)
        told = f"{conflict} is somebody else's: nothing is written; delete it, or take it over with ocm.adopt"
        return SpokePlan(problem=f"Conflict: {told}", conflict=conflict)
    return _kept_up(spoke, settings, parts, now)


def _not_wanted(spoke: Spoke, settings: SpokeSettings, parts: Parts, now: datetime) -> SpokePlan:
    """Keep up what is in use, and delete the rest; what is not ours stays."""
    if any(part.in_use and part.ours for part in parts.workers):
        found = _kept_up(spoke, settings, parts.only_ours(), now)
        detached = spoke.managed is not None and is_terminating(spoke.managed)  # its namespace takes nothing new
        effects = tuple(one for one in found.effects if not (detached and isinstance(one, Create)))
        return attrs.evolve(found, effects=effects, draining=True)
    return SpokePlan(tuple(_removals(part for part in parts.all() if part.ours)), problem=spoke.why_unwanted)


def _removals(parts: Iterable[Part]) -> Iterator[Effect]:
    for part in parts:
        if part.seen is not None and not part.leaving:
            yield Remove(part.resource, part.seen)


def _kept_up(spoke: Spoke, settings: SpokeSettings, parts: Parts, now: datetime) -> SpokePlan:
    """Make what is missing and mend what differs, in the order in which one needs the other."""
    why_not = obstacle(spoke, settings, now)
    effects: list[Effect] = []
    if parts.uses_account:
        mended = tuple(_ensured(parts.account, objects.account(spoke, settings)))
        renewed = spoke.wanted and not mended and parts.account.ours and lives_too_long(spoke.account, settings, now)
        # Its agent would renew a token that was taken over after four fifths of its own 360 days.
        effects += _removals([parts.account]) if renewed else mended
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


def _ensured(part: Part, wanted: Json, *, only_metadata: bool = False) -> Iterator[Effect]:
    """The request that brings one object in line, if there is any."""
    if part.standing is Standing.ABSENT:
        yield Create(part.resource, wanted)
    elif part.seen is not None and not part.leaving:
        patch = objects.difference(part.seen, wanted, only_metadata=only_metadata)
        if patch:
            yield Mend(part.resource, part.seen, patch, adopts=part.standing is Standing.ADOPTABLE)


def _other_names(spoke: Spoke, settings: SpokeSettings, parts: Parts) -> Iterator[Effect]:
    """Workers of the recipe of 2024 that nobody uses: they become ours, and are deleted then."""
    kept = parts.kept_workers()
    for part in parts.workers:
        if part in kept or part.in_use:
            continue
        if part.standing is Standing.ADOPTABLE:
            yield from _ensured(part, objects.worker(spoke, settings, part.name), only_metadata=True)
        elif part.ours:
            yield from _removals([part])


def _left_over(parts: Parts) -> Iterator[Effect]:
    """What another setting, or who made what was taken over, needed: it goes once nothing is reached by it."""
    takes = (Standing.OURS, Standing.ADOPTABLE)
    for part, used in ((parts.secret, parts.uses_secret), (parts.older_secret, False)):
        if part.standing in takes and not used and not parts.names(part):
            yield from _removals([part])
    for part, used in ((parts.account, parts.uses_account), (parts.permission, parts.uses_permission)):
        if part.ours and not used:
            yield from _removals([part])
