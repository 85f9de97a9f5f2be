"""Objects recorded from a real manager and worker."""

from __future__ import annotations

import json
from collections.abc import Iterator

import attrs

from multikueue.core.model.names import Json
from tests.data.files import TRACES


@attrs.frozen
class Recorded:
    """One object as it was at one step."""

    step: str
    side: str
    object: Json

    def __str__(self) -> str:
        return f"{self.step} {self.side} {self.object['metadata']['name']}"

    @property
    def owned_by_kueue(self) -> Json:
        """The status fields that Kueue's core owns by server-side apply, as managedFields say it."""
        for entry in self.object["metadata"].get("managedFields", []):
            applied = (entry["manager"], entry["operation"]) == ("kueue-admission", "Apply")
            if applied and entry.get("subresource") == "status":
                owned: Json = entry["fieldsV1"].get("f:status", {})
                return owned
        return {}


def recorded(kind: str, side: str | None = None) -> list[Recorded]:
    """All recorded objects of a kind (`workloads`, `jobs`), of one side or both."""
    return list(_recorded(kind, side))


def _recorded(kind: str, wanted: str | None) -> Iterator[Recorded]:
    for path in sorted(TRACES.glob("*.json")):
        trace = json.loads(path.read_text())
        for side in ("manager", "worker"):
            if wanted in (None, side):
                for obj in trace[side][kind]:
                    yield Recorded(path.stem, side, obj)
