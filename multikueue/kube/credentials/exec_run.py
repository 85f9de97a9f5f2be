"""Runs exec plugins: a process group of its own, with a deadline, of which only stdout is read.

Neither stdout nor stderr is ever quoted: both may hold secrets, also after a failure. stderr is not even read.
"""

from __future__ import annotations

import contextlib
import os
import signal
import ssl
from collections.abc import Awaitable, Callable
from subprocess import DEVNULL
from typing import Final

import anyio
import anyio.abc
import anyio.to_thread
import attrs

from multikueue.errors import Unauthorized
from multikueue.kube.credentials.credential import Credential, KeyPair
from multikueue.kube.credentials.exec_plugin import EXEC_INFO, ExecPlugin
from multikueue.kube.credentials.exec_protocol import BadAnswer, exec_info, read_answer, why_unusable
from multikueue.kube.transport import load_key_pair

PLUGIN_DEADLINE: Final = 30.0
"""Seconds that a plugin may take. Then it is killed, with all that it has started."""
MAX_OUTPUT: Final = 1 << 20
"""Bytes that it may print."""
PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""What plugins get that do not inherit the daemon's variables."""

BEGIN: Final = "getting credentials: "
"""How each error begins, in client-go's words."""

_PIECE: Final = 1 << 16


async def run_plugin(plugin: ExecPlugin, output: Callable[[ExecPlugin], Awaitable[bytes]] | None = None) -> Credential:
    """Run the command and read the credential it prints.

    Args:
        plugin: what to run.
        output: runs it, for tests.

    Raises:
        Unauthorized: it failed, took too long, or printed no credential. The message names the command and never quotes
            arguments, variables or output.
    """
    if plugin.problem:
        raise Unauthorized(BEGIN + plugin.problem)
    where = f"exec: executable {plugin.command}"
    try:
        with anyio.fail_after(PLUGIN_DEADLINE):
            printed = await (output or output_of)(plugin)
            credential = read_answer(printed, plugin.api_version)
            if credential.pair is not None:
                await anyio.to_thread.run_sync(_try, credential.pair)
            return credential
    except TimeoutError:
        raise Unauthorized(f"{BEGIN}{where} did not answer within {PLUGIN_DEADLINE:.0f} s, and was killed") from None
    except BadAnswer as error:
        raise Unauthorized(f"{BEGIN}{error} (executable {plugin.command})") from None
    except OSError as error:
        raise Unauthorized(f"{BEGIN}{where} cannot be run: {error.strerror}") from None
    except UnicodeEncodeError:
        raise Unauthorized(f"{BEGIN}{where} cannot be run: args or env are not text") from None


async def output_of(plugin: ExecPlugin) -> bytes:
    """Run a plugin to its end, and return what it printed. Nothing that it has started outlives this call.

    Raises:
        BadAnswer: it failed, or printed too much.
        OSError: it cannot be run.
    """
    readable, writable = os.pipe()
    try:
        os.set_blocking(readable, False)
        try:
            process = await _start(plugin, writable)
        finally:
            os.close(writable)
        printed, code = await _ended(process, readable)
    finally:
        os.close(readable)
    if printed is None:
        raise BadAnswer(f"exec: it printed more than {MAX_OUTPUT} bytes")
    if code:
        told = f"exec: executable {plugin.command} failed with exit code {code}"
        raise BadAnswer(f"{told}: run it by hand to see why")
    return printed


async def _start(plugin: ExecPlugin, stdout: int) -> anyio.abc.Process:
    return await anyio.open_process(
        [plugin.command, *plugin.args],
        stdin=DEVNULL,
        stdout=stdout,
        stderr=DEVNULL,
        env=environment_of(plugin),
        start_new_session=True,
    )


def environment_of(plugin: ExecPlugin) -> dict[str, str]:
    """The variables of a plugin's process."""
    inherited = os.environ if plugin.inherit_env else {"PATH": PATH, "HOME": os.environ.get("HOME", "/")}
    return {**inherited, **dict(plugin.env), EXEC_INFO: exec_info(plugin)}


async def _ended(process: anyio.abc.Process, stdout: int) -> tuple[bytes | None, int]:
    """Wait for the end of a process, also of one that is to be killed: what it printed (see `_read`), and its code."""
    group = _Group(process.pid)

    async def reap() -> None:
        await process.wait()
        group.kill()  # what it has left behind holds its stdout open

    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(reap)
            printed = await _read(stdout)
            if printed is None:
                group.kill()
            code = await process.wait()
    finally:
        group.kill()
        with anyio.CancelScope(shield=True):
            await process.wait()
    return printed, code


@attrs.define
class _Group:
    """A process group. It is killed once: later its number may be another's."""

    number: int
    killed: bool = False

    def kill(self) -> None:
        if not self.killed:
            self.killed = True
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.number, signal.SIGKILL)


async def _read(readable: int) -> bytes | None:
    """Read to the end; None: it is too long."""
    read = bytearray()
    while len(read) <= MAX_OUTPUT:
        await anyio.wait_readable(readable)
        piece = os.read(readable, _PIECE)
        if not piece:
            return bytes(read)
        read += piece
    return None


def _try(pair: KeyPair) -> None:
    """Load a pair as a connection would. It reads and writes a file.

    Raises:
        BadAnswer: it cannot be loaded.
    """
    try:
        load_key_pair(pair.certificate, pair.key, ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
    except (OSError, ValueError) as error:
        raise BadAnswer(why_unusable(error)) from None
