"""Which kinds a demo is about, and the daemon's settings for them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import attrs

from multikueue.adapters.declaration import Declaration, dotted
from multikueue.errors import SettingsError
from multikueue.sandbox.kinds import AVAILABLE, SandboxKind
from multikueued.config import Settings
from multikueued.frameworks import FrameworkName, IntegrationSettings, framework_names

ALL: Final = "all"


def kinds_named(names: Iterable[str]) -> tuple[SandboxKind, ...]:
    """The kinds that were asked for, in that order and each once.

    Args:
        names: of kinds in any case, or `all`.

    Raises:
        SettingsError: there is no such kind.
    """
    known = {kind.name: kind for kind in AVAILABLE}
    chosen: dict[str, SandboxKind] = {}
    for name in names:
        wanted = name.lower()
        if wanted != ALL and wanted not in known:
            raise SettingsError(f'--kind: there is no kind "{name}": use {ALL}, {", ".join(sorted(known))}')
        chosen.update(known if wanted == ALL else {wanted: known[wanted]})
    return tuple(chosen.values())


def with_kinds(settings: Settings, kinds: Iterable[SandboxKind]) -> Settings:
    """The settings of a daemon that dispatches these kinds."""
    built_in = set(framework_names())
    names = dict.fromkeys(kind.integration for kind in kinds if kind.integration in built_in)
    declared = {dotted(kind.resource.gvk) for kind in kinds if kind.integration not in built_in}
    return attrs.evolve(
        settings,
        integrations=IntegrationSettings(tuple(FrameworkName(name) for name in names)),
        external_frameworks=tuple(Declaration(name=name) for name in sorted(declared)),
    )
