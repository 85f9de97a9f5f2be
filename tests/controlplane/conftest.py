"""The tests of the control planes themselves."""

from __future__ import annotations

import pytest

from tests.controlplane.cluster import ControlPlane
from tests.controlplane.fixtures import clusters
from tests.controlplane.provider import PROCESSES, choose_or_report

__all__ = ["clusters"]


def pytest_configure(config: pytest.Config) -> None:
    """Know the marker also where only this folder's tests are asked for."""
    config.addinivalue_line("markers", "real: needs a real control plane (tests/controlplane)")


@pytest.fixture(scope="session")
def planes() -> type[ControlPlane]:
    """Planes of child processes, whatever provider was asked for: for what only they have."""
    choose_or_report(PROCESSES)
    return ControlPlane
