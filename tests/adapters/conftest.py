"""Fixtures of these tests."""

from __future__ import annotations

from tests.controlplane.fixtures import clusters

__all__ = ["clusters"]
