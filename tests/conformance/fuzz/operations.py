"""What the fuzz sends: operations that mean the same on every server, because they name no uid and no version."""

from __future__ import annotations

from typing import Any

import attrs

from multikueue.core.model.names import Json
from tests.conformance.objects import GROUP


@attrs.frozen
class Kind:
    """A kind the fuzz works on."""

    api_version: str
    kind: str
    plural: str

    @property
    def builtin(self) -> bool:
        """Whether it takes strategic merge patches."""
        return self.api_version != f"{GROUP}/v1"

    def path(self, namespace: str, name: str = "", subresource: str = "") -> str:
        """Where its objects are."""
        prefix = "apis" if "/" in self.api_version else "api"
        parts = (f"/{prefix}/{self.api_version}/namespaces/{namespace}/{self.plural}", name, subresource)
        return "/".join(part for part in parts if part)

    def manifest(self, name: str, body: Json, metadata: Json | None = None) -> Json:
        """An object of this kind."""
        head = {"apiVersion": self.api_version, "kind": self.kind}
        return {**head, "metadata": {"name": name, **(metadata or {})}, **body}


WIDGETS = Kind(f"{GROUP}/v1", "Widget", "widgets")
PODS = Kind("v1", "Pod", "pods")
JOBS = Kind("batch/v1", "Job", "jobs")
SECRETS = Kind("v1", "Secret", "secrets")
KINDS = (WIDGETS, PODS, JOBS, SECRETS)


@attrs.frozen
class Operation:
    """One request.

    Attributes:
        verb: create, put, merge, json, strategic, apply, delete, get, list or collection.
        kind: of the object.
        name: of the object.
        subresource: status, or empty.
        body: of the request. For `put` it is what replaces fields of the current object: None removes one.
        params: the query.
        version: for `put`: which resourceVersion it carries: current, stale or none.
    """

    verb: str
    kind: Kind
    name: str = ""
    subresource: str = ""
    body: Any = None
    params: dict[str, str] = attrs.field(factory=dict)
    version: str = "current"

    def __str__(self) -> str:
        target = "/".join(part for part in (self.kind.plural, self.name, self.subresource) if part)
        version = f" rv={self.version}" if self.verb == "put" else ""
        return f"{self.verb} {target}{version} {self.params or ''} {self.body!r}"
