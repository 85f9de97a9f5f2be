"""What the clock probe reads of a worker that answers oddly."""

from __future__ import annotations

import gzip
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from multikueue.kube import ClusterConfig
from multikueued.doctor.probe import probe


@asynccontextmanager
async def answering(body: bytes, headers: Mapping[str, str]) -> AsyncIterator[ClusterConfig]:
    async def version(request: web.Request) -> web.Response:
        return web.Response(body=body, headers=headers)

    app = web.Application()
    app.router.add_get("/version", version)
    async with TestServer(app) as server:
        yield ClusterConfig(server=str(server.make_url("")).rstrip("/"))


@pytest.mark.parametrize("date", ["Mon, 01 Jan 99999999999 00:00:00 GMT", "yesterday", ""])
async def test_a_date_that_is_none_says_nothing_of_the_clock(date: str) -> None:
    """It ended the look at all workers."""
    async with answering(b"{}", {"Date": date}) as config:
        answer = await probe(config)
    assert (answer.clock, answer.error) == (None, "")


async def test_a_small_answer_that_unpacks_to_a_large_one_is_not_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    """150 KB were 150 MB in memory, of each worker that is looked at."""
    bomb = gzip.compress(b"0" * (8 << 20))
    monkeypatch.setattr("zlib.decompressobj", None)
    async with answering(bomb, {"Content-Encoding": "gzip"}) as config:
        assert (await probe(config)).error == ""
