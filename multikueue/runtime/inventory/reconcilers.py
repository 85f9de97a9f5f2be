"""Placement checks and inventories: read the caches into a snapshot, decide, execute."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Final

import attrs

from multikueue.core.effects import Announce, Apply, Delete, Write
from multikueue.core.inventory.config import plan_check, plan_inventory
from multikueue.core.inventory.names import INVENTORY_LABEL
from multikueue.core.inventory.ownership import is_owned, is_placement_check, name_or_empty
from multikueue.core.inventory.settings import PlacementSettings
from multikueue.core.inventory.snapshot import ConfigPlan, ConfigSnapshot, Memory, Source
from multikueue.core.inventory.status import config_error, write_condition
from multikueue.core.machinery.action import Action
from multikueue.core.model.kinds import MULTIKUEUE_CONFIG
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import labels_of, name_of
from multikueue.errors import Conflict
from multikueue.kube.informers.informer import Informer
from multikueue.logs import get_logger
from multikueue.protocols import PlacementHook
from multikueue.runtime.inventory.caches import HubCaches, OcmCaches, labelled
from multikueue.runtime.inventory.executor import Executor, Failed

DRAINING: Final = 30.0
"""Seconds between two looks at workers that an inventory has made and that have copies."""

log = get_logger(__name__)


@attrs.define(eq=False)
class PlacementReconciler:
    """Decides about placement checks. See `core.inventory.config`."""

    hub: HubCaches
    ocm: OcmCaches
    executor: Executor
    settings: PlacementSettings
    clock: Callable[[], datetime]
    hook: PlacementHook | None = None
    _memory: dict[str, Memory] = attrs.field(factory=dict, init=False, repr=False)
    _filled: dict[str, str] = attrs.field(factory=dict, init=False, repr=False)
    """By check, the config that the metrics show."""

    async def reconcile(self, key: ObjectKey) -> Action:
        """See `Reconciler`."""
        check = self.hub.checks.get(key)
        if check is None or not is_placement_check(check):
            self._forget(key.name)
            return Action.done()
        source = self.ocm.source(check)
        if source is None:
            return Action.done()  # `OcmCaches` has it decided about once they are read
        decided = plan_check(self._snapshot(check, source), self.clock())
        self._memory[key.name] = decided.memory
        failed = await self.executor.execute(decided.effects, self._written)
        if failed is not None:
            await self._write_failure(check, failed)
            raise failed[1]
        self._observe(check, decided)
        return Action.earliest(decided.look_again)

    def _snapshot(self, check: Json, source: Source) -> ConfigSnapshot:
        name = name_of(check)
        owned = (config for config in self.hub.configs.values() if is_owned(config, check))
        concerned = dict.fromkeys((name_or_empty(check), *map(name_of, owned)))
        workloads = self.hub.held_by(name)  # also where its parameters name nothing
        for config in concerned:
            workloads |= self.hub.work_of(config)
        return ConfigSnapshot(
            source,
            self.settings,
            check,
            checks=_by_name(self.hub.checks),
            configs=_by_name(self.hub.configs),
            clusters=_by_name(self.hub.clusters),
            workloads=tuple(workloads.values()),
            memory=self._memory.get(name, Memory()),
        )

    async def _write_failure(self, check: Json, failed: Failed) -> None:
        """Say on the check that its config cannot be written. That it has changed meanwhile is no failure."""
        effect, error = failed
        if isinstance(effect, Announce) or effect.resource != MULTIKUEUE_CONFIG:
            return
        if isinstance(error, Conflict) or not error.status:
            return
        verdict = config_error(name_or_empty(check), str(error), deleting=isinstance(effect, Delete))
        await self.executor.execute(write_condition(check, verdict, self.clock()))

    def _written(self, effect: Write, obj: Json) -> None:
        if isinstance(effect, Apply):
            self.hub.wrote(obj)

    def _observe(self, check: Json, decided: ConfigPlan) -> None:
        name, config = name_of(check), name_or_empty(check)
        for effect in decided.effects:
            if isinstance(effect, Announce):
                report = log.warning if effect.type == "Warning" else log.info
                report("placement check", check=name, config=config, reason=effect.reason, note=effect.note)
        if self._filled.get(name, config) != config or decided.statistics is None:
            self._forget_statistics(name)
        if self.hook is not None and decided.statistics is not None:
            self._filled[name] = config
            self.hook.filled(config, decided.statistics)
            if decided.skipped:
                self.hook.put_off(config)

    def _forget(self, name: str) -> None:
        self._memory.pop(name, None)
        self._forget_statistics(name)

    def _forget_statistics(self, name: str) -> None:
        config = self._filled.pop(name, None)
        if self.hook is not None and config is not None and config not in self._filled.values():
            self.hook.released(config)


@attrs.define(eq=False)
class InventoryReconciler:
    """Decides about inventories, by the names of their configs. See `core.inventory.config`."""

    hub: HubCaches
    profiles: Mapping[str, tuple[Informer, PlacementSettings]]
    executor: Executor
    clock: Callable[[], datetime]
    hook: PlacementHook | None = None
    _memory: dict[str, Memory] = attrs.field(factory=dict, init=False, repr=False)

    async def reconcile(self, key: ObjectKey) -> Action:
        """See `Reconciler`."""
        informer, settings = self.profiles[key.name]
        source = labelled(informer)
        if source is None:
            return Action.done()  # its informer has it decided about once it is read
        workers = _by_name(self.hub.clusters)
        made = {name for name, worker in workers.items() if labels_of(worker).get(INVENTORY_LABEL) == key.name}
        occupied = frozenset(filter(self.hub.occupied, made))
        snapshot = ConfigSnapshot(
            source,
            settings,
            name=key.name,
            checks=_by_name(self.hub.checks),
            configs=_by_name(self.hub.configs),
            clusters=workers,
            workloads=tuple(self.hub.work_of(key.name).values()),
            placed=self.hub.placed() | occupied,
            memory=self._memory.get(key.name, Memory()),
        )
        decided = plan_inventory(snapshot, self.clock())
        self._memory[key.name] = decided.memory
        failed = await self.executor.execute(decided.effects)
        if failed is not None:
            raise failed[1]
        if self.hook is not None and decided.statistics is not None:
            self.hook.filled(key.name, decided.statistics)
        # Nothing tells that the last copy has gone from a worker that is not wanted any more.
        return Action.earliest(decided.look_again, DRAINING if occupied else None)


def _by_name(informer: Informer) -> dict[str, Json]:
    return {name_of(obj): obj for obj in informer.values()}
