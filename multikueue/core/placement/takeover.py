"""Taking over what others have made: how the recipe of 2024 names workers, and the finalizer of OCM's addon."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import attrs

from multikueue.core.model.names import Json
from multikueue.core.model.objects import dig, name_of
from multikueue.core.placement.decisions import Decision
from multikueue.core.placement.names import ADDON_FINALIZER
from multikueue.core.placement.ranking import Coordinate
from multikueue.core.placement.settings import Adopt

MAX_TRIES: Final = 3
"""How often the addon's finalizer is taken off without being seen to go: somebody may change the check meanwhile."""


def worker_name(cluster: str, placement: str, clusters: Mapping[str, Json], adopt: Adopt) -> str:
    """The name of the MultiKueueCluster of a ManagedCluster.

    The recipe of 2024 made `PLACEMENT-CLUSTER`. Such a worker keeps its name, so that the jobs it runs keep theirs.

    Args:
        cluster: the ManagedCluster.
        placement: the Placement that has selected it.
        clusters: all MultiKueueClusters by name.
        adopt: whose are taken over.
    """
    former = f"{placement}-{cluster}"
    return former if adopt is Adopt.RECIPE_2024 and former in clusters and cluster not in clusters else cluster


def renamed(decision: Decision, placement: Json, clusters: Mapping[str, Json], adopt: Adopt) -> Decision:
    """A decision with the names of workers."""
    if adopt is not Adopt.RECIPE_2024:
        return decision

    def of(name: str) -> str:
        return worker_name(name, name_of(placement), clusters, adopt)

    names, scores = frozenset(map(of, decision.names)), {of(name): value for name, value in decision.scores.items()}
    return attrs.evolve(decision, names=names, scores=scores)


def renamed_scores(
    scores: Mapping[Coordinate, Json], placement: Json, clusters: Mapping[str, Json], adopt: Adopt
) -> Mapping[Coordinate, Json]:
    """The AddOnPlacementScores by the names of workers."""
    if adopt is not Adopt.RECIPE_2024:
        return scores
    placed = name_of(placement)
    return {(worker_name(one, placed, clusters, adopt), name): found for (one, name), found in scores.items()}


def is_addons(check: Json) -> bool:
    """Whether OCM's addon handles a check, or has left it behind: it marks every check with its finalizer."""
    return ADDON_FINALIZER in finalizers(check)


@attrs.frozen
class Takeover:
    """How often this process has taken the addon's finalizer off a check, and whether that was seen to have worked."""

    tries: int = 0
    worked: bool = False

    def seen(self, check: Json) -> Takeover:
        """The same after a look at the check."""
        return attrs.evolve(self, worked=True) if self.tries and not is_addons(check) else self

    def tried(self) -> Takeover:
        """The same after another try."""
        return attrs.evolve(self, tries=self.tries + 1)

    @property
    def addon_runs(self) -> bool:
        """Whether the addon has put its finalizer back: it still runs. An uninstalled one leaves it beside ours."""
        return self.worked or self.tries >= MAX_TRIES


def finalizers(obj: Json) -> list[str]:
    """The finalizers of an object."""
    return dig(obj, "metadata", "finalizers") or []
