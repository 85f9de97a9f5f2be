"""The decision about one spoke: what to make, to mend and to delete now.

Three cases. A spoke that is *wanted* gets what it lacks, one after the other: an account, its role, and once both are
in force the MultiKueueCluster. One that is not wanted any more and *in use* is only kept up, so that its jobs end
there. Everything of one that is *gone* is deleted.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from functools import partial

import attrs

from multikueue.core.model.kinds import MULTIKUEUE_CLUSTER, SECRET
from multikueue.core.model.names import Json, Resource
from multikueue.core.model.objects import is_terminating
from multikueue.core.spokes import objects, older
from multikueue.core.spokes.effects import Conflicting, Create, Effect, Mend, Remove, SpokePlan
from multikueue.core.spokes.kubeconfig import kubeconfig_of
from multikueue.core.spokes.names import (
    CLUSTER_PERMISSION,
    MANAGED_SERVICE_ACCOUNT,
    kubeconfig_location,
    kubeconfig_secret,
)
from multikueue.core.spokes.ownership import Standing, standing
from multikueue.core.spokes.readiness import expires_at, obstacle
from multikueue.core.spokes.settings import Source, SpokeSettings
from multikueue.core.spokes.spoke import Spoke


@attrs.frozen
class _Part:
    """One object of a spoke as it is, and whose it is."""

    resource: Resource
    seen: Json | None
    standing: Standing

    @property
    def ours(self) -> bool:
        return self.standing is Standing.OURS

    @property
    def untouched(self) -> _Part:
        """The same, for a decision that makes and takes over nothing new; what is missing of ours it makes again."""
        return self if self.standing is Standing.ABSENT else _Part(self.resource, None, Standing.FOREIGN)

    @property
    def leaving(self) -> bool:
        return self.seen is not None and is_terminating(self.seen)


def plan(spoke: Spoke, settings: SpokeSettings, now: datetime) -> SpokePlan:
    """What to do about a spoke.

    Args:
        spoke: as the caches show it.
        settings: of the workers that are made.
        now: the manager's wall clock.
    """
    parts = dict(_parts(spoke, settings))
    former = [part for part in parts.values() if part.standing is Standing.FORMER]
    if former or spoke.managed is None:
        told = "its objects of an earlier ManagedCluster of that name are deleted first" if spoke.wanted else ""
        return SpokePlan((*_removals(former), *older.removals(spoke, settings)), problem=told)
    if not spoke.wanted:
        return _not_wanted(spoke, settings, parts, now)
    conflict = older.conflict(spoke, settings) or _conflict(settings, parts)
    if conflict is not None:
        told = f"{conflict} is somebody else's: nothing is written; delete it, or take it over with ocm.adopt"
        return SpokePlan(problem=f"Conflict: {told}", conflict=conflict)
    if spoke.older:
        return older.take_over(spoke, settings)
    return _kept_up(spoke, settings, parts, now)


def _parts(spoke: Spoke, settings: SpokeSettings) -> Iterator[tuple[Resource, _Part]]:
    """In the order in which they are deleted: the worker before what it is reached by."""
    for resource, seen in (
        (MULTIKUEUE_CLUSTER, spoke.worker),
        (SECRET, spoke.secret),
        (MANAGED_SERVICE_ACCOUNT, spoke.account),
        (CLUSTER_PERMISSION, spoke.permission),
    ):
        found = standing(seen, resource, spoke.name, spoke.uid, settings.owner, settings.adopt)
        yield resource, _Part(resource, seen, found)


def _uses(settings: SpokeSettings, resource: Resource) -> bool:
    """Whether these settings have us write an object of a kind."""
    if resource == SECRET:
        return settings.source is Source.KUBECONFIG
    if resource == MANAGED_SERVICE_ACCOUNT:
        return settings.accounts
    return resource == MULTIKUEUE_CLUSTER or settings.rules is not None


def _conflict(settings: SpokeSettings, parts: dict[Resource, _Part]) -> Conflicting | None:
    for resource, part in parts.items():
        if _uses(settings, resource) and part.seen is not None and part.standing is Standing.FOREIGN:
            return Conflicting(resource, part.seen)
    return None


def _not_wanted(spoke: Spoke, settings: SpokeSettings, parts: dict[Resource, _Part], now: datetime) -> SpokePlan:
    """Keep up what is in use, and delete the rest; what is not ours stays."""
    if older.in_use(spoke, settings):
        return SpokePlan(draining=True)
    if spoke.in_use and parts[MULTIKUEUE_CLUSTER].ours:
        kept = {resource: part if part.ours else part.untouched for resource, part in parts.items()}
        found = _kept_up(spoke, settings, kept, now)
        detached = spoke.managed is not None and is_terminating(spoke.managed)  # its namespace takes nothing new
        effects = tuple(one for one in found.effects if not (detached and isinstance(one, Create)))
        return attrs.evolve(found, effects=effects, draining=True)
    ours = _removals([part for part in parts.values() if part.ours])
    return SpokePlan((*ours, *older.removals(spoke, settings)), problem=spoke.why_unwanted)


def _removals(parts: list[_Part]) -> list[Effect]:
    return [Remove(part.resource, part.seen) for part in parts if part.seen is not None and not part.leaving]


def _kept_up(spoke: Spoke, settings: SpokeSettings, parts: dict[Resource, _Part], now: datetime) -> SpokePlan:
    """Make what is missing and mend what differs, in the order in which one needs the other."""
    why_not = obstacle(spoke, settings, now)
    worker = parts[MULTIKUEUE_CLUSTER]
    ensured = partial(_ensured, parts)
    effects: list[Effect] = []
    if settings.accounts:
        effects += ensured(objects.account(spoke, settings), MANAGED_SERVICE_ACCOUNT)
    if settings.rules is not None:
        effects += ensured(objects.permission(spoke, settings), CLUSTER_PERMISSION)
    connects = worker.seen is not None or not why_not
    kubeconfig = kubeconfig_of(spoke.managed, spoke.token) if spoke.managed is not None else None
    if settings.source is Source.KUBECONFIG and connects and kubeconfig is not None:
        effects += ensured(objects.secret(spoke, settings, kubeconfig), SECRET)
    if connects:
        # What it is reached by stays while what it is to be reached by is not there.
        effects += ensured(objects.worker(spoke, settings), MULTIKUEUE_CLUSTER, only_metadata=bool(why_not))
    effects += _left_over(spoke, settings, parts)
    leaving = next((part for part in parts.values() if part.leaving and _uses(settings, part.resource)), None)
    if leaving is not None:
        why_not = why_not or f"{leaving.resource.gvk.kind} is being deleted: it is made again once it is gone"
    end = expires_at(spoke.account) if settings.accounts else None
    return SpokePlan(tuple(effects), problem=why_not, again=end if end is not None and end > now else None)


def _ensured(
    parts: dict[Resource, _Part], wanted: Json, resource: Resource, *, only_metadata: bool = False
) -> Iterator[Effect]:
    """The request that brings one object in line, if there is any."""
    part = parts[resource]
    if part.seen is None:
        if part.standing is Standing.ABSENT:
            yield Create(resource, wanted)
    elif not part.leaving:
        patch = objects.difference(part.seen, wanted, only_metadata=only_metadata)
        if patch:
            yield Mend(resource, part.seen, patch, adopts=part.standing is Standing.ADOPTABLE)


def _left_over(spoke: Spoke, settings: SpokeSettings, parts: dict[Resource, _Part]) -> Iterator[Effect]:
    """What another setting, or who made what was taken over, needed: it goes once nothing is reached by it."""
    secret = parts[SECRET]
    takes = (Standing.OURS, Standing.ADOPTABLE)
    names_it = spoke.worker is not None and kubeconfig_location(spoke.worker) == kubeconfig_secret(spoke.name)
    if secret.standing in takes and not _uses(settings, SECRET) and not names_it:
        yield from _removals([secret])
    for resource in (MANAGED_SERVICE_ACCOUNT, CLUSTER_PERMISSION):
        if parts[resource].ours and not _uses(settings, resource):
            yield from _removals([parts[resource]])
