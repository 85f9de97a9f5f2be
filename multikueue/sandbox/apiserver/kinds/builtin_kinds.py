"""The builtin kinds the server knows: the rows of `builtin_kinds.yaml`. Other kinds can be added with a CRD."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from multikueue.core.model.names import Json
from multikueue.sandbox.apiserver.encoding import packaged
from multikueue.sandbox.apiserver.kinds.resources import ResourceType, Twin


@cache
def _rows() -> list[Json]:
    rows: list[Json] = packaged(__package__, "builtin_kinds.yaml")
    for row in rows:
        row.update({name: tuple(value) for name, value in row.items() if isinstance(value, list)})
        if "twin" in row:
            row["twin"] = Twin(**row["twin"])
    return rows


def builtin_types() -> Iterator[ResourceType]:
    """Fresh rows, for one server."""
    return (ResourceType(**row) for row in _rows())
