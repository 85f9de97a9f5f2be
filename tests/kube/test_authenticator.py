"""The credentials of exec plugins: when a plugin runs, and for how long what it printed is used.

Tokens from files that are rotated, and which source a configuration has.
"""

from __future__ import annotations

import contextlib
import sys
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import pytest

from multikueue.core.model.kinds import JOB
from multikueue.core.model.names import ObjectKey
from multikueue.errors import NotSent, Unauthorized
from multikueue.kube.credentials.authenticator import KEPT, RUNS, Authenticators, held
from multikueue.kube.credentials.credential import Credential
from multikueue.kube.credentials.exec_plugin import ExecPlugin
from multikueue.kube.credentials.sources import PluginCredential, StaticToken, TokenFile, credential_source
from multikueue.kube.http.single_flight import SingleFlight
from multikueue.kube.kubeconfigs.config import ClusterConfig
from tests.kube.exec_plugins import CANARY, Planned, prints
from tests.kube.scripted import event, job, only_for, refuses, says, streams, talking

CREDENTIAL = Credential("t")


async def test_a_plugin_runs_once_for_many_requests(tmp_path: Path) -> None:
    """Also when it names no end of its token: kubernetes-asyncio's loader would run it each time."""
    plugin = prints(tmp_path)
    got: list[str] = []

    async def ask() -> None:
        got.append((await source.credential()).token)

    async with plugin.source() as source:
        async with anyio.create_task_group() as tasks:
            for _ in range(20):
                tasks.start_soon(ask)
        await ask()
    assert got == ["t1"] * 21
    assert plugin.runs == 1
    assert "t1" not in repr(source.authenticator).replace(sys.executable, "")


@pytest.mark.parametrize("life", [3600, 240, 30, -1])
async def test_a_token_is_used_until_its_end(tmp_path: Path, life: int) -> None:
    """Also one that lives for four minutes: a fixed margin of five would run the plugin each time. One that was printed
    too late is not asked for with each request."""
    end = datetime.now(UTC) + timedelta(seconds=life)
    plugin = prints(tmp_path, expirationTimestamp=end.isoformat())
    async with plugin.source() as source:
        for _ in range(3):
            await source.credential()
    assert plugin.runs == 1


@pytest.mark.looptime
async def test_a_token_is_renewed_before_its_end() -> None:
    """A minute before, or a tenth of its life, so that no request carries one that ends on the way."""
    for life, renewed in ((60, 30), (300, 240), (900, 810), (3600, 3240)):
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
        await anyio.sleep(10)
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
    only_the_second = only_for("t2", says(200, job("1")))

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


@pytest.mark.looptime
async def test_a_plugin_that_keeps_failing_is_run_more_and_more_rarely() -> None:
    """After 5, 10, 20 and 40 s, and then each minute; and after 5 s again once it has worked."""
    plugin = Planned(fails=True)
    began, at = anyio.current_time(), []

    async def run(known: ExecPlugin) -> Credential:
        at.append(round(anyio.current_time() - began))
        return await plugin.run(known)

    async with SingleFlight() as flights:
        known = Authenticators(run=run, clock=plugin.now).get(ExecPlugin("/planned"))
        for second in range(241):
            with contextlib.suppress(Unauthorized):
                await known.credential(flights)
            plugin.fails = second < 200
            await anyio.sleep(1)
    assert at == [0, 5, 15, 35, 75, 135, 195, 255][:7]


@pytest.mark.parametrize(
    ("left", "fraction", "renewed", "ends"),
    [
        (3600, 0, 3240, 3600),  # a tenth
        (3600, 1, 3204, 3600),  # and up to a tenth of that
        (300, 0, 240, 300),  # a minute
        (300, 1, 234, 300),
        (40, 1, 20, 40),  # half of a short life
        (0, 1, 0, 0),
        (-5, 0, -2.5, -5),
    ],
)
def test_when_a_credential_is_renewed(left: float, fraction: float, renewed: float, ends: float) -> None:
    times = held(CREDENTIAL, 1000, left, 60, fraction)
    assert times.renew_at == pytest.approx(1000 + renewed)
    assert times.ends_at == 1000 + ends


@pytest.mark.looptime
async def test_what_names_no_end_is_used_until_it_is_refused_or_too_old() -> None:
    """`max_age` is no end: nobody waits for the new one."""
    plugin = Planned(life=float("inf"), takes=1)
    async with SingleFlight() as flights:
        for max_age, runs in ((float("inf"), 1), (3600.0, 2)):
            plugin.runs = 0
            known = plugin.shared(max_age).get(ExecPlugin("/planned"))
            first = await known.credential(flights)
            await anyio.sleep(3601)
            assert await known.credential(flights) == first
            await anyio.sleep(2)
            again = await known.credential(flights)
            assert (plugin.runs, again == first) == (runs, runs == 1)
        assert (await known.credential(flights, again)).token == "t3"


@pytest.mark.looptime
async def test_equal_plugins_run_once_for_all_clients() -> None:
    """Each other configuration, or cluster, has a run and a credential of its own."""
    plugin = Planned(takes=1)
    plugins = plugin.shared()
    got: list[str] = []

    async def ask(client: SingleFlight, asked: ExecPlugin) -> None:
        got.append((await plugins.get(asked).credential(client)).token)

    async with SingleFlight() as first, SingleFlight() as second:
        async with anyio.create_task_group() as tasks:
            for client in (first, second):
                tasks.start_soon(ask, client, ExecPlugin("/p", env={"A": "1"}, cluster="{}"))
        assert got == ["t1", "t1"]
        await ask(second, ExecPlugin("/p", env={"A": "1"}, cluster='{"server":"https://b"}'))
        await ask(first, ExecPlugin("/p", env={"A": "2"}, cluster="{}"))
        assert plugin.runs == 3


@pytest.mark.looptime
async def test_a_run_of_a_client_that_is_closed_begins_again_for_the_other() -> None:
    """Also while a pause after a failure would keep it from running."""
    plugin = Planned(fails=True)
    known = plugin.shared().get(ExecPlugin("/planned"))
    got: list[str] = []

    async def ask() -> None:
        got.append((await known.credential(second)).token)

    async with SingleFlight() as second, anyio.create_task_group() as tasks, SingleFlight() as first:
        with pytest.raises(Unauthorized):
            await known.credential(first)
        plugin.fails, plugin.takes = False, 10
        await anyio.sleep(5)
        with anyio.move_on_after(1):
            await known.credential(first)
        tasks.start_soon(ask)
        await anyio.sleep(1)
    with pytest.raises(NotSent):
        await plugin.shared().get(ExecPlugin("/planned")).credential(first)
    assert got == ["t3"]


@pytest.mark.looptime
async def test_a_plugin_that_hangs_delays_no_other() -> None:
    """It keeps one place of several until its deadline. Those who wait for it give up in time to say so."""
    hangs, works = Planned(takes=30, fails=True), Planned(takes=1)

    async def run(plugin: ExecPlugin) -> Credential:
        return await (hangs if plugin.command == "/hangs" else works).run(plugin)

    plugins, reported = Authenticators(run=run, clock=works.now), list[str]()

    async def ask(client: SingleFlight) -> None:
        with pytest.raises(Unauthorized) as caught:
            await plugins.get(ExecPlugin("/hangs")).credential(client)
        reported.append(str(caught.value))

    async with SingleFlight() as flights, anyio.create_task_group() as tasks:
        tasks.start_soon(ask, flights)
        await anyio.sleep(1)
        began = anyio.current_time()
        assert (await plugins.get(ExecPlugin("/works")).credential(flights)).token == "t1"
        assert anyio.current_time() == began + 1
    assert reported == ["getting credentials: exec: executable /hangs has not answered for 25 s"]


@pytest.mark.looptime
async def test_a_server_that_refuses_what_others_accept_delays_its_own_client_alone() -> None:
    """A plugin that is not told the cluster prints one credential for all."""
    plugin = Planned()
    known = plugin.shared().get(ExecPlugin("/planned"))
    async with SingleFlight() as flights:
        hostile, other = PluginCredential(known, flights), PluginCredential(known, flights)
        refused = await hostile.credential()
        plugin.takes = 20
        began = anyio.current_time()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(hostile.credential, refused)
            await anyio.sleep(1)
            assert await other.credential() is refused
            assert anyio.current_time() == began + 1
        assert anyio.current_time() == began + 20
        assert (await other.credential()).token == "t2"


@pytest.mark.looptime
async def test_plugins_wait_for_their_turn_in_order() -> None:
    """So many run at a time. Who waits longer than a request may wait says for what."""
    plugin = Planned(takes=20)
    plugins, reported = plugin.shared(), Counter[str]()

    async def ask(client: SingleFlight, number: int) -> None:
        try:
            reported[(await plugins.get(ExecPlugin(f"/p{number}")).credential(client)).token[0]] += 1
        except Unauthorized as error:
            reported[str(error).partition(f"/p{number} ")[2]] += 1

    async with SingleFlight() as flights, anyio.create_task_group() as tasks:
        for number in range(2 * RUNS + 3):
            tasks.start_soon(ask, flights, number)
        await anyio.sleep(1)
        assert plugins.places.borrowed_tokens == RUNS
    assert reported == {
        "t": RUNS,
        "has not answered for 25 s": RUNS,
        f"waits for its turn: {RUNS} others are running": 3,
    }


@pytest.mark.looptime
async def test_what_nobody_asks_for_is_forgotten() -> None:
    """After a quarter of an hour: a profile that changes all the time leaves nothing behind."""
    plugin = Planned(life=86_400)
    plugins = plugin.shared()
    async with SingleFlight() as flights:
        for number in range(50):
            await plugins.get(ExecPlugin("/p", [str(number)])).credential(flights)
        used = ExecPlugin("/p", ["0"])
        await anyio.sleep(KEPT)
        await plugins.get(used).credential(flights)
        await anyio.sleep(1)
        await plugins.get(used).credential(flights)
    assert repr(plugins) == "<Authenticators: 1 plugins>"
    assert plugin.runs == 50


async def test_a_token_that_expires_during_a_watch_leads_to_a_new_one_at_its_next_start(tmp_path: Path) -> None:
    """The watch keeps its own until it ends. The next is refused with it, and repeated once with the new one."""
    plugin = prints(tmp_path)
    gone = streams(event("ADDED", "2"))
    only_the_second = only_for("t2", streams(event("ADDED", "3")))
    seen: list[str] = []
    async with talking(gone, only_the_second, exec_plugin=plugin.config()) as (server, client):
        for version in ("1", "2", "3"):
            await client.watch(
                JOB, lambda event: seen.append(event.object["metadata"]["resourceVersion"]), resource_version=version
            )
        assert server.authorizations == ["Bearer t1", "Bearer t1", "Bearer t2", "Bearer t2"]
    assert seen == ["2", "3", "3"]
    assert plugin.runs == 2


async def test_a_write_that_is_refused_is_repeated_once(tmp_path: Path) -> None:
    """It had no effect. When the new token is refused, too, the error is the server's."""
    plugin = prints(tmp_path)
    async with talking(refuses(401), exec_plugin=plugin.config()) as (server, client):
        with pytest.raises(Unauthorized, match=r"create jobs\.batch: no"):
            await client.create(JOB, job("1"))
        assert server.authorizations == ["Bearer t1", "Bearer t2"]
        assert server.bodies[0] == server.bodies[1]


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
    flights, plugins = SingleFlight(), Authenticators()
    printed = ClusterConfig("", token="a", token_file="b", exec_plugin=plugin)
    assert isinstance(credential_source(printed, flights, plugins), PluginCredential)
    assert isinstance(credential_source(ClusterConfig("", token="a", token_file="b"), flights, plugins), TokenFile)
    assert credential_source(ClusterConfig("", token="a"), flights, plugins) == StaticToken("a")
