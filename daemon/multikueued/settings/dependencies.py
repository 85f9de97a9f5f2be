"""The settings of what jobs need beside themselves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, TypeAlias

import attrs

from multikueued.settings.value_types import ConfigName

DependencyKind: TypeAlias = Literal[
    "ConfigMap", "ResourceClaimTemplate", "Secret", "ServiceAccount", "PersistentVolumeClaim"
]


@attrs.frozen
class DependencySettings:
    """What is done about the dependencies of jobs that go to the workers of one MultiKueueConfig."""

    config: ConfigName = ""
    """The MultiKueueConfig."""
    kinds: tuple[DependencyKind, ...] = ()
    """ConfigMaps and ResourceClaimTemplates that pod templates name are copied to the worker. Secrets, ServiceAccounts
    and PersistentVolumeClaims are never copied: a worker that lacks one is not offered the job."""


def dependency_contradictions(entries: Sequence[DependencySettings]) -> Iterator[str]:
    """Entries that cannot be used: the setting, and why."""
    for number, entry in enumerate(entries):
        for name, value in (("config", entry.config), ("kinds", entry.kinds)):
            if not value:
                yield f"dependencies[{number}].{name}: it is missing: each entry needs a config and kinds"
    named = [entry.config for entry in entries if entry.config]
    for name in dict.fromkeys(name for name in named if named.count(name) > 1):
        yield f'dependencies: two entries are about the config "{name}": write one with the kinds of both'
