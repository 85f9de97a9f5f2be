"""A pod's QoS class, from what its containers request and are limited to."""

from __future__ import annotations

from multikueue.core.model.names import Json

_COMPUTE = ("cpu", "memory")


def qos_class(spec: Json) -> str:
    """`Guaranteed` when all limits are set and requested, `BestEffort` when nothing is, else `Burstable`."""
    containers = (spec.get("containers") or []) + (spec.get("initContainers") or [])
    asked = [
        {key: value for key, value in (container.get("resources", {}).get(kind) or {}).items() if _counts(key, value)}
        for container in containers
        for kind in ("requests", "limits")
    ]
    if not any(asked):
        return "BestEffort"
    pairs = list(zip(asked[::2], asked[1::2], strict=True))
    if all(requests == limits and set(limits) == set(_COMPUTE) for requests, limits in pairs):
        return "Guaranteed"
    return "Burstable"


def _counts(resource: str, quantity: str) -> bool:
    return resource in _COMPUTE and quantity != "0"
