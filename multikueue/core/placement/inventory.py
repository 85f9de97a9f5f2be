"""The decision about one entry of an inventory: a config, and the workers behind the ClusterProfiles that it lists."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

import attrs

from multikueue.core.config.admission_check import clusters
from multikueue.core.model.kinds import MULTIKUEUE_CLUSTER
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import dig, is_terminating, labels_of, resource_version, uid
from multikueue.core.placement.effects import Announce, Create, Delete, Effect, Patch, Plan
from multikueue.core.placement.filling import Filling, decided, difference, figures, fill, remembered, write
from multikueue.core.placement.names import INVENTORY_LABEL
from multikueue.core.placement.ownership import owners
from multikueue.core.placement.snapshot import Labelled, Snapshot, Unknown


def plan_inventory(snapshot: Snapshot, now: datetime) -> Plan:
    """Decide what to do about one entry of an inventory.

    There is no admission check that could tell or hold Workloads: what happens is told by events on the config.

    Args:
        snapshot: everything known about it.
        now: the manager's wall clock.
    """
    name, config = snapshot.name, snapshot.configs.get(snapshot.name)
    if config is not None and labels_of(config).get(INVENTORY_LABEL) != name:
        why = (
            f"MultiKueueConfig {name} is somebody else's: delete it or fill another by this inventory; it is left alone"
        )
        return _told(snapshot, config, "Conflict", why)
    if isinstance(snapshot.source, Unknown):
        return _told(snapshot, config, snapshot.source.reason, snapshot.source.message)
    foreign = sorted(_foreign(snapshot))
    decision = decided(snapshot)
    decision = attrs.evolve(decision, names=decision.names - set(foreign))
    filling = fill(name, snapshot, decision, now)
    noted = remembered(snapshot, decision, filling, now)
    told = _warning(noted, config, foreign)
    return Plan(
        (*_workers(filling, snapshot), *_filled(filling, snapshot, now), *_unused(filling, snapshot), *told.effects),
        look_again=filling.look_again,
        memory=attrs.evolve(noted.memory, told=told.memory.told),
        figures=figures(filling, noted.memory),
    )


def _warning(snapshot: Snapshot, config: Json | None, foreign: list[str]) -> Plan:
    """Which selected clusters are left out because a worker of their name leads elsewhere."""
    if not foreign:
        return Plan(memory=attrs.evolve(snapshot.memory, told=""))
    why = f"A MultiKueueCluster of this name leads elsewhere, so it is left out: {', '.join(foreign)}"
    return _told(snapshot, config, "Conflict", why)


def _told(snapshot: Snapshot, config: Json | None, reason: str, why: str) -> Plan:
    """A warning, once for as long as it lasts and as there is a config to tell it on."""
    if snapshot.memory.told == why or config is None:
        return Plan(memory=snapshot.memory)
    return Plan((Announce(config, "Warning", reason, why),), memory=attrs.evolve(snapshot.memory, told=why))


def profile_of(cluster: Json) -> str:
    """The ClusterProfile that a MultiKueueCluster names; empty if it has another source."""
    return str(dig(cluster, "spec", "clusterSource", "clusterProfileRef", "name") or "")


def _foreign(snapshot: Snapshot) -> Iterator[str]:
    """Selected profiles whose name a worker with another source has."""
    for name in snapshot.source.profiles if isinstance(snapshot.source, Labelled) else ():
        found = snapshot.clusters.get(name)
        if found is not None and profile_of(found) != name and labels_of(found).get(INVENTORY_LABEL) != snapshot.name:
            yield name


def _workers(filling: Filling, snapshot: Snapshot) -> Iterator[Effect]:
    """The workers that the config is about to list: made, or mended where they are ours."""
    for name in filling.wanted:
        found, source = snapshot.clusters.get(name), {"clusterProfileRef": {"name": name}}
        if found is None and name in filling.members.target:
            gvk = MULTIKUEUE_CLUSTER.gvk
            metadata = {"name": name, "labels": {INVENTORY_LABEL: snapshot.name}}
            made = {"apiVersion": gvk.api_version, "kind": gvk.kind, "metadata": metadata}
            yield Create(MULTIKUEUE_CLUSTER, {**made, "spec": {"clusterSource": source}})
        elif found is not None and labels_of(found).get(INVENTORY_LABEL) == snapshot.name and profile_of(found) != name:
            spec = {"clusterSource": {**source, "kubeConfig": None}}
            patch = {"metadata": {"resourceVersion": resource_version(found)}, "spec": spec}
            yield Patch(MULTIKUEUE_CLUSTER, ObjectKey("", name), patch)


def _filled(filling: Filling, snapshot: Snapshot, now: datetime) -> Iterator[Effect]:
    kept = owners(filling.live) if filling.live is not None else []
    made = write(filling, snapshot, {INVENTORY_LABEL: snapshot.name}, kept, now)
    yield from made
    change = difference(filling.listed, filling.wanted) if filling.wanted else ""
    if made and change and filling.live is not None:
        yield Announce(filling.live, "Normal", "ClustersChanged", f"MultiKueueConfig {filling.name}: {change}")


def _unused(filling: Filling, snapshot: Snapshot) -> Iterator[Effect]:
    """The workers made for it that no config lists and no Workload runs on any more."""
    listed = {name for config in snapshot.configs.values() for name in clusters(config)}
    busy = listed | set(filling.wanted) | snapshot.placed | filling.usage.all()
    for name, found in sorted(snapshot.clusters.items()):
        ours = labels_of(found).get(INVENTORY_LABEL) == snapshot.name
        if ours and name not in busy and not is_terminating(found):
            yield Delete(MULTIKUEUE_CLUSTER, ObjectKey("", name), uid(found), resource_version(found))
