"""`multikueue run` as a supervisor runs it: a process, its settings, its signals and its exit code."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import anyio.abc
import pytest
import yaml

from multikueue.core.model.kinds import JOB, LEASE
from multikueue.core.model.names import ObjectKey
from multikueue.sandbox.setting_up import KUEUE_NAMESPACE
from tests.integration.fleet import fleet
from tests.integration.planes import Planes

pytestmark = [pytest.mark.real, pytest.mark.timeout(240), pytest.mark.asyncio(loop_scope="session")]

_LEASE = ObjectKey(KUEUE_NAMESPACE, "multikueue")
_SETTINGS = {
    "namespace": KUEUE_NAMESPACE,
    "serving": {"bindAddress": "127.0.0.1", "port": 0},
    "leaderElection": {"leaseDuration": "3s", "renewDeadline": "2s", "retryPeriod": "200ms"},
}


@asynccontextmanager
async def daemon(folder: Path, planes: Planes) -> AsyncIterator[anyio.abc.Process]:
    """The daemon's process; it is killed at the end if it still runs."""
    (folder / "kubeconfig").write_text(yaml.safe_dump(planes.daemon_kubeconfig))
    (folder / "settings.yaml").write_text(yaml.safe_dump(_SETTINGS))
    command = [sys.executable, "-m", "multikueued", "run"]
    command += ["--config", str(folder / "settings.yaml"), "--kubeconfig", str(folder / "kubeconfig")]
    with (folder / "log").open("ab") as log:
        process = await anyio.open_process(command, stdout=log, stderr=log, env={**os.environ})
    async with process:
        try:
            yield process
        finally:
            if process.returncode is None:
                process.kill()


async def test_the_process_dispatches_and_sigterm_ends_it_with_its_lease_released(
    planes: Planes, tmp_path: Path
) -> None:
    """With the chart's permissions and nothing else."""
    async with fleet(planes, daemon=False) as real, daemon(tmp_path, planes) as process:
        await real.submit("by-process")
        worker = await real.running("by-process")
        await real.finish("by-process")
        await real.cleaned()
        assert real.ran_on("by-process") == [worker]

        assert (await real.manager.client.get(LEASE, _LEASE))["spec"]["holderIdentity"]
        process.send_signal(signal.SIGTERM)
        with anyio.fail_after(20):
            assert await process.wait() == 0
        assert (await real.manager.client.get(LEASE, _LEASE))["spec"]["holderIdentity"] == ""
        assert "forbidden" not in (tmp_path / "log").read_text()


async def test_a_process_that_is_killed_in_the_middle_is_followed_by_one_that_goes_on(
    planes: Planes, tmp_path: Path
) -> None:
    """Nothing is said at the end of SIGKILL: the next one waits for the Lease to run out and finds what there is."""
    async with fleet(planes, daemon=False) as real:
        async with daemon(tmp_path, planes) as first:
            await real.submit("killed-over")
            await real.changes.until(
                lambda: any(view.get(JOB, "killed-over") for view in real.workers.values()),
                otherwise="no worker has it",
            )
            first.send_signal(signal.SIGKILL)
            assert await first.wait() == -signal.SIGKILL
        async with daemon(tmp_path, planes) as second:
            worker = await real.running("killed-over")
            await real.finish("killed-over")
            await real.cleaned()
            second.send_signal(signal.SIGTERM)
            with anyio.fail_after(20):
                assert await second.wait() == 0
        assert real.ran_on("killed-over") == [worker]
