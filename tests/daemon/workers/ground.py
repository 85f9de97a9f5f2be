"""Bare sandbox clusters, the daemon in a task, and the command line as a person at a terminal has it."""

from __future__ import annotations

import gc
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from unittest.mock import patch

import anyio
import anyio.to_thread
import attrs
import structlog
import yaml
from click.testing import CliRunner, Result

from multikueue.core.model.kinds import (
    ADMISSION_CHECK,
    JOB,
    MULTIKUEUE_CLUSTER,
    MULTIKUEUE_CONFIG,
    NAMESPACE,
    SECRET,
    WORKLOAD,
)
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.workloads import cluster_name, is_finished
from multikueue.kube import load_kubeconfig
from multikueue.protocols import ApiClient
from multikueue.sandbox import RunnerOptions, Sandbox, SandboxOptions
from multikueue.sandbox.setting_up import CHECK, admission_check, namespace, set_up_queues
from multikueue.testing import job
from multikueued.cli import main
from multikueued.run import leadership
from multikueued.run.daemon import work
from multikueued.sandbox_command.command import merged
from multikueued.settings.config import LeaderElectionSettings, ServingSettings, Settings
from multikueued.workers import connection_wait, drain, ending_wait

T = TypeVar("T")
PATIENCE = 30.0
KUEUE_NAMESPACE = "kueue-system"
LONG = SandboxOptions(runner=RunnerOptions(minimum=1e6, maximum=1e6), connect=False, roles=True)
SETTINGS = Settings(
    namespace=KUEUE_NAMESPACE,
    serving=ServingSettings(bind_address="127.0.0.1", port=0),
    leader_election=LeaderElectionSettings(enabled=False),
)


@attrs.frozen(eq=False)
class Ground:
    """What a test does here, and sees."""

    sandbox: Sandbox
    kubeconfig: Path
    """With a context for each cluster."""

    @property
    def manager(self) -> ApiClient:
        """Its administrator."""
        return self.sandbox.manager.client("admin")

    def worker(self, name: str) -> ApiClient:
        """A worker's administrator."""
        return self.sandbox.workers[name].client("admin")

    async def run(self, *arguments: str, answer: str | None = None) -> Result:
        """Run `multikueue ARGUMENTS` to its end."""
        command = [*arguments, "--kubeconfig", str(self.kubeconfig)]
        invoke = partial(CliRunner().invoke, main, command, input=answer)
        with anyio.fail_after(2 * PATIENCE):
            return await anyio.to_thread.run_sync(invoke, abandon_on_cancel=True)

    async def done(self, *arguments: str, answer: str | None = None) -> str:
        """Run it, and return all that it says."""
        result = await self.run(*arguments, answer=answer)
        assert result.exit_code == 0, result.output
        return result.output

    async def refused(self, *arguments: str, code: int = 1) -> str:
        """Run it in vain, and return its one error."""
        result = await self.run(*arguments)
        assert result.exit_code == code, result.output
        errors = [line for line in result.stderr.splitlines() if line.startswith("multikueue: error: ")]
        assert len(errors) == 1, result.output
        return result.stderr.partition("multikueue: error: ")[2]

    async def join(self, *names: str, cpu: str = "4") -> None:
        """Add workers, and give them queues."""
        for name in names:
            await set_up_queues(self.worker(name), {"cpu": cpu})
            await self.done("worker", "add", name, "--worker-context", name, "--outside")

    async def submit(self, *names: str, cpu: str = "1") -> None:
        """Submit jobs."""
        for name in names:
            await self.manager.create(JOB, job(name, cpu=cpu))

    async def places(self) -> dict[str, str | None]:
        """The worker of each job that has not ended."""
        workloads = (await self.manager.list(WORKLOAD)).items
        return {
            workload["metadata"]["ownerReferences"][0]["name"]: cluster_name(workload)
            for workload in workloads
            if not is_finished(workload)
        }

    async def runs_on(self) -> dict[str, list[str]]:
        """The workers on which each job has pods that run."""
        running: dict[str, list[str]] = {}
        for name in self.sandbox.workers:
            for there in (await self.worker(name).list(JOB)).items:
                if (there.get("status") or {}).get("active"):
                    running.setdefault(there["metadata"]["name"], []).append(name)
        return running

    async def clusters(self) -> list[str]:
        """What the MultiKueueConfig lists; empty if there is none."""
        configs = (await self.manager.list(MULTIKUEUE_CONFIG)).items
        return [name for config in configs for name in config["spec"]["clusters"]]

    async def kubeconfig_of(self, worker: str) -> Json:
        """The Secret on the manager."""
        return await self.manager.get(SECRET, ObjectKey(KUEUE_NAMESPACE, f"{worker}-kubeconfig"))

    async def cluster(self, worker: str) -> Json:
        """The MultiKueueCluster."""
        return await self.manager.get(MULTIKUEUE_CLUSTER, ObjectKey("", worker))


async def until(look: Callable[[], Awaitable[T]], holds: Callable[[T], bool] = bool) -> T:
    """Look until it is so, and return what was seen."""
    seen: T | None = None
    try:
        with anyio.fail_after(PATIENCE):
            while True:
                seen = await look()
                if holds(seen):
                    return seen
                await anyio.sleep(0.05)
    except TimeoutError:
        raise AssertionError(f"still not so after {PATIENCE:g} s: {seen}") from None


@contextmanager
def _as_one_process(file: Path) -> Iterator[None]:
    """Keep the daemon's log apart from what a command prints, and have commands that wait look 20 times a second.

    Nobody is spared by rarer looks here. No term looks for garbage either: it would look through all tests.
    """
    with file.open("w") as log, ExitStack() as stack:
        for command in (connection_wait, drain, ending_wait):
            stack.enter_context(patch.object(command, "INTERVAL", 0.05))
        stack.enter_context(patch.object(leadership, "freeze", gc.enable))
        structlog.configure(logger_factory=structlog.PrintLoggerFactory(log))
        stack.callback(structlog.reset_defaults)
        yield


@asynccontextmanager
async def ground(
    folder: Path,
    *,
    workers: int = 2,
    daemon: bool = True,
    settings: Settings = SETTINGS,
    queues: Iterable[str] = (CHECK,),
    joined: Iterable[str] = (),
) -> AsyncIterator[Ground]:
    """Clusters with Kueue and nothing else; on the manager queues and a check whose config does not exist yet.

    `joined` are the workers that have joined it when the test begins.
    """
    async with AsyncExitStack() as stack:
        stack.enter_context(_as_one_process(folder / "log"))
        sandbox = await stack.enter_async_context(Sandbox(workers=workers, options=LONG))
        file = folder / "kubeconfig"
        file.write_text(yaml.safe_dump(merged(cluster.kubeconfig for cluster in sandbox.clusters)))
        made = Ground(sandbox, file)
        await made.manager.create(NAMESPACE, namespace(KUEUE_NAMESPACE))
        await set_up_queues(made.manager, {"cpu": "8"}, queues)
        await made.manager.create(ADMISSION_CHECK, admission_check())
        async with anyio.create_task_group() as tasks:
            if daemon:
                user: Any = sandbox.manager.server.kubeconfig("multikueue")
                (folder / "daemon").write_text(yaml.safe_dump(user))
                tasks.start_soon(work, settings, load_kubeconfig(folder / "daemon"))
            if joined:
                await made.join(*joined)
            yield made
            tasks.cancel_scope.cancel()
