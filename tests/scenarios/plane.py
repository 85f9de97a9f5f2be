"""One cluster of a scenario, as its administrator sees it: in memory, or real."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.protocols import ApiClient
from tests.simulation.weather import Link


class Plane(ABC):
    """What a scenario does to a cluster, past our daemon, and sees of it."""

    api: ApiClient
    """The administrator."""

    @abstractmethod
    def all(self, resource: Resource) -> Iterator[Json]:
        """All objects of a kind."""

    @abstractmethod
    def find(self, resource: Resource, key: ObjectKey) -> Json | None:
        """One object, or None."""

    @abstractmethod
    def user(self, name: str) -> ApiClient:
        """Somebody else who may do everything; what they write is recorded as theirs."""

    @property
    def link(self) -> Link:
        """Our daemon's way there, to be disturbed; only clusters in memory have one."""
        raise AssertionError("this scenario disturbs the network, so it cannot be `decisive`")
