"""Tekton's own controller, on the manager and on both workers."""

from __future__ import annotations

from pathlib import Path

from multikueue.core.model.kinds import EVENT
from tests.integration.planes import Planes
from tests.operators.cases import TEKTON, operators_cases
from tests.operators.ground import operators_ground
from tests.operators.journeys import Row
from tests.operators.marks import EVERY_OPERATOR
from tests.operators.recording import record
from tests.operators.walking import all_ways
from tests.operators.workflows.examples import pipeline
from tests.operators.workflows.journeys import cancelled, runs_on_deactivated, runs_on_evicted

pytestmark = EVERY_OPERATOR


_ROBUST = {"pipelineSpec": pipeline(retries=2)}


async def test_a_pipelinerun_of_two_tasks_goes_all_ways(planes: Planes, tmp_path: Path) -> None:
    """The second task needs what the first one has put out."""
    (case,) = operators_cases(TEKTON)
    more = (runs_on_evicted, runs_on_deactivated, cancelled(status="Cancelled"))
    row = Row(case=case, pods=1, until_end=2, defaulted=True, tells_of_stops=False, robust=_ROBUST, more=more)
    async with operators_ground(planes, TEKTON, [case], tmp_path) as ground:
        await all_ways(ground, [row])
        notes = [str(obj.get("note")) for (resource, _), obj in ground.manager.now.items() if resource == EVENT]
        assert [note for note in notes if "refuses the status" in note] == []
        record(ground, TEKTON, [row])
