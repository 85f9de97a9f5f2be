"""The marks of tests that need one of the further controllers."""

from __future__ import annotations

import pytest

EVERY_OPERATOR = [
    pytest.mark.operators,
    pytest.mark.every_operator,
    pytest.mark.timeout(400),
    pytest.mark.asyncio(loop_scope="session"),
]
