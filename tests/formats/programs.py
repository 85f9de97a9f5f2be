"""Small programs in Go, beside this file, that ask libraries of others at pinned versions."""

from __future__ import annotations

import subprocess
from pathlib import Path


def built(name: str, into: Path) -> Path:
    """Compile the program in a folder here; the first time, its modules are fetched and compiled for minutes.

    Args:
        name: of the folder.
        into: an empty folder.
    """
    program, source = into / name, Path(__file__).parent / name
    subprocess.run(["go", "build", "-mod=readonly", "-o", str(program), "."], cwd=source, check=True, timeout=1500)
    return program


def answered(program: Path, lines: list[str]) -> list[str]:
    """What it says of each line, in a line."""
    done = subprocess.run(
        [program], input="\n".join([*lines, ""]), capture_output=True, text=True, check=True, timeout=100
    )
    return done.stdout.splitlines()
