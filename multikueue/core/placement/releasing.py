"""Giving configs up: of a check that is being deleted, or that names another Placement now.

A config goes with its last owner, and never while a Workload of it runs: whoever dispatches could not follow the job.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from multikueue.core.model.kinds import ADMISSION_CHECK, MULTIKUEUE_CONFIG
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import labels_of, name_of, resource_version, uid
from multikueue.core.placement.effects import Delete, Effect, Patch
from multikueue.core.placement.names import ADDON_FINALIZER, CONFIG_LABEL, FINALIZER, KUEUE_FINALIZER
from multikueue.core.placement.ownership import is_owned, others, owners
from multikueue.core.placement.settings import Adopt
from multikueue.core.placement.snapshot import Snapshot
from multikueue.core.placement.takeover import finalizers
from multikueue.core.placement.usage import usage


@attrs.frozen
class Release:
    """What becomes of the configs that a check gives up."""

    effects: tuple[Effect, ...] = ()
    waits: tuple[str, ...] = ()
    """Configs that it keeps for now, because Workloads use them."""


def release(snapshot: Snapshot, *, but: str = "") -> Release:
    """Give up the configs of a check.

    Args:
        snapshot: all that belongs to it.
        but: the config that it keeps.
    """
    check, effects, waits = snapshot.own(), list[Effect](), list[str]()
    for name, config in sorted(snapshot.configs.items()):
        if name == but or CONFIG_LABEL not in labels_of(config) or not is_owned(config, check):
            continue
        if others(config, check, snapshot.checks.values()):
            effects.append(_without(config, check))
        elif usage(name, snapshot.checks.values(), snapshot.workloads).all():
            waits.append(name)
        else:
            effects.append(Delete(MULTIKUEUE_CONFIG, ObjectKey("", name), uid(config), resource_version(config)))
    return Release(tuple(effects), tuple(waits))


def leave(snapshot: Snapshot) -> tuple[Effect, ...]:
    """What is to be done for a check that is being deleted. Kueue holds it while a queue uses it; then we are next."""
    check = snapshot.own()
    ours = {FINALIZER, *([ADDON_FINALIZER] if snapshot.settings.adopt is not Adopt.NONE else [])}
    if ours.isdisjoint(finalizers(check)) or KUEUE_FINALIZER in finalizers(check):
        return ()
    released = release(snapshot)
    if released.effects or released.waits:
        return released.effects  # the finalizer goes once the caches show that the configs have gone
    return (with_finalizers(check, (one for one in finalizers(check) if one not in ours)),)


def with_finalizers(check: Json, wanted: Iterator[str]) -> Effect:
    """The write of a check's finalizers."""
    metadata = {"resourceVersion": resource_version(check), "finalizers": list(wanted)}
    return Patch(ADMISSION_CHECK, ObjectKey("", name_of(check)), {"metadata": metadata})


def _without(config: Json, check: Json) -> Effect:
    kept = [one for one in owners(config) if one.get("uid") != uid(check)]
    metadata = {"resourceVersion": resource_version(config), "ownerReferences": kept}
    return Patch(MULTIKUEUE_CONFIG, ObjectKey("", name_of(config)), {"metadata": metadata})
