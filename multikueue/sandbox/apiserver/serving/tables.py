"""The two short forms of an object: a row of a Table (what `kubectl get` asks for) and PartialObjectMetadata."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Literal, TypeAlias

from multikueue.core.model.names import Json
from multikueue.sandbox.apiserver.encoding import encode
from multikueue.sandbox.apiserver.kinds.resources import ResourceType
from multikueue.sandbox.apiserver.serving.jsonpaths import find
from multikueue.sandbox.apiserver.serving.printing import NAME, Column, age, builtin_columns

Include: TypeAlias = Literal["None", "Metadata", "Object"]


def partial(obj: Json) -> Json:
    """Only the metadata."""
    return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": obj["metadata"]}


def columns_of(row: ResourceType) -> tuple[Column, ...]:
    """The columns of any kind."""
    if row.custom is None:
        return builtin_columns(row.group_resource)
    return (NAME, *(_custom_column(column) for column in row.custom.columns))


def _custom_column(column: Json) -> Column:
    path, kind = column["jsonPath"], column["type"]

    def cell(obj: Json, now: datetime) -> Any:
        values = find(obj, path)
        return _cell(kind, values[0], now) if values else None

    return Column(column["name"], cell, kind, wide=bool(column.get("priority")))


def _cell(kind: str, value: Any, now: datetime) -> Any:
    """A value as its column's type wants it; None where it does not fit."""
    match kind, value:
        case _, None:
            return None
        case "string", _:
            return _text(value)
        case "date", str():
            return age(value, now)
        case "boolean", bool():
            return value
        case (("integer" | "number"), bool()):
            return None
        case "integer", int() | float():
            return int(value)
        case "number", int() | float():
            return float(value)
    return None


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return encode(value).decode() if isinstance(value, dict | list) else str(value)


def table(
    row: ResourceType,
    objects: Iterable[Json],
    metadata: Json,
    now: datetime,
    *,
    include: Include = "Metadata",
    headers: bool = True,
) -> Json:
    """A Table.

    Args:
        row: the kind.
        objects: one per row.
        metadata: the list's.
        now: what ages are counted from.
        include: how much of each object goes along.
        headers: whether the column definitions do; a watch sends them only once.
    """
    columns = columns_of(row)
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": metadata,
        "columnDefinitions": [column.definition() for column in columns] if headers else [],
        "rows": [_row(columns, obj, now, include) for obj in objects],
    }


def _row(columns: tuple[Column, ...], obj: Json, now: datetime, include: Include) -> Json:
    row: Json = {"cells": [column.cell(obj, now) for column in columns]}
    if include != "None":
        row["object"] = obj if include == "Object" else partial(obj)
    return row
