"""The ways of a Job on real servers while something breaks: nothing is lost, and nothing runs twice."""

from __future__ import annotations

import anyio
import pytest

from multikueue.core.model.conditions import is_true
from multikueue.core.model.kinds import JOB
from multikueue.kube import ClientOptions, Informer
from tests.integration.fleet import Fleet, fleet
from tests.integration.planes import Planes

pytestmark = [pytest.mark.real, pytest.mark.timeout(240), pytest.mark.asyncio(loop_scope="session")]


def followed(real: Fleet, worker: str) -> Informer:
    """What the daemon knows of a worker's Workloads."""
    remote = real.daemon.manager.workers.get(worker)
    assert remote is not None
    assert remote.known is not None, f"{worker} is not connected"
    return remote.known.workloads.informer


async def test_a_job_that_ends_while_the_daemon_is_down_has_run_once(planes: Planes) -> None:
    """The next daemon finds the end on the worker and brings it home, instead of starting over."""
    async with fleet(planes) as real:
        worker = await real.run("restarted")
        await real.daemon.stop()
        real.kubelet.end("restarted", "Succeeded")
        await real.changes.until(
            lambda: is_true(real.workers[worker].get(JOB, "restarted") or {}, "Complete"),
            otherwise="the worker does not complete it",
        )
        assert not is_true(real.manager.get(JOB, "restarted") or {}, "Complete")
        real.daemon.start()
        done = await real.ended("restarted")
        await real.cleaned()

        there = {
            field: value
            for field, value in real.status_on(worker, "restarted").items()
            if field != "uncountedTerminatedPods"
        }
        assert done["status"] == there
        assert real.ran_on("restarted") == [worker]


async def test_a_worker_whose_api_server_dies_keeps_its_job_and_comes_back(planes: Planes) -> None:
    """The manager says so, keeps the Job where it is, sends new ones elsewhere, and goes on when the worker is back."""
    async with fleet(planes) as real:
        worker = await real.run("kept")
        other = next(name for name in real.workers if name != worker)

        await planes.workers[worker].kill_apiserver()
        active = await real.active(worker, status=False)
        assert active["reason"] == "ClientConnectionFailed"
        assert active["message"].startswith(f"{worker}: ")
        assert "connect" in active["message"]  # it broke, or cannot be made: whichever was seen first
        await real.submit("elsewhere")
        assert await real.running("elsewhere") == other
        assert await real.running("kept") == worker
        real.kubelet.end("kept", "Succeeded")

        await planes.workers[worker].start_apiserver()
        await real.active(worker)
        real.kubelet.end("elsewhere", "Succeeded")
        await real.ended("kept")
        await real.ended("elsewhere")
        await real.cleaned()

        assert real.ran_on("kept") == [worker]
        assert real.ran_on("elsewhere") == [other]


async def test_the_managers_own_api_server_may_die_while_jobs_run(planes: Planes) -> None:
    """What happens on the workers meanwhile is told when it is back."""
    async with fleet(planes) as real:
        worker = await real.run("meanwhile")
        await planes.manager.kill_apiserver()
        real.kubelet.end("meanwhile", "Succeeded")
        await real.changes.until(
            lambda: is_true(real.workers[worker].get(JOB, "meanwhile") or {}, "Complete"),
            otherwise="the worker does not complete it",
        )
        await planes.manager.start_apiserver()
        await real.ended("meanwhile")
        await real.cleaned()
        assert real.ran_on("meanwhile") == [worker]


async def test_a_worker_that_hangs_holds_up_nobody(planes: Planes) -> None:
    """Connections are accepted and nothing is answered: the Job runs on the other worker long before the deadline."""
    async with fleet(planes) as real:
        await planes.workers["worker1"].pause_apiserver()
        try:
            with anyio.fail_after(ClientOptions().deadline / 2):
                await real.submit("around")
                assert await real.running("around") == "worker2"
        finally:
            await planes.workers["worker1"].resume_apiserver()
        await real.finish("around")
        await real.cleaned()
        assert real.ran_on("around") == ["worker2"]


async def test_history_that_a_worker_has_forgotten_is_read_anew(planes: Planes) -> None:
    """Watches get 410. What ended, what runs and what was submitted around that moment goes its way, once."""
    async with fleet(planes) as real:
        for name in ("ends", "runs"):
            await real.submit(name)
        used = {name: await real.running(name) for name in ("ends", "runs")}
        worker = used["ends"]
        follows = followed(real, worker)
        before = follows.status.lists
        real.kubelet.end("ends", "Succeeded")
        await planes.workers[worker].compact()
        await real.submit("comes")
        used["comes"] = await real.running("comes")
        for name in ("runs", "comes"):
            real.kubelet.end(name, "Succeeded")
        for name in used:
            await real.ended(name)
        await real.active(worker)
        await real.cleaned()

        assert follows.status.lists > before
        assert {name: real.ran_on(name) for name in used} == {name: [cluster] for name, cluster in used.items()}
