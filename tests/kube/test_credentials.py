"""Tokens from files that are rotated, and from plugins that really run."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import attrs
import pytest
from aiohttp import web

from multikueue.core.model.kinds import JOB
from multikueue.core.model.names import Json, ObjectKey
from multikueue.errors import Unauthorized
from multikueue.kube.config import ClusterConfig
from multikueue.kube.credentials.credential import Credential
from multikueue.kube.credentials.exec_plugin import ExecPlugin
from multikueue.kube.credentials.exec_run import run_plugin
from multikueue.kube.credentials.sources import PluginCredential, StaticToken, TokenFile, credential_source
from multikueue.kube.single_flight import SingleFlight
from tests.kube.scripted import eventually, job, refuses, says, talking

API = "client.authentication.k8s.io/v1"
CANARY = "s3cr3t-canary"

SCRIPT = """
import json, os, sys, time
folder = sys.argv[1]
runs = os.path.join(folder, "runs")
with open(runs, "a") as file:
    file.write(".")
with open(os.path.join(folder, "told"), "w") as file:
    file.write(os.environ["KUBERNETES_EXEC_INFO"])
"""


@attrs.frozen
class FakePlugin:
    """A script that records each run."""

    folder: Path
    body: str

    def config(self, cluster: str = "", **env: str) -> ExecPlugin:
        """What runs it."""
        script = self.folder / "plugin.py"
        script.write_text(SCRIPT + self.body)
        return ExecPlugin(sys.executable, [str(script), str(self.folder)], env, cluster=cluster)

    @property
    def runs(self) -> int:
        file = self.folder / "runs"
        return len(file.read_text()) if file.exists() else 0

    @property
    def told(self) -> Json:
        told: Json = json.loads((self.folder / "told").read_text())
        return told


def prints(folder: Path, token: str = "'t%d' % os.path.getsize(runs)", **status: str) -> FakePlugin:
    """A plugin that prints a token, by default another one each time."""
    body = f"status = {{**{status!r}, 'token': {token}}}\n"
    return FakePlugin(
        folder, body + f"print(json.dumps(dict(apiVersion={API!r}, kind='ExecCredential', status=status)))"
    )


async def test_a_plugin_runs_once_for_many_requests(tmp_path: Path) -> None:
    """Also when it names no end of its token: kubernetes-asyncio's loader would run it each time."""
    plugin = prints(tmp_path)
    got: list[str] = []

    async def ask() -> None:
        got.append((await source.credential()).token)

    async with SingleFlight() as flights:
        source = PluginCredential(plugin.config(), flights)
        async with anyio.create_task_group() as tasks:
            for _ in range(20):
                tasks.start_soon(ask)
        await ask()
    assert got == ["t1"] * 21
    assert plugin.runs == 1
    assert "t1" not in repr(source).replace(sys.executable, "")


@pytest.mark.parametrize(("life", "runs"), [(3600, 1), (240, 1), (-1, 3)])
async def test_a_token_is_used_until_its_end(tmp_path: Path, life: int, runs: int) -> None:
    """Also one that lives for four minutes: a fixed margin of five would run the plugin each time."""
    end = datetime.now(UTC) + timedelta(seconds=life)
    plugin = prints(tmp_path, expirationTimestamp=end.isoformat())
    async with SingleFlight() as flights:
        source = PluginCredential(plugin.config(), flights)
        for _ in range(3):
            await source.credential()
    assert plugin.runs == runs


@attrs.define
class Planned:
    """A fake plugin on a virtual clock: it takes some seconds, and then prints a token or fails."""

    life: float = 900
    takes: float = 0
    fails: bool = False
    always: str = ""
    runs: int = 0

    async def run(self, plugin: ExecPlugin) -> Credential:
        self.runs += 1
        await anyio.sleep(self.takes)
        if self.fails:
            raise Unauthorized(f"{plugin.command} failed")
        return Credential(self.always or f"t{self.runs}", expires=self.now() + timedelta(seconds=self.life))

    def now(self) -> datetime:
        """The wall clock."""
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=anyio.current_time())

    @asynccontextmanager
    async def source(self) -> AsyncIterator[PluginCredential]:
        """Tokens of this plugin."""
        async with SingleFlight() as flights:
            yield PluginCredential(ExecPlugin("/planned"), flights, run=self.run, clock=self.now)


@pytest.mark.looptime
async def test_a_token_is_renewed_before_its_end() -> None:
    """A tenth of its life before, and never more than a minute, so that no request carries one that ends on the way."""
    for life, renewed in ((300, 270), (900, 840)):
        plugin = Planned(life=life)
        async with plugin.source() as source:
            assert (await source.credential()).token == "t1"
            await anyio.sleep(renewed - 1)
            await source.credential()
            assert plugin.runs == 1
            await anyio.sleep(1)
            await source.credential()
            await anyio.sleep(1)
            assert (await source.credential()).token == "t2"


@pytest.mark.looptime
async def test_a_plugin_may_take_longer_than_those_who_wait_for_it() -> None:
    """The leader election gives up after five seconds, and needs a token nevertheless."""
    plugin = Planned(takes=6)
    async with plugin.source() as source:
        with anyio.move_on_after(5) as scope:
            await source.credential()
        assert scope.cancelled_caught
        with anyio.fail_after(2):
            assert (await source.credential()).token == "t1"
    assert plugin.runs == 1


@pytest.mark.looptime
async def test_nobody_waits_for_a_token_to_be_renewed() -> None:
    """The current token is valid until it expires or the server refuses it."""
    plugin = Planned(takes=6)
    async with plugin.source() as source:
        first = await source.credential()
        assert first.token == "t1"
        await anyio.sleep(850)
        began = anyio.current_time()
        assert (await source.credential()).token == "t1"
        await anyio.sleep(1)
        assert (await source.credential()).token == "t1"
        assert anyio.current_time() == began + 1
        assert (await source.credential(first)).token == "t2"
        assert anyio.current_time() == began + 6
    assert plugin.runs == 2


@pytest.mark.looptime
async def test_a_token_outlives_a_plugin_that_fails_for_a_moment() -> None:
    """Until it expires: the early renewal left time for retries."""
    plugin = Planned()
    async with plugin.source() as source:
        assert (await source.credential()).token == "t1"
        plugin.fails = True
        await anyio.sleep(850)
        for _ in range(4):
            assert (await source.credential()).token == "t1"
            await anyio.sleep(1)
        assert plugin.runs == 2
        await anyio.sleep(46)
        with pytest.raises(Unauthorized, match="planned failed"):
            await source.credential()
        plugin.fails = False
        await anyio.sleep(5)
        assert (await source.credential()).token == "t4"


@pytest.mark.looptime
async def test_a_token_that_is_refused_does_not_outlive_a_plugin_that_fails() -> None:
    """However long its lifetime. A late 401 for it does not affect the token that replaced it."""
    plugin = Planned()
    async with plugin.source() as source:
        first = await source.credential()
        assert first.token == "t1"
        plugin.fails = True
        for refused in (first, None):
            with pytest.raises(Unauthorized, match="planned failed"):
                await source.credential(refused)
        plugin.fails = False
        await anyio.sleep(5)
        assert (await source.credential()).token == "t3"
        assert (await source.credential(first)).token == "t3"
        assert plugin.runs == 3


@pytest.mark.looptime
async def test_a_token_that_was_refused_and_is_printed_again_is_given_another_chance() -> None:
    """The server may have been unable to check it: the plugin is not run again until it is refused again."""
    plugin = Planned(always="t")
    async with plugin.source() as source:
        first = await source.credential()
        assert first.token == "t"
        assert (await source.credential(first)).token == "t"
        await anyio.sleep(60)
        assert (await source.credential()).token == "t"
        assert plugin.runs == 2


async def test_64_refused_requests_run_the_plugin_once(tmp_path: Path) -> None:
    """All of them then succeed with the new token."""
    plugin = prints(tmp_path)

    async def only_the_second(request: web.Request) -> web.StreamResponse:
        good = request.headers["Authorization"] == "Bearer t2"
        return await (says(200, job("1")) if good else refuses(401))(request)

    async with talking(only_the_second, exec_plugin=plugin.config()) as (server, client):
        async with anyio.create_task_group() as tasks:
            for _ in range(64):
                tasks.start_soon(client.get, JOB, ObjectKey("n", "a"))
        assert plugin.runs == 2
        assert server.authorizations.count("Bearer t2") == 64


async def test_a_plugin_whose_tokens_are_all_refused_is_left_alone_for_a_while(tmp_path: Path) -> None:
    """It may call a cloud's API."""
    plugin = prints(tmp_path)
    async with talking(refuses(401), exec_plugin=plugin.config()) as (_, client):
        for _ in range(4):
            with pytest.raises(Unauthorized):
                await client.get(JOB, ObjectKey("n", "a"))
    assert plugin.runs == 2


async def test_a_plugin_that_fails_is_not_run_for_each_waiting_request(tmp_path: Path) -> None:
    plugin = FakePlugin(tmp_path, "sys.exit(3)")
    async with SingleFlight() as flights:
        source = PluginCredential(plugin.config(), flights)
        for _ in range(3):
            with pytest.raises(Unauthorized, match="failed with exit code 3"):
                await source.credential()
    assert plugin.runs == 1


async def test_a_plugin_gets_the_exec_info(tmp_path: Path) -> None:
    """Its environment, that it cannot prompt, and the cluster if it asks for it."""
    plugin = prints(tmp_path, token="os.environ['GIVEN'] + os.environ['HOME'] + sys.stdin.read()")
    credential = await run_plugin(plugin.config('{"server": "https://a"}', GIVEN="a", HOME="b"))
    assert credential.token == "ab"
    assert plugin.told == {
        "apiVersion": API,
        "kind": "ExecCredential",
        "spec": {"interactive": False, "cluster": {"server": "https://a"}},
    }


async def test_a_plugin_may_write_a_lot_to_stderr(tmp_path: Path) -> None:
    """More than a pipe holds, before it prints anything."""
    plugin = prints(tmp_path)
    loud = FakePlugin(tmp_path, "sys.stderr.write('x' * 1_000_000)\n" + plugin.body)
    assert (await run_plugin(loud.config())).token == "t1"


async def test_a_plugin_is_stopped_when_the_client_is_closed(tmp_path: Path) -> None:
    """No process is left behind."""
    body = f"open(os.path.join(folder, 'pid'), 'w').write(str(os.getpid()))\ntime.sleep(60); {CANARY!r}"
    plugin = FakePlugin(tmp_path, body)
    pid = tmp_path / "pid"
    async with talking(says(200, job("1")), exec_plugin=plugin.config()) as (server, client):
        with anyio.move_on_after(0.01):
            await client.get(JOB, ObjectKey("n", "a"))
        await eventually(lambda: pid.exists() and bool(pid.read_text()))
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)
    assert not server.asked


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (f"sys.stderr.write({CANARY!r}); sys.exit(1)", "failed with exit code 1: run it by hand"),
        (f"print({CANARY!r})", "not JSON"),
        ("print('[' * 100_000)", "not JSON"),
        (f"print(json.dumps([{CANARY!r}]))", "did not print an ExecCredential"),
        ("print(json.dumps(dict(kind='ExecCredential', apiVersion='v1', status={})))", f"ExecCredential of {API}"),
        (f"print(json.dumps(dict(kind='ExecCredential', apiVersion={API!r})))", "printed no token"),
        (
            f"print(json.dumps(dict(kind='ExecCredential', apiVersion={API!r}, status=dict(token='{CANARY} x'))))",
            "printed no token",
        ),
        (
            f"print(json.dumps(dict(kind='ExecCredential', apiVersion={API!r}, "
            f"status=dict(clientCertificateData={CANARY!r}))))",
            "only tokens are supported",
        ),
    ],
)
async def test_errors_of_a_plugin_do_not_quote_its_output(tmp_path: Path, body: str, message: str) -> None:
    with pytest.raises(Unauthorized, match=message) as caught:
        await run_plugin(FakePlugin(tmp_path, body).config())
    assert "canary" not in f"{caught.value!r}{caught.value.__cause__!r}"


async def test_a_command_that_is_not_there_is_named() -> None:
    with pytest.raises(Unauthorized, match="/no/such cannot be run: No such file"):
        await run_plugin(ExecPlugin("/no/such"))


@pytest.mark.looptime
async def test_a_token_file_is_looked_at_once_a_minute(tmp_path: Path) -> None:
    """And at once when its token is refused."""
    file = tmp_path / "token"
    file.write_text("one\n")
    source = TokenFile(file)
    assert (await source.credential()).token == "one"
    file.write_text("two")
    assert (await source.credential()).token == "one"
    assert (await source.credential(Credential("one"))).token == "two"
    file.write_text("three")
    assert (await source.credential(Credential("one"))).token == "two"
    await anyio.sleep(60)
    assert (await source.credential()).token == "three"


@pytest.mark.looptime
async def test_a_token_outlives_a_file_that_is_unreadable_for_a_moment(tmp_path: Path) -> None:
    """Until the server refuses it: a hiccup of the disk must not cut off a cluster."""
    file = tmp_path / "token"
    file.write_text("one")
    source = TokenFile(file)
    assert (await source.credential()).token == "one"
    file.unlink()
    await anyio.sleep(60)
    assert (await source.credential()).token == "one"
    with pytest.raises(Unauthorized, match="cannot be read"):
        await source.credential(Credential("one"))
    file.write_text("two")
    assert (await source.credential(Credential("one"))).token == "two"


@pytest.mark.parametrize("content", [None, "", f"{CANARY}\n{CANARY}"])
async def test_a_token_file_without_a_token_is_an_error(tmp_path: Path, content: str | None) -> None:
    """An empty token would make us anonymous."""
    file = tmp_path / "token"
    if content is not None:
        file.write_text(content)
    with pytest.raises(Unauthorized, match="token file") as caught:
        await TokenFile(file).credential()
    assert "canary" not in repr(caught.value)


async def test_the_configuration_says_where_the_token_comes_from(tmp_path: Path) -> None:
    """A plugin before a file before a token."""
    plugin = prints(tmp_path).config()
    flights = SingleFlight()
    whole = ClusterConfig("", token="a", token_file="b", exec_plugin=plugin)
    assert isinstance(credential_source(whole, flights), PluginCredential)
    assert isinstance(credential_source(ClusterConfig("", token="a", token_file="b"), flights), TokenFile)
    assert credential_source(ClusterConfig("", token="a"), flights) == StaticToken("a")
