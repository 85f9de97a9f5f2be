"""An upgrade, or a rollback, in the middle of removals, with the code of an earlier commit; by hand.

    git archive 267d433b | tar -x -C /tmp/old
    python -m tests.upgrades /tmp/old

A daemon of that commit begins them and is killed, and one of this checkout goes on; with `--back` the other way.
`--record FILE` writes what the first one has left, for `test_recorded`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio
import click
import orjson

from multikueue.core.model.kinds import WORKLOAD
from multikueue.core.model.objects import without
from multikueue.sandbox import Sandbox, SandboxOptions
from multikueue.sandbox.sandbox import SandboxCluster
from tests.kinds.cases import Case, definitions
from tests.kinds.ground import Cluster, Ground
from tests.upgrades.removals import begin, finish, overlaps, resources, rows

HERE = Path(__file__).resolve().parents[2]
_QUOTA = {"cpu": "16", "memory": "16Gi"}


@contextmanager
def daemon(code: Path, kubeconfig: Path) -> Iterator[None]:
    """Have a daemon of that code run, and kill it."""
    path = os.pathsep.join(map(str, (code, code / "daemon")))
    program = [sys.executable, str(Path(__file__).with_name("daemon.py")), str(kubeconfig)]
    with subprocess.Popen(program, env={**os.environ, "PYTHONPATH": path}, cwd=code) as process:
        try:
            yield
        finally:
            process.kill()


def _cluster(sandbox_cluster: SandboxCluster) -> Cluster:
    return Cluster(sandbox_cluster.name, sandbox_cluster.client("admin"))


async def _go(first: Path, then: Path, record: Path | None) -> None:
    kinds = [case.kind for case in rows()]
    options = SandboxOptions(quota=_QUOTA)
    with tempfile.TemporaryDirectory() as folder:
        async with Sandbox(2, options=options, kinds=kinds, crds=definitions(rows())) as sandbox:
            workers = {name: _cluster(worker) for name, worker in sandbox.workers.items()}
            ground = Ground(_cluster(sandbox.manager), workers, seconds=60.0, pace=0.1)
            kubeconfig = Path(folder, "manager")
            await anyio.Path(kubeconfig).write_bytes(orjson.dumps(sandbox.manager.server.kubeconfig("multikueue")))
            async with anyio.create_task_group() as tasks:
                await tasks.start(ground.follow, resources())
                with daemon(first, kubeconfig):
                    async with anyio.create_task_group() as beginning:
                        for case in rows():
                            beginning.start_soon(begin, ground, case)
                    await anyio.sleep(3.0)
                if record is not None:
                    await anyio.Path(record).write_bytes(await _left(ground))
                click.echo("the first daemon is killed")
                with daemon(then, kubeconfig):
                    async with anyio.create_task_group() as finishing:
                        for case in rows():
                            finishing.start_soon(_finish, ground, case)
                tasks.cancel_scope.cancel()
    for case in rows():
        for overlap in overlaps(ground, case):
            click.echo(overlap)


async def _finish(ground: Ground, case: Case) -> None:
    for name, error in (await finish(ground, case)).items():
        click.echo(f"{name}: {error}")
    click.echo(f"{case.name}: over")


async def _left(ground: Ground) -> bytes:
    """All that there is on each cluster, a line each; of Workloads, whose status several apply, with who wrote what."""
    lines = []
    for cluster in ground.clusters:
        for resource in resources():
            for item in (await cluster.client.list(resource)).items:
                kept = item if resource == WORKLOAD else without(item, [("metadata", "managedFields")])
                lines.append(
                    orjson.dumps([cluster.name, kept], option=orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE)
                )
    return b"".join(lines)


@click.command()
@click.argument("old", type=click.Path(exists=True, file_okay=False, resolve_path=True, path_type=Path))
@click.option("--back", is_flag=True, help="This checkout's daemon first.")
@click.option("--record", type=click.Path(path_type=Path), help="Write what the first daemon has left.")
def main(old: Path, back: bool, record: Path | None) -> None:
    """Go from the daemon of OLD, a folder with a checkout, to this one's."""
    first, then = (HERE, old) if back else (old, HERE)
    anyio.run(_go, first, then, record)


if __name__ == "__main__":
    main()
