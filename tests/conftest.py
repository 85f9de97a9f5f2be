"""Shared by all tests."""

from __future__ import annotations

import asyncio

import pytest

from tests.controlplane.provider import add_option

# pytest-asyncio leaves a default event loop behind once a synchronous test precedes an asynchronous one; with warnings
# as errors the unclosed loop would fail whichever test runs when it is collected. There is no loop until a test asks.
asyncio.set_event_loop(None)


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--provider`: who provides real control planes."""
    add_option(parser)
