"""Tokens from files that are rotated and from holders, and which source a configuration has."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest
from aiohttp import web

from multikueue.core.model.kinds import JOB
from multikueue.core.model.names import ObjectKey
from multikueue.errors import Unauthorized
from multikueue.kube.config import ClusterConfig
from multikueue.kube.credentials.authenticator import Authenticators
from multikueue.kube.credentials.credential import Credential
from multikueue.kube.credentials.holder import TokenHolder
from multikueue.kube.credentials.sources import PluginCredential, StaticToken, TokenFile, credential_source
from multikueue.kube.single_flight import SingleFlight
from tests.kube.exec_plugins import CANARY, prints
from tests.kube.scripted import job, refuses, says, talking


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
    """A holder before a plugin before a file before a token."""
    plugin, holder = prints(tmp_path).config(), TokenHolder("Secret n/a")
    flights, plugins = SingleFlight(), Authenticators()
    held = ClusterConfig("", token="a", token_file="b", exec_plugin=plugin, holder=holder)
    assert credential_source(held, flights, plugins) is holder
    printed = ClusterConfig("", token="a", token_file="b", exec_plugin=plugin)
    assert isinstance(credential_source(printed, flights, plugins), PluginCredential)
    assert isinstance(credential_source(ClusterConfig("", token="a", token_file="b"), flights, plugins), TokenFile)
    assert credential_source(ClusterConfig("", token="a"), flights, plugins) == StaticToken("a")


async def test_a_token_that_is_held_is_replaced_at_once() -> None:
    """Between two requests, without a new connection; and a request that is refused with the old one is repeated."""
    holder = TokenHolder("Secret n/a")
    holder.set("one\n")

    async def only_two(request: web.Request) -> web.StreamResponse:
        if request.headers["Authorization"] == "Bearer two":
            return await says(200, job("1"))(request)
        holder.set("two")
        return await refuses(401)(request)

    async with talking(says(200, job("1")), only_two, holder=holder) as (server, client):
        for _ in range(3):
            await client.get(JOB, ObjectKey("n", "a"))
        assert server.authorizations == ["Bearer one", "Bearer one", "Bearer two", "Bearer two"]
        assert len({request.transport for request in server.asked}) == 1
    assert not holder.refused


async def test_a_token_that_is_held_and_refused_is_known_as_that() -> None:
    """Then a new one is worth a new connection. The request is not repeated with the same token."""
    holder = TokenHolder("Secret n/a")
    holder.set("one")
    async with talking(refuses(401), holder=holder) as (server, client):
        with pytest.raises(Unauthorized):
            await client.get(JOB, ObjectKey("n", "a"))
        assert len(server.asked) == 1
    assert holder.refused
    holder.set("one")
    assert holder.refused
    holder.set("two")
    assert not holder.refused


@pytest.mark.parametrize(
    ("token", "told"),
    [
        (None, "Secret n/a is not read yet"),
        ("", "Secret n/a does not hold a token"),
        (f"{CANARY} {CANARY}", "Secret n/a does not hold a token"),
    ],
)
async def test_a_holder_without_a_token_says_so(token: str | None, told: str) -> None:
    """Nothing is sent then: the server would take us for anonymous."""
    holder = TokenHolder("Secret n/a")
    if token is not None:
        holder.set("one")
        holder.set(token)
    async with talking(says(200, job("1")), holder=holder) as (server, client):
        with pytest.raises(Unauthorized) as caught:
            await client.get(JOB, ObjectKey("n", "a"))
        assert not server.asked
    assert str(caught.value) == f"getting credentials: {told}"


async def test_a_holder_says_why_it_has_no_token_any_more() -> None:
    holder = TokenHolder("Secret n/a")
    holder.set("one")
    holder.clear("does not exist")
    with pytest.raises(Unauthorized, match="getting credentials: Secret n/a does not exist"):
        await holder.credential()
