"""Which job kinds the daemon dispatches: the settings in Kueue's own words, their rows, and what the manager serves."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Final, NewType

import anyio
import attrs
import structlog

from multikueue.adapters import AVAILABLE, AdapterRegistry, JobKind
from multikueue.adapters.declaration import Declaration
from multikueue.core.model.names import GVK
from multikueue.errors import ApiError
from multikueue.runtime.discovery import Discoverer, resolve
from multikueue.runtime.plugins import installed_kinds

log = structlog.get_logger(__name__)

FrameworkName = NewType("FrameworkName", str)
"""What Kueue calls a kind that is built into it: `batch/job`."""

RETRY: Final = 5.0
"""Seconds between two attempts to ask a manager that does not answer: nothing can be done before it does."""
PATIENCE: Final = 6
"""Attempts for a manager that answers, but has trouble with some kind: an API group of its own may be down for long,
and the others must not wait for it."""
DEFAULT: tuple[FrameworkName, ...] = (FrameworkName("batch/job"),)
"""The kind every cluster serves."""
ALIASES = {"deployment": "pod"}
"""Kinds that are dispatched as others: the pods of a Deployment are queued and sent one by one."""


@attrs.frozen
class IntegrationSettings:
    """The section `integrations` of Kueue's configuration."""

    frameworks: tuple[FrameworkName, ...] = DEFAULT
    """Kinds built into Kueue, by Kueue's names. Each is watched on every worker, so list those in use."""
    external_frameworks: tuple[Declaration, ...] = ()
    """As `externalFrameworks`. Kueue has its list of such kinds here."""


@attrs.frozen
class KindChoice:
    """The settings for job kinds, from all places where they may stand."""

    integrations: IntegrationSettings
    external: tuple[Declaration, ...]
    multi_kueue: tuple[Declaration, ...]
    """Where Kueue's MultiKueue has its list of them."""

    def rows(self) -> list[JobKind]:
        """What they come to. They must have no `contradictions`."""
        kinds, complaints = self._read()
        assert not complaints, complaints
        return kinds

    def contradictions(self) -> Iterator[str]:
        """What cannot be used: the setting, why, and what to do."""
        kinds, complaints = self._read()
        yield from complaints
        yield from _doubled(kinds)

    def _read(self) -> tuple[list[JobKind], list[str]]:
        kinds = list(self._built_in())
        complaints: list[str] = []
        for setting, declaration in self._declared():
            # What compiles expressions costs 0.3 s to import: only whoever declares a kind waits for it.
            from multikueue.adapters.declared import DeclarationError, declared_kind

            try:
                kinds.append(declared_kind(declaration, setting))
            except DeclarationError as error:
                complaints += [f"{setting}.{field}: {why}" for field, why in error.faults]
        return kinds, complaints

    def _built_in(self) -> Iterator[JobKind]:
        seen: set[GVK] = set()
        for number, name in enumerate(self.integrations.frameworks):
            for kind in rows_of(name):
                if kind.resource.gvk not in seen:  # `pod` and `deployment` are the same kind
                    seen.add(kind.resource.gvk)
                    yield attrs.evolve(kind, source=f"integrations.frameworks[{number}] ({name})")

    def _declared(self) -> Iterator[tuple[str, Declaration]]:
        places = (
            ("externalFrameworks", self.external),
            ("multiKueue.externalFrameworks", self.multi_kueue),
        )
        named = {declaration.name for _, declarations in places for declaration in declarations}
        for place, declarations in places:
            yield from ((f"{place}[{number}]", declaration) for number, declaration in enumerate(declarations))
        for number, declaration in enumerate(self.integrations.external_frameworks):
            # Kueue wants such a kind in both of its lists: the second time it is only named.
            if declaration != Declaration(name=declaration.name) or declaration.name not in named:
                yield f"integrations.externalFrameworks[{number}]", declaration


def chosen_kinds(choice: KindChoice) -> list[JobKind]:
    """All rows, before any server is asked.

    Raises:
        AdapterError: an installed package's row cannot be used, or there are two for one kind.
    """
    kinds = [*choice.rows(), *installed_kinds()]
    AdapterRegistry(kinds)  # refuses two rows for one kind
    return kinds


async def known_kinds(kinds: list[JobKind], manager: Discoverer) -> AdapterRegistry:
    """The rows as the manager has their kinds; waits until it answers, and logs what it does not have."""
    for attempt in itertools.count(1):
        try:
            resolved = await resolve(kinds, manager, patient=attempt < PATIENCE)
        except ApiError as error:
            log.warning("the manager does not answer", error=str(error), retry_in=RETRY)
            await anyio.sleep(RETRY)
            continue
        for finding in resolved.findings:
            log.warning("job kind", setting=finding.setting, problem=finding.problem)
        log.info("job kinds", kinds=[str(kind.resource) for kind in resolved.kinds])
        return AdapterRegistry(resolved.kinds)
    raise AssertionError("the loop returns")


def framework_names() -> list[str]:
    """What may stand in `integrations.frameworks`."""
    names = {kind.framework for kind in AVAILABLE if kind.framework}
    return sorted(names | {alias for alias, name in ALIASES.items() if name in names})


def rows_of(framework: str) -> list[JobKind]:
    """The rows behind one of Kueue's names."""
    wanted = ALIASES.get(framework, framework)
    return [kind for kind in AVAILABLE if kind.framework == wanted]


def _doubled(kinds: Iterable[JobKind]) -> Iterator[str]:
    sources: dict[GVK, str] = {}
    for kind in kinds:
        gvk = kind.resource.gvk
        if gvk in sources:
            yield f"{kind.source}: two adapters for {gvk}, this one and {sources[gvk]}: leave one out"
        sources.setdefault(gvk, kind.source)
