"""Defects in what is watched on a worker; see `mutations`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from types import MappingProxyType
from typing import Any, Final
from unittest import mock

from multikueue.runtime import kind_watch
from multikueue.runtime.kind_watch import KindWatches

Mutation = Callable[[], AbstractContextManager[Any]]


def kinds_stay_unwatched() -> AbstractContextManager[Any]:
    """What is sent to a worker has nobody watch its kind."""
    return mock.patch.object(KindWatches, "want")


def nobody_looks_for_what_is_left() -> AbstractContextManager[Any]:
    """What another process has left on a worker of an unwatched kind is not looked for."""
    return mock.patch.multiple(kind_watch, LATE_LOOK=1e9, LOOK_INTERVAL=1e9)


WATCH_MUTATIONS: Final[Mapping[str, Mutation]] = MappingProxyType(
    {one.__name__: one for one in (kinds_stay_unwatched, nobody_looks_for_what_is_left)}
)
"""All of them, by name."""
