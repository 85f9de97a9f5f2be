"""A fleet keeps its promises while workers are cordoned and jobs are moved."""

from __future__ import annotations

import pytest

from tests.simulation import cordoning, script
from tests.simulation.simulating import simulate


@pytest.mark.gate
@pytest.mark.parametrize("seed", range(910_000, 910_004))
def test_no_job_runs_twice_where_workers_are_cordoned_and_jobs_moved(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of what goes wrong in these seeds is a cordon or a move."""
    share = len(script.TROUBLES) // len(cordoning.TROUBLES)
    monkeypatch.setattr(script, "TROUBLES", (*script.TROUBLES, *cordoning.TROUBLES * share))
    run = simulate(seed)
    assert not run.broken, "\n".join([*run.history, run.broken])
