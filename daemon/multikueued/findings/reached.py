"""A worker that the leader looks at."""

from __future__ import annotations

import attrs

from multikueue.core.model.names import Json
from multikueue.kube import ClusterConfig
from multikueue.protocols import ApiClient


@attrs.frozen
class Reached:
    """A worker that the daemon is connected to."""

    name: str
    config: ClusterConfig
    client: ApiClient
    """In use for everything else, too."""
    cluster: Json
