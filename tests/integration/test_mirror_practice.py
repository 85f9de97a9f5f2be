"""What `multikueue sandbox --pods` prints is all that `kubectl logs` on the manager takes."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import anyio
import pytest

from multikueue.testing import until
from tests.controlplane.binaries import find_kubectl
from tests.daemon.test_practice import files
from tests.daemon.test_practice import running as practising

pytestmark = [pytest.mark.real, pytest.mark.timeout(120)]


@contextmanager
def started(line: str, environment: dict[str, str], log: Path) -> Iterator[None]:
    """A printed command of ours, until the body ends."""
    command = [sys.executable, "-m", "multikueued", *shlex.split(line)[1:]]
    with log.open("wb") as file, subprocess.Popen(command, stdout=file, stderr=file, env=environment) as process:
        try:
            yield
        finally:
            process.terminate()


@contextmanager
def practice(folder: Path) -> Iterator[tuple[dict[str, str], Path]]:
    """A sandbox, the daemon and who answers for logs, as it prints them; the environment for kubectl, and its job."""
    with practising(folder, "--pods", "--workers", "1") as (_, lines), ExitStack() as stack:
        written = files(folder)
        environment = {**os.environ, "KUBECONFIG": str(written["kubeconfig.yaml"]), "HOME": str(folder)}
        for word in ("run", "api-server"):
            (line,) = (line for line in lines if line.strip().startswith(f"multikueue {word} "))
            stack.enter_context(started(line, environment, folder / f"{word}.log"))
        yield environment, written["job.yaml"]


async def test_the_printed_commands_are_all_it_takes(tmp_path: Path) -> None:
    """Its settings, the daemon, and who answers for logs."""
    with practice(tmp_path) as (environment, sample):

        async def kubectl(*arguments: str) -> tuple[int, str]:
            command = [str(find_kubectl()), *arguments]
            ran = await anyio.run_process(command, env=environment, check=False, stderr=subprocess.STDOUT)
            return ran.returncode, ran.stdout.decode()

        code, made = await kubectl("create", "-f", str(sample))
        assert code == 0, made
        name = made.split()[0].removeprefix("job.batch/")

        async def shown() -> bool:
            return "Running" in (await kubectl("get", "pods", "-l", f"job-name={name}"))[1]

        async def logged() -> bool:  # who answers for logs is a process of its own, and may come up after the daemon
            return (await kubectl("logs", f"job/{name}"))[1].startswith("started\n")

        await until(shown)
        await until(logged)
