"""What is left of a control plane, and what stands in the way of its restart."""

from __future__ import annotations

import socket
from pathlib import Path
from urllib.parse import urlsplit

import anyio
import pytest

from tests.controlplane.cluster import Cluster
from tests.controlplane.polling import poll_until

pytestmark = [pytest.mark.real, pytest.mark.timeout(120)]


async def test_a_restart_waits_for_a_port_that_somebody_took_meanwhile(clusters: type[Cluster]) -> None:
    async with clusters("robbed") as plane:
        await plane.kill_apiserver()
        log = plane.folder / "kube-apiserver.log"

        async def noticed() -> bool:
            return "address already in use" in log.read_text()

        with socket.create_server(("127.0.0.1", urlsplit(plane.url).port or 0)) as thief:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(plane.start_apiserver)
                await poll_until(noticed, seconds=30, otherwise="the API server did not notice")
                thief.close()
        assert (await plane.admin.send("GET", "/version")).status == 200


async def test_nothing_is_left_behind(clusters: type[Cluster]) -> None:
    plane = clusters("leaving")
    async with plane:
        folder = plane.folder
        assert len(_processes_using(folder)) == 2
    assert _processes_using(folder) == []
    assert not folder.exists()


def _processes_using(folder: Path) -> list[str]:
    files = Path("/proc").glob("[0-9]*/cmdline")
    return [text for file in files if str(folder) in (text := file.read_text())]
