"""Objects of any tenant that are longer than an event of a watch may be: others are seen after them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from multikueue.core.model.kinds import JOB
from multikueue.core.model.names import Json, ObjectKey
from multikueue.kube import ClusterConfig, Informer, KubeClient
from multikueue.kube.http.response_limits import MAX_LINE, MAX_OBJECT
from multikueue.sandbox.apiserver import ApiServer, DirectClient
from multikueue.testing.waiting import background
from tests.kube.scripted import event, eventually, hangs, says, serving, streams
from tests.sandbox.apiserver.objects import job

ETCD_LIMIT = 3 << 19


def large(name: str, characters: int) -> Json:
    """A Job with a value of so many `<`, each of which takes six bytes in an answer."""
    made = job(name)
    made["spec"]["template"]["spec"]["containers"][0]["env"] = [{"name": "V", "value": "<" * characters}]
    return made


@asynccontextmanager
async def followed() -> AsyncIterator[tuple[DirectClient, Informer]]:
    """A client that writes without HTTP, and an informer that watches over HTTP."""
    async with (
        ApiServer(tls=False) as server,
        KubeClient(ClusterConfig(server.url), name="w1") as client,
        background() as tasks,
    ):
        informer = Informer(client, JOB)
        tasks.start_soon(informer.run)
        await informer.wait_synced()
        yield DirectClient(server.registry), informer


def knows(informer: Informer, *names: str) -> Callable[[], bool]:
    """Whether it has exactly these."""
    return lambda: set(informer.keys()) == {ObjectKey("default", name) for name in names}


def test_the_limit_follows_etcds() -> None:
    """The largest object that etcd takes, all of it `<`."""
    assert MAX_OBJECT == 6 * ETCD_LIMIT < MAX_LINE


async def test_the_largest_object_that_etcd_takes_is_one_event() -> None:
    """8.7 MB of JSON. No list is needed, and later Jobs are seen."""
    async with followed() as (writer, informer):
        await writer.create(JOB, large("large", 1_450_000))
        await writer.create(JOB, job("later"))
        await eventually(knows(informer, "large", "later"), within=20)
        assert informer.status.lists == 1


async def test_an_event_beyond_the_limit_leads_to_a_list_and_later_jobs_are_seen() -> None:
    """The informer must not ask for the same event for ever."""
    async with followed() as (writer, informer):
        await writer.create(JOB, large("larger", MAX_LINE // 6 + 1))
        await writer.create(JOB, job("later"))
        await eventually(knows(informer, "larger", "later"), within=20)
        await writer.create(JOB, job("latest"))
        await eventually(knows(informer, "larger", "later", "latest"), within=20)
        assert informer.status.lists == 2


@pytest.mark.parametrize("line", [b"x" * (MAX_LINE + 1) + b"\n", b'{"type":"ADDED","object":{"a":\n'])
async def test_no_event_that_cannot_be_read_is_asked_for_twice(line: bytes) -> None:
    """List, watch with such a line, list, watch from there."""
    listed = says(200, {"metadata": {"resourceVersion": "5"}, "items": []})
    beyond = says(200, {"metadata": {"resourceVersion": "9"}, "items": []})
    again = streams(event("ADDED", "10"), then=hangs)
    async with (
        serving(listed, streams(line), beyond, again) as server,
        KubeClient(ClusterConfig(server.url), name="w1") as client,
        background() as tasks,
    ):
        informer = Informer(client, JOB)
        tasks.start_soon(informer.run)
        await eventually(knows(informer, "a"), within=20)
    assert [dict(request.query).get("resourceVersion") for request in server.asked] == [None, "5", None, "9"]
