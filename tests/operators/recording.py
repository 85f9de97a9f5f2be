"""Recordings of what real controllers wrote into statuses, for unit tests to hold the sandbox's kinds against."""

from __future__ import annotations

import json
import os
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from multikueue.core.model.names import Json
from tests.data.files import OPERATORS
from tests.operators.ground import OperatorsGround, Recorded
from tests.operators.journeys import Row
from tests.operators.table import Operator

VARIABLE: Final = "MULTIKUEUE_RECORD"
"""Set, the journeys' statuses are written below `tests/data/operators`."""
WAYS: Final = ("finishes", "fails", "pauses", "hurt")
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_RANDOM: Final = re.compile(r"(?<=-)[a-z0-9]{5}\b")
_NODE: Final = re.compile(r"(?<=NAME-)\d{5,}")
"""What Argo calls a step of a Workflow."""
_ROLE: Final = re.compile(r"\b(Chief|Master|Worker)(?= replica)")
_NUMBERED: Final = ("lastUpdateTime", "observedGeneration", "uid", "podIP", "serviceIP", "resourcesDuration")


def record(ground: OperatorsGround, operator: Operator, rows: list[Row]) -> None:
    """Write down how the statuses of the journeys' jobs went, if it was asked for."""
    if VARIABLE not in os.environ:
        return
    for row in rows:
        folder = OPERATORS / row.case.name
        folder.mkdir(parents=True, exist_ok=True)
        for way in WAYS:
            statuses = _statuses(ground, row, row.job(way))
            if statuses:
                noted = {
                    "controller": f"{operator.module} {operator.version}",
                    "recorded": f"{datetime.now(UTC):%Y-%m-%d}",
                }
                text = json.dumps({**noted, "statuses": statuses}, indent=1, sort_keys=True)
                (folder / f"{way}.json").write_text(text + "\n")


def _statuses(ground: OperatorsGround, row: Row, name: str) -> list[Json]:
    """The statuses of a job's first copy, each as it was first, on the worker that had it first."""
    where = ground.ran_on(row.case.kind, name)
    if not where:
        return []
    worker = ground.workers[where[0]]
    assert isinstance(worker, Recorded)
    distinct: list[Json] = []
    for status in worker.statuses(row.case.kind.resource, name, alive=True):
        plain: Json = normalised(status, name)
        if plain not in distinct[-1:]:
            distinct.append(plain)
    return distinct


def normalised(value: Any, name: str) -> Any:
    """Without what is different each time: times, random ends of names, addresses, which of two roles failed first."""
    if isinstance(value, dict):
        return {normalised(key, name): normalised(part, name) for key, part in value.items() if key not in _NUMBERED}
    if isinstance(value, list):
        return [normalised(part, name) for part in value]
    if isinstance(value, str):
        text = _TIME.sub("TIME", value).replace(name, "NAME")
        text = _NODE.sub("NUMBER", _ROLE.sub("ROLE", text))
        return _RANDOM.sub("RANDOM", text) if "NAME-" in text else text
    return value


def read(path: Path) -> list[Json]:
    """The statuses of a recording."""
    statuses: list[Json] = json.loads(path.read_text())["statuses"]
    return statuses
