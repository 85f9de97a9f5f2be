"""Where the schemas and traces are that tests hold ours against. `README.md` says where they come from."""

from __future__ import annotations

from pathlib import Path
from typing import Final

_HERE: Final = Path(__file__).parent
KUEUES_CRDS: Final = _HERE / "crds" / "kueue"
"""Kueue's own CustomResourceDefinitions."""
JOB_CRDS: Final = _HERE / "crds" / "jobs"
"""Those of the job kinds, each in a file with the resource's name."""
OCM_CRDS: Final = _HERE / "crds" / "ocm"
"""Those of Open Cluster Management, and the ClusterProfile."""
TRACES: Final = _HERE / "traces"
"""A file a step: what a manager and a worker of a real Kueue had."""
PROTOBUF: Final = _HERE / "protobuf"
"""Bodies of kubectl, and beside them the same objects as it prints them in JSON."""
OPERATORS: Final = _HERE / "operators"
"""A folder a kind, a file a journey: the statuses that the kind's real controller wrote."""
LEFT: Final = _HERE / "upgrades" / "267d433b.jsonl"
"""What a daemon of that commit has left in the middle of removals, as `python -m tests.upgrades` records it."""
