"""Counting requests by a kube-apiserver's audit log."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import orjson

from multikueue.core.names import Json
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


def count(log: Path) -> Requests:
    """Count what a log tells so far; a watch counts when it begins, everything else when it is answered."""
    found = Requests()
    if not log.exists():
        return found
    with log.open("rb") as lines:
        for line in lines:
            key = _key(orjson.loads(line)) if line.endswith(b"\n") else None
            if key is not None:
                found[key] += 1
    return found


def _key(event: Json) -> tuple[str, str, str] | None:
    user = event["user"]["username"]
    reference = event.get("objectRef")
    wanted = "ResponseStarted" if event["verb"] == "watch" else "ResponseComplete"
    if not user.startswith(_ACCOUNT) or reference is None or event["stage"] != wanted:
        return None
    group = reference.get("apiGroup")
    resource = f"{reference['resource']}.{group}" if group else reference["resource"]
    return user.removeprefix(_ACCOUNT), event["verb"], resource
