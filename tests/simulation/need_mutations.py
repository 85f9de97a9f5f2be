"""Defects in what is copied for jobs: each must be caught by a run in which pods mount ConfigMaps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from types import MappingProxyType
from typing import Any, Final
from unittest import mock

from multikueue.core.model import dependencies
from multikueue.core.model.dependencies import CopyDecision, CopyStep, copy_for
from multikueue.core.model.names import Json
from multikueue.runtime import dependency_copies


@contextmanager
def copies_are_owned_by_nobody() -> Iterator[None]:
    """What is copied stays when its job is gone."""

    def without_owners(*args: Any) -> Json:
        made: Json = {**copy_for(*args)}
        return {**made, "metadata": {**made["metadata"], "ownerReferences": []}}

    with (
        mock.patch.object(dependency_copies, "copy_for", without_owners),
        mock.patch.object(dependency_copies, "owning_patch", return_value=None),
    ):
        yield


def what_is_somebody_elses_is_shared() -> AbstractContextManager[Any]:
    """An object of the same name and content gets our owners, and goes with them."""
    return mock.patch.object(dependencies, "_foreign", return_value=CopyDecision(CopyStep.SHARE))


NEED_MUTATIONS: Final[Mapping[str, Callable[[], AbstractContextManager[Any]]]] = MappingProxyType(
    {
        mutation.__name__: mutation
        for mutation in (
            copies_are_owned_by_nobody,
            what_is_somebody_elses_is_shared,
        )
    }
)
