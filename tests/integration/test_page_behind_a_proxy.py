"""The page of a server behind a real oauth2-proxy, with the flags of docs/dashboard.md, and a manager that trusts the
same issuer: its kube-apiserver judges the tokens."""

from __future__ import annotations

import json
import os
import re
import secrets
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Final

import aiohttp
import anyio
import attrs
import pytest
import trustme
import yaml
from click.testing import CliRunner

from multikueue.core.model.names import Json
from multikueue.sandbox.setting_up import connect_workers
from multikueued.cli import main
from multikueued.page.port import API
from tests.controlplane.binaries import find_oauth2_proxy
from tests.controlplane.errors import BinariesMissing
from tests.controlplane.interface import ClusterFactory
from tests.controlplane.polling import poll_until
from tests.controlplane.ports import free_port
from tests.controlplane.processes import ChildProcess
from tests.controlplane.provider import report_missing
from tests.docs.blocks import ROOT, blocks
from tests.integration.issuer import HOST, Issuer, issuing
from tests.integration.test_logs_server import Setting, setting

pytestmark = [pytest.mark.real, pytest.mark.timeout(240)]

OWN: Final = f"{API}v1alpha1/namespaces/default"
FLEET: Final = f"{API}v1alpha1/fleet"
PAGE: Final = ROOT / "docs" / "dashboard.md"
ANN, BOB = "ann@example.com", "bob@example.com"
UNKNOWN: Final = "the manager cluster does not know the token"
FORGED: Final = {
    "X-Forwarded-User": "system:admin",
    "X-Forwarded-Email": ANN,
    "X-Forwarded-Groups": "system:masters",
    "X-Forwarded-Access-Token": "admins",
    "X-Auth-Request-User": ANN,
    "X-Remote-User": f"oidc:{ANN}",
    "X-Remote-Group": "system:masters",
    "Impersonate-User": f"oidc:{ANN}",
}


@attrs.define(eq=False)
class Browser:
    """Keeps cookies, and follows where it is sent."""

    session: aiohttp.ClientSession
    address: str

    async def ask(self, path: str = "/", **headers: str) -> tuple[int, str, str]:
        """Code, type and text of an answer."""
        async with self.session.get(f"{self.address}{path}", headers=headers) as response:
            return response.status, response.content_type, await response.text()

    async def code(self, path: str, **headers: str) -> int:
        return (await self.ask(path, **headers))[0]


@attrs.define(eq=False)
class Fronted:
    """The page, the proxy in front of it, and the issuer that both trust."""

    behind: Setting
    issuer: Issuer
    authority: trustme.CA
    page: int
    proxy: int
    folder: Path

    @asynccontextmanager
    async def browser(self, *, port: int | None = None) -> AsyncIterator[Browser]:
        """Of somebody; at the proxy, or at the port that is said."""
        tls = ssl.create_default_context(cadata=self.authority.cert_pem.bytes().decode())
        connector, jar = aiohttp.TCPConnector(ssl=tls), aiohttp.CookieJar(unsafe=True)
        async with aiohttp.ClientSession(connector=connector, cookie_jar=jar) as session:
            yield Browser(session, f"https://{HOST}:{port or self.proxy}")

    @asynccontextmanager
    async def proxying(self, instead: Mapping[str, str] = MappingProxyType({})) -> AsyncIterator[None]:
        """oauth2-proxy with the flags of the docs, or others instead, while the context lasts."""
        process = ChildProcess("oauth2-proxy", self.folder / "proxy.log")
        flags = proxy_flags(1, {**self._here(), **instead})
        trusted = f"SSL_CERT_FILE={self.folder / 'ca.crt'}"
        await process.start(["/usr/bin/env", trusted, str(find_oauth2_proxy()), *flags])
        try:
            async with self.browser() as browser:
                await process.wait_until(partial(answers, browser, "/ping"), seconds=60)
            yield
        finally:
            await process.kill()

    def _here(self) -> Mapping[str, str]:
        return {
            "https://issuer.example.com": self.issuer.url,
            "https://multikueue.example.com/": f"https://{HOST}:{self.proxy}/",
            "=:443": f"={HOST}:{self.proxy}",
            "https://multikueued-page.multikueue-system.svc": f"https://{HOST}:{self.page}",
            "/etc/proxy/issuer-ca.crt": str(self.folder / "ca.crt"),
            "/etc/proxy/": f"{self.folder}/",
        }


def proxy_flags(block: int, instead: Mapping[str, str]) -> list[str]:
    """The flags that the docs say, with what stands there for an example's names."""
    flags = [block for block in blocks(PAGE, "text") if block.startswith("--")][block].splitlines()
    for example, ours in instead.items():
        flags = [flag.replace(example, ours) for flag in flags]
    assert not [flag for flag in flags if "example.com" in flag or "/etc/" in flag]
    return flags


async def answers(browser: Browser, path: str) -> bool:
    try:
        return await browser.code(path) < 500
    except aiohttp.ClientError:
        return False


@asynccontextmanager
async def fronted(folder: Path) -> AsyncIterator[Fronted]:
    """With a job in `default`, and Ann bound to the submitter's role there."""
    authority, (page, proxy) = trustme.CA(), (free_port(), free_port())
    certificate = authority.issue_cert(HOST)
    authority.cert_pem.write_to_path(folder / "ca.crt")
    certificate.cert_chain_pems[0].write_to_path(folder / "tls.crt")
    certificate.private_key_pem.write_to_path(folder / "tls.key")
    (folder / "client-secret").write_text("secret")
    (folder / "cookie-secret").write_text(secrets.token_hex(16))
    served = (
        "--page-host",
        HOST,
        "--page-port",
        str(page),
        "--page-address",
        "127.0.0.1",
        "--page-cert-dir",
        str(folder),
    )
    async with AsyncExitStack() as stack:
        issuer = await stack.enter_async_context(issuing(authority))
        here = {"https://issuer.example.com": issuer.url, "/etc/proxy/issuer-ca.crt": str(folder / "ca.crt")}
        trusting = setting(folder, permitted=("--page",), arguments=served, flags=proxy_flags(0, here))
        behind = await stack.enter_async_context(trusting)
        reached = behind.workers.workers["worker1"].kubeconfig("multikueue")
        await connect_workers(behind.client, {"worker1": reached})
        await behind.run_job()
        for obj in roles():
            await behind.manager.admin.apply(obj)
        made = Fronted(behind, issuer, authority, page, proxy, folder)
        async with made.browser(port=page) as browser:
            bearer = f"Bearer {issuer.token(ANN, 'multikueue')}"

            async def known() -> bool:
                return await browser.code(f"{OWN}/remotejobs/job.train", Authorization=bearer) == 200

            await poll_until(known, seconds=60, otherwise="the page does not show Ann's job to her token")
        yield made


def roles() -> list[Json]:
    """What `multikueue rbac user` prints, and what the docs bind Ann with."""
    (user,) = re.findall(r"--clusterrole multikueue-submitter --user (\S+?)`", PAGE.read_text())
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "multikueue-submitter"}
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "ann", "namespace": "default"},
        "roleRef": reference,
        "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": user}],
    }
    return [*yaml.safe_load_all(CliRunner().invoke(main, ["rbac", "user"]).stdout), binding]


@pytest.fixture(autouse=True)
def _proxy_is_there(clusters: ClusterFactory) -> None:
    del clusters
    try:
        find_oauth2_proxy()
    except BinariesMissing as error:
        report_missing("oauth2-proxy", error, os.environ)


async def test_who_signs_in_at_a_proxy_sees_what_is_theirs_and_nobody_else_anything(tmp_path: Path) -> None:
    async with fronted(tmp_path) as here:
        async with here.proxying():
            await signed_in(here)
            await signed_in_for_another_client(here)
            await never_signed_in(here)
        await tokens_that_are_refused(here)
        await a_token_is_renewed(here)
        await one_that_is_not_renewed_is_told(here)


async def signed_in(here: Fronted) -> None:
    """Ann sees her namespace, Bob nothing; whatever either adds to the request."""
    async with here.browser() as ann, here.browser() as bob:
        assert 'data-door="sign-in"' in (await ann.ask())[2]
        here.issuer.next_person = BOB
        assert 'data-door="sign-in"' in (await bob.ask())[2]
        jobs = json.loads((await ann.ask(f"{OWN}/remotejobs"))[2])
        spaces = json.loads((await ann.ask(f"{API}v1alpha1/remotenamespaces"))[2])
        assert [item["metadata"]["name"] for item in jobs["items"]] == ["job.train"]
        assert [item["metadata"]["name"] for item in spaces["items"]] == ["default"]
        elsewhere = [f"{API}v1alpha1/namespaces/kube-system/remotejobs", FLEET]
        assert [await ann.code(path) for path in elsewhere] == [403, 403]
        bobs = [f"{OWN}/{part}" for part in ("remotejobs", "remotejobs/job.train", "overview", "timeline")]
        assert [await bob.code(path) for path in bobs] == [403] * 4
        assert f'User "oidc:{BOB}" cannot list' in message(await bob.ask(f"{OWN}/remotejobs"))
        forged = {**FORGED, "Authorization": f"Bearer {here.issuer.token(ANN, 'multikueue')}"}
        assert [await bob.code(path, **forged) for path in bobs] == [403] * 4, "the proxy's word counts, not Bob's"


async def signed_in_for_another_client(here: Fronted) -> None:
    """The proxy itself refuses a token that is not for it, and nothing is asked of the page."""
    here.issuer.audience = "grafana"
    async with here.browser() as browser:
        assert (await browser.ask())[0] == 403
        assert await browser.code(f"{OWN}/remotejobs", Accept="application/json") == 401
    here.issuer.audience = ""


async def never_signed_in(here: Fronted) -> None:
    """Who asks the API without a session gets no page of a provider in place of an answer."""
    async with here.browser() as stranger, here.browser(port=here.page) as around:
        code, kind, _ = await stranger.ask(f"{OWN}/remotejobs", Accept="application/json", **FORGED)
        assert (code, kind) == (401, "application/json")
        refused = await around.ask(f"{OWN}/remotejobs", **FORGED)
        told_whom = "sign in with a token of the manager cluster: Authorization: Bearer TOKEN"
        assert (refused[0], message(refused)) == (401, told_whom)


async def tokens_that_are_refused(here: Fronted) -> None:
    """For another client, of another issuer, good no more: one message each time, the same."""
    issuer = here.issuer
    head, body, _ = issuer.token(ANN, "multikueue").split(".")
    refused = {
        "another client": issuer.token(ANN, "grafana"),
        "expired": issuer.token(ANN, "multikueue", lifetime=-60),
        "another issuer": issuer.token(ANN, "multikueue", iss="https://issuer.example.com"),
        "another key": ".".join((head, body, Issuer(issuer.port).token(ANN, "multikueue").split(".")[2])),
        "an address that nobody has checked": issuer.token(ANN, "multikueue", email_verified=False),
    }
    async with here.browser(port=here.page) as around:
        for why, token in refused.items():
            answer = await around.ask(f"{OWN}/remotejobs", Authorization=f"Bearer {token}")
            assert (answer[0], message(answer)) == (401, UNKNOWN), why


async def a_token_is_renewed(here: Fronted) -> None:
    """The one that is passed on is good for as long as somebody stays; each minute by the flag of the docs, here each
    second."""
    here.issuer.next_person, here.issuer.lifetime = ANN, 4.0
    async with here.proxying({"--cookie-refresh=1m": "--cookie-refresh=1s"}), here.browser() as ann:
        await ann.ask()
        begun = anyio.current_time()

        async def is_renewed() -> bool:
            assert await ann.code(f"{OWN}/remotejobs", Accept="application/json") == 200
            return here.issuer.refreshes >= 3 and anyio.current_time() > begun + 2 * here.issuer.lifetime

        await poll_until(is_renewed, seconds=40, otherwise="the proxy does not renew the token")


async def one_that_is_not_renewed_is_told(here: Fronted) -> None:
    """A proxy that does not renew passes on a token that has expired."""
    here.issuer.next_person, here.issuer.lifetime = ANN, 2.0
    async with here.proxying({"--cookie-refresh=1m": "--cookie-refresh=0s"}), here.browser() as ann:
        await ann.ask()

        async def is_refused() -> bool:
            answer = await ann.ask(f"{OWN}/remotejobs", Accept="application/json")
            return answer[0] == 401 and message(answer) == UNKNOWN

        await poll_until(is_refused, seconds=40, otherwise="an expired token is still taken")


def message(answer: tuple[int, str, str]) -> str:
    """Of a refusal."""
    return str(json.loads(answer[2])["message"])
