"""Pytest fixtures: import them in a folder's `conftest.py`."""

from __future__ import annotations

import pytest

from tests.controlplane.cluster import Cluster
from tests.controlplane.provider import clusters_or_report


@pytest.fixture(scope="session")
def clusters() -> type[Cluster]:
    """Makes real clusters: `async with clusters("manager") as manager:`."""
    return clusters_or_report()
