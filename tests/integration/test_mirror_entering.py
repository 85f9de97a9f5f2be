"""kubectl's own attach, cp and port-forward on pods of runs, behind a real kube-apiserver: by both protocols."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import anyio
import pytest

from tests.controlplane.binaries import find_kubectl
from tests.integration.mirror_stage import AskingKubelets, Stage, stage

pytestmark = [pytest.mark.real, pytest.mark.timeout(240), pytest.mark.asyncio(loop_scope="session")]

PROTOCOLS: Final = ("true", "false")
"""Whether kubectl speaks WebSockets to the API server, or SPDY."""


def speaking(protocol: str) -> dict[str, str]:
    """The environment of a kubectl that does."""
    names = ("KUBECTL_REMOTE_COMMAND_WEBSOCKETS", "KUBECTL_PORT_FORWARD_WEBSOCKETS")
    return dict.fromkeys(names, protocol)


async def test_what_runs_is_attached_to(kubelets: AskingKubelets, tmp_path: Path) -> None:
    async with stage(kubelets, tmp_path, exec=True) as here:
        await here.mirror()
        for protocol in PROTOCOLS:
            attached = await here.kubectl("attach", "-i", "train-x", stdin=b"hello\n", env=speaking(protocol))
            assert (attached[0], "ready\nHELLO\n" in attached[1]) == (0, True), attached
        assert {stream.path.rpartition("/")[2] for stream in here.worker.streams()} == {"attach"}


async def test_files_are_copied_both_ways(kubelets: AskingKubelets, tmp_path: Path) -> None:
    """Of a container with tar: its disk is a folder here."""
    disk, data = tmp_path / "disk", os.urandom(300_000)
    disk.mkdir()
    (tmp_path / "sent").write_bytes(data)
    async with stage(kubelets, tmp_path, exec=True) as here:
        here.worker.disk = disk
        await here.mirror()
        for protocol in PROTOCOLS:
            there, back = disk / f"there-{protocol}", tmp_path / f"back-{protocol}"
            for source, target in ((tmp_path / "sent", f"train-x:{there}"), (f"train-x:{there}", back)):
                copied = await here.kubectl("cp", str(source), str(target), env=speaking(protocol))
                assert copied[0] == 0, copied
            assert back.read_bytes() == there.read_bytes() == data


async def test_ports_are_forwarded(kubelets: AskingKubelets, tmp_path: Path) -> None:
    async with stage(kubelets, tmp_path, exec=True) as here:
        await here.mirror()
        for protocol in PROTOCOLS:
            async with forwarded(here, protocol) as port, await anyio.connect_tcp("127.0.0.1", port) as stream:
                await stream.send(b"hello")
                assert await stream.receive() == b"HELLO"
                await stream.send_eof()
        assert {stream.path.rpartition("/")[2] for stream in here.worker.streams()} == {"portforward"}


@asynccontextmanager
async def forwarded(here: Stage, protocol: str) -> AsyncIterator[int]:
    """The local port of a kubectl that forwards it."""
    assert (await here.kubectl("version"))[0] == 0  # it has its kubeconfig
    environ = {**os.environ, "KUBECONFIG": str(here.folder / "kubeconfig-of-tenant"), "HOME": str(here.folder)}
    command = [str(find_kubectl()), "port-forward", "train-x", ":8080"]
    process = await anyio.open_process(command, env=environ | speaking(protocol), stderr=subprocess.STDOUT)
    async with process:
        assert process.stdout is not None
        said = ""
        with anyio.fail_after(30):
            while (match := re.search(r"127\.0\.0\.1:(\d+) -> 8080", said)) is None:
                said += (await process.stdout.receive()).decode()
        yield int(match[1])
        process.terminate()
