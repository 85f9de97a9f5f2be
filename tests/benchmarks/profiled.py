"""`python profiled.py FILE ARGUMENTS...`: our daemon under cProfile, by its own CPU time."""

from __future__ import annotations

import cProfile
import sys
import time

from multikueued.cli import main


def profiled(file: str, arguments: list[str]) -> None:
    """Run the command line and write what was found, however it ends."""
    profile = cProfile.Profile(time.process_time)
    try:
        profile.runcall(main, arguments)
    finally:
        profile.dump_stats(file)


if __name__ == "__main__":
    profiled(sys.argv[1], sys.argv[2:])
