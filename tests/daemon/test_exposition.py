"""How often metrics are rendered, and by whom."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator

import aiohttp
import anyio
import attrs
import pytest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from multikueue.core.machinery.queue import QueueStatistics
from multikueued.metrics import exposition
from multikueued.metrics.exposition import EVERY, Exposition
from multikueued.metrics.hooks import Metrics
from multikueued.serving.health import serving
from tests.daemon.test_health import ANY

CLIENTS = 120


@attrs.define(eq=False)
class Renders(Collector):
    """Notes which threads have rendered, and which have read what the loop changes."""

    metrics: Metrics = attrs.field(factory=lambda: Metrics("leader"))
    threads: list[int] = attrs.field(factory=list)
    readers: list[int] = attrs.field(factory=list)

    def __attrs_post_init__(self) -> None:
        self.metrics.registry.register(self)
        self.metrics.began(self._queues, tuple)
        self.threads.clear()

    def collect(self) -> Iterator[GaugeMetricFamily]:
        self.threads.append(threading.get_ident())
        yield GaugeMetricFamily("renders", "How often.", value=len(self.threads))

    def _queues(self) -> dict[str, QueueStatistics]:
        self.readers.append(threading.get_ident())
        return {}


async def test_all_who_ask_within_a_second_get_one_page() -> None:
    renders = Renders()
    shown = Exposition(renders.metrics)
    pages = set()

    async def ask() -> None:
        pages.add(await shown.page())

    async with anyio.create_task_group() as tasks:
        for _ in range(CLIENTS):
            tasks.start_soon(ask)
    assert (len(renders.threads), len(pages)) == (1, 1)


@pytest.mark.looptime
async def test_after_a_second_there_is_a_new_page() -> None:
    renders = Renders()
    shown = Exposition(renders.metrics)
    first = await shown.page()
    await anyio.sleep(EVERY * 0.9)
    assert await shown.page() is first
    await anyio.sleep(EVERY * 0.2)
    assert b"renders 2.0" in (await shown.page()).plain
    assert len(renders.threads) == 2


async def test_a_thread_renders_and_the_loop_reads_what_it_changes() -> None:
    renders = Renders()
    await Exposition(renders.metrics).page()
    here = threading.get_ident()
    assert renders.readers == [here]
    assert here not in renders.threads


async def test_clients_share_a_page_over_http(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exposition, "EVERY", 3600.0)
    renders = Renders()
    async with (
        serving(ANY, renders.metrics, lambda: None) as port,
        aiohttp.ClientSession(auto_decompress=False) as session,
    ):

        async def get(accept: str) -> tuple[str, str, bytes]:
            headers = {"Accept-Encoding": accept, "Accept": "application/openmetrics-text"}
            async with session.get(f"http://127.0.0.1:{port}/metrics?name[]=x", headers=headers) as response:
                encoding = response.headers.get("Content-Encoding", "")
                return response.headers["Content-Type"], encoding, await response.read()

        plain, packed = await get("identity"), await get("gzip")
    assert plain[:2] == ("text/plain; version=0.0.4; charset=utf-8", "")
    assert packed[:2] == (plain[0], "gzip")
    assert gzip.decompress(packed[2]) == plain[2]
    assert len(renders.threads) == 1
