"""A bare HTTP client for the checks: nothing between them and the API server's answers."""

from __future__ import annotations

import itertools
import json
import secrets
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, TypeAlias

import aiohttp
import anyio
import attrs

from multikueue.core.model.names import Json
from multikueue.testing import until
from tests.conformance.objects import GROUP, definition, widget

Answer: TypeAlias = tuple[int, Json]
_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_NUMBERS = itertools.count(1)


@attrs.frozen
class ControlPlane:
    """A control plane to be checked.

    Attributes:
        url: of its API server.
        token: of a user who may do everything.
        tls: None for plain HTTP.
        compact: makes it forget its history.
        accounts: who gives each namespace the service account without which it takes no pods: `theirs` for its
            controllers, `ours` for whoever makes the namespace, empty if none is needed.
    """

    url: str
    token: str
    tls: ssl.SSLContext | None
    compact: Callable[[], Awaitable[None]]
    accounts: str = ""


class Stream:
    """A watch, read line by line."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self.response = response

    async def next(self, timeout: float = 5.0) -> Json:
        """The next event; fails when there is none in time, or the stream ends."""
        with anyio.fail_after(timeout):
            line = await self.response.content.readline()
        assert line, "the stream ended"
        event: Json = json.loads(line)
        return event

    async def take(self, count: int) -> list[Json]:
        """The next events."""
        return [await self.next() for _ in range(count)]

    async def ends(self, timeout: float = 5.0) -> bool:
        """Whether the stream ends without another event."""
        with anyio.fail_after(timeout):
            return await self.response.content.readline() == b""


class ConformanceClient:
    """Requests with a status code and a decoded body as the answer."""

    def __init__(self, plane: ControlPlane, session: aiohttp.ClientSession) -> None:
        self.plane = plane
        self.session = session

    async def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        raw: str | bytes | None = None,
        content_type: str = "application/json",
        params: dict[str, str] | None = None,
        headers: dict[str, str] | None = None,
    ) -> Answer:
        """Send a body as JSON, or `raw` as it is."""
        data = raw if raw is not None else json.dumps(body) if body is not None else None
        sent = {**(headers or {}), **({"Content-Type": content_type} if data is not None else {})}
        url = self.plane.url + path
        async with self.session.request(method, url, params=params, headers=sent, data=data) as response:
            text = await response.text()
            try:
                return response.status, json.loads(text)
            except ValueError:
                return response.status, {"text": text}

    async def get(self, path: str, **options: Any) -> Answer:
        """GET."""
        return await self.request("GET", path, **options)

    async def post(self, path: str, body: Json, **options: Any) -> Answer:
        """POST."""
        return await self.request("POST", path, body, **options)

    async def put(self, path: str, body: Json, **options: Any) -> Answer:
        """PUT."""
        return await self.request("PUT", path, body, **options)

    async def delete(self, path: str, body: Json | None = None, **options: Any) -> Answer:
        """DELETE, with DeleteOptions as the body."""
        return await self.request("DELETE", path, body, **options)

    async def merge_patch(self, path: str, body: Json, **options: Any) -> Answer:
        """PATCH with a JSON merge patch."""
        return await self.request("PATCH", path, body, content_type="application/merge-patch+json", **options)

    async def json_patch(self, path: str, body: list[Json]) -> Answer:
        """PATCH with a JSON patch."""
        return await self.request("PATCH", path, body, content_type="application/json-patch+json")

    async def strategic_patch(self, path: str, body: Json) -> Answer:
        """PATCH with a strategic merge patch."""
        return await self.request("PATCH", path, body, content_type="application/strategic-merge-patch+json")

    async def apply(self, path: str, body: Json, manager: str = "m1", force: bool = False) -> Answer:
        """Server-side apply."""
        params = {"fieldManager": manager, **({"force": "true"} if force else {})}
        return await self.request("PATCH", path, body, content_type="application/apply-patch+yaml", params=params)

    async def namespace(self) -> str:
        """Create a namespace with a name that was never used, and return the name when it takes pods."""
        name = f"check-{next(_NUMBERS)}-{secrets.token_hex(3)}"
        manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        code, body = await self.post("/api/v1/namespaces", manifest)
        assert code == 201, body

        async def has_account() -> bool:
            return (await self.get(f"/api/v1/namespaces/{name}/serviceaccounts/default"))[0] == 200

        if self.plane.accounts == "ours":
            account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
            await self.post(f"/api/v1/namespaces/{name}/serviceaccounts", account)
        if self.plane.accounts:
            await until(has_account)
        return name

    @staticmethod
    def widgets(namespace: str, name: str = "", subresource: str = "", version: str = "v1") -> str:
        """The path of the widgets of a namespace, of one of them, or of its subresource."""
        path = f"/apis/{GROUP}/{version}/namespaces/{namespace}/widgets"
        return "/".join(part for part in (path, name, subresource) if part)

    async def make_widget(
        self,
        namespace: str,
        name: str = "w",
        spec: Json | None = None,
        status: Json | None = None,
        meta: Json | None = None,
        version: str = "v1",
        **options: Any,
    ) -> Json:
        """Create a widget and return it."""
        obj = widget(name, spec, status, meta, version)
        code, body = await self.post(self.widgets(namespace, version=version), obj, **options)
        assert code == 201, body
        return body

    async def labelled_widgets(self) -> str:
        """Create three widgets with different labels in a new namespace, and return its name."""
        namespace = await self.namespace()
        await self.make_widget(namespace, "a", meta={"labels": {"x": "1", "y": "p"}})
        await self.make_widget(namespace, "b", meta={"labels": {"x": "2"}})
        await self.make_widget(namespace, "c")
        return namespace

    @asynccontextmanager
    async def watch(self, path: str, watch: str = "true", **params: Any) -> AsyncIterator[Stream]:
        """Open a watch."""
        query = {"watch": watch, **{key: str(value) for key, value in params.items()}}
        timeout = aiohttp.ClientTimeout(total=None)
        async with self.session.get(self.plane.url + path, params=query, timeout=timeout) as response:
            try:
                yield Stream(response)
            finally:
                if response.connection is not None and response.connection.transport is not None:
                    response.connection.transport.abort()  # a stream that goes on takes time to say goodbye

    async def install(self, manifest: Json) -> None:
        """Create a CustomResourceDefinition, or find it there, and wait until its kind is served."""
        code, body = await self.post(_DEFINITIONS, manifest)
        assert code in (201, 409), body
        spec = manifest["spec"]
        version = next(version["name"] for version in spec["versions"] if version.get("served", True))
        path = f"/apis/{spec['group']}/{version}/{spec['names']['plural']}"

        async def served() -> bool:
            return (await self.get(path))[0] == 200

        await until(served)

    def python_client(self) -> Any:
        """A kubernetes_asyncio ApiClient, to be used with `async with`."""
        from kubernetes_asyncio import client

        configuration = client.Configuration(host=self.plane.url)
        configuration.verify_ssl = False  # what is checked is the API, not TLS
        configuration.api_key = {"BearerToken": self.plane.token}
        configuration.api_key_prefix = {"BearerToken": "Bearer"}
        return client.ApiClient(configuration)


@asynccontextmanager
async def connected(plane: ControlPlane) -> AsyncIterator[ConformanceClient]:
    """A client of a control plane that serves widgets."""
    connector = aiohttp.TCPConnector(limit=0, ssl=plane.tls if plane.tls else True)
    headers = {"Authorization": f"Bearer {plane.token}"}
    async with aiohttp.ClientSession(connector=connector, headers=headers) as session:
        client = ConformanceClient(plane, session)
        await client.install(definition())
        yield client
        await connector.close(abort_ssl=True)


Open: TypeAlias = Callable[[], AbstractAsyncContextManager[ConformanceClient]]
"""The type of the fixture `control_plane`."""
OpenNamespace: TypeAlias = Callable[[], AbstractAsyncContextManager[tuple[ConformanceClient, str]]]
"""The type of the fixture `namespaced`: with a namespace that was never used."""
