"""The part of JSONPath that printer columns use: fields, indexes, slices, `[*]` and `[?(@.field=="text")]`."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias

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
    values = [obj]
    for step in compile_path(path):
        values = [value for item in values for value in step(item)]
    return values


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
    parts = match.groupdict()
    if parts["field"] or parts["quoted"]:
        return functools.partial(_field, re.sub(r"\\(.)", r"\1", parts["field"] or parts["quoted"]))
    if parts["filter"]:
        names = parts["filter"].strip(".").split(".")
        return functools.partial(_filter, names, parts["value"], parts["operator"] == "==")
    if parts["index"]:
        index = int(parts["index"])
        return functools.partial(_slice, slice(index, index + 1 or None))
    if parts["slice"]:
        start, _, stop = parts["slice"].partition(":")
        return functools.partial(_slice, slice(int(start) if start else None, int(stop) if stop else None))
    return _all


def _field(name: str, value: Any) -> Iterator[Any]:
    if isinstance(value, dict) and name in value:
        yield value[name]


def _filter(names: list[str], wanted: str, equal: bool, value: Any) -> Iterator[Any]:
    for item in value if isinstance(value, list) else ():
        field = item
        for name in names:
            field = field.get(name) if isinstance(field, dict) else None
        if field is not None and (str(field) == wanted) == equal:
            yield item


def _slice(part: slice, value: Any) -> Iterable[Any]:
    return value[part] if isinstance(value, list) else ()


def _all(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()
