"""The oracle of what client programs read: the job of a manager has the conditions that it would have on one cluster.

What differs is in one closed list, with the reason. `tests/formats/test_verdicts.py` asks programs' own libraries.
"""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from multikueue.core.model.conditions import conditions
from multikueue.core.model.names import Json
from tests.kinds.beside import STAGES, compared, differs, on_a_manager, on_one_cluster
from tests.kinds.cases import Case, of_each_sort

pytestmark = pytest.mark.looptime

PLAYED = [
    pytest.param(case, fails, id=f"{case.name}-{'fails' if fails else 'succeeds'}", marks=marks)
    for case in compared()
    for fails in ((False, True) if case.kind.course.ends else (False,))
    for marks in [() if of_each_sort(case) and not fails else pytest.mark.gate]
]


def said(objects: Iterable[Json]) -> set[frozenset[str]]:
    """What conditions say that stand beside each other."""
    return {frozenset(f"{condition['type']}={condition['status']}" for condition in conditions(obj)) for obj in objects}


@pytest.mark.parametrize(("case", "fails"), PLAYED)
async def test_a_job_has_the_conditions_that_it_would_have_on_one_cluster(case: Case, fails: bool) -> None:
    alone, shown = await on_one_cluster(case, fails=fails), await on_a_manager(case, fails=fails)
    assert alone.keys() == shown.keys()
    for stage in STAGES:
        if stage in shown:
            here, there = said(shown[stage]), said(alone[stage])
            same = here <= there if stage == "starts" else here == there
            assert same != differs(case, stage), (stage, here, there)
