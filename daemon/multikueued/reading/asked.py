"""What a command asks about, and where."""

from __future__ import annotations

import attrs

from multikueue.kube import ClusterConfig


@attrs.frozen
class ReportTarget:
    """Where to look."""

    config: ClusterConfig
    namespace: str
    """Of jobs: -n, the context's, or `default`."""
    daemon_namespace: str


@attrs.frozen
class Asked:
    """What the command line asks for."""

    job: str
    """As the user wrote it."""
    target: ReportTarget
    origin: str = ""
    """The label of copies; empty: nobody asks for them."""
