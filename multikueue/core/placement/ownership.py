"""Whose a config is: only what carries our label and names our check, or is to be adopted, is ever written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from multikueue.core.model.kinds import ADMISSION_CHECK, MULTIKUEUE_CONFIG
from multikueue.core.model.names import Json
from multikueue.core.model.objects import dig, labels_of, name_of, uid
from multikueue.core.placement.names import CONFIG_LABEL, INVENTORY_LABEL
from multikueue.core.placement.settings import Adopt


def owners(config: Json) -> list[Json]:
    """The owner references of an object."""
    return dig(config, "metadata", "ownerReferences") or []


def is_owned(config: Json, check: Json) -> bool:
    """Whether this very check is one of a config's owners."""
    return any(one.get("uid") == uid(check) for one in owners(config))


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
    return (
        f"MultiKueueConfig {name} is somebody else's (it lacks the label {CONFIG_LABEL}={placement}): delete or rename "
        "it, or have it taken over by the setting ocm.adopt"
    )


def reference(check: Json) -> Json:
    """The owner reference to a check. Both are cluster-scoped, so that is legal."""
    gvk = ADMISSION_CHECK.gvk
    return {"apiVersion": gvk.api_version, "kind": gvk.kind, "name": name_of(check), "uid": uid(check)}


def with_owner(config: Json | None, check: Json, checks: Mapping[str, Json]) -> list[Json]:
    """The owner references with this check's, and without those of checks that are gone."""
    alive = {uid(one) for one in checks.values()}
    kept = [
        one for one in owners(config or {}) if one.get("kind") != ADMISSION_CHECK.gvk.kind or one.get("uid") in alive
    ]
    mine = reference(check)
    return kept if any(one.get("uid") == mine["uid"] for one in kept) else [*kept, mine]


def others(config: Json, check: Json, checks: Iterable[Json]) -> list[Json]:
    """The owners that a config has beside a check, checks that are gone left out."""
    alive = {uid(one) for one in checks}
    return [one for one in owners(config) if one.get("uid") != uid(check) and one.get("uid") in alive]


def new_config(name: str, labels: Json, annotations: Json, spec: Json, owned_by: list[Json]) -> Json:
    """A config that we make."""
    metadata: Json = {"name": name, "labels": labels, "annotations": annotations}
    if owned_by:
        metadata["ownerReferences"] = owned_by
    gvk = MULTIKUEUE_CONFIG.gvk
    return {"apiVersion": gvk.api_version, "kind": gvk.kind, "metadata": metadata, "spec": spec}
