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
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Final

import anyio
import attrs

from multikueue.core.model.kinds import JOB, POD
from multikueue.core.model.names import GVK, Json, ObjectKey, Resource
from multikueue.core.model.objects import controller_of, dig, name_of
from multikueue.errors import NotFound
from multikueue.sandbox import Sandbox, SandboxOptions
from multikueue.sandbox.jobs import DURATION_ANNOTATION, OUTCOME_ANNOTATION
from multikueue.sandbox.kinds import AVAILABLE, BATCH_JOB, SandboxKind, definition
from multikueue.sandbox.setting_up import KUEUE_NAMESPACE
from multikueue.testing import until
from multikueued.demo.run import config_of
from multikueued.run.daemon import work
from multikueued.run.leadership import Leadership
from multikueued.settings.config import IntegrationSettings, RetentionSettings, ServingSettings, Settings
from tests.clients.programs import PROGRAMS
from tests.controlplane.binaries import KUBERNETES, find_kubectl
from tests.mirrors.sandboxes import mirrored

TARGET: Final = Path(__file__).parents[2] / "docs" / "results" / "clients.json"
SCRIPT: Final = Path(__file__).parent / "programs.py"
PACKAGES: Final = {
    "kr8s": ("kr8s==0.20.15",),
    "kubernetes": ("kubernetes==37.0.2",),
    "dagster-k8s": ("dagster-k8s==0.29.27", "kubernetes"),
    "prefect-kubernetes": ("prefect-kubernetes==0.8.0",),
    "apache-airflow": ("apache-airflow==3.3.2", "apache-airflow-providers-cncf-kubernetes==10.25.0"),
    "kubeflow": ("kubeflow==0.5.0",),
    "kubeflow-training": ("kubeflow-training==1.9.4",),
}
"""What is installed for whom, each in an environment of its own."""
KINDS: Final = {"kubeflow": "TrainJob", "kubeflow-training": "PyTorchJob"}
"""Whose jobs are no batch Jobs."""
CREATORS: Final = {"apache-airflow", "apache-airflow, with the subclass", "kubeflow, train()"}
"""Who waits for a job of their own."""
LOOKS: Final = ("get", "list", "watch")
LOOKED_AT: Final = {"jobs", "pods", "trainjobs", "pytorchjobs"}
WITHIN: Final = 600.0
"""Seconds within which a program looks at its job: some load for a minute where others run beside them."""
FRAMEWORKS: Final = IntegrationSettings(("batch/job", "trainer.kubeflow.org/trainjob", "kubeflow.org/pytorchjob"))
SETTINGS: Final = Settings(
    namespace=KUEUE_NAMESPACE,
    serving=ServingSettings(bind_address="127.0.0.1", port=0),
    retention=RetentionSettings(finished=timedelta(minutes=5)),
    integrations=FRAMEWORKS,
)
RUNTIME: Final[Json] = {
    "apiVersion": "trainer.kubeflow.org/v1alpha1",
    "kind": "TrainingRuntime",
    "metadata": {
        "namespace": "default",
        "name": "torch-distributed",
        "labels": {"trainer.kubeflow.org/framework": "torch"},
    },
    "spec": {
        "mlPolicy": {"numNodes": 1, "torch": {}},
        "template": {
            "spec": {
                "replicatedJobs": [
                    {
                        "name": "node",
                        "template": {
                            "metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}},
                            "spec": {"template": {"spec": {"containers": [{"name": "node", "image": "train:1"}]}}},
                        },
                    }
                ]
            }
        },
    },
}
"""What Kubeflow's SDK reads for each TrainJob."""
RUNTIMES: Final = definition(
    SandboxKind(resource=Resource(GVK("trainer.kubeflow.org", "v1alpha1", "TrainingRuntime"), "trainingruntimes"))
)


def kind_of(program: str) -> SandboxKind:
    """Of the jobs that a program looks after."""
    name = KINDS.get(program.partition(",")[0], "Job")
    return next(kind for kind in AVAILABLE if kind.resource.gvk.kind == name)


def manifest(name: str, seconds: float, outcome: str = "complete", cpu: int = 1, kind: SandboxKind = BATCH_JOB) -> Json:
    """A job as a user submits it; what it does is played."""
    container = {"name": "main", "image": "train:1", "resources": {"requests": {"cpu": str(cpu)}}}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    made = kind.example(name, template, queue="user-queue")
    noted = {DURATION_ANNOTATION: f"{seconds}s", OUTCOME_ANNOTATION: outcome}
    made["metadata"]["annotations"] = noted
    if kind is BATCH_JOB:
        made["spec"]["backoffLimit"] = 0
    return made


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
    mirrors: bool

    async def submit(self, *jobs: Json, kind: SandboxKind = BATCH_JOB) -> None:
        """Create jobs."""
        for job in jobs:
            await self.sandbox.manager.client("admin").create(kind.resource, job)

    async def running(self, name: str, kind: SandboxKind = BATCH_JOB) -> None:
        """Wait until a job runs, and shows so; its pods, too, where these are shown."""
        admin = self.sandbox.manager.client("admin")

        async def runs() -> bool:
            status = (await admin.get(kind.resource, ObjectKey("default", name))).get("status") or {}
            active = [status, *(status.get("jobsStatus") or ()), *(status.get("replicaStatuses") or {}).values()]
            return any(part.get("active") for part in active) and (not self.mirrors or await is_shown())

        async def is_shown() -> bool:
            pods = [item for item in (await admin.list(POD)).items if (controller_of(item) or {}).get("name") == name]
            return bool(pods) and all(dig(pod, "status", "phase") == "Running" for pod in pods)

        await until(runs)

    async def ran(self, program: str, deed: str, job: str) -> Json:
        """What a program says."""
        command = [python_of(self.programs, program), str(SCRIPT), program, deed, job]
        ended = await anyio.run_process(command, env=self.environment, check=False, stderr=subprocess.DEVNULL)
        said: Json = json.loads(ended.stdout.decode().strip().splitlines()[-1])
        return said

    async def ran_in_the_queue(self, program: str, job: str, ahead: Sequence[Json]) -> Json:
        """What a program says that waits for a job, which is queued behind others until the program has looked."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._make_room_once_seen, program, ahead)
            said = await self.ran(program, "wait", job)
            tasks.cancel_scope.cancel()
        await self._delete(ahead)
        return said

    async def _make_room_once_seen(self, program: str, ahead: Sequence[Json]) -> None:
        if program in CREATORS:  # what it reads before is the template
            created = self._asked("create")
            await until(lambda: self._asked("create") > created, WITHIN)
        looked = self._asked(*LOOKS)
        await until(lambda: self._asked(*LOOKS) > looked, WITHIN)
        await self._delete(ahead)

    def _asked(self, *verbs: str) -> int:
        """How often somebody has asked for jobs or pods so: while a program waits, it alone does."""
        asked = self.sandbox.manager.server.requests.items()
        return sum(
            count
            for (user, verb, resource), count in asked
            if user == "admin" and verb in verbs and resource.partition(".")[0] in LOOKED_AT
        )

    async def _delete(self, jobs: Sequence[Json]) -> None:
        for job in jobs:
            with suppress(NotFound):
                await self.sandbox.manager.client("admin").delete(JOB, ObjectKey.of(job), propagation="Background")


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
    """A sandbox with two workers and our daemon."""
    async with (
        Sandbox(workers=2, options=SandboxOptions(pods=True), kinds=map(kind_of, PROGRAMS), crds=[RUNTIMES]) as sandbox,
        mirrored(sandbox, FRAMEWORKS) if mirrors else dispatched(sandbox),
    ):
        sandbox.manager.server.registry.create_object(RUNTIME)
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "kubeconfig"
            file.write_text(json.dumps(sandbox.manager.kubeconfig))
            path = f"{find_kubectl().parent}:{os.environ['PATH']}"
            homes = {"HOME": folder, "AIRFLOW_HOME": folder}
            yield Fleet(sandbox, programs, {"PATH": path, **homes, "KUBECONFIG": str(file)}, mirrors)


async def each(programs: Path, mirrors: bool, names: Iterable[str]) -> Json:
    """What each program did, by what was asked of it."""
    rows: dict[str, Json] = {}
    async with fleet(programs, mirrors=mirrors) as here:
        for number, program in enumerate(names):
            kind = kind_of(program)
            full = [manifest(f"full-{number}-{half}", 3_600, cpu=4) for half in "ab"]
            await here.submit(*full)
            for job in full:
                await here.running(name_of(job))
            await here.submit(manifest(f"queued-{number}", 3, kind=kind), kind=kind)
            queued = await here.ran_in_the_queue(program, f"queued-{number}", full)
            await here.submit(manifest(f"fails-{number}", 1.5, "fail", kind=kind), kind=kind)
            fails = await here.ran(program, "wait", f"fails-{number}")
            await here.submit(manifest(f"says-{number}", 60, kind=kind), kind=kind)
            await here.running(f"says-{number}", kind)
            logs = await here.ran(program, "logs", f"says-{number}")
            rows[program] = {"queued, then succeeds": queued, "fails": fails, "log while it runs": logs}
            await here.sandbox.manager.client("admin").delete(
                kind.resource, ObjectKey("default", f"says-{number}"), propagation="Background"
            )
            sys.stderr.write(f"{program}: {json.dumps(rows[program])}\n")
    return rows


def versions(programs: Path, names: Iterable[str]) -> dict[str, str]:
    """Of what was run."""
    versions = {"kubectl": KUBERNETES.removeprefix("v")}
    wanted = {name.partition(",")[0] for name in names}
    for name in filter(wanted.__contains__, PACKAGES):
        code = f"import importlib.metadata as m; print(m.version({name!r}))"
        command = [python_of(programs, name), "-c", code]
        versions[name] = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    return versions


def main() -> None:
    """Run them, and write the results. Further arguments are programs: these alone are run, and the rest stays."""
    if not sys.argv[1:]:
        sys.stdout.write("".join(f"{' '.join((name, *packages))}\n" for name, packages in PACKAGES.items()))
        return
    programs, names = Path(sys.argv[1]).absolute(), sys.argv[2:]
    result = json.loads(TARGET.read_text()) if names else {}
    result["versions"] = {**result.get("versions", {}), **versions(programs, names or PROGRAMS)}
    for state, mirrors in (("mirrors off", False), ("mirrors on", True)):
        result[state] = {**result.get(state, {}), **anyio.run(each, programs, mirrors, names or PROGRAMS)}
    TARGET.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
