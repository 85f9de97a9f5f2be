"""Runs exec plugins: a process group of its own, with a deadline.

Neither stdout nor stderr is ever quoted in an error: both may hold secrets. The log has the beginning of what one that
fails writes to standard error.
"""

from __future__ import annotations

import contextlib
import os
import signal
import ssl
from collections.abc import Awaitable, Callable, Iterator
from subprocess import DEVNULL
from typing import Final

import anyio
import anyio.abc
import anyio.to_thread
import attrs

from multikueue.core.model.outside_text import one_line
from multikueue.errors import Cause, Unauthorized
from multikueue.kube.credentials.credential import Credential, KeyPair
from multikueue.kube.credentials.exec_plugin import EXEC_INFO, ExecPlugin
from multikueue.kube.credentials.exec_protocol import BadAnswer, exec_info, read_answer, why_unusable
from multikueue.kube.http.transport import load_key_pair
from multikueue.logs import get_logger

log = get_logger(__name__)

PLUGIN_DEADLINE: Final = 30.0
"""Seconds that a plugin may take. Then it is killed, with all that it has started."""
MAX_OUTPUT: Final = 1 << 20
"""Bytes that it may print."""
MAX_COMPLAINT: Final = 2048
"""Bytes of what a plugin that fails writes to standard error that the log has."""
PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""What plugins get that do not inherit the daemon's variables."""
SERVICE: Final = ("KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT")
"""They always get these, too: in a pod client-go finds the cluster by them. They are no secret."""

_PIECE: Final = 1 << 16


async def run_plugin(plugin: ExecPlugin, output: Callable[[ExecPlugin], Awaitable[bytes]] | None = None) -> Credential:
    """Run the command and read the credential it prints.

    Args:
        plugin: what to run.
        output: runs it, for tests.

    Raises:
        Unauthorized: it failed, took too long, or printed no credential. The message names the command and never
            quotes arguments, variables or output.
    """
    if plugin.problem:
        raise no_credentials(plugin.problem)
    where = f"exec: executable {plugin.command}"
    try:
        with anyio.fail_after(PLUGIN_DEADLINE):
            printed = await (output or output_of)(plugin)
            credential = read_answer(printed, plugin.api_version)
            if credential.pair is not None:
                await anyio.to_thread.run_sync(_try, credential.pair)
            return credential
    except TimeoutError:
        raise no_credentials(f"{where} did not answer within {PLUGIN_DEADLINE:.0f} s, and was killed") from None
    except BadAnswer as error:
        named = str(error) if plugin.command in str(error) else f"{error} (executable {plugin.command})"
        raise no_credentials(named, error.wrote) from None
    except OSError as error:
        raise no_credentials(f"{where} cannot be run: {error.strerror}") from None
    except UnicodeEncodeError:
        raise no_credentials(f"{where} cannot be run: args or env are not text") from None


def no_credentials(why: str, wrote: str = "") -> Unauthorized:
    """That what gives the credentials gives none: nothing was asked."""
    error = Unauthorized(f"getting credentials: {why}", cause=Cause.PLUGIN)
    error.wrote = wrote
    return error


async def output_of(plugin: ExecPlugin) -> bytes:
    """Run a plugin to its end, and return what it printed. Nothing that it has started outlives this call.

    Raises:
        BadAnswer: it failed, or printed too much.
        OSError: it cannot be run.
    """
    with _pipe() as (stdout, out), _pipe() as (stderr, err):
        try:
            process = await _start(plugin, out, err)
        finally:
            os.close(out)
            os.close(err)
        printed, complaint, code = await _ended(process, stdout, stderr)
    if printed is None:
        raise BadAnswer(f"exec: it printed more than {MAX_OUTPUT} bytes")
    if code:
        said = one_line(complaint.decode(errors="replace"))
        log.warning("credential plugin failed", command=plugin.command, code=code, stderr=said)
        raise BadAnswer(f"exec: executable {plugin.command} failed with exit code {code}", said)
    return printed


@contextlib.contextmanager
def _pipe() -> Iterator[tuple[int, int]]:
    """The ends of a pipe to read from, which is closed at the end, and to write to."""
    readable, writable = os.pipe()
    try:
        os.set_blocking(readable, False)
        yield readable, writable
    finally:
        os.close(readable)


async def _start(plugin: ExecPlugin, stdout: int, stderr: int) -> anyio.abc.Process:
    return await anyio.open_process(
        [plugin.command, *plugin.args],
        stdin=DEVNULL,
        stdout=stdout,
        stderr=stderr,
        env=environment_of(plugin),
        start_new_session=True,
    )


def environment_of(plugin: ExecPlugin) -> dict[str, str]:
    """The variables of a plugin's process."""
    few = {"PATH": PATH, "HOME": os.environ.get("HOME", "/")}
    few |= {name: os.environ[name] for name in SERVICE if name in os.environ}
    inherited = os.environ if plugin.inherit_env else few
    return {**inherited, **dict(plugin.env), EXEC_INFO: exec_info(plugin)}


async def _ended(process: anyio.abc.Process, stdout: int, stderr: int) -> tuple[bytes | None, bytes, int]:
    """Wait for the end of a process, also of one that is to be killed: what it printed (see `_read`), and its code."""
    group, complaint = _Group(process.pid), bytearray()

    async def reap() -> None:
        await process.wait()
        group.kill()  # what it has left behind holds its stdout open

    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(reap)
            tasks.start_soon(_skim, stderr, complaint)
            printed = await _read(stdout)
            if printed is None:
                group.kill()
            code = await process.wait()
    finally:
        group.kill()
        with anyio.CancelScope(shield=True):
            await process.wait()
    return printed, bytes(complaint), code


async def _skim(readable: int, begin: bytearray) -> None:
    """Read to the end, and keep the beginning."""
    while piece := await _next(readable):
        begin += piece[: MAX_COMPLAINT - len(begin)]


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
        piece = await _next(readable)
        if not piece:
            return bytes(read)
        read += piece
    return None


async def _next(readable: int) -> bytes:
    await anyio.wait_readable(readable)
    return os.read(readable, _PIECE)


def _try(pair: KeyPair) -> None:
    """Load a pair as a connection would. It reads and writes a file.

    Raises:
        BadAnswer: it cannot be loaded.
    """
    try:
        load_key_pair(pair.certificate, pair.key, ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
    except (OSError, ValueError) as error:
        raise BadAnswer(why_unusable(error)) from None
