"""`--keep`: leaves the clusters up, for use with kubectl, with files that go with them."""

from __future__ import annotations

import signal
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import anyio
import orjson
import yaml
from rich.console import Console

from multikueue import Json
from multikueue.core.model.objects import annotations_of
from multikueue.kube.kubernetes_yaml import KubernetesDumper
from multikueue.sandbox import Sandbox, SandboxKind
from multikueue.sandbox.jobs import DURATION_ANNOTATION
from multikueued.demo.jobs import drawn_job

DURATION: Final = "5s"
"""How long the sandbox runs a sample job."""


def sample(kind: SandboxKind) -> str:
    """A job of a kind as YAML, which can be created several times."""
    (job, *more) = drawn_job(kind, f"hello-{kind.name}", 1).objects
    noted = {DURATION_ANNOTATION: DURATION, **annotations_of(job)}
    for obj in (job, *more):
        obj["metadata"]["annotations"] = {**annotations_of(obj), **noted}
    if not more and not kind.gated:  # the names of a group's members and of a set's pods have a meaning
        job["metadata"] = {"generateName": f"{job['metadata'].pop('name')}-", **job["metadata"]}
    return yaml.dump_all((job, *more), Dumper=KubernetesDumper, sort_keys=False)


async def keep(sandbox: Sandbox, console: Console) -> None:
    """Write a kubeconfig of each cluster and a job of each kind, print how to use them, and wait for Ctrl-C."""
    # The receiver first: a signal must not end the process and leave the folder behind, because it holds tokens.
    with until_stopped() as stopped, kept_folder("multikueue-demo-") as folder:
        await _write(sandbox, folder)
        _tell(sandbox, folder, console)
        await stopped()


@contextmanager
def until_stopped() -> Iterator[Callable[[], Awaitable[None]]]:
    """Catch Ctrl-C and the order to end; what is yielded waits for it."""
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:

        async def stopped() -> None:
            async for _ in signals:
                return

        yield stopped


@contextmanager
def kept_folder(prefix: str) -> Iterator[Path]:
    """A folder that only this user can read, and that is deleted at the end."""
    with tempfile.TemporaryDirectory(prefix=prefix) as name:
        yield Path(name)


async def write_kubeconfig(file: Path, kubeconfig: Json) -> None:
    """Write a kubeconfig that only this user can read."""
    # As YAML: kubectl reads JSON as well, but people read this.
    text = yaml.dump(orjson.loads(orjson.dumps(kubeconfig)), Dumper=KubernetesDumper, sort_keys=False)
    await anyio.Path(file).write_text(text)
    await anyio.Path(file).chmod(0o600)


async def _write(sandbox: Sandbox, folder: Path) -> None:
    for cluster in sandbox.clusters:
        await write_kubeconfig(folder / f"{cluster.name}.yaml", cluster.kubeconfig)
    for kind in sandbox.kinds:
        await anyio.Path(folder / f"{kind.name}.yaml").write_text(sample(kind))


def _tell(sandbox: Sandbox, folder: Path, console: Console) -> None:
    first = sandbox.kinds[0]
    manager = f"kubectl --kubeconfig {folder / 'manager.yaml'}"
    lines = (
        "\nThe clusters stay up until you press Ctrl-C. A kubeconfig for each:",
        *(f"  {cluster.name:<10} {folder / cluster.name}.yaml" for cluster in sandbox.clusters),
        "\nTry:",
        f"  {manager} create -f {folder / f'{first.name}.yaml'}",
        f"  {manager} get {first.resource.plural} -w",
        f"  {manager} get workloads",
    )
    console.print(*lines, sep="\n", highlight=False, soft_wrap=True)
