"""What kstatus (of Helm, Flux) and gitops-engine (of Argo CD) make of jobs on a manager: nightly, as it needs Go."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.formats.programs import answered, built
from tests.kinds.beside import STAGES, compared, differs, on_a_manager, on_one_cluster
from tests.kinds.cases import Case

NOT_BY_CONDITIONS = {("statefulset", "runs"): "its status counts the pods of the manager, which wait there for ever"}
"""What is judged otherwise though its conditions, of which it has none, are the same."""

pytestmark = [pytest.mark.real, pytest.mark.looptime, pytest.mark.timeout(1600)]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built("verdicts", tmp_path_factory.mktemp("verdicts"))


@pytest.mark.parametrize("fails", [False, True], ids=["succeeds", "fails"])
@pytest.mark.parametrize("case", compared(), ids=lambda case: case.name)
async def test_programs_judge_a_job_as_they_would_on_one_cluster(program: Path, case: Case, fails: bool) -> None:
    """Where its conditions are the same."""
    if fails and not case.kind.course.ends:
        return
    alone, shown = await on_one_cluster(case, fails=fails), await on_a_manager(case, fails=fails)
    for stage in STAGES:
        if stage not in shown or differs(case, stage):
            continue
        here, there = (set(answered(program, list(map(json.dumps, seen[stage])))) for seen in (shown, alone))
        same = here <= there if stage == "starts" else here == there
        assert same != ((case.name, stage) in NOT_BY_CONDITIONS), (stage, here, there)
