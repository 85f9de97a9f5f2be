"""The client: lists, credentials, TLS, hooks and cancellation."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import cast

import anyio
import anyio.lowlevel
import attrs
import pytest
import trustme
from aiohttp import web

from multikueue.core.model.kinds import JOB, SECRET, WORKLOAD
from multikueue.core.model.names import Json, ObjectKey
from multikueue.errors import (
    ApiError,
    Cause,
    Expired,
    Forbidden,
    KubeconfigError,
    Unauthorized,
    Unreachable,
    Unreadable,
)
from multikueue.kube import ClientOptions, ClusterConfig, KubeClient
from multikueue.protocols import RequestHook
from tests.kube.scripted import eventually, hangs, job, refuses, resets, says, serving, streams, talking

KEY = ObjectKey("default", "a")


def page(*names: str, token: str = "") -> Json:
    """One page of a list."""
    items = [{"metadata": {"name": name}} for name in names]
    return {"kind": "JobList", "metadata": {"resourceVersion": "7", "continue": token}, "items": items}


@attrs.define
class Hook:
    """Records requests."""

    seen: list[tuple[str, str, str, int]] = attrs.field(factory=list)

    def observe(self, cluster: str, verb: str, resource: str, status: int, seconds: float) -> None:
        assert 0 <= seconds < 5
        self.seen.append((cluster, verb, resource, status))


async def test_lists_are_read_page_by_page() -> None:
    async with talking(says(200, page("a", "b", token="next")), says(200, page("c"))) as (server, client):
        listed = await client.list(JOB, namespace="n", label_selector="a=b")
    assert [item["metadata"]["name"] for item in listed.items] == ["a", "b", "c"]
    assert listed.resource_version == "7"
    assert [dict(request.query) for request in server.asked] == [
        {"labelSelector": "a=b", "limit": "500"},
        {"labelSelector": "a=b", "limit": "500", "continue": "next"},
    ]
    assert server.asked[0].path == "/apis/batch/v1/namespaces/n/jobs"


async def test_items_of_a_list_know_what_they_are() -> None:
    """API servers send kind and apiVersion of builtin kinds only once per list."""
    async with talking(says(200, page("a"))) as (_, client):
        (item,) = (await client.list(JOB)).items
    assert (item["apiVersion"], item["kind"]) == ("batch/v1", "Job")


async def test_a_list_whose_pages_expire_is_read_at_once() -> None:
    """Reading took longer than the server keeps a snapshot."""
    async with talking(says(200, page("a", token="next")), refuses(410, "Expired"), says(200, page("a", "b"))) as (
        server,
        client,
    ):
        assert len((await client.list(JOB)).items) == 2
    assert dict(server.asked[2].query) == {}


async def test_a_list_that_expires_even_then_says_so() -> None:
    async with talking(refuses(410)) as (server, client):
        with pytest.raises(Expired):
            await client.list(JOB)
    assert len(server.asked) == 2


async def test_an_answer_that_is_no_list_is_no_empty_list() -> None:
    """An empty list would delete everything we know."""
    async with talking(says(200, {})) as (_, client):
        with pytest.raises(Unreachable, match="not a list"):
            await client.list(JOB)


ENDING: Json = {"metadata": {"name": "a", "deletionTimestamp": "2026-01-01T00:00:00Z"}}


@pytest.mark.parametrize(
    ("answer", "left"),
    [
        ({"kind": "Status", "metadata": {}, "status": "Success"}, None),
        ({"metadata": {"name": "a"}}, None),
        (ENDING, ENDING),
    ],
    ids=["a Status", "its last state", "it has still to end"],
)
async def test_a_deletion_tells_what_has_still_to_end(answer: Json, left: Json | None) -> None:
    """An accepted DELETE is no removal: finalizers, dependents and grace periods keep the object."""
    async with talking(says(200, answer)) as (_, client):
        assert await client.delete(JOB, KEY, propagation="Foreground") == left


@pytest.mark.parametrize("items", ["null]", "{}]", '{"metadata": []}]', "7", '{"metadata": {"name": null}}]'])
async def test_a_list_of_what_is_no_object_is_an_error_and_no_crash(items: str) -> None:
    text = '{"metadata": {"resourceVersion": "1"}, "items": [' + items + "}"
    text = text.replace("[7", "7")
    async with talking(says(200, text)) as (_, client):
        with pytest.raises((Unreachable, Unreadable), match=r"has no name|not a list"):
            await client.list(JOB)


async def test_a_listed_object_may_be_nested_deeper_than_python_counts() -> None:
    """Free-form fields allow that to anybody who may create a job."""
    deep = '{"a":' * 1_000 + "1" + "}" * 1_000
    text = '{"metadata": {"resourceVersion": "1"}, "items": [{"metadata": {"name": "x"}, "spec": ' + deep + "}]}"
    async with talking(says(200, text)) as (_, client):
        (job,) = (await client.list(JOB)).items
    assert job["metadata"]["name"] == "x"


@pytest.mark.parametrize("how", ["get", "watch"])
async def test_a_refused_token_is_read_again_once(tmp_path: Path, how: str) -> None:
    """Kubelet has rotated the file meanwhile."""
    file = tmp_path / "token"
    file.write_text("old\n")

    async def rotates(request: web.Request) -> web.StreamResponse:
        file.write_text("new\n")
        return await refuses(401)(request)

    then = streams() if how == "watch" else says(200, job("1"))
    async with talking(rotates, then, token_file=str(file)) as (server, client):
        if how == "watch":
            await client.watch(JOB, lambda _: None, resource_version="1")
        else:
            await client.get(JOB, KEY)
    assert server.authorizations == ["Bearer old", "Bearer new"]


async def test_a_token_that_cannot_be_renewed_is_not_tried_twice() -> None:
    async with talking(refuses(401), token="s3cr3t-canary") as (server, client):
        with pytest.raises(Unauthorized) as caught:
            await client.get(JOB, KEY)
    assert len(server.asked) == 1
    assert "canary" not in f"{caught.value!r}{client!r}{client.config!r}"


def tls_for(authority: trustme.CA, *names: str, client_authority: trustme.CA | None = None) -> ssl.SSLContext:
    """The server's side."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert(*names).configure_cert(context)
    if client_authority is not None:
        client_authority.configure_trust(context)
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def pem(authority: trustme.CA) -> str:
    return authority.cert_pem.bytes().decode()


async def test_a_certificate_of_another_authority_is_not_trusted() -> None:
    tls = tls_for(trustme.CA(), "127.0.0.1")
    async with talking(says(200, job("1")), tls=tls, ca_pem=pem(trustme.CA())) as (server, client):
        with pytest.raises(Unreachable, match="certificate is not trusted") as caught:
            await client.get(JOB, KEY)
    assert caught.value.cause is Cause.CERTIFICATE
    assert server.asked == []


async def test_the_certificates_name_can_be_another_than_the_address() -> None:
    """`tls-server-name`, for servers behind a tunnel."""
    authority = trustme.CA()
    async with serving(says(200, job("1")), tls=tls_for(authority, "worker.example")) as server:
        config = ClusterConfig(server.url, ca_pem=pem(authority))
        async with KubeClient(config, name="w1") as client:
            with pytest.raises(Unreachable):
                await client.get(JOB, KEY)
        async with KubeClient(attrs.evolve(config, tls_server_name="worker.example"), name="w1") as client:
            assert await client.get(JOB, KEY) == job("1")


async def test_a_client_certificate_is_shown() -> None:
    authority, clients = trustme.CA(), trustme.CA()
    mine = clients.issue_cert("me@example.com")
    async with serving(says(200, job("1")), tls=tls_for(authority, "127.0.0.1", client_authority=clients)) as server:
        config = ClusterConfig(
            server.url,
            ca_pem=pem(authority),
            client_cert_pem=mine.cert_chain_pems[0].bytes().decode(),
            client_key_pem=mine.private_key_pem.bytes().decode(),
        )
        async with KubeClient(config, name="w1") as client:
            assert await client.get(JOB, KEY) == job("1")
        async with KubeClient(ClusterConfig(server.url, ca_pem=pem(authority)), name="w1") as client:
            with pytest.raises(Unreachable):
                await client.get(JOB, KEY)


@pytest.mark.parametrize(
    "config",
    [
        ClusterConfig("https://w", ca_pem="canary"),
        ClusterConfig("https://w", ca_pem="canäry-canary"),
        ClusterConfig("https://w", client_cert_pem="canary", client_key_pem="canary"),
    ],
)
async def test_certificates_that_are_none_are_told_before_anything_is_sent(config: ClusterConfig) -> None:
    """And not quoted."""
    with pytest.raises(KubeconfigError, match="PEM") as caught:
        await KubeClient(config, name="w1").__aenter__()
    assert "canary" not in f"{caught.value!r}{caught.value.__cause__!r}"


async def test_the_hook_sees_every_request_and_what_became_of_it() -> None:
    hook = Hook()
    # Two resets: aiohttp sends what can be repeated once more when a connection it had kept turns out to be dead.
    script = says(200, job("1")), refuses(404), resets, resets, streams(), refuses(403)
    async with talking(*script, hook=hook) as (_, client):
        await client.get(JOB, KEY)
        for _ in range(2):
            with pytest.raises(ApiError):
                await client.delete(WORKLOAD, KEY)
        await client.watch(JOB, lambda _: None, resource_version="1")
        with pytest.raises(ApiError):
            await client.watch(JOB, lambda _: None, resource_version="1")
    assert hook.seen == [
        ("w1", "get", "jobs.batch", 200),
        ("w1", "delete", "workloads.kueue.x-k8s.io", 404),
        ("w1", "delete", "workloads.kueue.x-k8s.io", 0),
        ("w1", "watch", "jobs.batch", 200),
        ("w1", "watch", "jobs.batch", 403),
    ]


async def test_a_hook_that_fails_fails_no_request() -> None:
    async with talking(says(200, job("1")), hook=cast(RequestHook, object())) as (_, client):
        assert await client.get(JOB, KEY) == job("1")


async def test_cancelled_calls_leave_no_connection_behind() -> None:
    """A pool of two works on after four calls were cancelled."""
    options = ClientOptions(connections=2)
    async with talking(hangs, hangs, hangs, hangs, says(200, job("1")), options=options) as (server, client):
        for _ in range(4):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(client.get, JOB, KEY)
                await eventually(lambda: server.open_streams == 1)
                tasks.cancel_scope.cancel()
            await eventually(lambda: server.open_streams == 0)
        assert await client.get(JOB, KEY) == job("1")


async def test_calls_that_wait_when_the_client_is_closed_fail_and_take_nobody_along() -> None:
    """aiohttp cancels their futures. That must not end the callers' task group."""
    failed: list[str] = []

    async def call(client: KubeClient) -> None:
        try:
            await client.create(JOB, job("1"))
        except Unreachable as error:
            failed.append(str(error))

    async with serving(hangs) as server, anyio.create_task_group() as tasks:
        options = ClientOptions(connections=1)
        client = await KubeClient(ClusterConfig(server.url), name="w1", options=options).__aenter__()
        for _ in range(3):
            tasks.start_soon(call, client)
        await eventually(lambda: server.open_streams == 1)
        await client.__aexit__(None, None, None)
        await eventually(lambda: len(failed) == 3)
        assert not tasks.cancel_scope.cancel_called
    assert sum("the connection was broken off" in message for message in failed) == 2


async def test_a_client_may_act_as_another_user_in_each_request() -> None:
    """The API server asks whether the identity of the credentials may."""
    user = "system:serviceaccount:kueue-system:granting"
    options = ClientOptions(impersonate=user)
    async with talking(says(200, page("a")), token="own", options=options) as (server, client):
        await client.list(JOB)
    headers = server.asked[0].headers
    assert (headers["Authorization"], headers["Impersonate-User"]) == ("Bearer own", user)


@pytest.mark.parametrize("whole", [False, True])
async def test_that_an_object_is_there_is_asked_without_its_content(whole: bool) -> None:
    """A Secret's metadata would not do: `kubectl apply` keeps its data in an annotation. A server may ignore it all."""
    row = {"kind": "Table", "apiVersion": "meta.k8s.io/v1", "rows": [{"cells": ["a"]}]}
    secret: Json = {"kind": "Secret", "metadata": {"name": "a"}, "data": {"key": "c2VjcmV0"}}
    async with talking(says(200, secret if whole else row), refuses(404), refuses(403)) as (server, client):
        assert await client.exists(SECRET, KEY) is True
        assert await client.exists(SECRET, KEY) is False
        with pytest.raises(Forbidden):
            await client.exists(SECRET, KEY)
    asked = server.asked[0]
    assert (asked.path, dict(asked.query)) == ("/api/v1/namespaces/default/secrets/a", {"includeObject": "None"})
    assert asked.headers["Accept"] == "application/json;as=Table;g=meta.k8s.io;v=v1,application/json"


async def test_others_run_between_the_large_objects_of_a_page() -> None:
    """Seven of 1.2 MB in small parts were looked at in a row: half a second."""
    turns, seen = 0, list[int]()
    items = [{"metadata": {"name": f"{number}"}, "spec": {"text": "x" * 300_000}} for number in range(4)]

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await anyio.lowlevel.checkpoint()

    def each(obj: Json, _size: int) -> Json:
        seen.append(turns)
        return obj

    whole = {"kind": "JobList", "metadata": {"resourceVersion": "7"}, "items": items}
    async with talking(says(200, whole)) as (_, client), anyio.create_task_group() as tasks:
        tasks.start_soon(others)
        await client.list(JOB, each=each)
        tasks.cancel_scope.cancel()
    assert len(set(seen)) == len(items)
