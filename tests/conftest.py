"""Shared by all tests."""

from __future__ import annotations

import asyncio
import os

import pytest
from hypothesis import HealthCheck, settings

from tests.controlplane.provider import add_option
from tests.garbage import collect_rarely

# pytest-asyncio leaves a default event loop behind once a synchronous test precedes an asynchronous one; with warnings
# as errors the unclosed loop would fail whichever test runs when it is collected. There is no loop until a test asks.
asyncio.set_event_loop(None)

# How fast a machine draws examples says nothing about the code. In a fresh checkout the first text that is drawn waits
# for Hypothesis' table of Unicode, which takes more than the second that it allows.
UNTIMED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
# The gate draws the same examples each time: it says what a change did, not what a new draw found in what stood there.
# `nox` draws few of them, its gate all; `nox -t nightly` draws new ones, and many more. Whoever runs the tests without
# `CI` in the environment gets new ones, too.
settings.register_profile("untimed", UNTIMED, derandomize="CI" in os.environ)
settings.register_profile("few", UNTIMED, max_examples=25, derandomize="CI" in os.environ)
settings.register_profile("nightly", UNTIMED, max_examples=2000)
settings.load_profile("untimed")

collect_rarely()


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--provider`: who provides real control planes."""
    add_option(parser)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """One empty round before the virtual clock moves: looptime makes 42, for what comes from outside of the loop."""
    for item in items:
        if item.get_closest_marker("looptime"):
            item.add_marker(pytest.mark.looptime(noop_cycles=1))
