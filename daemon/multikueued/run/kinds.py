"""The job kinds the daemon dispatches: from the settings, from installed packages, and as the manager serves them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Final

import anyio
import attrs
import structlog

from multikueue import AVAILABLE, GVK, AdapterRegistry, ApiError, JobKind
from multikueue.protocols import Reader
from multikueue.runtime.caches.discovery import Discoverer, newly_served, resolve
from multikueue.runtime.caches.unregistered_kinds import RunningKinds, with_running_kinds
from multikueue.runtime.plugins import installed_kinds
from multikueued.settings.config import Settings
from multikueued.settings.frameworks import AUTO, UNSUPPORTED, rows_of
from multikueued.settings.kueue_configuration import Remark

log = structlog.get_logger(__name__)

RETRY: Final = 5.0
"""Seconds between two attempts to ask a manager that does not answer."""
PATIENCE: Final = 6
"""Attempts for a manager that answers, but not about some kind: an aggregated API may be down for long, and the other
kinds must not wait for it."""
LOOK_AGAIN: Final = 60.0
"""Seconds after which a manager that does not serve a kind is asked about it again: its CRD may be installed later."""


def configured_kinds(settings: Settings) -> list[JobKind]:
    """The rows of the kinds in the settings, which must have no `kind_contradictions`."""
    kinds, complaints = _rows(settings)
    assert not complaints, complaints
    return _with_auto(kinds, settings)


def _with_auto(kinds: list[JobKind], settings: Settings) -> list[JobKind]:
    """These rows and, for `auto`, the built-in ones of all other kinds that are not made of pods."""
    named = {kind.resource.gvk for kind in kinds}
    places = [number for number, name in enumerate(settings.integrations.frameworks) if name == AUTO][:1]
    source = f"integrations.frameworks[{places[0]}] ({AUTO})" if places else ""
    others = (kind for kind in AVAILABLE if kind.resource.gvk not in named and not kind.keeps_check_pending)
    return [*kinds, *(_as_set(attrs.evolve(kind, source=source), settings) for kind in others if places)]


def _as_set(kind: JobKind, settings: Settings) -> JobKind:
    """A built-in row with what settings say of all kinds."""
    shown = attrs.evolve(kind.status, addresses=()) if settings.pods.copy_addresses else kind.status
    return attrs.evolve(kind, status=shown, deletes_expired=settings.retention.delete_expired_jobs)


def kind_remarks(settings: Settings) -> Iterator[Remark]:
    """Kinds in the settings that are passed over."""
    for number, name in enumerate(settings.integrations.frameworks):
        if name in UNSUPPORTED:
            told = f"jobs of this kind are not dispatched: {UNSUPPORTED[name]}"
            yield Remark(f"integrations.frameworks[{number}] ({name})", told, important=True)


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
            built_in.setdefault(kind.resource.gvk, _as_set(attrs.evolve(kind, source=source), settings))
    kinds = list(built_in.values())
    complaints: list[str] = []
    for number, declaration in enumerate(settings.external_frameworks):
        setting = f"externalFrameworks[{number}]"
        # Imported here because the CEL compiler takes 0.3 s to import, and only declared kinds need it.
        from multikueue.adapters.declared import DeclarationError, declared_kind

        try:
            kinds.append(declared_kind(declaration, setting))
        except DeclarationError as error:
            complaints += [f"{setting}.{field}: {why}" for field, why in error.faults]
    return kinds, complaints


def chosen_kinds(settings: Settings) -> list[JobKind]:
    """The rows of all kinds, before the manager is asked about them.

    Raises:
        AdapterError: an installed package's row cannot be used, or there are two for one kind.
    """
    named, _ = _rows(settings)
    kinds = [*named, *installed_kinds()]
    AdapterRegistry(kinds)  # refuses two rows for one kind
    return _with_auto(kinds, settings)


async def known_kinds(kinds: list[JobKind], manager: Discoverer) -> AdapterRegistry:
    """The rows of all kinds, those that the manager lacks marked as `unserved`. It waits for the manager's answer."""
    for attempt in itertools.count(1):
        try:
            resolved = await resolve(kinds, manager, patient=attempt < PATIENCE)
            break
        except ApiError as error:
            log.warning("the manager does not answer", error=str(error), retry_in=RETRY)
            await anyio.sleep(RETRY)
    for finding in resolved.findings:
        log.warning("job kind", setting=finding.setting, problem=finding.problem)
    log.info("job kinds", kinds=[str(kind.resource) for kind in resolved.kinds if not kind.unserved])
    if lacking := [str(kind.resource) for kind in resolved.kinds if kind.unserved]:
        advice = f"they are not watched; the manager is asked again every {LOOK_AGAIN:.0f} s"
        log.info("job kinds that the manager does not serve", kinds=lacking, advice=advice)
    return AdapterRegistry(resolved.kinds)


async def until_more_served(adapters: AdapterRegistry, manager: Discoverer) -> None:
    """Wait until the manager serves one of the kinds that it lacked; if it lacked none, for ever."""
    rows = [adapter.row for adapter in adapters if adapter.row.unserved]
    while True:
        await anyio.sleep(LOOK_AGAIN if rows else math.inf)
        if found := await newly_served(rows, manager):
            log.info("the manager serves more job kinds now", kinds=[str(kind.resource) for kind in found])
            return


async def with_assigned_kinds(adapters: AdapterRegistry, manager: Reader) -> RunningKinds:
    """These rows, and those of kinds of which a worker still runs jobs; it logs which setting lacks each.

    It waits for the manager's answer.
    """
    while True:
        try:
            found = await with_running_kinds(adapters, manager)
            break
        except ApiError as error:
            log.warning("the manager does not give its Workloads", error=str(error), retry_in=RETRY)
            await anyio.sleep(RETRY)
    for gvk, waiting in sorted(found.waiting.items(), key=str):
        setting = adapters.missing_setting(gvk)
        lacks = "is not in the settings" if setting else "the manager does not serve"
        advice = f"{setting}; until then these run to their end, and new ones are rejected"
        log.warning(
            f"workers run jobs of a kind that {lacks}",
            kind=str(gvk),
            workloads=waiting,
            advice=advice if setting else "it is watched all the same",
        )
    return found
