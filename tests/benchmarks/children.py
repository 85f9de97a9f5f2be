"""Parts of the harness in processes of their own: a line of JSON to start them, and a line for each request."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import attrs
import orjson
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream

from multikueue.core.model.names import Json
from tests.controlplane.errors import ControlPlaneError

_MAX_ANSWER = 64 << 20
START_SECONDS = 60.0
_ANSWER_SECONDS = 60.0
_STOP_SECONDS = 10.0


@attrs.define(eq=False)
class Child:
    """A running part of the harness."""

    module: str
    pid: int
    ready: Json
    """What it said once it was ready."""
    _process: Process
    _output: BufferedByteReceiveStream

    async def ask(self, **request: object) -> Json:
        """Send a request and return the answer.

        Raises:
            ControlPlaneError: it has ended, or does not answer in time.
        """
        assert self._process.stdin is not None
        await self._process.stdin.send(orjson.dumps(request, option=orjson.OPT_APPEND_NEWLINE))
        return await _line(self.module, self._output, _ANSWER_SECONDS)


@asynccontextmanager
async def child(module: str, config: Json, *, seconds: float = START_SECONDS) -> AsyncIterator[Child]:
    """Run `python -m module` with a configuration until the block ends. `seconds`: how long it may take to be ready."""
    command = [sys.executable, "-m", module]
    process = await anyio.open_process(command, stdout=subprocess.PIPE, stderr=None, start_new_session=True)
    try:
        assert process.stdin is not None
        assert process.stdout is not None
        output = BufferedByteReceiveStream(process.stdout)
        await process.stdin.send(orjson.dumps(config, option=orjson.OPT_APPEND_NEWLINE))
        ready = await _line(module, output, seconds)
        yield Child(module, process.pid, ready, process, output)
    finally:
        with anyio.CancelScope(shield=True):
            await _stop(process)


async def _stop(process: Process) -> None:
    if process.stdin is not None:
        await process.stdin.aclose()
    with anyio.move_on_after(_STOP_SECONDS) as patience:
        await process.wait()
    if patience.cancelled_caught:
        process.kill()
    await process.aclose()


async def _line(module: str, output: BufferedByteReceiveStream, seconds: float) -> Json:
    try:
        with anyio.fail_after(seconds):
            line = await output.receive_until(b"\n", _MAX_ANSWER)
    except TimeoutError:
        raise ControlPlaneError(f"{module} said nothing for {seconds:g} s") from None
    except (anyio.IncompleteRead, anyio.EndOfStream):
        raise ControlPlaneError(f"{module} has ended; what it wrote to standard error says why") from None
    answer: Json = orjson.loads(line)
    return answer
