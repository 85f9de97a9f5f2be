"""The tables of `docs/kinds.md` that are made of code: what each kind was tried with, and whose `managedBy` works.

`python -m tests.operators.kinds_table` writes them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from multikueue.adapters import AVAILABLE, JobKind
from multikueue.adapters.declared import declared_kind
from multikueue.adapters.paths import FieldPath
from multikueue.adapters.profiles import PROFILES
from multikueue.core.model.labels import CONTROLLER_NAME
from multikueue.core.model.names import Json
from tests.controlplane.binaries import KUBERNETES
from tests.data.files import OPERATORS
from tests.docs.marked import replaced
from tests.operators import table
from tests.operators.table import Operator

PAGE: Final = Path(__file__).parents[2] / "docs" / "kinds.md"
WRITER: Final = "tests/operators/kinds_table.py"
KINDS: Final = (*AVAILABLE, *(declared_kind(profile) for profile in PROFILES.values()))
BY_KUBERNETES: Final = ("job", "statefulset")
"""Their pods are made by kube-controller-manager in `nox -s integration`; so are those of Deployments."""


def operators() -> Iterator[Operator]:
    """All controllers that can be built."""
    yield from (value for value in vars(table).values() if isinstance(value, Operator))


def recordings(name: str) -> list[Json]:
    """What real controllers have written of a kind."""
    return [json.loads(file.read_text()) for file in sorted((OPERATORS / name).glob("*.json"))]


def _tried(kind: JobKind) -> str:
    name = kind.resource.gvk.kind
    recorded = recordings(name.lower())
    if recorded:
        versions = ", ".join(dict.fromkeys(f"`{recording['controller']}`" for recording in recorded))
        usual = any(name.lower() in operator.kinds for operator in table.DEFAULT)
        session = "nox -s operators" if usual else "nox -s operators -- --all"
        return f"| {name} | {versions} | {max(recording['recorded'] for recording in recorded)} | `{session}` |"
    if name.lower() in BY_KUBERNETES:
        return f"| {name} | kube-controller-manager {KUBERNETES} | each run of the gate | `nox -s integration` |"
    return f"| {name} | | | the sandbox plays its controller: `tests/kinds` |"


def _heeds(kind: JobKind) -> str:
    path, heeding = kind.delegation.path, kind.delegation.heeding
    assert path is not None
    name, field = kind.resource.gvk.kind, f"`{str(FieldPath(path)).lstrip('.')}`"
    if path[:2] == ("metadata", "labels"):
        return f"| {name} | the label `{path[2]}` | any version | any version |"
    if heeding is None:
        return f"| {name} | {field} | not known | not known |"
    works = heeding.since or f"none up to {heeding.looked_at}: {heeding.instead}"
    return f"| {name} | {field} | {heeding.project} {heeding.field_since or heeding.since} | {works} |"


def tables() -> str:
    """As Markdown."""
    tried = ["| kind | controller | tried on | proven by |", "|---|---|---|---|", *(_tried(kind) for kind in KINDS)]
    saying = [kind for kind in KINDS if kind.delegation.path is not None]
    head = ["| kind | says who runs it in | has it from | its controller heeds it from |", "|---|---|---|---|"]
    text = f"With `{CONTROLLER_NAME}` in this field the manager's own controller leaves a job alone:"
    return "\n".join((*tried, "", text, "", *head, *(_heeds(kind) for kind in saying)))


if __name__ == "__main__":
    PAGE.write_text(replaced(PAGE.read_text(), WRITER, tables()))
