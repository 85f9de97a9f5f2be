"""That the journey of endings notices what it is there for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs
import pytest

from multikueue.core.workload import removal
from multikueue.core.workload.effects import DeleteJob
from tests.kinds import endings
from tests.kinds.cases import Case, cases
from tests.kinds.sandbox_ground import sandbox_ground

pytestmark = pytest.mark.looptime


@pytest.mark.gate
async def test_job_copies_that_are_deleted_in_the_background_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """As up to 267d433b: the copy is gone at once, and nothing but its pods tells that it runs."""

    def in_background(*arguments: Any, **more: Any) -> Iterator[DeleteJob]:
        for effect in delete_job(*arguments, **more):
            yield attrs.evolve(effect, propagation="Background")

    delete_job = removal.delete_job
    monkeypatch.setattr(removal, "delete_job", in_background)
    (job,) = (case for case in cases() if case.name == "job")
    async with sandbox_ground(job) as ground:
        with pytest.raises(AssertionError, match="began while pods of"):
            await endings.is_taken_away(ground, job)


@pytest.mark.parametrize("case", [case for case in cases() if case.is_copied], ids=lambda case: case.name)
async def test_nothing_begins_while_a_dead_node_may_run_it(case: Case) -> None:
    async with sandbox_ground(case) as ground:
        await endings.waits_for_dead_nodes(ground, [case])
