"""How people name jobs, where nothing is read for it."""

from __future__ import annotations

from typing import Any

import pytest

from multikueued.exits import USAGE, CommandError
from multikueued.reading.job_lookup import find_job

NOBODY: Any = None
"""A manager that cannot be asked."""


@pytest.mark.parametrize("text", ["", "job/", "job/%2e%2e", "job/..", "..", "job/a b", "job/--all", "job/$(id)"])
async def test_what_is_no_name_is_refused_before_anything_is_asked(text: str) -> None:
    with pytest.raises(CommandError, match="names no job: write TYPE/NAME, as job/train-1") as refused:
        await find_job(NOBODY, text, "default", "kueue-system")
    assert refused.value.exit_code == USAGE
