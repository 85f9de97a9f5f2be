"""A program that uses the library decides what is logged: until it configures structlog, nothing is."""

from __future__ import annotations

import subprocess
import sys

import pytest

CONFIGURED = "import structlog, sys\nstructlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))\n"
INFORMER = """
import anyio
from multikueue import Unreachable
from multikueue.core.model.kinds import WORKLOAD
from multikueue.kube.informers.informer import Informer

class NobodyThere:
    asked = 0

    async def list(self, *_, **__):
        self.asked += 1
        if self.asked == 2:
            tasks.cancel_scope.cancel()
        raise Unreachable("no route to host")

async def main():
    global tasks
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(Informer(NobodyThere(), WORKLOAD).run)

anyio.run(main)
"""
MANAGER = """
import anyio, orjson
from multikueue.adapters import BUILTIN, AdapterRegistry
from multikueue.kube import KubeClient, parse_worker_kubeconfig
from multikueue.runtime.manager import Manager, ManagerSettings
from multikueue.sandbox import Sandbox

class Hook:
    def __getattr__(self, name):
        return lambda *_: None

    def cluster_connected(self, cluster, connected):
        tasks.cancel_scope.cancel()

async def main():
    global tasks
    async with Sandbox(workers=1) as sandbox:
        config = parse_worker_kubeconfig(orjson.dumps(sandbox.manager.server.kubeconfig("multikueue")))
        async with KubeClient(config, name="manager") as client:
            manager = Manager(
                client,
                AdapterRegistry(BUILTIN),
                ManagerSettings(namespace="kueue-system"),
                lambda name, config: KubeClient(config, name=name),
                hook=Hook(),
            )
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(manager.run)

anyio.run(main)
"""


@pytest.mark.parametrize("program", [INFORMER, MANAGER], ids=["informer", "manager"])
def test_a_plain_script_prints_nothing(program: str) -> None:
    """Unconfigured structlog would print every line, those for debugging too, to standard output."""
    assert _output(program) == ("", "")


FAILING = """
from multikueue.logs import get_logger
log = get_logger("multikueue.runtime.controller")
try:
    1 / 0
except ZeroDivisionError as error:
    log.error("reconcile failed", controller="multikueue_workload", key="default/w", exc_info=error)
log.error("this is no exception", key="x")
"""


def test_an_exception_that_nobody_expects_is_seen_without_configuring_anything() -> None:
    """Who writes an adapter would look for its mistake in vain."""
    stdout, stderr = _output(FAILING)
    assert stdout == ""
    assert stderr.startswith("reconcile failed controller=multikueue_workload key=default/w\nTraceback")
    assert "ZeroDivisionError" in stderr
    assert "no exception" not in stderr


@pytest.mark.parametrize("program", [INFORMER, MANAGER], ids=["informer", "manager"])
def test_a_program_that_configures_structlog_gets_all_of_it(program: str) -> None:
    """Also by way of a logger that was made before: modules make theirs when they are imported."""
    stdout, stderr = _output(CONFIGURED + program)
    assert stdout == ""
    assert stderr

    late = program.replace("anyio.run(main)", CONFIGURED + "anyio.run(main)")
    assert _output(late)[1]


def _output(program: str) -> tuple[str, str]:
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=True, timeout=28
    )
    return ran.stdout, ran.stderr
