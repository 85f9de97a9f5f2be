"""The page of a server: people sign in with their token, and see what it may see. A line of the threat model each."""

from __future__ import annotations

import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import attrs
import pytest
from structlog.testing import capture_logs

from multikueue.core.model.kinds import NAMESPACE
from multikueue.core.model.names import Json, ObjectKey
from multikueue.errors import SettingsError
from multikueue.testing.waiting import until
from multikueued.page import signed_in
from multikueued.page.hosted import PageOptions, serving_page
from multikueued.page.port import API
from multikueued.rbac.objects import ROLE_BINDING
from tests.commands.people import People, people
from tests.commands.test_people import with_a_job
from tests.logserver.stage import HOST, pem

BASE = f"{API}v1alpha1"
OWN = f"{BASE}/namespaces/default"
NAME = "page.example.com"


@attrs.define(eq=False)
class Hosted:
    """The page's port, and those who use it."""

    people: People
    port: int

    @property
    def address(self) -> str:
        return f"https://{HOST}:{self.port}/"

    async def ask(self, path: str, token: str = "", method: str = "GET", **headers: str) -> tuple[int, str, Any]:
        """As a browser does; `headers` with `_` for `-`."""
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        given |= {"Authorization": f"Bearer {token}"} if token else {}
        tls = ssl.create_default_context(cadata=pem(self.people.stage.serving))
        url = f"https://{HOST}:{self.port}{path}"
        async with (
            aiohttp.ClientSession() as session,
            session.request(method, url, headers=given, ssl=tls) as response,
        ):
            return response.status, await response.text(), response.headers

    async def code(self, path: str, token: str = "", **headers: str) -> int:
        return (await self.ask(path, token, **headers))[0]


@asynccontextmanager
async def hosted(folder: Path) -> AsyncIterator[Hosted]:
    """The page beside the API's server, with a job in `default` that runs."""
    ports: list[int] = []
    page = PageOptions((HOST, NAME), 0, HOST, str(folder))
    async with people(folder, page=page, on_page=ports.append) as here:
        await with_a_job(here)
        made = Hosted(here, ports[0])

        async def known() -> bool:
            return await made.code(f"{OWN}/remotejobs/job.train", "submitter-token") == 200

        await until(known)
        yield made


async def test_each_sees_what_their_token_may_see_and_nobody_gets_anothers_answer(tmp_path: Path) -> None:
    """The same paths, one after the other, within the seconds for which answers are kept."""
    paths = (f"{BASE}/overview", f"{BASE}/fleet", f"{OWN}/overview", f"{OWN}/remotejobs", f"{OWN}/timeline")
    async with hosted(tmp_path) as here:
        codes = {
            who: [await here.code(path, f"{who}-token") for path in paths]
            for who in ("admins", "submitter", "nobody", "invented", "submitter")
        }
        namespaces = {
            who: json.loads((await here.ask(f"{BASE}/remotenamespaces", f"{who}-token"))[1])["items"]
            for who in ("admins", "submitter", "nobody")
        }
        nobody, invented = [await here.ask(f"{OWN}/remotejobs", token) for token in ("", "invented-token")]

    assert codes == {
        "admins": [200] * 5,
        "submitter": [403, 403, 200, 200, 200],
        "nobody": [403] * 5,
        "invented": [401] * 5,
    }
    default: list[Json] = [{"metadata": {"name": "default"}}]
    assert namespaces == {"admins": default, "submitter": default, "nobody": []}
    assert (nobody[0], nobody[2]["WWW-Authenticate"]) == (401, "Bearer")
    assert (invented[0], invented[2]["WWW-Authenticate"]) == (401, 'Bearer error="invalid_token"')


async def test_a_job_and_all_about_it_is_for_who_may_see_that(tmp_path: Path) -> None:
    """Its log, too."""
    job = f"{OWN}/remotejobs/job.train"
    paths = [job, *(f"{job}/{part}" for part in ("explain", "events", "pods", "log"))]
    async with hosted(tmp_path) as here:
        own = [await here.code(path, "viewer-token") for path in paths]
        nobodys = [await here.code(path, "nobody-token") for path in paths]
        strangers = [await here.code(path) for path in paths]
    assert own == [200] * 5
    assert (nobodys, strangers) == ([403] * 5, [401] * 5)


async def test_who_may_not_any_more_is_refused_within_seconds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a user may is kept by user, whose a token is by token: one that is revoked shows nothing that the user's
    other token may still see."""
    monkeypatch.setattr(signed_in, "KEPT", 0.3)
    async with hosted(tmp_path) as here:
        access = here.people.stage.fleet.person.server.access
        assert access.tokens is not None
        access.tokens["other-token"] = access.tokens["submitter-token"]
        both = [await here.code(f"{OWN}/remotejobs", f"{name}-token") for name in ("submitter", "other")]
        del access.tokens["other-token"]

        async def is_strange() -> bool:
            return await here.code(f"{OWN}/remotejobs", "other-token") == 401

        await until(is_strange)
        first = await here.code(f"{OWN}/remotejobs", "submitter-token")
        await here.people.stage.admin.delete(ROLE_BINDING, ObjectKey("default", "submitter"))

        async def is_refused() -> bool:
            return await here.code(f"{OWN}/remotejobs", "submitter-token") == 403

        await until(is_refused)
    assert (both, first) == ([200, 200], 200)


ODD: list[tuple[str, str, dict[str, str], int]] = [
    ("/", "GET", {}, 200),
    ("/", "GET", {"Host": NAME}, 200),
    ("/", "GET", {"Host": f"{NAME.upper()}:443"}, 200),
    ("/", "GET", {"Host": NAME, "Origin": f"https://{NAME}", "Sec_Fetch_Site": "same-origin"}, 200),
    ("/", "GET", {"Host": "evil.example"}, 421),
    ("/", "GET", {"Host": f"{NAME}.evil.example"}, 421),
    ("/", "GET", {"Host": f"evil.example#{NAME}"}, 421),
    ("/", "GET", {"Host": f"x@{NAME}"}, 421),
    ("/", "GET", {"Host": "evil.example", "X_Forwarded_Host": NAME, "Forwarded": f"host={NAME}"}, 421),
    ("/", "GET", {"Origin": "https://evil.example"}, 403),
    ("/", "GET", {"Origin": f"http://{NAME}"}, 403),
    ("/", "GET", {"Origin": "null"}, 403),
    (f"{OWN}/remotejobs", "GET", {"Sec_Fetch_Site": "cross-site"}, 403),
    (f"{OWN}/remotejobs", "GET", {"Sec_Fetch_Site": "same-site"}, 403),
    ("/", "GET", {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Dest": "document"}, 200),
    ("/", "GET", {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Dest": "iframe"}, 403),
    ("/page.js", "GET", {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Dest": "script"}, 403),
    (f"{OWN}/remotejobs", "GET", {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Dest": "document"}, 403),
    (f"{OWN}/remotejobs", "POST", {}, 405),
    (f"{OWN}/remotejobs", "OPTIONS", {"Access_Control_Request_Method": "GET", "Origin": "https://evil.example"}, 405),
    (f"{OWN}/remotejobs/job.train/exec", "GET", {}, 404),
    ("/api/v1/secrets", "GET", {}, 404),
]


async def test_another_site_another_name_and_another_method_are_refused(tmp_path: Path) -> None:
    """Whatever a browser has been made to send, with a token that a proxy would add to it."""
    async with hosted(tmp_path) as here:
        codes = [(await here.ask(path, "submitter-token", method, **headers))[0] for path, method, headers, _ in ODD]
    assert codes == [code for *_, code in ODD]


async def test_no_header_but_the_token_says_who_asks(tmp_path: Path) -> None:
    """What proxies send is believed from nobody, so that nobody can send it in their place."""
    said = {
        "X_Remote_User": "admin",
        "X_Remote_Group": "system:masters",
        "X_Forwarded_User": "admin",
        "X_Forwarded_Email": "admin@example.com",
        "X_Forwarded_Access_Token": "admins-token",
        "X_Auth_Request_User": "admin",
        "Impersonate_User": "admin",
        "Cookie": "token=admins-token",
        "X_Multikueue_Token": "admins-token",
    }
    async with hosted(tmp_path) as here:
        alone = [await here.code(f"{BASE}/fleet", **{name: value}) for name, value in said.items()]
        beside = await here.code(f"{BASE}/fleet", "submitter-token", **said)
        own = await here.code(f"{OWN}/remotejobs", "submitter-token", **said)
        basic = await here.code(f"{BASE}/fleet", Authorization="Basic YWRtaW46YWRtaW4=")
        asked = await here.code(f"{BASE}/fleet?token=admins-token&access_token=admins-token")
    assert (alone, beside, own, basic, asked) == ([401] * len(said), 403, 200, 401, 401)


async def test_a_token_is_in_no_line_of_the_log_and_no_answer(tmp_path: Path) -> None:
    async with hosted(tmp_path) as here:
        with capture_logs() as lines:
            answers = [
                await here.ask(path, token)
                for path in ("/", f"{BASE}/fleet", f"{OWN}/remotejobs", f"{OWN}/remotejobs/job.other")
                for token in ("submitter-token", "invented-token")
            ]
    text = json.dumps([str(lines), [(body, dict(headers)) for _, body, headers in answers]])
    assert any("submitter" in str(line.get("user")) for line in lines)
    assert "submitter-token" not in text
    assert "invented-token" not in text


async def test_each_answer_forbids_frames_scripts_of_others_and_referrers(tmp_path: Path) -> None:
    """Also a refusal, and also the API's: a browser shows those, too."""
    async with hosted(tmp_path) as here:
        answers = [
            await here.ask("/"),
            await here.ask(f"{OWN}/remotejobs", "submitter-token"),
            await here.ask(f"{BASE}/fleet"),
            await here.ask("/", Host="evil.example"),
        ]
    for _, _, headers in answers:
        assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
        assert "unsafe" not in headers["Content-Security-Policy"]
        assert headers["X-Frame-Options"] == "DENY"
        assert headers["Referrer-Policy"] == "no-referrer"
        assert headers["Cache-Control"] == "no-store"
        assert headers["Strict-Transport-Security"]
        assert "Access-Control-Allow-Origin" not in headers
        assert "Set-Cookie" not in headers


@pytest.mark.parametrize("address", ["", "0.0.0.0", "::", "localhost.example", "10.0.0.1"])
async def test_plain_http_is_for_the_loopback_alone(address: str) -> None:
    """Tokens would be sent in plain text."""
    with pytest.raises(SettingsError, match="plain text"):
        async with serving_page(PageOptions((NAME,), 0, address), None, None):  # type: ignore[arg-type]
            pass


async def test_a_tenants_sums_have_nothing_of_another_namespace(tmp_path: Path) -> None:
    async with hosted(tmp_path) as here:
        metadata = {"name": "others"}
        await here.people.stage.admin.create(NAMESPACE, {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
        codes = [
            await here.code(f"{BASE}/namespaces/others/{part}", "submitter-token")
            for part in ("overview", "timeline", "places", "remotejobs")
        ]
    assert codes == [403] * 4
