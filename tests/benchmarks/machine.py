"""What a result was measured on, and with: without it nobody can compare two."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import subprocess
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from multikueue.core.model.names import Json

_ROOT: Final = Path(__file__).parents[2]
_PACKAGES: Final = ("multikueue", "aiohttp", "anyio", "orjson", "uvloop")


def machine() -> Json:
    """Date, cores, load, speed and versions, and the commit of this working tree."""
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M"),
        "cores": os.cpu_count(),
        "processor": _processor(),
        "load": round(os.getloadavg()[0], 1),
        "reference_cpu_ms": reference_cpu_ms(),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "versions": {name: version for name in _PACKAGES if (version := _version(name))},
        "commit": _commit(),
    }


def reference_cpu_ms() -> float:
    """CPU milliseconds of a fixed piece of work: tells how much slower a busy machine is."""
    best = float("inf")
    for _ in range(5):
        began = time.process_time()
        value: Json = {str(number): {"a": [number]} for number in range(20_000)}
        sum(len(json.dumps(item)) for item in value.values())
        best = min(best, time.process_time() - began)
    return round(best * 1000, 1)


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _commit() -> str:
    """The commit, with `-dirty` behind it if files were changed since; empty outside of a working tree."""
    command = ["git", "-C", str(_ROOT), "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""
