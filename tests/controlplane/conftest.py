"""The tests of the control planes themselves."""

from __future__ import annotations

import pytest

from tests.controlplane.cluster import ControlPlane
from tests.controlplane.fixtures import clusters
from tests.controlplane.provider import PROCESSES, choose_or_report

__all__ = ["clusters"]


@pytest.fixture(scope="session")
def planes() -> type[ControlPlane]:
    """Planes of child processes, whatever provider was asked for: for what only they have."""
    choose_or_report(PROCESSES)
    return ControlPlane
