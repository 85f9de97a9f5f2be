"""Defects in what is watched on a worker; see `mutations`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from types import MappingProxyType
from typing import Any, Final
from unittest import mock

from multikueue.runtime.workers.kind_watch import KindWatches

Mutation = Callable[[], AbstractContextManager[Any]]


def kinds_stay_unwatched() -> AbstractContextManager[Any]:
    """What is sent to a worker has nobody watch its kind."""
    return mock.patch.object(KindWatches, "want")


WATCH_MUTATIONS: Final[Mapping[str, Mutation]] = MappingProxyType({kinds_stay_unwatched.__name__: kinds_stay_unwatched})
"""All of them, by name."""
