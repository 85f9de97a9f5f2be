"""The decision about one placement check: its config, its condition, and its entries in Workloads."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

import attrs

from multikueue.core.model.objects import is_terminating, name_of
from multikueue.core.model.workloads import CheckState
from multikueue.core.placement.conditions import (
    Verdict,
    active,
    no_clusters,
    no_decision,
    write_condition,
    write_conflict,
)
from multikueue.core.placement.effects import Announce, Effect, Plan
from multikueue.core.placement.entries import Gate, gate, write_entries
from multikueue.core.placement.filling import Filling, decided, difference, figures, fill, is_put_off, remembered, write
from multikueue.core.placement.names import ADDON_FINALIZER, CONFIG_LABEL, FINALIZER
from multikueue.core.placement.ownership import is_owned, why_foreign, with_owner
from multikueue.core.placement.parameters import BadParameters, is_placement_check, name_or_empty, placement_name
from multikueue.core.placement.releasing import leave, release, with_finalizers
from multikueue.core.placement.settings import Adopt
from multikueue.core.placement.snapshot import Memory, Snapshot, Unknown, check_key
from multikueue.core.placement.takeover import finalizers, is_addons


def plan(snapshot: Snapshot, now: datetime) -> Plan:
    """Decide what to do about one placement check. It waits for nothing and keeps nothing but `Plan.memory`.

    Args:
        snapshot: everything known about it.
        now: the manager's wall clock.
    """
    check, settings = snapshot.own(), snapshot.settings
    takeover = snapshot.memory.takeover.seen(check)
    snapshot = attrs.evolve(snapshot, memory=attrs.evolve(snapshot.memory, takeover=takeover))
    if is_addons(check) and (settings.adopt is Adopt.NONE or takeover.addon_runs):
        return _stand_aside(snapshot, now)
    if is_terminating(check):
        return Plan(leave(snapshot), memory=snapshot.memory)
    name = placement_name(check)
    if isinstance(name, BadParameters):
        return _refuse(snapshot, Verdict(False, "BadParameters", name.why), now)
    config = snapshot.configs.get(name)
    if config is not None and (why := why_foreign(config, name, settings.adopt)):
        return _refuse(snapshot, Verdict(False, "Conflict", why), now)
    if isinstance(snapshot.source, Unknown):
        return _refuse(snapshot, Verdict(False, snapshot.source.reason, snapshot.source.message), now)
    if FINALIZER not in finalizers(check) or is_addons(check):
        kept = (one for one in finalizers(check) if one not in (ADDON_FINALIZER, FINALIZER))
        memory = attrs.evolve(snapshot.memory, takeover=takeover.tried()) if is_addons(check) else snapshot.memory
        return Plan((with_finalizers(check, iter((*kept, FINALIZER))),), memory=memory)
    return _keep(name, snapshot, now)


def _stand_aside(snapshot: Snapshot, now: datetime) -> Plan:
    """OCM's addon handles the check: two writers of one config would undo each other's work for ever."""
    check = snapshot.own()
    told = (
        f"OCM's kueue-addon handles it (finalizer {ADDON_FINALIZER}): nothing is written. To have this controller take "
        "over, scale the addon's Deployment to 0 and set ocm.adopt: addon; if it is there already, restart the daemon, "
        "or take that finalizer off the AdmissionCheck by hand"
    )
    written = write_conflict(check, told, now)
    announced = (Announce(check, "Warning", "Conflict", told),) if written else ()
    return Plan((*written, *announced), memory=snapshot.memory)


def _refuse(snapshot: Snapshot, verdict: Verdict, now: datetime) -> Plan:
    """Say what is wrong, to the check and to Workloads that wait. Nothing is deleted, and what runs goes on."""
    check = snapshot.own()
    told = write_condition(check, verdict, now)
    waiting = write_entries(check, snapshot, None, Gate(CheckState.PENDING, verdict.message), now)
    announced = (Announce(check, "Warning", verdict.reason, verdict.message),) if told else ()
    return Plan((*told, *announced, *waiting), memory=snapshot.memory)


def _keep(name: str, snapshot: Snapshot, now: datetime) -> Plan:
    """Have the config list what is selected, and say so."""
    check, decision = snapshot.own(), decided(snapshot)
    if snapshot.memory.config != name:
        snapshot = attrs.evolve(snapshot, memory=Memory(config=name, takeover=snapshot.memory.takeover))
    filling = fill(name, snapshot, decision, now)
    put_off = is_put_off(filling, snapshot)
    snapshot = remembered(snapshot, decision, filling, now)
    sharing = _sharing(name, snapshot)
    writes = sharing[0] == name_of(check)
    written = tuple(_write(filling, snapshot, now, writes=writes))
    released = release(snapshot, but=name)
    shared = [one for one in sharing if one != name_of(check)]
    told = write_condition(check, _verdict(filling, shared, snapshot), now)
    found = gate(filling, snapshot, now)
    entries = write_entries(check, snapshot, filling, found, now)
    waits = [one for one in (filling.look_again, found.look_again) if one is not None]
    return Plan(
        (*written, *released.effects, *told, *entries),
        look_again=min(waits, default=None),
        memory=snapshot.memory,
        figures=figures(filling, snapshot.memory),
        skipped=put_off and writes,
    )


def _sharing(name: str, snapshot: Snapshot) -> list[str]:
    """The checks of this Placement, the eldest first: that one writes the list, so that there is one writer."""
    found = [one for one in snapshot.checks.values() if is_placement_check(one) and name_or_empty(one) == name]
    acting = (one for one in sorted(found, key=check_key) if not is_terminating(one))
    adopts = snapshot.settings.adopt is not Adopt.NONE
    return [name_of(one) for one in acting if not is_addons(one) or (adopts and FINALIZER not in finalizers(one))]


def _write(filling: Filling, snapshot: Snapshot, now: datetime, *, writes: bool) -> Iterator[Effect]:
    """The write of the config. Checks that share it with an elder one only put themselves down as owners."""
    check, live = snapshot.own(), filling.live
    if not writes:
        if live is None or is_owned(live, check):
            return
        filling = attrs.evolve(filling, wanted=filling.listed)
    owned_by = with_owner(live, check, snapshot.checks)
    made = write(filling, snapshot, {CONFIG_LABEL: filling.name}, owned_by, now)
    yield from made
    change = difference(filling.listed, filling.wanted) if filling.wanted else ""
    if made and change:
        yield Announce(check, "Normal", "ClustersChanged", f"MultiKueueConfig {filling.name}: {change}")


def _verdict(filling: Filling, shared: list[str], snapshot: Snapshot) -> Verdict:
    names = filling.belief.names
    if names is None and filling.belief.doubt is None:
        return no_decision(filling)
    if not names:
        return no_clusters(filling)
    return active(filling, shared, snapshot.settings.policy)
