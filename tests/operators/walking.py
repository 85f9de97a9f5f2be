"""Has kinds go all ways at the same time, so that one ground serves them; each way has a job of its own."""

from __future__ import annotations

import traceback
from typing import Final

import anyio

from tests.operators import journeys
from tests.operators.ground import OperatorsGround
from tests.operators.journeys import Row
from tests.operators.results import RESULTS, Walk

_SHOWN: Final = 4000
"""Characters of what is told of one way: a story of all objects is long."""
_NOTED: Final = 400
"""Characters of it that a result file gets."""


async def all_ways(ground: OperatorsGround, rows: list[Row]) -> None:
    """Have every kind go every way that is one for it.

    Raises:
        AssertionError: it says all that went wrong, by kind and way.
    """
    wrong: dict[str, str] = {}
    for row in rows:
        if row.writes_on:
            for cluster in ground.recorded.values():
                cluster.writes_on[row.case.kind.resource] = row.has_ended

    async def go(way: journeys.Way, row: Row) -> None:
        began, error_text = anyio.current_time(), ""
        try:
            await way(ground, row)
        except Exception as error:  # the others go on: all that is wrong is told
            error_text = wrong[f"{row.case.name} {way.__name__}"] = _line_and_error(error)
        RESULTS.walks.append(Walk(row.case.name, way.__name__, anyio.current_time() - began, error_text[:_NOTED]))

    async with anyio.create_task_group() as tasks:
        for row in rows:
            for way in journeys.ways(row):
                tasks.start_soon(go, way, row)
    for row in rows:
        await go(journeys.survives_a_lost_worker, row)
    assert not wrong, "\n\n".join(f"{way}: {what}" for way, what in wrong.items())


def _line_and_error(error: Exception) -> str:
    """What was wrong, and in which line."""
    frames = traceback.extract_tb(error.__traceback__)
    places = "\n".join(
        f"{frame.filename}:{frame.lineno} {frame.line}" for frame in frames if "journeys" in frame.filename
    )
    return f"{places}\n{type(error).__name__}: {error}"[:_SHOWN]
