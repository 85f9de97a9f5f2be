"""Whose a check and its config are: only what has our label and names our check, or is taken over, is ever written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import attrs

from multikueue.core.inventory.names import ADDON_FINALIZER, CONFIG_LABEL, INVENTORY_LABEL
from multikueue.core.inventory.ranking import Coordinate
from multikueue.core.inventory.selection import Decision
from multikueue.core.inventory.settings import PLACEMENT_CONTROLLER, Adopt
from multikueue.core.model.kinds import ADMISSION_CHECK, MULTIKUEUE_CONFIG, OCM_GROUP, PLACEMENT
from multikueue.core.model.names import SHORT_NAME, Json
from multikueue.core.model.objects import dig, labels_of, name_of, uid


@attrs.frozen
class BadParameters:
    """The check cannot be used as it is written."""

    why: str
    """What is wrong in `spec.parameters`, and what to write."""


def is_placement_check(check: Json | None) -> bool:
    """Whether an AdmissionCheck stands for a Placement."""
    return bool(dig(check, "spec", "controllerName") == PLACEMENT_CONTROLLER)


def placement_name(check: Json) -> str | BadParameters:
    """The name of the Placement, which is also that of the MultiKueueConfig."""
    parameters = dig(check, "spec", "parameters")
    faults = list(_faults(parameters))
    return BadParameters("; ".join(faults)) if faults else str(parameters["name"])


def name_or_empty(check: Json) -> str:
    """The name of the Placement; empty if the parameters cannot be used."""
    name = placement_name(check)
    return name if isinstance(name, str) else ""


def _faults(parameters: Any) -> Iterator[str]:
    if not parameters or not isinstance(parameters, dict):
        yield f"spec.parameters is missing: name the Placement there (apiGroup {OCM_GROUP}, kind Placement, name)"
        return
    wanted = (("apiGroup", OCM_GROUP), ("kind", PLACEMENT.gvk.kind))
    for field, value in wanted:
        if parameters.get(field) != value:
            yield f'spec.parameters.{field} is "{parameters.get(field) or ""}": it must be "{value}"'
    name = parameters.get("name")
    if not isinstance(name, str) or not SHORT_NAME.fullmatch(name):
        yield f'spec.parameters.name is "{name or ""}": it must be the name of a Placement, without dots'


def owners(config: Json) -> list[Json]:
    """The owner references of an object."""
    return dig(config, "metadata", "ownerReferences") or []


def is_owned(config: Json, check: Json) -> bool:
    """Whether this very check is one of a config's owners."""
    return any(owner.get("uid") == uid(check) for owner in owners(config))


def why_foreign(config: Json, placement: str, adopt: Adopt) -> str:
    """Why a config of the Placement's name is not to be written; empty: it is ours, or is taken over.

    Args:
        config: as it is.
        placement: the name of the Placement.
        adopt: whose may be taken over.
    """
    labels, name = labels_of(config), name_of(config)
    if labels.get(CONFIG_LABEL) == placement:
        return ""
    if INVENTORY_LABEL in labels:
        return f"MultiKueueConfig {name} is filled by an inventory: name the Placement or that config otherwise"
    if CONFIG_LABEL not in labels and adopt is not Adopt.NONE:
        return ""
    whose = f"MultiKueueConfig {name} is somebody else's (it lacks the label {CONFIG_LABEL}={placement})"
    taken = ", or have it taken over by ocm.adopt: addon" if CONFIG_LABEL not in labels else ""
    return f"{whose}: delete it, or name the Placement otherwise{taken}"


def reference(check: Json) -> Json:
    """The owner reference to a check. Both are cluster-scoped, so that is legal."""
    gvk = ADMISSION_CHECK.gvk
    return {"apiVersion": gvk.api_version, "kind": gvk.kind, "name": name_of(check), "uid": uid(check)}


def with_owner(config: Json | None, check: Json, checks: Mapping[str, Json]) -> list[Json]:
    """The owner references with this check's, and without those of checks that are gone."""
    alive = {uid(other) for other in checks.values()}
    kept = [
        owner
        for owner in owners(config or {})
        if owner.get("kind") != ADMISSION_CHECK.gvk.kind or owner.get("uid") in alive
    ]
    mine = reference(check)
    return kept if any(owner.get("uid") == mine["uid"] for owner in kept) else [*kept, mine]


def others(config: Json, check: Json, checks: Iterable[Json]) -> list[Json]:
    """The owners that a config has beside a check, checks that are gone left out."""
    alive = {uid(other) for other in checks}
    return [owner for owner in owners(config) if owner.get("uid") != uid(check) and owner.get("uid") in alive]


def new_config(name: str, labels: Json, annotations: Json, spec: Json, owned_by: list[Json]) -> Json:
    """A config that we make."""
    metadata: Json = {"name": name, "labels": labels, "annotations": annotations}
    if owned_by:
        metadata["ownerReferences"] = owned_by
    gvk = MULTIKUEUE_CONFIG.gvk
    return {"apiVersion": gvk.api_version, "kind": gvk.kind, "metadata": metadata, "spec": spec}


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
    return {(worker_name(cluster, placed, clusters, adopt), name): score for (cluster, name), score in scores.items()}


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
