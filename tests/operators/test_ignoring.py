"""A real controller that ignores `managedBy`, on the manager: its jobs are refused before a worker has anything."""

from __future__ import annotations

from pathlib import Path

import pytest

from multikueue.core.model.kinds import WORKLOAD
from tests.integration.planes import Planes
from tests.operators.cases import TRAINING, operators_cases
from tests.operators.ground import operators_ground
from tests.operators.marks import EVERY_OPERATOR
from tests.operators.starts import training

pytestmark = EVERY_OPERATOR


async def test_jaxjobs_are_refused_where_the_managers_operator_runs_them(
    planes: Planes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The training operator writes the status of a suspended JAXJob whoever is to run it; of the others it does not."""
    monkeypatch.setattr(training, "IGNORING", "")  # it is left out there otherwise
    rows = operators_cases(TRAINING)
    jax = next(case for case in rows if case.name == "jaxjob")
    async with operators_ground(planes, TRAINING, rows, tmp_path) as ground:
        for number in range(5):
            await ground.submit(jax.kind, f"jax-{number}")
        for number in range(5):
            await ground.until_told(
                jax.kind, f"jax-{number}", "has written its status although spec.runPolicy.managedBy is"
            )
            await ground.until_told(jax.kind, f"jax-{number}", "let it not run JAXJobs on the manager")
        assert ground.pods_made("jax-") == {}
        assert all(ground.ran_on(jax.kind, f"jax-{number}") == [] for number in range(5))
        sent = [name for worker in ground.workers.values() for kind, name in worker.last if kind == WORKLOAD]
        assert sent == []
        other = next(case for case in rows if case.name == "pytorchjob")
        await ground.submit(other.kind, "torch")
        await ground.ended(other.kind, "torch", "Succeeded")
