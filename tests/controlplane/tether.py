"""Run a command that dies with the process that started it: `python tether.py PARENT_PID COMMAND ARGUMENTS...`.

The test run may be killed without a chance to clean up (SIGKILL, a closed terminal, the out-of-memory killer). Linux
then kills the command, because it was asked to (PR_SET_PDEATHSIG, kept across exec). MoveTargets there is no such wish:
after a killed test run, end the leftover `etcd` and `kube-apiserver` processes by hand.

A script of its own instead of a `preexec_fn`, which is unsafe in a process with threads. It imports nothing of ours.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main() -> None:
    """Ask for the signal, check that the parent is still there, become the command."""
    parent, command = int(sys.argv[1]), sys.argv[2:]
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit(f"{command[0]} is not started: the test run has ended")
    os.execv(command[0], command)


if __name__ == "__main__":
    main()
