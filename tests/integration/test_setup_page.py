"""The set-up page, walked with kubectl and this CLI alone, on real control planes, until a job has finished."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.integration.planes import Planes
from tests.integration.walking import Walker, commands, kueue_installed, kueues_arguments

pytestmark = [pytest.mark.real, pytest.mark.timeout(300), pytest.mark.asyncio(loop_scope="session")]

PAGE: Final = "setup.md"


async def test_the_page_is_walked(planes: Planes, tmp_path: Path) -> None:
    """In five minutes at most, which is the timeout of this test."""
    walker = Walker.at(tmp_path, planes, context="{}-cluster")
    queues, gate, manager, run, *workers, status, objects, create, explain, wait, jobs = commands(PAGE)
    async with kueue_installed(planes) as ground:
        for command in (queues, gate, manager):
            await walker.run(command)
        assert (await kueues_arguments(ground))[-1] == "--feature-gates=MultiKueue=false"
        async with walker.in_another_terminal(run):
            for number, worker in enumerate(workers, 1):
                assert f"worker{number} is connected" in await walker.run(worker)
            assert len(workers) == len(ground.workers)
            said = await walker.run(status)
            assert "worker1  Connected" in said
            assert "worker2  Connected" in said
            assert "multikueuecluster.kueue.x-k8s.io/worker2" in await walker.run(objects)
            await walker.run(create)
            await ground.running("sample")
            assert "It runs on worker cluster" in await walker.run(explain)
            ground.kubelet.end("sample", "Succeeded")
            assert "condition met" in await walker.run(wait)
            await ground.ended("sample")
            assert "Finished" in await walker.run(jobs)
        assert [set(view.pods_made.values()) for view in ground.workers.values()].count({"sample"}) == 1
        assert not ground.manager.pods_made
