"""Identities: what a kind, an object and a cluster are called."""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple, NewType, TypeAlias

import attrs

Json: TypeAlias = dict[str, Any]
"""A Kubernetes object, or a part of one, as decoded from the wire. Never structured: fields we do not know survive."""

ClusterName = NewType("ClusterName", str)
"""The name of a MultiKueueCluster object on the manager. What callers pass may be a plain `str`."""

_LABEL: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
SHORT_NAME: Final = re.compile(rf"(?=.{{1,63}}\Z){_LABEL}")
"""What a Service or a namespace may be called: a DNS label."""
OBJECT_NAME: Final = re.compile(rf"(?=.{{1,253}}\Z){_LABEL}(\.{_LABEL})*")
"""What most other objects may be called: a DNS subdomain."""

SERVICE_ACCOUNT_USER: Final = "system:serviceaccount:"
"""What the name of a service account begins with, as API servers have it."""


def cluster_name(name: str) -> ClusterName:
    """A converter: checkers of types take no NewType for one."""
    return ClusterName(name)


class GVK(NamedTuple):  # a tuple, since it is hashed some hundred times per Workload; see ObjectKey
    """Group, version and kind of an API type; the core group is the empty string."""

    group: str
    version: str
    kind: str

    @property
    def api_version(self) -> str:
        """The object's `apiVersion`: `v1`, `batch/v1`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def group_kind(self) -> tuple[str, str]:
        """What all versions of a kind have in common: they are the same objects."""
        return self.group, self.kind

    @property
    def dotted(self) -> str:
        """As Kueue's settings name it: `Job.v1.batch`; in the core group `Pod.v1`."""
        return ".".join(part for part in (self.kind, self.version, self.group) if part)

    @classmethod
    def of(cls, api_version: str, kind: str) -> GVK:
        """Build from an object's or an owner reference's `apiVersion` and `kind`."""
        group, _, version = api_version.rpartition("/")
        return cls(group, version, kind)

    @classmethod
    def parse(cls, text: str) -> GVK | None:
        """Read Kueue's form `batch/v1, Kind=Job` (core group: `/v1, Kind=Pod`); None if it is not of that form."""
        api_version, separator, kind = text.partition(", Kind=")
        if not separator or "/" not in api_version or not kind:
            return None
        group, _, version = api_version.partition("/")
        return cls(group, version, kind)

    def __str__(self) -> str:
        return f"{self.group}/{self.version}, Kind={self.kind}"


@attrs.frozen(order=True)
class Resource:
    """A kind as the API server serves it: the GVK plus what URLs need."""

    gvk: GVK
    plural: str
    namespaced: bool = True

    @property
    def qualified(self) -> str:
        """The name used in errors and RBAC: `jobs.batch`, `pods`."""
        return f"{self.plural}.{self.gvk.group}" if self.gvk.group else self.plural

    def object(self, fields: Json) -> Json:
        """One of this kind, with these fields: those of a list come without their kind."""
        return {"apiVersion": self.gvk.api_version, "kind": self.gvk.kind, **fields}

    def __str__(self) -> str:
        return self.qualified


class ObjectKey(NamedTuple):  # a tuple, since tuples are hashed and compared without Python code
    """Namespace and name; cluster-scoped objects have an empty namespace."""

    namespace: str
    name: str

    @classmethod
    def of(cls, obj: Json) -> ObjectKey:
        """The key of an object as it came from the wire."""
        metadata = obj.get("metadata") or {}
        return cls(metadata.get("namespace") or "", metadata.get("name") or "")

    @classmethod
    def parsed(cls, text: str) -> ObjectKey:
        """The key that `str` has made this text of."""
        namespace, slash, name = text.partition("/")
        return cls(namespace, name) if slash else cls("", text)

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name
