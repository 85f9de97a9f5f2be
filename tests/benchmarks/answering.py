"""The child's side of `children`: serve until standard input ends, so that nothing outlives the harness."""

from __future__ import annotations

import asyncio
import importlib.util
import sys
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import TypeAlias

import anyio
import orjson
import structlog

from multikueue.core.model.names import Json

Answer: TypeAlias = Callable[[Json], Awaitable[Json]]
"""Carries out a request of the harness."""
Component: TypeAlias = Callable[[Json], AbstractAsyncContextManager[tuple[Json, Answer]]]
"""From its configuration: what it says once it is ready, and how it answers."""

_MAX_LINE = 64 << 20


def run(component: Component) -> None:
    """Be a child: read the configuration, start, say so, and answer one request after the other."""
    quiet()
    backend_options = {"use_uvloop": importlib.util.find_spec("uvloop") is not None}
    anyio.run(_serve, component, backend_options=backend_options)


def quiet() -> None:
    """Leave standard output to results, and only warnings to standard error."""
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger("warning"),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )


async def nothing_to_ask(request: Json) -> Json:
    """The answer of a component that cannot be asked anything."""
    raise ValueError(f"unknown request {request}")


async def _serve(component: Component) -> None:
    reader = asyncio.StreamReader(limit=_MAX_LINE)
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    config = orjson.loads(await reader.readline())
    async with component(config) as (ready, answer), anyio.create_task_group() as tasks:
        _say(ready)
        while line := await reader.readline():
            _say(await answer(orjson.loads(line)))
        tasks.cancel_scope.cancel()


def _say(message: Json) -> None:
    sys.stdout.buffer.write(orjson.dumps(message, option=orjson.OPT_APPEND_NEWLINE))
    sys.stdout.buffer.flush()
