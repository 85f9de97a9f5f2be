"""All rows that come with the library, and the registry: which row handles a kind."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from multikueue.adapters import appwrapper, job, pod, ray, sets, training
from multikueue.adapters.kind import NO_JOBS, JobKind
from multikueue.adapters.safe import Problems, SafeAdapter
from multikueue.core.model.kinds import is_own
from multikueue.core.model.names import GVK
from multikueue.errors import AdapterError

BUILTIN: tuple[JobKind, ...] = job.KINDS
"""The rows in use by default: the kind every cluster serves."""

AVAILABLE: tuple[JobKind, ...] = tuple(
    kind for module in (job, training, ray, appwrapper, pod, sets) for kind in module.KINDS
)
"""All rows that come with the library, for a registry of your own: every kind in it is watched on every worker."""


def setting_for(gvk: GVK) -> str:
    """What to do so that jobs of a kind are dispatched, in the words of the daemon's settings."""
    framework = next((kind.framework for kind in AVAILABLE if kind.resource.gvk == gvk), "")
    if framework:
        return f'add "{framework}" to integrations.frameworks'
    return f'declare "{gvk}" in multiKueue.externalFrameworks'


def doubled(rows: Iterable[tuple[str, JobKind]]) -> Iterator[str]:
    """Why rows cannot stand beside earlier ones, after where each comes from: they are for the same objects."""
    first: dict[tuple[str, str], tuple[str, GVK]] = {}
    for source, kind in rows:
        gvk = kind.resource.gvk
        if (there := first.get(gvk.group_kind)) is None:
            first[gvk.group_kind] = source, gvk
        elif there[1] == gvk:
            yield f"{source}: two adapters for {gvk}, this one and {there[0]}: leave one out"
        else:
            objects = f"the objects that {there[0]} is for ({there[1].version})"
            yield f"{source}: {gvk} is another version of {objects}: leave one out"


class AdapterRegistry:
    """Rows keyed by GVK, each made safe. Built once from a list and passed to whoever needs it.

    Raises:
        AdapterError: two rows for one kind, in one version or in two, and the message names where both come from; one
            for objects that are no jobs; or what is no row.
    """

    def __init__(self, kinds: Iterable[JobKind]) -> None:
        if not isinstance(kinds, Iterable):
            raise AdapterError(f"{kinds!r:.100} is no list of rows: write [...] around a row")
        rows = [(_source(kind, number), kind) for number, kind in enumerate(kinds, 1)]
        for complaint in doubled(rows):
            raise AdapterError(complaint)
        self.problems = Problems()
        self._adapters = {kind.resource.gvk: SafeAdapter(kind, self.problems) for _, kind in rows}
        self._sources = {kind.resource.gvk: source for source, kind in rows}

    def get(self, gvk: GVK) -> SafeAdapter | None:
        """The adapter for exactly this kind; None if there is none."""
        return self._adapters.get(gvk)

    def source(self, gvk: GVK) -> str:
        """Where the row for this kind comes from; empty if there is none."""
        return self._sources.get(gvk, "")

    def missing_setting(self, gvk: GVK) -> str:
        """What to do so that new jobs of this kind are dispatched; empty if they are."""
        adapter = self.get(gvk)
        return setting_for(gvk) if adapter is None or adapter.traits.draining else ""

    @property
    def followed(self) -> tuple[SafeAdapter, ...]:
        """Those whose jobs are watched: not if somebody else's controller moves them, or the manager has none."""
        return tuple(adapter for adapter in self if not adapter.traits.workload_only and not adapter.row.unserved)

    def __iter__(self) -> Iterator[SafeAdapter]:
        return iter(self._adapters.values())

    def __len__(self) -> int:
        return len(self._adapters)

    def __repr__(self) -> str:
        return f"AdapterRegistry([{', '.join(adapter.resource.gvk.kind for adapter in self)}])"


def _source(kind: object, number: int) -> str:
    """Where a row comes from, if it is one."""
    if not isinstance(kind, JobKind):
        raise AdapterError(f"row {number} is {kind!r:.100}, which is no multikueue.JobKind")
    built_in = f"the built-in {kind.framework}" if kind.framework else ""
    source = kind.source or built_in or f"row {number}"
    if is_own(kind.resource.gvk):
        raise AdapterError(f"{source} is for {kind.resource.gvk}, {NO_JOBS}")
    return source
