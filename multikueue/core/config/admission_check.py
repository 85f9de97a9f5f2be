"""Whether an AdmissionCheck of ours can be used: its Active condition."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime

from multikueue.core.machinery.connection import UNREADABLE
from multikueue.core.model.conditions import condition, is_true, new_condition
from multikueue.core.model.kinds import KUEUE_GROUP
from multikueue.core.model.labels import PROFILE_ANNOTATION
from multikueue.core.model.names import Json
from multikueue.core.model.objects import annotations_of, dig, name_of

_CONFIG_KIND = "MultiKueueConfig"


def config_name(check: Json) -> str:
    """The MultiKueueConfig the check refers to; empty if it refers to none or to something else."""
    return "" if _reference_problem(check) else str(dig(check, "spec", "parameters", "name"))


def clusters(config: Json) -> list[str]:
    """The names a MultiKueueConfig lists, in its order."""
    return list(dig(config, "spec", "clusters") or [])


def active_condition(
    check: Json,
    config: Json | None,
    known: Mapping[str, Json],
    now: datetime,
    profiles: Collection[str] | None = None,
) -> Json:
    """The check's Active condition.

    Args:
        check: the AdmissionCheck.
        config: the MultiKueueConfig it refers to, if there is one.
        known: the MultiKueueClusters by name.
        now: the manager's wall clock.
        profiles: those of the dispatcher, of which the config may name one; None: it has none.
    """
    active, reason, message = _verdict(check, config, known, profiles)
    generation = dig(check, "metadata", "generation")
    return new_condition("Active", active, reason, message, now=now, generation=generation)


def _verdict(
    check: Json, config: Json | None, known: Mapping[str, Json], profiles: Collection[str] | None
) -> tuple[bool, str, str]:
    problem = _reference_problem(check)
    if not problem and config is None:
        problem = f'{_CONFIG_KIND}.{KUEUE_GROUP} "{config_name(check)}" not found'  # as Kueue's cache words it
    elif not problem and config is not None:
        problem = _profile_problem(config, profiles)
    if problem or config is None:
        return False, "BadConfig", f"Cannot load the AdmissionChecks parameters: {problem}"
    listed = clusters(config)
    missing = [name for name in listed if name not in known]
    inactive = [name for name in listed if name in known and not is_true(known[name], "Active")]
    if not missing and not inactive:
        return True, "Active", "The admission check is active"
    problems = (("Missing", missing), ("Inactive", inactive))
    parts = [f"{what} clusters: [{' '.join(names)}]" for what, names in problems if names]
    # One that answers with more than may be read is there: jobs wait for it, and their checks say why.
    hidden = [name for name in inactive if (condition(known[name], "Active") or {}).get("reason") == UNREADABLE]
    usable = len(missing) + len(inactive) - len(hidden) < len(listed)
    return usable, "SomeActiveClusters" if usable else "NoUsableClusters", ", ".join(parts)


def _profile_problem(config: Json, profiles: Collection[str] | None) -> str:
    """Jobs would be held for ever: nobody says how to choose a worker for them."""
    named = annotations_of(config).get(PROFILE_ANNOTATION)
    if profiles is None or not named or named in profiles:
        return ""
    return f'there is no dispatch profile "{named[:100]}": {_CONFIG_KIND} "{name_of(config)}" names it'


def _reference_problem(check: Json) -> str:
    reference = dig(check, "spec", "parameters")
    if not reference:
        return "missing parameters reference"
    if not reference.get("name"):
        return "empty name: bad parameters reference"
    if reference.get("apiGroup") != KUEUE_GROUP:
        return f'wrong group "{reference.get("apiGroup", "")}", expecting "{KUEUE_GROUP}": bad parameters reference'
    if reference.get("kind") != _CONFIG_KIND:
        return f'wrong kind "{reference.get("kind", "")}", expecting "{_CONFIG_KIND}": bad parameters reference'
    return ""
