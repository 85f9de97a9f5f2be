"""What an API server has left out of an object that it was sent: fields that its version of the kind does not have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from multikueue.core.model.names import Json, Resource
from multikueue.core.model.objects import dig, name_of

TOLD: Final = 5
"""Fields that are named; of the others the number."""


def dropped_fields(sent: Json, stored: Json) -> tuple[str, ...]:
    """The paths of fields of the spec that were sent with a value, and are not there in what was stored.

    A field that is empty, 0 or false counts as there: who writes an object anew leaves such fields out. Entries of a
    list are compared if there are as many as before.
    """
    return tuple(_missing(".spec", sent.get("spec"), stored.get("spec")))


def told_dropped(cluster: str, resource: Resource, sent: Json, stored: Json) -> str:
    """What a user should know of a copy that is not as it was sent; empty if it is.

    Args:
        cluster: the worker.
        resource: of the copy.
        sent: the copy.
        stored: what the worker answered.
    """
    found = dropped_fields(sent, stored)
    if not found:
        return ""
    more = f" and {len(found) - TOLD} more" if len(found) > TOLD else ""
    kind = resource.gvk.kind
    return (
        f'worker cluster "{cluster}" has left {", ".join(found[:TOLD])}{more} out of {kind} "{name_of(sent)}", which '
        f"runs there without: its API of {kind} is older than the manager's, or a webhook there removes them"
    )


def topology_of(workload: Json) -> Json:
    """A Workload with nothing but how its pods are to be placed: of the rest its worker's job has what it needs."""
    requests = [{"topologyRequest": one.get("topologyRequest")} for one in dig(workload, "spec", "podSets") or ()]
    return {"metadata": workload["metadata"], "spec": {"podSets": requests}}


def _missing(path: str, sent: Any, stored: Any) -> Iterator[str]:
    if isinstance(sent, dict) and isinstance(stored, dict):
        for field, value in sent.items():
            if field in stored:
                yield from _missing(f"{path}.{field}", value, stored[field])
            elif value:
                yield f"{path}.{field}"
    elif isinstance(sent, list) and isinstance(stored, list) and len(sent) == len(stored):
        for number, (one, other) in enumerate(zip(sent, stored, strict=True)):
            yield from _missing(f"{path}[{number}]", one, other)
