"""The decision about one config: of a placement check, or of an entry of an inventory.

A config goes with its last owner, and never while a Workload of it runs: whoever dispatches could not follow the job.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

import attrs

from multikueue.core.config.admission_check import clusters
from multikueue.core.effects import Announce, Create, Delete, Effect, Patch
from multikueue.core.inventory.members import usage
from multikueue.core.inventory.names import ADDON_FINALIZER, CONFIG_LABEL, FINALIZER, INVENTORY_LABEL, KUEUE_FINALIZER
from multikueue.core.inventory.ownership import (
    BadParameters,
    finalizers,
    is_addons,
    is_owned,
    is_placement_check,
    name_or_empty,
    others,
    owners,
    placement_name,
    why_foreign,
    with_owner,
)
from multikueue.core.inventory.settings import Adopt
from multikueue.core.inventory.snapshot import ConfigPlan, ConfigSnapshot, Labelled, Memory, Unknown, check_key
from multikueue.core.inventory.status import (
    Verdict,
    WaitingEntries,
    active,
    gate,
    no_clusters,
    no_decision,
    write_condition,
    write_conflict,
    write_entries,
)
from multikueue.core.inventory.target import (
    ConfigTarget,
    config_target,
    decided,
    difference,
    earliest,
    is_put_off,
    remembered,
    statistics,
    write,
)
from multikueue.core.inventory.telling import Told
from multikueue.core.model.kinds import ADMISSION_CHECK, MULTIKUEUE_CLUSTER, MULTIKUEUE_CONFIG
from multikueue.core.model.names import Json
from multikueue.core.model.objects import dig, is_terminating, labels_of, name_of, uid
from multikueue.core.model.workloads import CheckState


def plan_check(snapshot: ConfigSnapshot, now: datetime) -> ConfigPlan:
    """Decide what to do about one placement check. It waits for nothing and keeps nothing but `ConfigPlan.memory`.

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
        return ConfigPlan(_leave(snapshot), memory=snapshot.memory)
    name = placement_name(check)
    if isinstance(name, BadParameters):
        return _refuse(snapshot, Verdict(False, "BadParameters", name.why), now)
    config = snapshot.configs.get(name)
    if config is not None and (why := why_foreign(config, name, settings.adopt)):
        return _refuse(snapshot, Verdict(False, "Conflict", why), now)
    if isinstance(snapshot.source, Unknown):
        return _refuse(snapshot, Verdict(False, snapshot.source.reason, snapshot.source.message), now)
    if FINALIZER not in finalizers(check) or is_addons(check):
        kept = (finalizer for finalizer in finalizers(check) if finalizer not in (ADDON_FINALIZER, FINALIZER))
        memory = attrs.evolve(snapshot.memory, takeover=takeover.tried()) if is_addons(check) else snapshot.memory
        return ConfigPlan((_with_finalizers(check, (*kept, FINALIZER)),), memory=memory)
    return _keep(name, snapshot, now)


def _stand_aside(snapshot: ConfigSnapshot, now: datetime) -> ConfigPlan:
    """OCM's addon handles the check: two writers of one config would undo each other's work for ever."""
    check = snapshot.own()
    why = (
        f"OCM's kueue-addon handles it (finalizer {ADDON_FINALIZER}): nothing is written. To have this controller take "
        "over, scale the addon's Deployment to 0 and set ocm.adopt: addon; if it is there already, restart the daemon, "
        "or take that finalizer off the AdmissionCheck by hand"
    )
    written = write_conflict(check, why, now)
    announced = (Announce(check, "Warning", "Conflict", why),) if written else ()
    return ConfigPlan((*written, *announced), memory=snapshot.memory)


def _refuse(snapshot: ConfigSnapshot, verdict: Verdict, now: datetime) -> ConfigPlan:
    """Say what is wrong, to the check and to Workloads that wait. Nothing is deleted, and what runs goes on."""
    check = snapshot.own()
    written = write_condition(check, verdict, now)
    waiting = write_entries(check, snapshot, None, WaitingEntries(CheckState.PENDING, verdict.message), now)
    announced = (Announce(check, "Warning", verdict.reason, verdict.message),) if written else ()
    return ConfigPlan((*written, *announced, *waiting), memory=snapshot.memory)


def _keep(name: str, snapshot: ConfigSnapshot, now: datetime) -> ConfigPlan:
    """Have the config list what is selected, and say so."""
    check, decision = snapshot.own(), decided(snapshot)
    if snapshot.memory.config != name:
        snapshot = attrs.evolve(snapshot, memory=Memory(config=name, takeover=snapshot.memory.takeover))
    target = config_target(name, snapshot, decision, now)
    put_off = is_put_off(target, snapshot)
    snapshot = remembered(snapshot, decision, target, now)
    sharing = _sharing(name, snapshot)
    writes = sharing[0] == name_of(check)
    written = tuple(_write(target, snapshot, now, writes=writes))
    released, _ = _released(snapshot, but=name)
    shared = [other for other in sharing if other != name_of(check)]
    condition = write_condition(check, _verdict(target, shared, snapshot), now)
    waiting = gate(target, snapshot, now)
    entries = write_entries(check, snapshot, target, waiting, now)
    return ConfigPlan(
        (*written, *released, *condition, *entries),
        look_again=earliest(target.look_again, waiting.look_again),
        memory=snapshot.memory,
        statistics=statistics(target, snapshot.memory),
        skipped=put_off and writes,
    )


def _sharing(name: str, snapshot: ConfigSnapshot) -> list[str]:
    """The checks of this Placement, the eldest first: that one writes the list, so that there is one writer."""
    sharing = [
        check for check in snapshot.checks.values() if is_placement_check(check) and name_or_empty(check) == name
    ]
    acting = (check for check in sorted(sharing, key=check_key) if not is_terminating(check))
    adopts = snapshot.settings.adopt is not Adopt.NONE
    return [
        name_of(check) for check in acting if not is_addons(check) or (adopts and FINALIZER not in finalizers(check))
    ]


def _write(target: ConfigTarget, snapshot: ConfigSnapshot, now: datetime, *, writes: bool) -> Iterator[Effect]:
    """The write of the config. Checks that share it with an elder one only put themselves down as owners."""
    check, live = snapshot.own(), target.live
    if not writes:
        if live is None or is_owned(live, check):
            return
        target = attrs.evolve(target, wanted=target.listed)
    owned_by = with_owner(live, check, snapshot.checks)
    yield from _written(target, snapshot, {CONFIG_LABEL: target.name}, owned_by, now, check)


def _written(
    target: ConfigTarget,
    snapshot: ConfigSnapshot,
    labels: Json,
    owned_by: list[Json],
    now: datetime,
    about: Json | None,
) -> Iterator[Effect]:
    """The write of the config, and an event about what it gains and loses."""
    made = write(target, snapshot, labels, owned_by, now)
    yield from made
    change = difference(target.listed, target.wanted) if target.wanted else ""
    if made and change and about is not None:
        yield Announce(about, "Normal", "ClustersChanged", f"MultiKueueConfig {target.name}: {change}")


def _verdict(target: ConfigTarget, shared: list[str], snapshot: ConfigSnapshot) -> Verdict:
    names = target.accepted.names
    if names is None and target.accepted.unconfirmed is None:
        return no_decision(target)
    if not names:
        return no_clusters(target)
    return active(target, shared, snapshot.settings.policy)


def _released(snapshot: ConfigSnapshot, *, but: str = "") -> tuple[list[Effect], bool]:
    """What gives up the configs of a check but one, and whether it keeps another for now, because Workloads use it."""
    check, effects, waits = snapshot.own(), list[Effect](), False
    for name, config in sorted(snapshot.configs.items()):
        if name == but or CONFIG_LABEL not in labels_of(config) or not is_owned(config, check):
            continue
        if others(config, check, snapshot.checks.values()):
            kept = [owner for owner in owners(config) if owner.get("uid") != uid(check)]
            effects.append(Patch(MULTIKUEUE_CONFIG, config, {"metadata": {"ownerReferences": kept}}))
        elif usage(name, snapshot.checks.values(), snapshot.workloads).all():
            waits = True
        else:
            effects.append(Delete(MULTIKUEUE_CONFIG, config))
    return effects, waits


def _leave(snapshot: ConfigSnapshot) -> tuple[Effect, ...]:
    """What is to be done for a check that is being deleted. Kueue holds it while a queue uses it; then we are next."""
    check = snapshot.own()
    ours = {FINALIZER, *([ADDON_FINALIZER] if snapshot.settings.adopt is not Adopt.NONE else [])}
    if ours.isdisjoint(finalizers(check)) or KUEUE_FINALIZER in finalizers(check):
        return ()
    effects, waits = _released(snapshot)
    if effects or waits:
        return tuple(effects)  # the finalizer goes once the caches show that the configs have gone
    return (_with_finalizers(check, (finalizer for finalizer in finalizers(check) if finalizer not in ours)),)


def _with_finalizers(check: Json, wanted: Iterable[str]) -> Effect:
    """The write of a check's finalizers."""
    return Patch(ADMISSION_CHECK, check, {"metadata": {"finalizers": list(wanted)}})


def plan_inventory(snapshot: ConfigSnapshot, now: datetime) -> ConfigPlan:
    """Decide what to do about one entry of an inventory.

    There is no admission check that could show it or hold Workloads: events on the config say what happens.

    Args:
        snapshot: everything known about it.
        now: the manager's wall clock.
    """
    name, config = snapshot.name, snapshot.configs.get(snapshot.name)
    if config is not None and labels_of(config).get(INVENTORY_LABEL) != name:
        why = (
            f"MultiKueueConfig {name} is somebody else's: delete it or fill another by this inventory; it is left alone"
        )
        return _warn(snapshot, config, "Conflict", why, now)
    if isinstance(snapshot.source, Unknown):
        return _warn(snapshot, config, snapshot.source.reason, snapshot.source.message, now)
    foreign = sorted(_foreign(snapshot))
    decision = decided(snapshot)
    decision = attrs.evolve(decision, names=decision.names - set(foreign))
    target = config_target(name, snapshot, decision, now)
    noted = remembered(snapshot, decision, target, now)
    warned = _warning(noted, config, foreign, now)
    live = target.live
    labels, owned_by = {INVENTORY_LABEL: name}, owners(live) if live is not None else []
    written = _written(target, snapshot, labels, owned_by, now, live)
    return ConfigPlan(
        (*_workers(target, snapshot), *written, *_unused(target, snapshot), *warned.effects),
        look_again=earliest(target.look_again, warned.look_again),
        memory=attrs.evolve(noted.memory, warned=warned.memory.warned),
        statistics=statistics(target, noted.memory),
    )


def _warning(snapshot: ConfigSnapshot, config: Json | None, foreign: list[str], now: datetime) -> ConfigPlan:
    """Which selected clusters are left out because a worker of their name leads elsewhere."""
    if not foreign:
        return ConfigPlan(memory=attrs.evolve(snapshot.memory, warned=Told()))
    why = f"A MultiKueueCluster of this name leads elsewhere, so it is left out: {', '.join(foreign)}"
    return _warn(snapshot, config, "Conflict", why, now)


def _warn(snapshot: ConfigSnapshot, config: Json | None, reason: str, why: str, now: datetime) -> ConfigPlan:
    """A warning, when it begins and now and then while it lasts, as long as there is a config to write it on."""
    if config is None:
        return ConfigPlan(memory=snapshot.memory)
    warned = snapshot.memory.warned.then(why, now)
    announced = (Announce(config, "Warning", reason, why),) if warned != snapshot.memory.warned else ()
    memory = attrs.evolve(snapshot.memory, warned=warned)
    return ConfigPlan(announced, look_again=warned.due_in(now), memory=memory)


def profile_of(cluster: Json) -> str:
    """The ClusterProfile that a MultiKueueCluster names; empty if it has another source."""
    return str(dig(cluster, "spec", "clusterSource", "clusterProfileRef", "name") or "")


def _foreign(snapshot: ConfigSnapshot) -> Iterator[str]:
    """Selected profiles whose name a worker with another source has."""
    for name in snapshot.source.profiles if isinstance(snapshot.source, Labelled) else ():
        worker = snapshot.clusters.get(name)
        if (
            worker is not None
            and profile_of(worker) != name
            and labels_of(worker).get(INVENTORY_LABEL) != snapshot.name
        ):
            yield name


def _workers(target: ConfigTarget, snapshot: ConfigSnapshot) -> Iterator[Effect]:
    """The workers that the config is about to list: made, or mended where they are ours."""
    for name in target.wanted:
        worker, source = snapshot.clusters.get(name), {"clusterProfileRef": {"name": name}}
        if worker is None and name in target.members.target:
            gvk = MULTIKUEUE_CLUSTER.gvk
            metadata = {"name": name, "labels": {INVENTORY_LABEL: snapshot.name}}
            made = {"apiVersion": gvk.api_version, "kind": gvk.kind, "metadata": metadata}
            yield Create(MULTIKUEUE_CLUSTER, {**made, "spec": {"clusterSource": source}})
        elif (
            worker is not None
            and labels_of(worker).get(INVENTORY_LABEL) == snapshot.name
            and profile_of(worker) != name
        ):
            yield Patch(MULTIKUEUE_CLUSTER, worker, {"spec": {"clusterSource": {**source, "kubeConfig": None}}})


def _unused(target: ConfigTarget, snapshot: ConfigSnapshot) -> Iterator[Effect]:
    """The workers made for it that no config lists and no Workload runs on any more."""
    listed = {name for config in snapshot.configs.values() for name in clusters(config)}
    busy = listed | set(target.wanted) | snapshot.placed | target.usage.all()
    for name, worker in sorted(snapshot.clusters.items()):
        ours = labels_of(worker).get(INVENTORY_LABEL) == snapshot.name
        if ours and name not in busy and not is_terminating(worker):
            yield Delete(MULTIKUEUE_CLUSTER, worker)
