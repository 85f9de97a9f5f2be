"""`--keep`: the clusters stay up, and kubectl works against them."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Final

import anyio
import orjson
import yaml
from rich.console import Console

from multikueue.sandbox import Sandbox

SAMPLE_JOB: Final = """\
apiVersion: batch/v1
kind: Job
metadata:
  generateName: hello-
  labels:
    kueue.x-k8s.io/queue-name: user-queue
  annotations:
    sandbox.multikueue.dev/duration: 5s      # how long the sandbox lets it run
spec:
  suspend: true
  managedBy: kueue.x-k8s.io/multikueue
  template:
    spec:
      restartPolicy: Never
      containers:
        - name: main
          image: registry.k8s.io/pause:3.10
          resources:
            requests:
              cpu: "1"
"""


async def keep(sandbox: Sandbox, folder: Path, console: Console) -> None:
    """Write a kubeconfig per cluster and a Job to try, say how to use them, and wait for Ctrl-C."""
    for cluster in sandbox.clusters:
        file = anyio.Path(folder / f"{cluster.name}.yaml")
        # YAML of plain values: kubectl reads JSON as well, but people read this.
        await file.write_text(yaml.safe_dump(orjson.loads(orjson.dumps(cluster.kubeconfig)), sort_keys=False))
        await file.chmod(0o600)
    await anyio.Path(folder / "job.yaml").write_text(SAMPLE_JOB)
    # The receiver first: whoever reads the hints may press Ctrl-C at once.
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        console.print("\nThe clusters stay up until you press Ctrl-C. A kubeconfig for each:", highlight=False)
        for cluster in sandbox.clusters:
            console.print(f"  {cluster.name:<10} {folder / cluster.name}.yaml", highlight=False, soft_wrap=True)
        manager = f"kubectl --kubeconfig {folder / 'manager.yaml'}"
        console.print("\nTry:", highlight=False)
        for command in (
            f"{manager} create -f {folder / 'job.yaml'}",
            f"{manager} get jobs -w",
            f"{manager} get workloads",
        ):
            console.print(f"  {command}", highlight=False, soft_wrap=True)
        async for _ in signals:
            return
