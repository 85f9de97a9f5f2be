"""The tests of the control planes themselves."""

from __future__ import annotations

import pytest

from tests.controlplane.fixtures import clusters

__all__ = ["clusters"]


def pytest_configure(config: pytest.Config) -> None:
    """Know the marker also where only this folder's tests are asked for."""
    config.addinivalue_line("markers", "real: needs a real control plane (tests/controlplane)")
