"""Counting requests by a kube-apiserver's audit log."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO, Final

import attrs
import orjson

from multikueue.core.model.names import Json
from tests.benchmarks.components import Requests

POLICY: Final = """\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: None # the API server's own
  userGroups: ["system:masters"]
- level: None
  nonResourceURLs: ["*"]
- level: Metadata
"""
"""Who asked for what, without bodies."""

_ACCOUNT: Final = "system:serviceaccount:default:"


@attrs.define(eq=False)
class AuditLog:
    """One server's log, read on from where it was read before."""

    file: Path
    _read: int = attrs.field(default=0, init=False)
    _counted: Requests = attrs.field(factory=Requests, init=False)

    def count(self) -> Requests:
        """All requests so far; a watch counts when it begins, everything else when it is answered."""
        if self.file.exists():
            with self.file.open("rb") as lines:
                lines.seek(self._read)
                self._read_on(lines)
        return self._counted.copy()

    def _read_on(self, lines: BinaryIO) -> None:
        for line in lines:
            if not line.endswith(b"\n"):
                return  # it is being written
            self._read += len(line)
            key = _key(orjson.loads(line))
            if key is not None:
                self._counted[key] += 1


def _key(event: Json) -> tuple[str, str, str] | None:
    user = event["user"]["username"]
    reference = event.get("objectRef")
    wanted = "ResponseStarted" if event["verb"] == "watch" else "ResponseComplete"
    if not user.startswith(_ACCOUNT) or reference is None or event["stage"] != wanted:
        return None
    group = reference.get("apiGroup")
    resource = f"{reference['resource']}.{group}" if group else reference["resource"]
    return user.removeprefix(_ACCOUNT), event["verb"], resource
