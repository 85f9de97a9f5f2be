"""The two short forms of an object: a row of a Table (what `kubectl get` asks for) and PartialObjectMetadata."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import Any, Literal, TypeAlias

from multikueue.core.model.names import Json
from multikueue.sandbox.apiserver.encoding import encode
from multikueue.sandbox.apiserver.kinds.resources import ResourceType
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
        found = find(obj, path)
        return _cell(kind, found[0], now) if found else None

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


Step: TypeAlias = Callable[[Any], Iterable[Any]]

_STEP = re.compile(
    r"""
    \.(?P<field>(?:\\.|[^.\[\\])+)
    | \[['"](?P<quoted>[^'"]+)['"]\]
    | \[\?\(@(?P<filter>(?:\.[\w-]+)+)\s*(?P<operator>==|!=)\s*['"]?(?P<value>[^'")]*)['"]?\)\]
    | \[(?P<index>-?\d+)\]
    | \[(?P<slice>-?\d*:-?\d*)\]
    | (?P<all>\[\*\])
    """,
    re.VERBOSE,
)


def find(obj: Any, path: str) -> list[Any]:
    """Every value a path leads to; none for a path that cannot be read."""
    found = [obj]
    for step in compile_path(path):
        found = [value for item in found for value in step(item)]
    return found


@functools.lru_cache(1024)
def compile_path(path: str) -> tuple[Step, ...]:
    """Read a path, with or without its braces."""
    text, position, steps = path.strip().removeprefix("{").removesuffix("}"), 0, []
    while position < len(text):
        match = _STEP.match(text, position)
        if not match:
            return (lambda _value: (),)
        steps.append(_step(match))
        position = match.end()
    return tuple(steps)


def _step(match: re.Match[str]) -> Step:
    found = match.groupdict()
    if found["field"] or found["quoted"]:
        return functools.partial(_field, re.sub(r"\\(.)", r"\1", found["field"] or found["quoted"]))
    if found["filter"]:
        names = found["filter"].strip(".").split(".")
        return functools.partial(_filter, names, found["value"], found["operator"] == "==")
    if found["index"]:
        index = int(found["index"])
        return functools.partial(_slice, slice(index, index + 1 or None))
    if found["slice"]:
        start, _, stop = found["slice"].partition(":")
        return functools.partial(_slice, slice(int(start) if start else None, int(stop) if stop else None))
    return _all


def _field(name: str, value: Any) -> Iterator[Any]:
    if isinstance(value, dict) and name in value:
        yield value[name]


def _filter(names: list[str], wanted: str, equal: bool, value: Any) -> Iterator[Any]:
    for item in value if isinstance(value, list) else ():
        found = item
        for name in names:
            found = found.get(name) if isinstance(found, dict) else None
        if found is not None and (str(found) == wanted) == equal:
            yield item


def _slice(part: slice, value: Any) -> Iterable[Any]:
    return value[part] if isinstance(value, list) else ()


def _all(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()
