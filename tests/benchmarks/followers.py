"""Followers of logs of mirrors: which share of a core who answers for them takes.

They ask the endpoint as API servers do, by a TLS connection each; the worker is played in this process, and so are
they. What is measured is the process between them.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import Final

import anyio
import attrs
import trustme
from aiohttp import web

from multikueue.core.model.names import Json
from tests.benchmarks import usage
from tests.benchmarks.children import child
from tests.mirrors.endpoint.test_relay import LOGS
from tests.mirrors.endpoint.test_serving import connected
from tests.mirrors.endpoint.worker import PlayedWorker

FOLLOWERS: Final = 20
LINES_PER_SECOND: Final = 10
LINE: Final = b"x" * 99 + b"\n"
_WARM: Final = 1.0
"""Seconds until all follow."""


@attrs.define(eq=False)
class TalkingWorker(PlayedWorker):
    """Its pods write lines without end."""

    async def _log(self, request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/plain"})
        response.enable_chunked_encoding()
        await response.prepare(request)
        with contextlib.suppress(ConnectionResetError):
            while True:
                await response.write(LINE)
                await asyncio.sleep(1 / LINES_PER_SECOND)
        return response


async def measure_followers(seconds: float) -> Json:
    """Follow for so long; return the share of a core, in percent, and what came."""
    worker, callers, serving = TalkingWorker(uids={"default/train-x": "uid"}), trustme.CA(), trustme.CA()
    pair = serving.issue_cert("127.0.0.1")
    config: Json = {
        "callers": callers.cert_pem.bytes().decode(),
        "certificate": pair.cert_chain_pems[0].bytes().decode(),
        "key": pair.private_key_pem.bytes().decode(),
    }
    read = [0]
    async with worker.running():
        config["worker"] = worker.kubeconfig()
        async with child("tests.benchmarks.mirror_endpoint", config) as endpoint, anyio.create_task_group() as tasks:
            for _ in range(FOLLOWERS):
                tasks.start_soon(_follow, endpoint.ready["port"], callers, serving, read)
            await anyio.sleep(_WARM)
            before, bytes_before, began = usage.of_processes([endpoint.pid]), read[0], time.perf_counter()
            await anyio.sleep(seconds)
            spent = usage.of_processes([endpoint.pid]).cpu - before.cpu
            passed, took = read[0] - bytes_before, time.perf_counter() - began
            tasks.cancel_scope.cancel()
    return {
        "followers": FOLLOWERS,
        "lines_per_s_each": LINES_PER_SECOND,
        "bytes_of_a_line": len(LINE),
        "cpu_percent": round(100 * spent / took, 2),
        "kb_per_s": round(passed / took / 1000, 1),
    }


async def _follow(port: int, callers: trustme.CA, serving: trustme.CA, read: list[int]) -> None:
    async with await connected(port, serving, callers) as stream:
        await stream.send(f"{LOGS.replace('main ', 'main?follow=true ')}\r\n\r\n".encode())
        while True:
            piece = await stream.receive()
            read[0] += len(piece)
