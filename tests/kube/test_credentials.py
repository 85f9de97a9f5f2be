"""Tokens from files that are rotated, and which source a configuration has."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from multikueue.errors import Unauthorized
from multikueue.kube.config import ClusterConfig
from multikueue.kube.credentials.authenticator import Authenticators
from multikueue.kube.credentials.credential import Credential
from multikueue.kube.credentials.sources import PluginCredential, StaticToken, TokenFile, credential_source
from multikueue.kube.single_flight import SingleFlight
from tests.kube.exec_plugins import CANARY, prints


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
