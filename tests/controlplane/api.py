"""A plain HTTP client for tests: what goes over the wire is what the test says.

Not the library's own client on purpose: it sets the stage and looks at the result, so it must not share the code
under test.
"""

from __future__ import annotations

import json
import ssl
from collections.abc import Mapping
from types import TracebackType
from typing import Self

import aiohttp
import attrs

from multikueue.core.model.names import Json
from tests.controlplane.errors import RequestFailed

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
FIELD_MANAGER = "tests"
_TIMEOUT = aiohttp.ClientTimeout(total=60)  # an answer takes milliseconds; the rest is for a busy machine


@attrs.frozen
class Answer:
    """What the server answered. `body` is {} where it was not JSON."""

    status: int
    body: Json


@attrs.define(eq=False)
class Api:
    """Requests to one API server as one user. An async context manager."""

    url: str
    ca_pem: str = attrs.field(repr=False)
    token: str = attrs.field(repr=False)
    _session: aiohttp.ClientSession | None = None
    _plurals: dict[tuple[str, str], tuple[str, bool]] = attrs.field(factory=dict, repr=False)

    async def __aenter__(self) -> Self:
        # No connection is kept between requests: none can be half dead after the server was killed.
        connector = aiohttp.TCPConnector(ssl=ssl.create_default_context(cadata=self.ca_pem), force_close=True)
        headers = {"Authorization": f"Bearer {self.token}"}
        self._session = aiohttp.ClientSession(self.url, connector=connector, headers=headers, timeout=_TIMEOUT)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def send(
        self,
        method: str,
        path: str,
        body: Json | None = None,
        *,
        query: Mapping[str, str] | None = None,
        content_type: str = JSON,
    ) -> Answer:
        """Send one request and return the answer, whatever it is.

        Raises:
            aiohttp.ClientError: no answer.
        """
        assert self._session is not None, "use `async with`"
        data = None if body is None else json.dumps(body)
        headers = {"Content-Type": content_type}
        async with self._session.request(method, path, data=data, params=query, headers=headers) as response:
            is_json = response.content_type == JSON
            return Answer(response.status, await response.json() if is_json else {})

    async def call(
        self,
        method: str,
        path: str,
        body: Json | None = None,
        *,
        query: Mapping[str, str] | None = None,
        content_type: str = JSON,
    ) -> Json:
        """Send a request that has to succeed and return the body.

        Raises:
            RequestFailed: the answer is not a 2xx.
        """
        answer = await self.send(method, path, body, query=query, content_type=content_type)
        if answer.status >= 300:
            raise RequestFailed(f"{method} {path}", answer.status, answer.body.get("message", answer.body))
        return answer.body

    async def get(self, path: str, **query: str) -> Json:
        """GET that has to succeed."""
        return await self.call("GET", path, query=query)

    async def create(self, obj: Json) -> Json:
        """POST an object to its collection."""
        collection, _ = await self._paths(obj)
        return await self.call("POST", collection, obj)

    async def apply(self, obj: Json) -> Json:
        """Create or change an object by server-side apply; its kind finds the path."""
        _, path = await self._paths(obj)
        query = {"fieldManager": FIELD_MANAGER, "force": "true"}
        return await self.call("PATCH", path, obj, query=query, content_type=APPLY_PATCH)

    async def dry_run(self, obj: Json) -> Json:
        """Have the server check what `apply` would do, unknown fields included; nothing is stored."""
        _, path = await self._paths(obj)
        query = {"fieldManager": FIELD_MANAGER, "force": "true", "dryRun": "All", "fieldValidation": "Strict"}
        return await self.call("PATCH", path, obj, query=query, content_type=APPLY_PATCH)

    async def merge_patch(self, path: str, patch: Json) -> Json:
        """PATCH with a JSON merge patch."""
        return await self.call("PATCH", path, patch, content_type=MERGE_PATCH)

    async def delete(self, path: str, **query: str) -> Json:
        """DELETE that has to succeed."""
        return await self.call("DELETE", path, query=query)

    async def watch(self, path: str, *, resource_version: str, seconds: int = 1) -> list[Json]:
        """Return the events that a watch from `resource_version` brings within `seconds`.

        Raises:
            RequestFailed: the watch was refused.
        """
        assert self._session is not None, "use `async with`"
        query = {"watch": "true", "resourceVersion": resource_version, "timeoutSeconds": str(seconds)}
        async with self._session.get(path, params=query) as response:
            text = await response.text()
        if response.status >= 300:
            raise RequestFailed(f"GET {path}?watch", response.status, text)
        return [json.loads(line) for line in text.splitlines()]

    async def _paths(self, obj: Json) -> tuple[str, str]:
        """Return the paths of the object's collection and of the object."""
        version, metadata = obj["apiVersion"], obj["metadata"]
        prefix = f"/apis/{version}" if "/" in version else f"/api/{version}"
        plural, namespaced = await self._plural(prefix, obj["kind"])
        namespace = f"/namespaces/{metadata.get('namespace', 'default')}" if namespaced else ""
        collection = f"{prefix}{namespace}/{plural}"
        return collection, f"{collection}/{metadata['name']}"

    async def _plural(self, prefix: str, kind: str) -> tuple[str, bool]:
        if (prefix, kind) not in self._plurals:
            for resource in (await self.get(prefix))["resources"]:
                if "/" not in resource["name"]:
                    self._plurals[prefix, resource["kind"]] = (resource["name"], resource["namespaced"])
        try:
            return self._plurals[prefix, kind]
        except KeyError:
            raise RequestFailed(f"GET {prefix}", 404, f"no kind {kind}; is its CRD applied?") from None
