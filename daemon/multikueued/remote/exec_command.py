"""`multikueue exec JOB -- CMD`: in a container of the remote run, from the manager."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import termios
import tty
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any, Final

import anyio
import click

from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import is_terminating, name_of
from multikueue.errors import Forbidden, Invalid
from multikueue.kube import KubeClient
from multikueue.kube.pod_exec import ExecRequest, Execution
from multikueued.commands.options import CLIENT, CONTAINER, JOB_NAME, target_of, target_options
from multikueued.exits import FINDING, NOT_FOUND, NOT_REACHABLE, USAGE, CommandError, for_people, in_words
from multikueued.reading.asked import Asked
from multikueued.reading.owned import Owned
from multikueued.reading.pod_lookup import LocatorOfManager, WorkerPods, why_no_pods
from multikueued.reading.pods import container_of, has_ended, in_order, phase_of
from multikueued.reading.worker_access import OPTIONS, told_of, worker_config
from multikueued.remote.command import ORIGIN

CHUNK: Final = 32 << 10
"""Bytes of input that are sent at a time."""


@contextmanager
def raw_mode(descriptor: int) -> Iterator[None]:
    """Have each key go to the command, Ctrl-C too; the terminal is as it was afterwards, however that ends."""
    before = termios.tcgetattr(descriptor)
    try:
        tty.setraw(descriptor)
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


async def send_input(descriptor: int, send: Callable[[bytes], Awaitable[None]]) -> None:
    """Send what is typed, or comes through a pipe, to its end: the last piece is empty."""
    while True:
        try:
            await anyio.wait_readable(descriptor)
        except PermissionError:  # a file: it can be read at any time
            await anyio.lowlevel.checkpoint()
        data = os.read(descriptor, CHUNK)
        await send(data)
        if not data:
            return


async def send_sizes(resize: Callable[[int, int], Awaitable[None]]) -> None:
    """Send the terminal's size, now and whenever it changes."""
    with anyio.open_signal_receiver(signal.SIGWINCH) as signals:
        await resize(*shutil.get_terminal_size())
        async for _ in signals:
            await resize(*shutil.get_terminal_size())


def write_output(data: bytes, is_error: bool) -> None:
    """Pass on what the command writes, as it is: it is the user's own, as with kubectl exec."""
    stream = sys.stderr.buffer if is_error else sys.stdout.buffer
    stream.write(data)
    stream.flush()


GRANT: Final = "multikueue rbac worker --exec"


@click.command("exec")
@JOB_NAME
@click.argument("command", nargs=-1, type=click.UNPROCESSED, required=True)
@target_options
@ORIGIN
@CONTAINER
@click.option("-i", "--stdin", is_flag=True, help="Pass on what is typed here, or comes through a pipe.")
@click.option("-t", "--tty", is_flag=True, help="Give the command a terminal.")
def exec_command(job: str, command: tuple[str, ...], origin: str, **options: Any) -> None:
    """Run a command in a container of JOB, on the worker that has it: multikueue exec JOB -it -- sh.

    JOB is named as for explain. The pod is the one that has run the longest. The worker is asked with the credentials
    that the manager holds: you must be allowed to get the Secret with its kubeconfig, and its account to create and get
    pods/exec (multikueue rbac worker --exec). The exit code is the command's.
    """
    container, stdin, tty = options.pop("container"), options.pop("stdin"), options.pop("tty")
    if tty and not (stdin and sys.stdin.isatty()):
        raise CommandError("-t needs -i and a terminal: leave it out to pass on a pipe", USAGE)
    asked = Asked(job, target_of(options), origin)
    made = ExecRequest(ObjectKey("", ""), container, command, stdin, tty)
    raise SystemExit(anyio.run(_run, asked, made))


async def _run(asked: Asked, made: ExecRequest) -> int:
    config = asked.target.config
    with for_people(config.server):
        async with KubeClient(config, name="manager", options=CLIENT) as manager:
            sought = await LocatorOfManager(manager, asked).placed()
            access = await worker_config(manager, sought.worker, asked.target.daemon_namespace)
            async with KubeClient(access, name=sought.worker, options=OPTIONS) as client:
                with in_words(partial(told_of, sought.worker)):
                    return await run_on(client, WorkerPods(client, sought), made)


async def run_on(client: KubeClient, pods: WorkerPods, made: ExecRequest) -> int:
    """Run a command in one of a job's pods; see `running_pod`.

    Raises:
        CommandError: no pod runs, or the worker refuses.
        ApiError: the worker cannot be asked.
    """
    pod = running_pod(await pods.now(), pods)
    container = container_of(pod, made.container)
    started = ExecRequest(ObjectKey.of(pod), container, made.command, made.stdin, made.tty)
    worker = pods.sought.worker
    try:
        async with client.exec(started) as running:
            if not await pods.is_still_there(pod):  # a request names a pod, and no UID
                raise CommandError(f"pod {name_of(pod)} has just been replaced: try again", NOT_FOUND)
            return await attached(running, started)
    except Forbidden as error:
        refused = f'worker cluster "{worker}" does not let the daemon\'s account run commands in pods'
        raise CommandError(f"{refused}: grant it with {GRANT}", NOT_REACHABLE) from error
    except Invalid as error:
        raise CommandError(f"the command could not be started: {error}", FINDING) from error


def running_pod(owned: Owned, pods: WorkerPods) -> Json:
    """The pod that has run the longest.

    Raises:
        CommandError: none runs.
    """
    ordered = in_order(owned.pods)
    if not ordered:
        raise CommandError(why_no_pods(pods), NOT_FOUND)
    for pod in ordered:
        if phase_of(pod) == "Running" and not is_terminating(pod):
            return pod
    state = "has ended" if all(map(has_ended, ordered)) else "has not started"
    nothing = f'{pods.sought.job} on worker cluster "{pods.sought.worker}" {state}: none of its pods runs'
    raise CommandError(nothing, NOT_FOUND)


async def attached(running: Execution, made: ExecRequest) -> int:
    """Connect a command to our input and output until it ends; its exit code."""
    descriptor = sys.stdin.fileno() if made.stdin else -1
    with raw_mode(descriptor) if made.tty else nullcontext():
        async with anyio.create_task_group() as tasks:
            if made.tty:
                tasks.start_soon(send_sizes, running.resize)
            if made.stdin:
                tasks.start_soon(send_input, descriptor, running.write)
            code = await running.wait(write_output)
            tasks.cancel_scope.cancel()
    return code
