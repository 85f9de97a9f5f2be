"""Health and metrics over real HTTP."""

from __future__ import annotations

import time

import aiohttp
import anyio
import anyio.lowlevel
import pytest

from multikueue.errors import SettingsError
from multikueue.testing import running
from multikueued.metrics.hooks import Metrics
from multikueued.serving.health import HEARTBEAT, Heartbeat, serving
from multikueued.settings.config import ServingSettings

ANY = ServingSettings(bind_address="127.0.0.1", port=0)


async def answer(port: int, path: str) -> tuple[int, str]:
    async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}{path}") as response:
        return response.status, await response.text()


async def test_a_daemon_that_works_is_healthy_and_ready_and_shows_metrics() -> None:
    async with serving(ANY, Metrics("leader"), lambda: None) as port:
        assert await answer(port, "/healthz") == (200, "ok\n")
        assert await answer(port, "/readyz") == (200, "ok\n")
        status, text = await answer(port, "/metrics")

    assert status == 200
    assert "multikueue_leading 0.0" in text


async def test_what_readiness_waits_for_is_shown_and_does_not_affect_health() -> None:
    """Restarting a process that reads its caches only makes it begin again."""
    async with serving(ANY, Metrics("leader"), lambda: "caches are not complete") as port:
        assert await answer(port, "/readyz") == (503, "caches are not complete\n")
        assert (await answer(port, "/healthz"))[0] == 200


async def test_a_port_in_use_is_reported_with_the_setting_to_change() -> None:
    async with serving(ANY, Metrics("leader"), lambda: None) as port:
        taken = ServingSettings(bind_address="127.0.0.1", port=port)
        with pytest.raises(SettingsError, match=rf"127\.0\.0\.1:{port}: it is in use; set serving\.port"):
            async with serving(taken, Metrics("leader"), lambda: None):
                pytest.fail("served on a port in use")


async def test_an_address_of_another_machine_is_reported_with_the_setting_to_change() -> None:
    elsewhere = ServingSettings(bind_address="203.0.113.1", port=0)
    with pytest.raises(SettingsError, match=r"203\.0\.113\.1:0: .*set serving\.bindAddress"):
        async with serving(elsewhere, Metrics("leader"), lambda: None):
            pytest.fail("served on a foreign address")


async def test_the_port_is_free_again_afterwards() -> None:
    async with serving(ANY, Metrics("leader"), lambda: None) as port:
        pass
    same = ServingSettings(bind_address="127.0.0.1", port=port)
    async with serving(same, Metrics("leader"), lambda: None) as again:
        assert again == port


async def test_an_error_inside_is_raised_and_the_port_is_closed() -> None:
    with pytest.raises(ExceptionGroup) as caught:
        async with serving(ANY, Metrics("leader"), lambda: None):
            raise ValueError("broken")

    assert caught.value.split(ValueError)[1] is None


@pytest.mark.looptime
async def test_a_loop_that_runs_has_no_lag() -> None:
    lags: list[float] = []
    heartbeat = Heartbeat(lags.append)
    with anyio.move_on_after(10 * HEARTBEAT):
        await heartbeat.run()

    assert max(lags) == 0.0
    assert heartbeat.lag == 0.0


async def test_a_loop_that_was_blocked_is_late_by_that_long() -> None:
    lags: list[float] = []
    heartbeat = Heartbeat(lags.append)
    async with running(heartbeat.run):
        await anyio.lowlevel.checkpoint()
        _block(HEARTBEAT + 0.3)
        assert heartbeat.lag >= 0.3
        while not lags:
            await anyio.lowlevel.checkpoint()

    assert lags[0] >= 0.3


def _block(seconds: float) -> None:
    """Block the loop, as a long garbage collection does."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        pass
