"""How LeaderWorkerSet's manager is started."""

from __future__ import annotations

from tests.controlplane.ports import free_port
from tests.operators.starts.configuration import configuration
from tests.operators.starts.start import Place, Start, certified
from tests.operators.starts.webhooks import registered
from tests.operators.table import LWS


async def lws(place: Place) -> Start:
    """With its webhooks: they give the pods their labels, by which the manager knows a group."""
    authority, port, health = certified(place.folder), free_port(), f"127.0.0.1:{place.health}"
    parts = {"internalCertManagement": {"enable": False}, "webhook": {"certDir": str(place.folder)}}
    file = configuration(place, "config.lws.x-k8s.io/v1alpha1", port, health, parts)
    return Start(
        arguments=(f"--config={file}",),
        health=f"http://{health}/readyz",
        webhooks=registered(LWS, f"https://127.0.0.1:{port}", authority),
        webhooks_port=port,
    )
