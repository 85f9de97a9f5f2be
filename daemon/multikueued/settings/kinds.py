"""The job kinds the daemon dispatches: from the settings, and from installed packages."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from multikueue import AVAILABLE, GVK, AdapterRegistry, JobKind
from multikueue.adapters.registry import doubled
from multikueue.runtime.plugins import installed_kinds
from multikueued.settings.config import Settings
from multikueued.settings.frameworks import AUTO, UNSUPPORTED, rows_of
from multikueued.settings.kueue_configuration import Remark


def _with_auto(kinds: list[JobKind], settings: Settings) -> list[JobKind]:
    """These rows and, for `auto`, the built-in ones of all other kinds that are not made of pods."""
    named = {kind.resource.gvk.group_kind for kind in kinds}
    places = [number for number, name in enumerate(settings.integrations.frameworks) if name == AUTO][:1]
    source = f"integrations.frameworks[{places[0]}] ({AUTO})" if places else ""
    others = (kind for kind in AVAILABLE if kind.resource.gvk.group_kind not in named and not kind.keeps_check_pending)
    return [*kinds, *(_as_set(attrs.evolve(kind, source=source), settings) for kind in others if places)]


def _as_set(kind: JobKind, settings: Settings) -> JobKind:
    """A built-in row with what settings say of all kinds."""
    shown = attrs.evolve(kind.status, addresses=()) if settings.pods.copy_addresses else kind.status
    return attrs.evolve(kind, status=shown, deletes_expired=settings.retention.delete_expired_jobs)


def kind_remarks(settings: Settings) -> Iterator[Remark]:
    """Kinds in the settings that are passed over."""
    for number, name in enumerate(settings.integrations.frameworks):
        if name in UNSUPPORTED:
            why = f"jobs of this kind are not dispatched: {UNSUPPORTED[name]}"
            yield Remark(f"integrations.frameworks[{number}] ({name})", why, important=True)

    if not (settings.integrations.frameworks or settings.external_frameworks or installed_kinds()):
        yield Remark("integrations.frameworks", "no kind of job is named: nothing is dispatched", important=True)


def kind_contradictions(settings: Settings) -> Iterator[str]:
    """Kinds that cannot be used: the setting, why, and what to do."""
    kinds, complaints = _rows(settings)
    yield from complaints
    yield from doubled((kind.source, kind) for kind in kinds)


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
