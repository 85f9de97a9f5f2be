"""Checks of placement checks, and of what scores are for."""

from __future__ import annotations

from collections.abc import Iterator

from multikueue.core.dispatchers.incremental import INCREMENTAL
from multikueue.core.inventory.names import ACTIVE, CONFIG_LABEL, CONFLICT_CONDITION
from multikueue.core.inventory.ownership import is_placement_check
from multikueue.core.model.conditions import condition, is_true
from multikueue.core.model.objects import labels_of, name_of
from multikueued.reports.doctor.facts import Facts
from multikueued.reports.doctor.findings import Spot


def inactive_checks(facts: Facts) -> Iterator[Spot]:
    """Placement checks that are not Active, or that somebody else handles, in their own words."""
    for check in facts.objects.checks:
        if not is_placement_check(check):
            continue
        conflict, told = condition(check, CONFLICT_CONDITION), condition(check, ACTIVE)
        found = conflict if is_true(check, CONFLICT_CONDITION) else told
        where = f"AdmissionCheck {name_of(check)}"
        if found is None:
            yield Spot(
                where, "nobody handles it: the daemon's setting ocm.enabled is off, and OCM's addon does not run"
            )
        elif conflict is not None or found.get("status") != "True":
            yield Spot(where, f"{found.get('reason')}: {found.get('message')}")


def orders_without_use(facts: Facts) -> Iterator[Spot]:
    """Configs that a Placement orders, with a dispatcher to whom the order means nothing."""
    chosen = facts.settings.dispatcher.name or facts.settings.dispatcher_name
    if not facts.settings_known or chosen == INCREMENTAL:
        return
    for config in facts.objects.configs:
        if CONFIG_LABEL in labels_of(config):
            yield Spot(
                f"MultiKueueConfig {name_of(config)}", "the dispatcher in use does not ask its first clusters first"
            )
