"""What a run was made with and how it went, as a file for the repository: which kinds were proven by what, and when."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import attrs

from multikueue.core.model.names import Json
from tests.controlplane.binaries import KUBERNETES
from tests.operators import table
from tests.operators.table import Operator

ROOT: Final = Path(__file__).parent.parent.parent
KUBE: Final = "kube-controller-manager"
"""Who runs the kinds that come with Kubernetes."""
_NOT_GIT: Final = "unknown"


@attrs.frozen
class Walk:
    """One way of one kind."""

    kind: str
    way: str
    seconds: float
    """How long it took, beside all that went on at the same time."""
    error: str = ""
    details: Mapping[str, Any] = attrs.field(factory=dict)


@attrs.frozen
class Done:
    """One test, with all its ways, and what it had to wait for before."""

    name: str
    outcome: str
    seconds: float


@attrs.define(eq=False)
class Results:
    """What has been done in this session."""

    began: float = attrs.field(factory=time.monotonic)
    commit: str = ""
    """What is tested: files may change while it runs."""
    walks: list[Walk] = attrs.field(factory=list)
    tests: list[Done] = attrs.field(factory=list)

    def written(self, now: datetime, machine: Json) -> Json:
        """Everything, as it is written."""
        return {
            "date": f"{now:%Y-%m-%d}",
            "commit": self.commit,
            "machine": machine,
            "seconds": round(time.monotonic() - self.began),
            "passed": sum(test.outcome == "passed" for test in self.tests),
            "not_passed": [attrs.asdict(test) for test in self.tests if test.outcome != "passed"],
            "controllers": controllers(self.walks),
            "tests": {test.name: round(test.seconds) for test in self.tests},
        }

    def write(self, file: Path) -> None:
        """Write it all to a file of the checkout, or to another."""
        file.parent.mkdir(parents=True, exist_ok=True)
        results = self.written(datetime.now(UTC), machine())
        file.write_text(json.dumps(results, indent=1) + "\n")


RESULTS: Final = Results()
"""Of this process: pytest's session has no other place that a journey could write to."""


def controllers(walks: Sequence[Walk]) -> list[Json]:
    """Each controller with its version, and what its kinds went; tests of older versions are told as tests only."""
    known = [value for value in vars(table).values() if isinstance(value, Operator) and not value.older]
    rows = [(operator.name, operator.module, operator.version, operator.kinds) for operator in known]
    walked = {kind for _, _, _, kinds in rows for kind in kinds}
    rest = tuple(dict.fromkeys(walk.kind for walk in walks if walk.kind not in walked))
    walked_kinds = [(name, module, version, _kinds(kinds, walks)) for name, module, version, kinds in rows]
    walked_kinds.append((KUBE, "k8s.io/kubernetes", KUBERNETES, _kinds(rest, walks)))
    return [
        {"name": name, "module": module, "version": version, "kinds": kinds}
        for name, module, version, kinds in walked_kinds
        if kinds
    ]


def _kinds(kinds: Sequence[str], walks: Sequence[Walk]) -> Json:
    """By kind, the ways it went and the seconds each took; of one that failed, why."""
    by_kind: Json = {}
    for walk in walks:
        if walk.kind in kinds:
            result = {
                **walk.details,
                "seconds": round(walk.seconds, 1),
                **({"error": walk.error} if walk.error else {}),
            }
            by_kind.setdefault(walk.kind, {})[walk.way] = result if len(result) > 1 else result["seconds"]
    return by_kind


def machine() -> Json:
    """What it ran on, and how busy that was."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
        "memory_gib": round(memory / 2**30),
        "python": platform.python_version(),
        "load_of_15_minutes": round(os.getloadavg()[2], 1),
    }


def commit() -> str:
    """What was tested; it says so if files had been changed since."""
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty=, changed", "--abbrev=12", "--exclude=*"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10.0).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return _NOT_GIT
