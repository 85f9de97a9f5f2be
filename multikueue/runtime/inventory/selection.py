"""Which ManagedClusters become workers: those that the Placements of our checks select."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

import attrs

from multikueue.core.inventory.ownership import is_addons, is_placement_check, name_or_empty
from multikueue.core.inventory.selection import read_decision
from multikueue.core.inventory.snapshot import Scheduled, Source
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import dig, is_terminating, uid
from multikueue.runtime.inventory.caches import HubCaches, OcmCaches, when_readable


class PlacementSelector(Protocol):
    """What the spokes' reconciler needs to know of Placements."""

    @property
    def known(self) -> bool:
        """Whether the Placements of all checks have been read, and are ours to follow: else nothing is written."""

    def selects(self, cluster: str) -> bool:
        """Whether any of them selects this ManagedCluster."""

    def listen(self, on_cluster: Callable[[str], None], on_any: Callable[[], None]) -> None:
        """Have changes told: of one cluster, or of any."""


@attrs.define(eq=False)
class PlacementSelection:
    """What the Placements select that AdmissionChecks name.

    A decision counts as it stands: one that OCM empties for a moment does no harm, because what a config lists stays.
    While OCM's addon handles a check, nothing is known: it makes accounts and workers for all clusters under the same
    names, and two writers would undo each other's work for ever.
    """

    hub: HubCaches
    ocm: OcmCaches

    @property
    def known(self) -> bool:
        """See `PlacementSelector`."""
        if any(is_addons(check) for check in self._checks()):
            return False
        return all(source is not None for source in self._sources())

    def selects(self, cluster: str) -> bool:
        """See `PlacementSelector`."""
        return any(
            cluster in read_decision(source.placement, source.decisions).names
            for source in self._sources()
            if isinstance(source, Scheduled)
        )

    def listen(self, on_cluster: Callable[[str], None], on_any: Callable[[], None]) -> None:
        """See `PlacementSelector`."""

        def decided(_key: ObjectKey, old: Json | None, new: Json | None) -> None:
            named = [set(_listed(decision)) for decision in (old, new) if decision is not None]
            for name in sorted(set.union(*named) if len(named) < 2 else named[0] ^ named[1]):
                on_cluster(name)

        def meant(what: Callable[[Json], object], _key: ObjectKey, old: Json | None, new: Json | None) -> None:
            if old is None or new is None or what(old) != what(new):
                on_any()

        self.ocm.decisions.subscribe(decided)
        self.ocm.placements.subscribe(lambda *change: meant(_identity, *change))
        self.hub.checks.subscribe(lambda *change: meant(_target, *change))
        for informer in (self.ocm.placements, self.ocm.decisions, self.ocm.scores):
            informer.subscribe_status(when_readable(on_any))

    def _checks(self) -> Iterator[Json]:
        return (check for check in self.hub.checks.values() if is_placement_check(check))

    def _sources(self) -> Iterator[Source | None]:
        return (self.ocm.source(check) for check in self._checks() if not is_terminating(check))


def _listed(decision: Json) -> Iterator[str]:
    listed = dig(decision, "status", "decisions")
    for entry in listed if isinstance(listed, list) else ():
        if name := dig(entry, "clusterName"):
            yield str(name)


def _identity(obj: Json) -> object:
    return uid(obj), is_terminating(obj)


def _target(check: Json) -> object:
    return uid(check), is_terminating(check), is_placement_check(check) and name_or_empty(check), is_addons(check)
