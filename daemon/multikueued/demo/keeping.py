"""`--keep`: the clusters stay up, and kubectl works against them."""

from __future__ import annotations

import signal
import tempfile
from pathlib import Path
from typing import Final

import anyio
import orjson
import yaml
from rich.console import Console

from multikueue.sandbox import Sandbox
from multikueue.sandbox.jobs import DURATION_ANNOTATION
from multikueue.sandbox.kinds import SandboxKind
from multikueued.demo.jobs import drawn_job

DURATION: Final = "5s"
"""How long the sandbox lets a sample run."""


def sample(kind: SandboxKind) -> str:
    """A job of a kind, as YAML to create again and again."""
    (job, *more) = drawn_job(kind, f"hello-{kind.name}", 1).objects
    noted = {DURATION_ANNOTATION: DURATION, **(job["metadata"].get("annotations") or {})}
    for obj in (job, *more):
        obj["metadata"]["annotations"] = {**(obj["metadata"].get("annotations") or {}), **noted}
    if not more and not kind.gated:  # members of a group, and the pods of a set, are known by their names
        job["metadata"] = {"generateName": f"{job['metadata'].pop('name')}-", **job["metadata"]}
    return yaml.safe_dump_all((job, *more), sort_keys=False)


async def keep(sandbox: Sandbox, console: Console) -> None:
    """Write a kubeconfig per cluster and a job of each kind to try, say how to use them, and wait for Ctrl-C."""
    # The receiver first: a signal must not end the process and leave the folder, which holds tokens.
    with (
        anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals,
        tempfile.TemporaryDirectory(prefix="multikueue-demo-") as name,
    ):
        folder = Path(name)
        await _write(sandbox, folder)
        _tell(sandbox, folder, console)
        async for _ in signals:
            return


async def _write(sandbox: Sandbox, folder: Path) -> None:
    for cluster in sandbox.clusters:
        file = anyio.Path(folder / f"{cluster.name}.yaml")
        # YAML of plain values: kubectl reads JSON as well, but people read this.
        await file.write_text(yaml.safe_dump(orjson.loads(orjson.dumps(cluster.kubeconfig)), sort_keys=False))
        await file.chmod(0o600)
    for kind in sandbox.kinds:
        await anyio.Path(folder / f"{kind.name}.yaml").write_text(sample(kind))


def _tell(sandbox: Sandbox, folder: Path, console: Console) -> None:
    console.print("\nThe clusters stay up until you press Ctrl-C. A kubeconfig for each:", highlight=False)
    for cluster in sandbox.clusters:
        console.print(f"  {cluster.name:<10} {folder / cluster.name}.yaml", highlight=False, soft_wrap=True)
    first = sandbox.kinds[0]
    manager = f"kubectl --kubeconfig {folder / 'manager.yaml'}"
    console.print("\nTry:", highlight=False)
    for command in (
        f"{manager} create -f {folder / f'{first.name}.yaml'}",
        f"{manager} get {first.resource.plural} -w",
        f"{manager} get workloads",
    ):
        console.print(f"  {command}", highlight=False, soft_wrap=True)
