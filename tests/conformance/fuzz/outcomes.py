"""What one server makes of an operation, in a form that can be compared with another server's."""

from __future__ import annotations

import copy
import json
import re
from typing import Any

import attrs

from multikueue.core.model.names import Json
from tests.conformance.client import Answer, ConformanceClient
from tests.conformance.fuzz.operations import Kind, Operation
from tests.conformance.fuzz.values import TIME

_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_TIME = re.compile(rf'"(?!{TIME[:10]})[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}T[0-9:]{{8}}Z"')
"""Any time but those the fuzz itself sends."""
_METHODS = {
    "merge": "application/merge-patch+json",
    "json": "application/json-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",
}


@attrs.frozen
class Outcome:
    """The answer, without what is different on any two servers.

    Attributes:
        code: of HTTP.
        body: normalized.
        changed: whether the object has another resourceVersion than after the operation before; None if it has none.
    """

    code: int
    body: Any
    changed: bool | None = None


def normalize(body: Any, *, managers: bool = False) -> Any:
    """A body without uids, versions, times and namespace; and without field managers, unless asked for."""
    if not isinstance(body, dict):
        return body
    if body.get("kind") == "Status":
        return _status(body)
    if isinstance(body.get("items"), list):
        normal = {key: body.get(key) for key in ("kind", "apiVersion")}
        more = bool((body.get("metadata") or {}).get("continue"))
        return {**normal, "more": more, "items": [normalize(item, managers=managers) for item in body["items"]]}
    body = json.loads(_TIME.sub('"TIME"', _UID.sub("UID", json.dumps(body))))
    metadata = body.get("metadata") or {}
    for key in ("resourceVersion", "namespace"):
        metadata.pop(key, None)
    lines = metadata.pop("managedFields", None)
    if managers and lines is not None:
        metadata["managedFields"] = sorted((_line(line) for line in lines), key=json.dumps)
    return body


def _line(line: Json) -> Json:
    return {key: value for key, value in sorted(line.items()) if key != "time"}


def _status(body: Json) -> Json:
    details = body.get("details") or {}
    # Real servers run some checks several times; how often a cause is repeated says nothing.
    causes = {(str(cause.get("reason")), str(cause.get("field"))) for cause in details.get("causes") or ()}
    named = {key: details.get(key) for key in ("name", "kind", "group")}
    return {"status": body.get("status"), "reason": body.get("reason"), **named, "causes": sorted(map(list, causes))}


@attrs.define(eq=False)
class Subject:
    """One server under the fuzz: a namespace of it, and the versions its objects had last."""

    cluster: ConformanceClient
    namespace: str
    managers: bool = False
    _versions: dict[tuple[Kind, str], str] = attrs.field(factory=dict, init=False)
    _message: str = attrs.field(default="", init=False)

    async def perform(self, operation: Operation) -> Outcome:
        """Send an operation."""
        code, body = await self._send(operation)
        return Outcome(code, normalize(body, managers=self.managers), self._changed(operation, body))

    async def state(self, kind: Kind, name: str) -> Outcome:
        """An object as it is now."""
        code, body = await self.cluster.get(kind.path(self.namespace, name))
        return Outcome(code, normalize(body, managers=self.managers))

    def last_message(self) -> str:
        """The words of the last answer, if it was a failure."""
        return self._message

    def _changed(self, operation: Operation, body: Json) -> bool | None:
        self._message = str(body.get("message", "")) if body.get("kind") == "Status" else ""
        version = (body.get("metadata") or {}).get("resourceVersion")
        if not version or "items" in body or "dryRun" in operation.params:
            return None
        key = (operation.kind, operation.name)
        changed = bool(self._versions.get(key) != version)
        self._versions[key] = version
        return changed

    async def _send(self, operation: Operation) -> Answer:
        path = operation.kind.path(self.namespace, operation.name, operation.subresource)
        collection = operation.kind.path(self.namespace)
        params, body = operation.params, operation.body
        match operation.verb:
            case "create":
                return await self.cluster.post(collection, body, params=params)
            case "put":
                return await self.cluster.put(path, await self._replacement(operation), params=params)
            case "delete":
                return await self.cluster.delete(path, body, params=params)
            case "get":
                return await self.cluster.get(path)
            case "list":
                return await self.cluster.get(collection, params=params)
            case "collection":
                return await self.cluster.delete(collection, params=params)
        content_type = _METHODS[operation.verb]
        return await self.cluster.request("PATCH", path, body, content_type=content_type, params=params)

    async def _replacement(self, operation: Operation) -> Json:
        """The current object with some fields replaced."""
        kind, change = operation.kind, copy.deepcopy(operation.body)
        code, current = await self.cluster.get(kind.path(self.namespace, operation.name))
        if code != 200:
            current = kind.manifest(operation.name, {})
        metadata = current["metadata"]
        metadata.update(change.pop("metadata"))
        if kind.builtin and isinstance(change.get("spec"), dict):
            change["spec"] = {**(current.get("spec") or {}), **change["spec"]}
        current.update(change)
        if operation.version == "stale" and code == 200:
            metadata["resourceVersion"] = "1"
        elif operation.version == "none":
            metadata.pop("resourceVersion", None)
        return current
