"""A pytest plugin that plants a bug for a whole run: `PLANTED=name pytest -p tests.simulation.planting ...`."""

from __future__ import annotations

import os
from contextlib import ExitStack

import pytest

from tests.simulation.planted import PLANTED

_STACK = ExitStack()


def pytest_configure(config: pytest.Config) -> None:
    """Plant it before anything is collected."""
    del config
    _STACK.enter_context(PLANTED[os.environ["PLANTED"]]())


def pytest_unconfigure(config: pytest.Config) -> None:
    """Take it out."""
    del config
    _STACK.close()
