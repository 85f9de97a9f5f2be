"""The pages of performance: every number in their tables comes from a result file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.docs import measured
from tests.docs.marked import replaced


@pytest.mark.parametrize(
    ("page", "text"), [(measured.PERFORMANCE, measured.tables), (measured.SCALE_OUT, measured.scale_out)]
)
def test_the_tables_are_made_of_the_result_files(page: Path, text: Callable[[], str]) -> None:
    """`python -m tests.docs.measured` writes them."""
    told = page.read_text()
    assert replaced(told, measured.WRITER, text()) == told
