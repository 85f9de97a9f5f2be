"""The dispatcher that the settings choose, and which configs they have filled."""

from __future__ import annotations

from collections.abc import Iterator

from multikueue.core.dispatchers.dispatcher import ALL_AT_ONCE, SCORED, AllAtOnce, Dispatcher, External
from multikueue.core.dispatchers.incremental import INCREMENTAL, Incremental
from multikueue.core.dispatchers.scored.profile import parse_profiles
from multikueue.core.inventory.settings import Adopt, PlacementSettings, Policy
from multikueue.core.model.name_lists import alike, suggestion
from multikueue.runtime.inventory.service import Inventory, PlacementOptions
from multikueue.runtime.parts import BringsPart
from multikueue.runtime.plugins import BUILT_IN, installed_dispatchers, load_dispatcher
from multikueue.runtime.scored.dispatcher import ScoredDispatcher
from multikueued.settings.config import IncrementalSettings, Settings
from multikueued.settings.kueue_configuration import Remark


def dispatcher_name(settings: Settings) -> str:
    """The name of the dispatcher."""
    return settings.dispatcher.name or ALL_AT_ONCE


def placement_options(settings: Settings) -> PlacementOptions:
    """Which MultiKueueConfigs are filled from an inventory. What we dispatch for is told by `controllerName`."""
    own, ocm = settings.controller_name, settings.ocm
    placement = PlacementSettings(Policy(ocm.policy), Adopt(ocm.adopt), own, min_dwell=ocm.min_dwell)
    inventories = (
        Inventory(entry.selector, entry.config, PlacementSettings(Policy(entry.policy), dispatched_as=own))
        for entry in settings.inventory
    )
    return PlacementOptions(placement if ocm.enabled else None, tuple(inventories), settings.namespace)


def chosen_dispatcher(settings: Settings) -> Dispatcher:
    """The dispatcher.

    Raises:
        SettingsError: an installed package's dispatcher cannot be used.
    """
    name, installed = dispatcher_name(settings), installed_dispatchers()
    if name == ALL_AT_ONCE:
        return AllAtOnce()
    if name == INCREMENTAL:
        how = settings.dispatcher.incremental or IncrementalSettings()
        return Incremental(step=how.step_size, round=how.round)
    if name == SCORED:
        return ScoredDispatcher(settings.dispatcher.profiles or parse_profiles({}), settings.preemption.timeout)
    return load_dispatcher(installed[name]) if name in installed else External()


def looks_at_queues(settings: Settings) -> bool:
    """Whether the dispatcher may follow the queues of the workers.

    Raises:
        SettingsError: an installed package's dispatcher cannot be used.
    """
    return isinstance(chosen_dispatcher(settings), BringsPart)


def dispatcher_remarks(settings: Settings) -> Iterator[Remark]:
    """What is to be told about the choice: a name without a domain may be an error, what is for another dispatcher has
    no effect, and scores may mean nothing."""
    name = dispatcher_name(settings)
    for part, user in (("incremental", INCREMENTAL), ("profiles", SCORED)):
        if getattr(settings.dispatcher, part) is not None and name != user:
            why = f"{name} does not use it: remove it, or set dispatcher.name to {user}"
            yield Remark(f"dispatcher.{part}", why, important=True)
    known = (*BUILT_IN, *installed_dispatchers())
    if name not in known and ("/" not in name or alike(name, known)):
        remark = f'no installed package brings "{name}": another controller is to write status.nominatedClusterNames'
        yield Remark("dispatcher.name", f"{remark}{suggestion(name, known)}", important=True)
    if settings.ocm.enabled and name != INCREMENTAL:
        remark = (
            f"the order of clusters by score means something to {INCREMENTAL} only: {name} offers a job in no order"
        )
        yield Remark("ocm", remark)
    for profile, scoring in (settings.dispatcher.profiles or {}).items():
        if scoring.weights.quota is not None:
            remark = (
                "equal workers are asked in the config's order now: put first those to be filled first, and remove this"
            )
            yield Remark(f"dispatcher.profiles.{profile}.scores.quota", remark, important=True)
