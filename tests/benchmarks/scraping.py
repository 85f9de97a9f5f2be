"""How many decisions our daemon has made, as its metrics tell: one snapshot and one plan each."""

from __future__ import annotations

import urllib.request
from pathlib import Path
from typing import Final

import orjson

_RECONCILES: Final = 'multikueue_reconcile_seconds_count{controller="multikueue_workload"}'
_SECONDS: Final = 10.0


def decisions(log: Path) -> int | None:
    """How many Workloads it has reconciled so far; None if the controller under test is another, or does not say.

    Args:
        log: of the controller under test: our daemon writes there on which port it serves.
    """
    port = _port(log)
    if port is None:
        return None
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=_SECONDS) as answer:
        lines = answer.read().decode().splitlines()
    found = [line.rpartition(" ")[2] for line in lines if line.startswith(_RECONCILES)]
    return round(float(found[0])) if found else 0


def _port(log: Path) -> int | None:
    for line in log.read_bytes().splitlines():
        if b'"serving"' not in line:
            continue
        try:
            told = orjson.loads(line)
        except orjson.JSONDecodeError:
            continue
        if told.get("event") == "serving":
            return int(told["port"])
    return None
