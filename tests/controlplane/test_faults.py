"""An API server that goes away, hangs, forgets or expels, as it happens in production, on demand."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import anyio
import pytest

from tests.controlplane.cluster import ControlPlane
from tests.controlplane.interface import ClusterFactory
from tests.controlplane.polling import poll_until

pytestmark = [pytest.mark.real, pytest.mark.timeout(120)]

_MAPS = "/api/v1/namespaces/default/configmaps"
_READ_MAPS = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch"]}


def _map(name: str, value: str = "0") -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"key": value}}


async def test_a_killed_api_server_comes_back_at_its_address_with_its_data(clusters: ClusterFactory) -> None:
    async with clusters("killed") as plane:
        uid = (await plane.admin.create(_map("kept")))["metadata"]["uid"]
        url = plane.url
        await plane.kill_apiserver()
        with pytest.raises(aiohttp.ClientConnectorError):
            await plane.admin.send("GET", _MAPS)
        await plane.start_apiserver()
        assert plane.url == url
        assert (await plane.admin.get(f"{_MAPS}/kept"))["metadata"]["uid"] == uid


async def test_a_paused_api_server_answers_nothing_until_it_is_resumed(clusters: ClusterFactory) -> None:
    async with clusters("paused") as plane:
        await plane.pause_apiserver()
        with pytest.raises(TimeoutError), anyio.fail_after(0.5):
            await plane.admin.send("GET", _MAPS)
        await plane.resume_apiserver()
        assert (await plane.admin.send("GET", _MAPS)).status == 200


async def test_after_compaction_old_resource_versions_are_gone_and_new_ones_work(clusters: ClusterFactory) -> None:
    async with clusters("compacted") as plane:
        old = (await plane.admin.create(_map("a")))["metadata"]["resourceVersion"]
        await plane.admin.create(_map("b"))
        page = await plane.admin.get(_MAPS, limit="1")
        await plane.admin.apply(_map("a", "1"))
        await plane.compact()
        (event,) = await plane.admin.watch(_MAPS, resource_version=old)
        assert (event["type"], event["object"]["code"], event["object"]["reason"]) == ("ERROR", 410, "Expired")
        query = {"continue": page["metadata"]["continue"], "limit": "1"}
        assert (await plane.admin.send("GET", _MAPS, query=query)).status == 410
        new = (await plane.admin.get(_MAPS))["metadata"]["resourceVersion"]
        await plane.admin.apply(_map("a", "2"))
        (event,) = await plane.admin.watch(_MAPS, resource_version=new)
        assert event["type"] == "MODIFIED"


async def test_without_a_watch_cache_compaction_needs_no_restart(planes: type[ControlPlane]) -> None:
    async with planes("uncached", watch_cache=False) as plane:
        old = (await plane.admin.create(_map("a")))["metadata"]["resourceVersion"]
        await plane.admin.apply(_map("a", "1"))
        assert [event["type"] for event in await plane.admin.watch(_MAPS, resource_version=old)] == ["MODIFIED"]
        await plane.compact()

        async def forgotten() -> bool:  # seen once on a busy machine: the API server says 500 before it says 410
            (event,) = await plane.admin.watch(_MAPS, resource_version=old)
            assert event["type"] == "ERROR"
            return bool(event["object"]["code"] == 410)

        await poll_until(forgotten, seconds=20, otherwise="a watch from a forgotten version is not answered 410")
        assert (plane.folder / "kube-apiserver.log").read_text().count("Version: v") == 1


async def test_a_static_users_revoked_token_is_refused_and_others_stay(clusters: ClusterFactory) -> None:
    users = {"leaver": [_READ_MAPS], "stayer": [_READ_MAPS]}
    async with clusters("revoked", users=users) as plane, plane.api("leaver") as leaver, plane.api("stayer") as stayer:
        await plane.revoke("leaver")
        assert (await leaver.send("GET", _MAPS)).status == 401
        assert (await stayer.send("GET", _MAPS)).status == 200


async def test_a_restart_waits_for_a_port_that_somebody_took_meanwhile(planes: type[ControlPlane]) -> None:
    async with planes("robbed") as plane:
        await plane.kill_apiserver()
        log = plane.folder / "kube-apiserver.log"

        async def noticed() -> bool:
            return "address already in use" in log.read_text()

        with socket.create_server(("127.0.0.1", urlsplit(plane.url).port or 0)) as thief:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(plane.start_apiserver)
                await poll_until(noticed, seconds=30, otherwise="the API server did not notice")
                thief.close()
        assert (await plane.admin.send("GET", _MAPS)).status == 200


async def test_nothing_is_left_behind(planes: type[ControlPlane]) -> None:
    plane = planes("leaving")
    async with plane:
        folder = plane.folder
        assert len(_processes_using(folder)) == 2
    assert _processes_using(folder) == []
    assert not folder.exists()


def _processes_using(folder: Path) -> list[str]:
    files = Path("/proc").glob("[0-9]*/cmdline")
    return [text for file in files if str(folder) in (text := file.read_text())]
