"""The job kinds the daemon dispatches: from the settings, from installed packages, and as the manager serves them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Final

import anyio
import attrs
import structlog

from multikueue import AVAILABLE, GVK, AdapterRegistry, ApiError, JobKind
from multikueue.adapters.declaration import Declaration
from multikueue.runtime.discovery import Discoverer, resolve
from multikueue.runtime.draining import Lister, with_draining
from multikueue.runtime.plugins import installed_kinds
from multikueued.config import Settings

log = structlog.get_logger(__name__)

RETRY: Final = 5.0
"""Seconds between two attempts to ask a manager that does not answer."""
PATIENCE: Final = 6
"""Attempts for a manager that answers, but not about some kind: an aggregated API may be down for long, and the other
kinds must not wait for it."""
ALIASES = {"deployment": "pod"}
"""Kinds that are dispatched as another: the pods of a Deployment are queued and dispatched one by one."""


def configured_kinds(settings: Settings) -> list[JobKind]:
    """The rows of the kinds in the settings, which must have no `kind_contradictions`."""
    kinds, complaints = _rows(settings)
    assert not complaints, complaints
    return kinds


def kind_contradictions(settings: Settings) -> Iterator[str]:
    """Kinds that cannot be used: the setting, why, and what to do."""
    kinds, complaints = _rows(settings)
    yield from complaints
    first: dict[GVK, JobKind] = {}
    for kind in kinds:
        gvk = kind.resource.gvk
        earlier = first.setdefault(gvk, kind)
        if earlier is not kind:
            yield f"{kind.source}: two adapters for {gvk}, this one and {earlier.source}: leave one out"


def _rows(settings: Settings) -> tuple[list[JobKind], list[str]]:
    built_in: dict[GVK, JobKind] = {}
    for number, name in enumerate(settings.integrations.frameworks):
        for kind in rows_of(name):  # `pod` and `deployment` are the same kind
            source = f"integrations.frameworks[{number}] ({name})"
            built_in.setdefault(kind.resource.gvk, attrs.evolve(kind, source=source))
    kinds = list(built_in.values())
    complaints: list[str] = []
    for setting, declaration in _declared(settings):
        # Imported here because the CEL compiler takes 0.3 s to import, and only declared kinds need it.
        from multikueue.adapters.declared import DeclarationError, declared_kind

        try:
            kinds.append(declared_kind(declaration, setting))
        except DeclarationError as error:
            complaints += [f"{setting}.{field}: {why}" for field, why in error.faults]
    return kinds, complaints


def _declared(settings: Settings) -> Iterator[tuple[str, Declaration]]:
    places = {
        "externalFrameworks": settings.external_frameworks,
        "multiKueue.externalFrameworks": settings.multi_kueue.external_frameworks,
    }
    named = {declaration.name for declarations in places.values() for declaration in declarations}
    # Kueue wants the kind in this list, too. A bare name repeats a declaration from the other lists.
    places["integrations.externalFrameworks"] = settings.integrations.external_frameworks
    for place, declarations in places.items():
        for number, declaration in enumerate(declarations):
            repeated = declaration.name in named and declaration == Declaration(name=declaration.name)
            if place != "integrations.externalFrameworks" or not repeated:
                yield f"{place}[{number}]", declaration


def chosen_kinds(settings: Settings) -> list[JobKind]:
    """The rows of all kinds, before the manager is asked about them.

    Raises:
        AdapterError: an installed package's row cannot be used, or there are two for one kind.
    """
    kinds = [*configured_kinds(settings), *installed_kinds()]
    AdapterRegistry(kinds)  # refuses two rows for one kind
    return kinds


async def known_kinds(kinds: list[JobKind], manager: Discoverer) -> AdapterRegistry:
    """The rows of the kinds that the manager serves. It waits for the manager's answer and logs the kinds it lacks."""
    for attempt in itertools.count(1):
        try:
            resolved = await resolve(kinds, manager, patient=attempt < PATIENCE)
            break
        except ApiError as error:
            log.warning("the manager does not answer", error=str(error), retry_in=RETRY)
            await anyio.sleep(RETRY)
    for finding in resolved.findings:
        log.warning("job kind", setting=finding.setting, problem=finding.problem)
    log.info("job kinds", kinds=[str(kind.resource) for kind in resolved.kinds])
    return AdapterRegistry(resolved.kinds)


async def with_assigned_kinds(adapters: AdapterRegistry, manager: Lister) -> AdapterRegistry:
    """These rows, and those of kinds of which a worker still runs jobs; it logs which setting lacks each.

    It waits for the manager's answer.
    """
    while True:
        try:
            found = await with_draining(adapters, manager)
            break
        except ApiError as error:
            log.warning("the manager does not give its Workloads", error=str(error), retry_in=RETRY)
            await anyio.sleep(RETRY)
    for gvk, waiting in sorted(found.waiting.items(), key=str):
        advice = f"{adapters.missing_setting(gvk)}; until then these run to their end, and new ones are rejected"
        log.warning(
            "workers run jobs of a kind that is not in the settings", kind=str(gvk), workloads=waiting, advice=advice
        )
    return found.adapters


def framework_names() -> list[str]:
    """The valid names in `integrations.frameworks`."""
    names = {kind.framework for kind in AVAILABLE if kind.framework}
    return sorted(names | {alias for alias, name in ALIASES.items() if name in names})


def rows_of(framework: str) -> list[JobKind]:
    """The rows of one of Kueue's names."""
    wanted = ALIASES.get(framework, framework)
    return [kind for kind in AVAILABLE if kind.framework == wanted]
