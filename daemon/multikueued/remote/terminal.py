"""The terminal, or the pipes, that a command in a container is connected to."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import termios
import tty
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Final

import anyio

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
