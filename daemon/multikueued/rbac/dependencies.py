"""The rules for what jobs need beside themselves."""

from __future__ import annotations

from collections.abc import Collection

from multikueue.core.model.dependencies import COPIED, LOOKED_FOR
from multikueue.core.model.names import Json, Resource
from multikueued.rbac.role_rule import rule
from multikueued.settings.config import Settings


def dependency_kinds(settings: Settings) -> list[str]:
    """The kinds that any config names."""
    return list(dict.fromkeys(kind for entry in settings.dependencies for kind in entry.kinds))


def copied_resources(settings: Settings) -> list[Resource]:
    """What of them is copied."""
    return [COPIED[kind] for kind in dependency_kinds(settings) if kind in COPIED]


def dependency_rules(kinds: Collection[str]) -> list[Json]:
    """In the whole manager cluster: to read what is copied."""
    return [rule(COPIED[kind].gvk.group, [COPIED[kind].plural], ["get"]) for kind in kinds if kind in COPIED]


def worker_dependency_rules(kinds: Collection[str]) -> list[Json]:
    """In a whole worker cluster: to make copies, and share them; to see whether what is never copied is there."""
    made = [COPIED[kind] for kind in kinds if kind in COPIED]
    seen = [LOOKED_FOR[kind] for kind in kinds if kind in LOOKED_FOR]
    return [
        *(rule(one.gvk.group, [one.plural], ["create", "get", "patch"]) for one in made),
        *(rule(one.gvk.group, [one.plural], ["get"]) for one in seen),
    ]
