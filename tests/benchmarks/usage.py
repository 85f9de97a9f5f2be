"""CPU and memory of processes, as Linux tells in /proc."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

import attrs

_TICKS: Final = os.sysconf("SC_CLK_TCK")
_PROC: Final = Path("/proc")
_ESTABLISHED: Final = "01"


@attrs.frozen
class Usage:
    """What processes have used so far."""

    cpu: float
    """Seconds, of those that have ended and were waited for too."""
    system: float
    """Those of them that were spent in the kernel."""
    peak_memory: int
    """Bytes; the sum of what each has held at most."""
    memory: int
    """Bytes held now."""


def of_processes(pids: Iterable[int]) -> Usage:
    """Add up processes; those that are gone count nothing."""
    usages = [usage for pid in pids if (usage := _of(pid)) is not None]
    return Usage(
        sum(usage.cpu for usage in usages),
        sum(usage.system for usage in usages),
        sum(usage.peak_memory for usage in usages),
        sum(usage.memory for usage in usages),
    )


def connections(pids: Iterable[int], ports: Collection[int]) -> int:
    """How many TCP connections processes have open to these ports."""
    held = set()
    for pid in pids:
        for descriptor in (_PROC / str(pid) / "fd").glob("*"):
            with suppress(FileNotFoundError):
                held.add(os.readlink(descriptor))
    rows = (line.split() for table in ("tcp", "tcp6") for line in (_PROC / "net" / table).read_text().splitlines()[1:])
    return sum(
        state == _ESTABLISHED and f"socket:[{inode}]" in held and int(remote.rpartition(":")[2], 16) in ports
        for _, _, remote, state, _, _, _, _, _, inode, *_ in rows
    )


def session_of(pid: int) -> list[int]:
    """The processes of the session that a process leads: itself and all it started."""
    pids = []
    for folder in _PROC.glob("[0-9]*"):
        fields = _stat(int(folder.name))
        if fields and int(fields[3]) == pid:
            pids.append(int(folder.name))
    return pids


def _of(pid: int) -> Usage | None:
    fields = _stat(pid)
    if not fields:
        return None
    user, system, user_of_children, system_of_children = (int(field) / _TICKS for field in fields[11:15])
    lines = _read(pid, "status").splitlines()
    sizes = {name: value for name, _, value in (line.partition(":") for line in lines)}
    in_kernel = system + system_of_children
    return Usage(user + user_of_children + in_kernel, in_kernel, _bytes(sizes.get("VmHWM")), _bytes(sizes.get("VmRSS")))


def _bytes(text: str | None) -> int:
    return int(text.split()[0]) * 1024 if text else 0


def _stat(pid: int) -> list[str]:
    """The fields after the command's name: state, ppid, pgrp, session, ..."""
    return _read(pid, "stat").rpartition(")")[2].split()


def _read(pid: int, file: str) -> str:
    try:
        return (_PROC / str(pid) / file).read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""
