"""Answers that nobody asked for: they are taken for nobody's."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import anyio
import anyio.abc
import orjson
import pytest

from multikueue.core.model.kinds import JOB
from multikueue.core.model.names import ObjectKey
from multikueue.kube import ClusterConfig, KubeClient

UNASKED = b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n"


def answer_to(request: bytes) -> bytes:
    """The job of the name that was asked for."""
    name = request.split(b" ")[1].rpartition(b"/")[2].partition(b"?")[0].decode()
    body = orjson.dumps({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}})
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)


@asynccontextmanager
async def proxy(unasked: Callable[[], bytes]) -> AsyncIterator[str]:
    """A server that says something more behind each answer, and keeps the connection open."""

    async def serve(stream: anyio.abc.SocketStream) -> None:
        async with stream:
            try:
                while True:
                    request = await stream.receive()
                    await stream.send(answer_to(request))
                    await anyio.sleep(0.05)
                    await stream.send(unasked())
            except (anyio.EndOfStream, anyio.BrokenResourceError):
                return

    async with (
        await anyio.create_tcp_listener(local_host="127.0.0.1") as listener,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(listener.serve, serve)
        yield f"http://127.0.0.1:{listener.extra(anyio.abc.SocketAttribute.local_port)}"
        tasks.cancel_scope.cancel()


@pytest.mark.parametrize("unasked", [UNASKED, UNASKED * 3, b"HTTP/1.1 200 OK\r\n", b"junk"])
async def test_an_answer_nobody_asked_for_shifts_no_later_answers(unasked: bytes) -> None:
    """Proxies send a 408 on an idle connection. It was the answer to the next request, and so on for ever."""
    async with proxy(lambda: unasked) as url, KubeClient(ClusterConfig(url), name="w1") as client:
        for number in range(5):
            job = await client.get(JOB, ObjectKey("default", f"job-{number}"))
            assert job["metadata"]["name"] == f"job-{number}"
            await anyio.sleep(0.1)  # what was not asked for has come
