"""Background tasks: started from anywhere, and of nobody's context."""

from __future__ import annotations

from functools import partial

import anyio
import pytest
import structlog

from multikueue.runtime.loop import BackgroundTasks, loop_time

pytestmark = pytest.mark.looptime


async def test_loop_time_is_anyios() -> None:
    await anyio.sleep(3)
    assert loop_time() == anyio.current_time() == 3


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
