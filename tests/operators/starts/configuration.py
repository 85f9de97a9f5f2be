"""The file of settings that the managers of Kubernetes' own projects read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.operators.starts.start import Place


def configuration(place: Place, api_version: str, port: int, health: str, parts: Mapping[str, Any]) -> Path:
    """Write a `Configuration`: no Lease, no metrics, webhooks and health on this machine.

    Args:
        place: where the manager runs; the file is in its folder.
        api_version: of the project's settings.
        port: where its webhooks are served.
        health: host and port where it says whether it works.
        parts: what is different for this project: it is put in, mappings into those that are there.
    """
    settings: dict[str, Any] = {
        "apiVersion": api_version,
        "kind": "Configuration",
        "leaderElection": {"leaderElect": False},
        "webhook": {"host": "127.0.0.1", "port": port},
        "metrics": {"bindAddress": "0"},
        "health": {"healthProbeBindAddress": health},
    }
    for name, part in parts.items():
        settings[name] = {**settings.get(name, {}), **part}
    file = place.folder / "settings.yaml"
    file.write_text(yaml.safe_dump(settings))
    return file
