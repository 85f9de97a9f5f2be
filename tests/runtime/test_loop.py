"""The loop's clock, and background tasks: started from anywhere, and of nobody's context."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial

import anyio
import pytest
import structlog

from multikueue.runtime.loop import BackgroundTasks, SteadyClock, loop_time

pytestmark = pytest.mark.looptime


async def test_loop_time_is_anyios() -> None:
    await anyio.sleep(3)
    assert loop_time() == anyio.current_time() == 3


async def test_a_steady_clock_goes_on_when_the_wall_clock_is_set() -> None:
    """And it follows small corrections, which come slowly: times that are written down agree to the second."""
    began, ahead = datetime(2026, 1, 1, tzinfo=UTC), timedelta(0)
    clock = SteadyClock(lambda: began + timedelta(seconds=loop_time()) + ahead)
    assert (clock.now(), clock.step()) == (began, timedelta(0))
    for step, shown in ((0.4, 0.0), (3600.4, 3600.4), (-60.0, -60.0)):
        ahead = timedelta(seconds=step)
        await anyio.sleep(10)
        assert clock.step() == timedelta(seconds=shown)
        assert clock.now() == began + timedelta(seconds=loop_time()) + ahead - clock.step()


async def test_tasks_start_with_run_or_at_once_and_end_with_it() -> None:
    background, done = BackgroundTasks(), list[tuple[str, float]]()

    async def task(name: str) -> None:
        try:
            await anyio.sleep(5)
        finally:
            done.append((name, loop_time()))

    background.start(partial(task, "early"))
    await anyio.sleep(1)
    async with anyio.create_task_group() as tasks:
        await tasks.start(background.run)
        await anyio.sleep(2)
        background.start(partial(task, "late"))
        await anyio.sleep(4)
        tasks.cancel_scope.cancel()

    assert done == [("early", 6), ("late", 7)]


async def test_a_task_has_the_context_of_run_and_not_of_its_starter() -> None:
    background, contexts = BackgroundTasks(), list[dict[str, object]]()

    async def task() -> None:
        contexts.append(structlog.contextvars.get_contextvars())

    with structlog.contextvars.bound_contextvars(process="manager"):
        async with anyio.create_task_group() as tasks:
            await tasks.start(background.run)
            with structlog.contextvars.bound_contextvars(key="default/wl"):
                background.start(task)
                await anyio.sleep(1)
            tasks.cancel_scope.cancel()

    assert contexts == [{"process": "manager"}]


async def test_what_a_task_raises_ends_run() -> None:
    """Nothing fails silently: whoever wants to survive an error catches it."""
    background = BackgroundTasks()

    async def broken() -> None:
        raise ZeroDivisionError

    background.start(broken)
    with pytest.raises(ExceptionGroup, match="unhandled errors"):
        await background.run()
