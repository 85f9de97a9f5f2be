"""Workers of the recipe that OCM published in 2024: MultiKueueClusters named PLACEMENT-SPOKE.

One cluster must not be two workers: the copies that one of them has would be strange to the other, and be removed. So
the MultiKueueCluster of a spoke is made once those under another name are gone, and they go once their jobs have ended.
"""

from __future__ import annotations

from collections.abc import Iterator

from multikueue.core.model.kinds import MULTIKUEUE_CLUSTER, SECRET
from multikueue.core.model.names import Json
from multikueue.core.model.objects import is_terminating, name_of
from multikueue.core.spokes.effects import Conflicting, Effect, Mend, Remove, SpokePlan
from multikueue.core.spokes.names import MANAGED_CLUSTER
from multikueue.core.spokes.objects import difference
from multikueue.core.spokes.ownership import Standing, marks, owner_references, standing
from multikueue.core.spokes.settings import SpokeSettings
from multikueue.core.spokes.spoke import Spoke


def conflict(spoke: Spoke, settings: SpokeSettings) -> Conflicting | None:
    """A MultiKueueCluster that reaches the spoke under another name and is not to be taken over."""
    for one in spoke.older:
        if _standing(one.worker, spoke, settings) is Standing.FOREIGN:
            return Conflicting(MULTIKUEUE_CLUSTER, one.worker)
    return None


def in_use(spoke: Spoke, settings: SpokeSettings) -> bool:
    """Whether jobs still run under such a name that is ours."""
    ours = (Standing.OURS, Standing.FORMER)
    return any(one.in_use and _standing(one.worker, spoke, settings) in ours for one in spoke.older)


def take_over(spoke: Spoke, settings: SpokeSettings) -> SpokePlan:
    """Put our label on them, and delete those that are not in use any more."""
    effects: list[Effect] = []
    for one in spoke.older:
        effects += _adopted(MULTIKUEUE_CLUSTER.plural, one.worker, spoke, settings)
    if spoke.older_secret is not None:
        effects += _adopted(SECRET.plural, spoke.older_secret, spoke, settings)
    if effects:
        return SpokePlan(tuple(effects), problem="the workers of the recipe of 2024 are taken over first")
    names = ", ".join(name_of(one.worker) for one in spoke.older)
    told = (
        f"the cluster is still the worker {names}, as the recipe of 2024 had it: it gets new jobs once those have ended"
    )
    return SpokePlan(tuple(removals(spoke, settings)), problem=told, draining=True)


def removals(spoke: Spoke, settings: SpokeSettings) -> Iterator[Effect]:
    """What is ours of them and not in use: after the last one also their Secret."""
    ours = (Standing.OURS, Standing.FORMER)
    kept = False
    for one in spoke.older:
        gone = spoke.managed is None or not one.in_use
        if gone and _standing(one.worker, spoke, settings) in ours and not is_terminating(one.worker):
            yield Remove(MULTIKUEUE_CLUSTER, one.worker)
        kept = kept or not gone
    secret = spoke.older_secret
    if secret is None or kept or is_terminating(secret):
        return
    if standing(secret, SECRET, spoke.name, spoke.uid, settings.owner, settings.adopt) in ours:
        yield Remove(SECRET, secret)


def _standing(worker: Json, spoke: Spoke, settings: SpokeSettings) -> Standing:
    return standing(worker, MULTIKUEUE_CLUSTER, spoke.name, spoke.uid, settings.owner, settings.adopt)


def _adopted(plural: str, seen: Json, spoke: Spoke, settings: SpokeSettings) -> Iterator[Effect]:
    is_worker = plural == MULTIKUEUE_CLUSTER.plural
    resource = MULTIKUEUE_CLUSTER if is_worker else SECRET
    if is_worker:
        owners = owner_references(MANAGED_CLUSTER, [spoke.managed] if spoke.managed is not None else [])
    else:
        owners = owner_references(MULTIKUEUE_CLUSTER, [one.worker for one in spoke.older])
    wanted = {"metadata": {**marks(spoke.uid, settings.owner), "ownerReferences": owners}}
    found = standing(seen, resource, spoke.name, spoke.uid, settings.owner, settings.adopt)
    patch = difference(seen, wanted, only_metadata=True)
    if patch and found in (Standing.OURS, Standing.ADOPTABLE) and not is_terminating(seen):
        yield Mend(resource, seen, patch, adopts=found is Standing.ADOPTABLE)
