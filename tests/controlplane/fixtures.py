"""Pytest fixtures: import them in a folder's `conftest.py`."""

from __future__ import annotations

import pytest

from tests.controlplane.interface import ClusterFactory
from tests.controlplane.provider import choose_or_report, chosen


@pytest.fixture(scope="session")
def clusters(pytestconfig: pytest.Config) -> ClusterFactory:
    """Makes real clusters: `async with clusters("manager") as manager:`."""
    return choose_or_report(chosen(pytestconfig))
