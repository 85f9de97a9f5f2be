"""Taking over what others have made: how the recipe of 2024 names workers, and the finalizer of OCM's addon."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from multikueue.core.model.names import Json
from multikueue.core.model.objects import dig, name_of
from multikueue.core.placement.decisions import Decision
from multikueue.core.placement.names import ADDON_FINALIZER, FINALIZER
from multikueue.core.placement.ranking import Coordinate
from multikueue.core.placement.settings import Adopt


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


def may_take_over(check: Json, adopt: Adopt) -> bool:
    """Whether a check that has the addon's finalizer is to be taken over.

    Both finalizers come and go with one write of ours. If the addon's is there beside ours, then the addon has put it
    back: it still runs.
    """
    return adopt is not Adopt.NONE and FINALIZER not in finalizers(check)


def finalizers(obj: Json) -> list[str]:
    """The finalizers of an object."""
    return dig(obj, "metadata", "finalizers") or []
