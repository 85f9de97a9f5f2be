"""The local port answers its own page, and passes on nothing but GETs of the API."""

from __future__ import annotations

import aiohttp
import pytest
from yarl import URL

from multikueued.dashboard.command import dashboard
from multikueued.dashboard.local_port import TOKEN_HEADER, LocalPort
from tests.dashboard.fleet_api import FleetApi

API = "/apis/remote.multikueue.dev/v1alpha1"
TOKEN = "secret"
WITH_TOKEN = {TOKEN_HEADER: TOKEN}


async def ask(
    path: str, method: str = "GET", api: FleetApi | None = None, headers: dict[str, str] | None = None
) -> tuple[int, str, dict[str, str]]:
    local = LocalPort(api or FleetApi(), TOKEN)
    async with local.serving(0), aiohttp.ClientSession() as session:
        assert local.address == f"http://127.0.0.1:{local.port}/#token={TOKEN}"
        url = URL(f"http://127.0.0.1:{local.port}{path}", encoded=True)
        async with session.request(method, url, headers=headers) as answer:
            return answer.status, await answer.text(), dict(answer.headers)


async def test_the_page_comes_without_a_token_and_the_api_with_it() -> None:
    status, text, headers = await ask("/")
    assert (status, "<main" in text) == (200, True)
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert headers["X-Frame-Options"] == "DENY"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Cache-Control"] == "no-store"
    assert (await ask(f"{API}/fleet", headers=WITH_TOKEN))[0] == 200


@pytest.mark.parametrize(
    ("path", "method", "headers", "code"),
    [
        ("/", "GET", {"Host": "evil.example"}, 421),
        ("/", "GET", {"Host": "127.0.0.1:1"}, 421),
        ("/", "GET", {"Origin": "https://evil.example"}, 403),
        ("/", "GET", {"Origin": "null"}, 403),
        ("/", "GET", {"Sec-Fetch-Site": "cross-site"}, 403),
        ("/", "POST", {}, 405),
        ("/", "HEAD", {}, 405),
        (f"{API}/fleet", "DELETE", WITH_TOKEN, 405),
        (f"{API}/fleet", "POST", WITH_TOKEN, 405),
        (f"{API}/fleet", "GET", {}, 401),
        (f"{API}/fleet", "GET", {TOKEN_HEADER: "another"}, 401),
        (f"{API}/fleet", "GET", {TOKEN_HEADER: "ü"}, 401),
        (f"{API}/%2e%2e/%2e%2e/%2e%2e/api/v1/secrets", "GET", WITH_TOKEN, 400),
        (f"{API}/x%2f..%2f..%2fapi", "GET", WITH_TOKEN, 400),
        (f"{API}//secrets", "GET", WITH_TOKEN, 400),
        ("/apis/remote.multikueue.dev/../../api/v1/secrets", "GET", WITH_TOKEN, 400),
        ("/api/v1/secrets", "GET", WITH_TOKEN, 404),
        ("/apis/apps/v1/deployments", "GET", WITH_TOKEN, 404),
        ("/../local_port.py", "GET", WITH_TOKEN, 404),
    ],
)
async def test_what_does_not_come_from_the_page_is_refused(
    path: str, method: str, headers: dict[str, str], code: int
) -> None:
    api = FleetApi()
    assert (await ask(path, method, api, headers))[0] == code
    assert api.asked == []


async def test_the_namespace_that_it_is_opened_for_is_a_text() -> None:
    """It comes from a kubeconfig."""
    local = LocalPort(FleetApi(), TOKEN, '"><script>x</script>')
    async with (
        local.serving(0),
        aiohttp.ClientSession() as session,
        session.get(f"http://127.0.0.1:{local.port}/") as answer,
    ):
        text = await answer.text()
    assert 'data-namespace="&quot;&gt;&lt;script&gt;x&lt;/script&gt;"' in text


async def test_what_the_api_refuses_is_told() -> None:
    status, text, _ = await ask(f"{API}/namespaces/team-b/jobpage", headers=WITH_TOKEN)
    assert (status, "you may not read that" in text) == (403, True)


async def test_only_this_machine_reaches_it() -> None:
    """It is plain HTTP, so it listens on one address of the loopback, and no option opens another."""
    local = LocalPort(FleetApi(), TOKEN)
    async with local.serving(0), aiohttp.ClientSession() as session:
        with pytest.raises(aiohttp.ClientConnectorError):
            await session.get(f"http://127.0.0.2:{local.port}/")
    assert {option for param in dashboard.params for option in param.opts} & {
        "--bind-address",
        "--address",
        "--host",
    } == set()
