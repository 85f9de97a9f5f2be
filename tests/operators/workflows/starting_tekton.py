"""How Tekton's controller is started."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import yaml

from multikueue.core.model.names import Json
from tests.controlplane.ports import free_port
from tests.operators.starts.start import NAMESPACE, Place, Start
from tests.operators.table import TEKTON

_IMAGES: Final = ("entrypoint", "nop", "sidecarlogresults", "workingdirinit", "shell")
_CONFIGURED: Final = {
    "CONFIG_DEFAULTS_NAME": "config-defaults",
    "CONFIG_LOGGING_NAME": "config-logging",
    "CONFIG_OBSERVABILITY_NAME": "config-observability",
    "CONFIG_FEATURE_FLAGS_NAME": "feature-flags",
    "CONFIG_SPIRE": "config-spire",
}


_SERVICE: Final = "tekton-pipelines-webhook"


async def tekton(place: Place) -> Start:
    """With the settings of its release, and its webhook, which is a program of its own.

    Knative's webhooks are registered by the name of a Service only, and get their certificates for it: so there is one,
    and it names this machine.
    """
    port = free_port()
    for obj in (*_settings(), _SECRET, _service()):
        await place.cluster.admin.apply(obj)
    images = (f"-{image}-image={image}" for image in _IMAGES)
    webhook = Start(
        program="webhook",
        arguments=(),
        health=f"http://127.0.0.1:{(probes := free_port())}/readiness",
        environment=_environment(probes, "webhook") | {"WEBHOOK_PORT": str(port)},
        webhooks_port=port,
    )
    return Start(
        arguments=(*images, "-shell-image-win=shell", "-disable-ha", "-kube-api-qps=50", "-kube-api-burst=100"),
        health=f"http://127.0.0.1:{place.health}/readiness",
        environment=_environment(place.health, "controller"),
        beside=(webhook,),
        webhooks=_webhooks(port),
    )


def _environment(probes: int, elects: str) -> dict[str, str]:
    """What a Deployment of Tekton's gives its program, and ports of this machine."""
    ports = {"PROBES_PORT": probes, "METRICS_PROMETHEUS_PORT": free_port(), "PROFILING_PORT": free_port()}
    names = {**_CONFIGURED, "CONFIG_LEADERELECTION_NAME": f"config-leader-election-{elects}"}
    where = {"SYSTEM_NAMESPACE": NAMESPACE, "METRICS_DOMAIN": "tekton.dev/pipeline"}
    return {**where, **names, **{name: str(port) for name, port in ports.items()}}


_SECRET: Final[Json] = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "webhook-certs", "namespace": NAMESPACE},
}
"""Where the webhook keeps the certificates that it makes."""


def _service() -> Json:
    metadata = {"name": _SERVICE, "namespace": NAMESPACE}
    spec = {"type": "ExternalName", "externalName": "localhost"}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}


def _settings() -> list[Json]:
    """The ConfigMaps of the module."""
    settings = [obj for file in sorted(TEKTON.folder.glob("config-*.yaml")) for obj in _objects(file)]
    return [{**obj, "metadata": {**obj["metadata"], "namespace": NAMESPACE}} for obj in settings]


def _webhooks(port: int) -> tuple[Json, ...]:
    """The configurations of the module; the webhook writes into them what it is asked about."""
    webhooks = [obj for obj in _objects(TEKTON.folder / "500-webhooks.yaml") if "webhooks" in obj]
    for obj in webhooks:
        for webhook in obj["webhooks"]:
            webhook["clientConfig"] = {"service": {"name": _SERVICE, "namespace": NAMESPACE, "port": port}}
    return tuple(webhooks)


def _objects(file: Path) -> list[Json]:
    return [obj for obj in yaml.safe_load_all(file.read_text()) if obj]
