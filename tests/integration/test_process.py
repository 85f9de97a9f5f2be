"""`multikueue run` as a supervisor runs it: a process, its settings, its signals and its exit code."""

from __future__ import annotations

import signal
from pathlib import Path

import anyio
import pytest

from multikueue.core.model.kinds import JOB
from multikueue.core.model.names import Json
from multikueue.sandbox.setting_up import KUEUE_NAMESPACE
from tests.daemon.test_running import daemon
from tests.integration.fleet import fleet
from tests.integration.planes import Planes

pytestmark = [pytest.mark.real, pytest.mark.timeout(240), pytest.mark.asyncio(loop_scope="session")]

SETTINGS: Json = {
    "namespace": KUEUE_NAMESPACE,
    "leaderElection": {"leaseDuration": "3s", "renewDeadline": "2s"},
}


async def test_a_process_that_is_killed_in_the_middle_is_followed_by_one_that_goes_on(
    planes: Planes, tmp_path: Path
) -> None:
    """Nothing is said at the end of SIGKILL: the next one waits for the Lease to run out and finds what there is."""
    async with fleet(planes, daemon=False) as real:
        async with daemon(tmp_path, planes.daemon_kubeconfig, **SETTINGS) as first:
            await real.submit("killed-over")
            await real.changes.until(
                lambda: any(view.get(JOB, "killed-over") for view in real.workers.values()),
                otherwise="no worker has it",
            )
            first.process.send_signal(signal.SIGKILL)
            assert await first.process.wait() == -signal.SIGKILL
        async with daemon(tmp_path, planes.daemon_kubeconfig, **SETTINGS) as second:
            worker = await real.running("killed-over")
            await real.finish("killed-over")
            await real.cleaned()
            second.process.send_signal(signal.SIGTERM)
            with anyio.fail_after(20):
                assert await second.process.wait() == 0
        assert real.ran_on("killed-over") == [worker]
