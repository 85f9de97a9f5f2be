"""How the training operator is started."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Final

from tests.controlplane.ports import free_port
from tests.operators.starts.start import NAMESPACE, Place, Start, certified
from tests.operators.starts.webhooks import registered
from tests.operators.table import TRAINING

CERTIFICATES: Final = Path("k8s-webhook-server", "serving-certs")
"""Where the webhooks' certificate is, below the folder for temporary files."""
IGNORING: Final = "jaxjob"
"""Its controller runs every job, whoever `managedBy` says is to run it, in this version and all before."""


async def training(place: Place) -> Start:
    """With its webhooks; on the manager without JAXJobs, which it would touch though they are not its own.

    It makes a certificate for its Service, which nobody has here, and puts it into a Secret that it expects to be
    mounted. So it is given another one, which the API server can ask it by.
    """
    authority, port, health = certified(place.folder / CERTIFICATES), free_port(), f"127.0.0.1:{place.health}"
    # It looks whether there is a certificate at this path of the machine, but serves the one in its own folder.
    certified(Path(tempfile.gettempdir()) / CERTIFICATES)
    name = "training-operator-webhook-cert"
    await place.cluster.admin.apply(
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": NAMESPACE}}
    )
    kinds = [kind for kind in TRAINING.kinds if place.cluster.name != "manager" or kind != IGNORING]
    return Start(
        arguments=(
            "--metrics-bind-address=0",
            f"--health-probe-bind-address={health}",
            f"--webhook-server-port={port}",
            "--kube-api-qps=100",
            "--kube-api-burst=100",
            *(f"--enable-scheme={kind}" for kind in kinds),
        ),
        health=f"http://{health}/readyz",
        environment={"MY_POD_NAMESPACE": NAMESPACE, "TMPDIR": str(place.folder)},
        webhooks=registered(TRAINING, f"https://127.0.0.1:{port}", authority, only=kinds),
    )
