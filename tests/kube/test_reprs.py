"""A repr is one line about the state: never the object graph, never a secret."""

from __future__ import annotations

from pathlib import Path
from unittest import mock

import anyio
import pytest

from multikueue.core.model.kinds import JOB
from multikueue.core.model.names import Json, ObjectKey
from multikueue.errors import NotFound
from multikueue.kube import ClusterConfig, Informer, KubeClient
from multikueue.kube.client_options import ClientOptions
from multikueue.kube.credentials.authenticator import Authenticators
from multikueue.kube.credentials.credential import Credential, KeyPair
from multikueue.kube.credentials.exec_plugin import ExecPlugin
from multikueue.kube.credentials.sources import PluginCredential, StaticToken, TokenFile
from multikueue.kube.http.name_lookup import NameLookup
from multikueue.kube.http.requester import open_requester
from multikueue.kube.http.single_flight import SingleFlight
from multikueue.kube.informers.indexer import Indexer
from multikueue.kube.informers.reflector import Reflector
from multikueue.testing import running
from tests.kube.fake_server import FakeServer, listed, obj, wait

SECRETS = ClusterConfig(
    "https://10.0.0.1:6443",
    token="canary",
    client_key_pem="canary",
    proxy="http://canary@proxy",
    exec_plugin=ExecPlugin("get-token", ["canary"], {"TOKEN": "canary"}, cluster='{"config": "canary"}'),
)


@pytest.mark.looptime
async def test_an_informer_shows_how_many_objects_it_has_and_what_it_does() -> None:
    server = FakeServer([NotFound("canary"), listed("4711", obj("a", "3"), obj("b", "4"))], [[wait(1e6)]])
    informer = Informer(server, JOB)
    assert repr(informer) == "<Informer jobs.batch: 0 objects, not synced, listing>"
    async with running(informer.run):
        await informer.wait_settled()
        assert repr(informer) == "<Informer jobs.batch: 0 objects, not synced, listing, 1 failures>"
        await informer.wait_synced()
        assert repr(informer) == "<Informer jobs.batch: 2 objects, synced, watching from 4711, 1 failures>"
        await anyio.sleep(5)
        assert repr(informer) == "<Informer jobs.batch: 2 objects, synced, watching from 4711>"


async def test_a_client_shows_its_server_and_whether_it_is_open() -> None:
    client = KubeClient(SECRETS, name="w1")
    assert repr(client) == "<KubeClient w1: https://10.0.0.1:6443, not opened>"
    async with client:
        assert repr(client) == "<KubeClient w1: https://10.0.0.1:6443, open>"
    assert repr(client) == "<KubeClient w1: https://10.0.0.1:6443, closed>"
    async with open_requester(SECRETS, "w1", ClientOptions(), None) as exchange:
        assert repr(exchange) == "<Requester w1: https://10.0.0.1:6443, open>"
        assert repr(exchange.sessions) == "<Sessions: open>"
    assert repr(exchange) == "<Requester w1: https://10.0.0.1:6443, closed>"


def test_a_store_shows_how_many_objects_it_has() -> None:
    def owners(job: Json) -> list[str]:
        return [job["metadata"]["name"]]

    store = Indexer({"owner": owners})
    store.put(ObjectKey("n", "a"), obj("a", "1"))
    assert repr(store) == "<Indexer: 1 objects, indexes ['owner']>"


def test_a_reflector_shows_its_next_request() -> None:
    reflector = Reflector(
        FakeServer([], []),
        JOB,
        namespace="",
        label_selector="",
        idle=90,
        lifetime=lambda: 300.0,
        lists_next=lambda: False,
        reset_after=2,
        on_list=mock.AsyncMock(),
        on_event=lambda _: None,
        on_established=lambda: None,
    )
    assert repr(reflector) == "<Reflector jobs.batch: listing, 0 failures>"


async def test_flights_show_how_many_are_under_way() -> None:
    async with SingleFlight() as flights:
        flight = flights.begin(anyio.sleep_forever)
        assert repr(flights) == "<SingleFlight: open, 1 under way>"
        assert repr(flight) == "<Flight: under way>"
        assert repr(NameLookup(flights, 10)) == "<NameLookup: 0 lookups>"
    assert repr(flights) == "<SingleFlight: closed, 0 under way>"
    assert repr(flight) == "<Flight: ended>"


async def prints(_: ExecPlugin) -> Credential:
    """What a plugin prints."""
    return Credential("canary", KeyPair("canary", "canary"))


async def test_tokens_are_not_shown(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("canary")
    file = TokenFile(tmp_path / "token")
    assert repr(file) == f"<TokenFile {tmp_path}/token: no token>"
    await file.credential()
    assert repr(file) == f"<TokenFile {tmp_path}/token: has a token>"
    assert SECRETS.exec_plugin is not None
    plugins = Authenticators(run=prints)
    known = plugins.get(SECRETS.exec_plugin)
    assert repr(known) == "<Authenticator get-token: has none yet>"
    async with SingleFlight() as flights:
        source = PluginCredential(known, flights)
        await source.credential()
    assert repr(source) == "<PluginCredential of <Authenticator get-token: has one>>"
    assert repr(known) == "<Authenticator get-token: has one>"
    assert repr(plugins) == "<Authenticators: 1 plugins>"
    assert "canary" not in f"{await prints(SECRETS.exec_plugin)}"
    assert "canary" not in f"{StaticToken('canary')}{SECRETS}"
