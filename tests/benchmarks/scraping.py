"""What our daemon tells of itself: how many decisions it has made, a snapshot and a plan each, and whether it has read
all of the manager."""

from __future__ import annotations

import urllib.error
import urllib.request
from pathlib import Path
from typing import Final

import orjson

_RECONCILES: Final = 'multikueue_reconcile_seconds_count{controller="multikueue_workload"}'
_LEADS: Final = "multikueue_leading 1"
_SECONDS: Final = 10.0


def decisions(log: Path) -> int | None:
    """How many Workloads it has reconciled so far; None if the controller under test is another, or does not say.

    Args:
        log: of the controller under test: our daemon writes there on which port it serves.
    """
    port = _port(log)
    if port is None:
        return None
    lines = [line.rpartition(" ")[2] for line in _get(port, "metrics").splitlines() if line.startswith(_RECONCILES)]
    return round(float(lines[0])) if lines else 0


def has_read_the_manager(log: Path) -> bool:
    """Whether the manager's caches are complete: it leads (`multikueue_leading`) and is ready (`/readyz`).

    Args:
        log: as for `decisions`.
    """
    port = _port(log)
    if port is None:
        return False
    try:
        leads = any(line.startswith(_LEADS) for line in _get(port, "metrics").splitlines())
        _get(port, "readyz")  # after that: a standby is ready, and may have begun to lead meanwhile
        return leads
    except urllib.error.HTTPError:  # 503: not yet
        return False


def _get(port: int, path: str) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/{path}", timeout=_SECONDS) as answer:
        text: str = answer.read().decode()
    return text


def _port(log: Path) -> int | None:
    for line in log.read_bytes().splitlines():
        if b'"serving"' not in line:
            continue
        try:
            entry = orjson.loads(line)
        except orjson.JSONDecodeError:
            continue
        if entry.get("event") == "serving":
            return int(entry["port"])
    return None
