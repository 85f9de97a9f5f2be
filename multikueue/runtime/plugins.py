"""Rows that come with other packages: the entry points of the group `multikueue.adapters`.

    [project.entry-points."multikueue.adapters"]
    widgets = "acme_widgets.multikueue:KINDS"

An entry point is a row, several of them, or a function without arguments that returns either.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterable, Iterator
from typing import Final

import attrs

from multikueue.adapters import JobKind
from multikueue.errors import AdapterError

GROUP: Final = "multikueue.adapters"


def installed_kinds(points: Iterable[importlib.metadata.EntryPoint] | None = None) -> list[JobKind]:
    """The rows of all installed packages, each with the entry point as its source.

    Args:
        points: the entry points; by default all that are installed.

    Raises:
        AdapterError: one cannot be loaded, or is something else.
    """
    found = importlib.metadata.entry_points(group=GROUP) if points is None else points
    return [kind for point in sorted(found, key=_source) for kind in _kinds(point)]


def _kinds(point: importlib.metadata.EntryPoint) -> Iterator[JobKind]:
    source = _source(point)
    try:
        loaded = point.load()
        given = loaded() if callable(loaded) else loaded
        kinds = [given] if isinstance(given, JobKind) else list(given)
    except Exception as error:  # it is somebody else's code: whatever it raises, its user must know whose it is
        raise AdapterError(
            f"{source}: {point.value} cannot be loaded: {type(error).__name__}: {error}; correct or uninstall it"
        ) from error
    for kind in kinds:
        if not isinstance(kind, JobKind):
            raise AdapterError(f"{source}: {point.value} gives {kind!r}, which is not a multikueue.adapters.JobKind")
        yield attrs.evolve(kind, source=source)


def _source(point: importlib.metadata.EntryPoint) -> str:
    package = point.dist.name if point.dist is not None else ""
    return f'the entry point "{point.name}"{f" of the package {package}" if package else ""}'
