"""Entry points of other packages: job kinds, and dispatchers.

    [project.entry-points."multikueue.adapters"]
    widgets = "acme_widgets.multikueue:KINDS"

    [project.entry-points."multikueue.dispatchers"]
    "acme.example.com/cheapest-first" = "acme_dispatching:CheapestFirst"

In the first group an entry point is a row, several of them, or a function without arguments that returns either. In the
second it is a dispatcher, or a class or function without arguments that gives one; settings choose it by its name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final, TypeVar

import attrs

from multikueue.adapters import JobKind
from multikueue.core.dispatchers.dispatcher import ALL_AT_ONCE, SCORED, Dispatcher
from multikueue.core.dispatchers.incremental import INCREMENTAL
from multikueue.core.functions import fault_of
from multikueue.errors import AdapterError, MultiKueueError, SettingsError

KIND_GROUP: Final = "multikueue.adapters"
DISPATCHER_GROUP: Final = "multikueue.dispatchers"
BUILT_IN: Final = (ALL_AT_ONCE, INCREMENTAL, SCORED)
"""Names of dispatchers that no package may take."""

_T = TypeVar("_T")


def installed_kinds(points: Iterable[EntryPoint] | None = None) -> list[JobKind]:
    """The rows of all installed packages, each with the entry point as its source.

    Args:
        points: the entry points; by default all that are installed.

    Raises:
        AdapterError: one cannot be loaded, or is something else.
    """
    installed = entry_points(group=KIND_GROUP) if points is None else points
    return [kind for point in sorted(installed, key=_source) for kind in _kinds(point)]


def installed_dispatchers(points: Iterable[EntryPoint] | None = None) -> dict[str, EntryPoint]:
    """The entry points of dispatchers by name, in alphabetical order. None is loaded; see `load_dispatcher`.

    Args:
        points: the entry points; by default all that are installed.

    Raises:
        SettingsError: two have the same name, or one has that of a built-in dispatcher.
    """
    by_name: dict[str, EntryPoint] = {}
    for point in sorted(entry_points(group=DISPATCHER_GROUP) if points is None else points, key=_source):
        if point.name in BUILT_IN:
            raise SettingsError(f"{_source(point)}: a dispatcher of that name is built in; rename or uninstall it")
        if point.name in by_name:
            others = _source(by_name[point.name])
            raise SettingsError(f"{_source(point)}: {others} brings a dispatcher of that name, too; uninstall one")
        by_name[point.name] = point
    return dict(sorted(by_name.items()))


def load_dispatcher(point: EntryPoint) -> Dispatcher:
    """The dispatcher of an entry point.

    Raises:
        SettingsError: it cannot be loaded, or is something else.
    """
    made = _load(point, SettingsError, lambda given: given)
    if fault := dispatcher_fault(made):
        raise SettingsError(
            f"{_source(point)}: {point.value} gives {made!r}, {fault}: "
            "make it a multikueue.Dispatcher, or choose another dispatcher"
        )
    dispatcher: Dispatcher = made
    return dispatcher


def dispatcher_fault(made: object) -> str:
    """Why an object is no dispatcher; empty if it is one."""
    if not callable(nominate := getattr(made, "nominate", None)):
        return "which has no method nominate"
    fault = fault_of(nominate, 3, "a workload, the candidates and the time")
    return f"whose nominate {fault}" if fault else ""


def _kinds(point: EntryPoint) -> Iterator[JobKind]:
    source = _source(point)
    for kind in _load(point, AdapterError, lambda given: [given] if isinstance(given, JobKind) else list(given)):
        if not isinstance(kind, JobKind):
            raise AdapterError(f"{source}: {point.value} gives {kind!r}, which is not a multikueue.adapters.JobKind")
        yield attrs.evolve(kind, source=source)


def _load(point: EntryPoint, refusal: type[MultiKueueError], read: Callable[[Any], _T]) -> _T:
    try:
        loaded = point.load()
        return read(loaded() if callable(loaded) else loaded)
    except Exception as error:  # another package's code may raise anything; the message names the package
        raise refusal(
            f"{_source(point)}: {point.value} cannot be loaded: {type(error).__name__}: {error}; "
            "correct or uninstall it"
        ) from error


def _source(point: EntryPoint) -> str:
    package = point.dist.name if point.dist is not None else ""
    return f'the entry point "{point.name}"{f" of the package {package}" if package else ""}'
