"""Run them all, and write what they did to `docs/results/clients.json`: `python -m tests.clients FOLDER`.

FOLDER holds an environment for each of `PACKAGES`, which ours has not: `python -m tests.clients` alone prints what
each needs. kubectl is the pinned one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Final

import anyio
import attrs

from multikueue.core.model.kinds import JOB
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import dig
from multikueue.sandbox import Sandbox, SandboxOptions
from multikueue.sandbox.setting_up import KUEUE_NAMESPACE
from multikueue.testing import until
from multikueued.demo.run import config_of
from multikueued.run.daemon import work
from multikueued.run.leadership import Leadership
from multikueued.settings.config import RetentionSettings, ServingSettings, Settings
from tests.clients.programs import PROGRAMS
from tests.controlplane.binaries import KUBERNETES, find_kubectl
from tests.mirrors.sandboxes import mirrored

TARGET: Final = Path(__file__).parents[2] / "docs" / "results" / "clients.json"
SCRIPT: Final = Path(__file__).parent / "programs.py"
PACKAGES: Final = {
    "kr8s": ("kr8s",),
    "kubernetes": ("kubernetes",),
    "dagster-k8s": ("dagster-k8s", "kubernetes"),
    "prefect-kubernetes": ("prefect-kubernetes",),
    "apache-airflow": ("apache-airflow", "apache-airflow-providers-cncf-kubernetes"),
}
"""What is installed for whom, each in an environment of its own: the first is what is run."""
SETTINGS: Final = Settings(
    namespace=KUEUE_NAMESPACE,
    serving=ServingSettings(bind_address="127.0.0.1", port=0),
    retention=RetentionSettings(finished=timedelta(minutes=5)),
)


def manifest(name: str, seconds: float, outcome: str = "complete", cpu: int = 1) -> Json:
    """A job as a user submits it; what it does is played."""
    notes = {"sandbox.multikueue.dev/duration": f"{seconds}s", "sandbox.multikueue.dev/outcome": outcome}
    container = {"name": "main", "image": "train:1", "resources": {"requests": {"cpu": str(cpu)}}}
    metadata = {"name": name, "namespace": "default", "labels": {"kueue.x-k8s.io/queue-name": "user-queue"}}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    spec = {"managedBy": "kueue.x-k8s.io/multikueue", "suspend": True, "backoffLimit": 0, "template": template}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {**metadata, "annotations": notes}, "spec": spec}


def python_of(programs: Path, program: str) -> str:
    """Of the environment that it is in: `PROGRAM, HOW` is another way to use PROGRAM."""
    name = program.partition(",")[0]
    return str(programs / name / "bin" / "python") if name in PACKAGES else sys.executable


@attrs.frozen
class Fleet:
    """A manager with jobs, and the environments of programs that use it."""

    sandbox: Sandbox
    programs: Path
    environment: dict[str, str]

    async def submit(self, *jobs: Json) -> None:
        """Create jobs."""
        for job in jobs:
            await self.sandbox.manager.client("admin").create(JOB, job)

    async def running(self, name: str) -> None:
        """Wait until a job runs."""

        async def runs() -> bool:
            job = await self.sandbox.manager.client("admin").get(JOB, ObjectKey("default", name))
            return bool(dig(job, "status", "active"))

        await until(runs)

    async def ran(self, program: str, deed: str, job: str) -> Json:
        """What a program says."""
        command = [python_of(self.programs, program), str(SCRIPT), program, deed, job]
        ended = await anyio.run_process(command, env=self.environment, check=False, stderr=subprocess.DEVNULL)
        said: Json = json.loads(ended.stdout.decode().strip().splitlines()[-1])
        return said


@asynccontextmanager
async def dispatched(sandbox: Sandbox) -> AsyncIterator[None]:
    """While it lasts, our daemon dispatches, and shows no pods."""
    async with anyio.create_task_group() as tasks:
        config = config_of(sandbox.manager.server.kubeconfig("multikueue"))
        tasks.start_soon(work, SETTINGS, config, Leadership(elected=True))
        yield
        tasks.cancel_scope.cancel()


@asynccontextmanager
async def fleet(programs: Path, *, mirrors: bool) -> AsyncIterator[Fleet]:
    """One with two workers and our daemon."""
    async with (
        Sandbox(workers=2, options=SandboxOptions(pods=True)) as sandbox,
        mirrored(sandbox) if mirrors else dispatched(sandbox),
    ):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "kubeconfig"
            file.write_text(json.dumps(sandbox.manager.kubeconfig))
            path = f"{find_kubectl().parent}:{os.environ['PATH']}"
            homes = {"HOME": folder, "AIRFLOW_HOME": folder}
            yield Fleet(sandbox, programs, {"PATH": path, **homes, "KUBECONFIG": str(file)})


async def each(programs: Path, mirrors: bool) -> Json:
    """What each program did, by what was asked of it."""
    rows: dict[str, Json] = {}
    async with fleet(programs, mirrors=mirrors) as here:
        for number, program in enumerate(PROGRAMS):
            full = [manifest(f"full-{number}-{half}", 3, cpu=4) for half in "ab"]
            await here.submit(*full)
            await here.running(f"full-{number}-a")
            await here.submit(manifest(f"queued-{number}", 3))
            queued = await here.ran(program, "wait", f"queued-{number}")
            await here.submit(manifest(f"fails-{number}", 1.5, "fail"))
            fails = await here.ran(program, "wait", f"fails-{number}")
            await here.submit(manifest(f"says-{number}", 60))
            await here.running(f"says-{number}")
            logs = await here.ran(program, "logs", f"says-{number}")
            rows[program] = {"queued, then succeeds": queued, "fails": fails, "log while it runs": logs}
            await here.sandbox.manager.client("admin").delete(
                JOB, ObjectKey("default", f"says-{number}"), propagation="Background"
            )
            sys.stderr.write(f"{program}: {json.dumps(rows[program])}\n")
    return rows


def versions(programs: Path) -> dict[str, str]:
    """Of what was run."""
    told = {"kubectl": KUBERNETES.removeprefix("v")}
    for name in PACKAGES:
        code = f"import importlib.metadata as m; print(m.version({name!r}))"
        command = [python_of(programs, name), "-c", code]
        told[name] = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    return told


def main() -> None:
    """Run them, and write the results."""
    if not sys.argv[1:]:
        sys.stdout.write("".join(f"{' '.join(packages)}\n" for packages in PACKAGES.values()))
        return
    programs = Path(sys.argv[1]).absolute()
    states = {"mirrors off": False, "mirrors on": True}
    result = {"versions": versions(programs), **{state: anyio.run(each, programs, on) for state, on in states.items()}}
    TARGET.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
