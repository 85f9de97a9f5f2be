"""How the trainer is started, and the runtimes that its jobs name."""

from __future__ import annotations

from typing import Final

import yaml

from multikueue.core.model.names import Json
from multikueue.core.model.objects import clone
from tests.controlplane.ports import free_port
from tests.operators.starts.configuration import configuration
from tests.operators.starts.start import Place, Start, certified
from tests.operators.starts.training import CERTIFICATES
from tests.operators.starts.webhooks import registered
from tests.operators.table import TRAINER

ONCE, AGAIN = "torch-distributed", "torch-again"
"""Runtimes: the project's own, whose pods have one try here, and one whose JobSet begins once more after a failure."""
_FILE: Final = "torch_distributed.yaml"


async def trainer(place: Place) -> Start:
    """With its webhooks. A job's pods come from a runtime of the cluster, which makes a JobSet of it."""
    for runtime in _runtimes():
        await place.cluster.admin.apply(runtime)
    authority, port, health = certified(place.folder / CERTIFICATES), free_port(), f"127.0.0.1:{place.health}"
    parts = {"certManagement": {"enable": False}, "metrics": {"secureServing": False}}
    file = configuration(place, "config.trainer.kubeflow.org/v1alpha1", port, health, parts)
    return Start(
        arguments=(f"--config={file}",),
        health=f"http://{health}/readyz",
        environment={"TMPDIR": str(place.folder)},  # its certificate is below it
        webhooks=registered(TRAINER, f"https://127.0.0.1:{port}", authority),
    )


def _runtimes() -> list[Json]:
    once: Json = yaml.safe_load((TRAINER.folder / _FILE).read_text())
    (replicated,) = once["spec"]["template"]["spec"]["replicatedJobs"]
    replicated["template"]["spec"]["backoffLimit"] = 0
    again = clone(once)
    again["metadata"]["name"] = AGAIN
    again["spec"]["template"]["spec"]["failurePolicy"] = {"maxRestarts": 1}
    return [once, again]
