"""The kinds of jobs that the clusters of a benchmark serve beside batch Jobs: nobody submits any of them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count as numbers
from itertools import islice
from typing import Final

from multikueue.core.model.kinds import DEPLOYMENT
from multikueue.core.model.names import GVK, Json, Resource
from multikueue.sandbox.kinds import AVAILABLE, SandboxKind, definition

_GROUP: Final = "bench.multikueue.dev"


def first(count: int) -> list[SandboxKind]:
    """So many kinds: batch Jobs, the others that the sandbox knows, then made-up ones, to be declared."""
    return list(islice(_all(), count))


def definitions(count: int) -> list[Json]:
    """The CustomResourceDefinitions of those that not every cluster serves."""
    return [definition(kind) for kind in first(count) if "." in kind.resource.gvk.group]


def _all() -> Iterator[SandboxKind]:
    """A kind for each resource. Deployments are none: their pods are dispatched."""
    yield from {kind.resource: kind for kind in AVAILABLE if kind.resource.gvk != DEPLOYMENT.gvk}.values()
    for number in numbers(1):
        yield SandboxKind(resource=Resource(GVK(_GROUP, "v1", f"Made{number}"), f"made{number}s"))
