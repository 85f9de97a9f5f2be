"""What clients ask before anything else: versions, groups and resources, in the old and the aggregated form."""

from __future__ import annotations

from collections.abc import Iterable

from multikueue.core.model.names import Json
from multikueue.sandbox.apiserver.kinds.resources import ResourceType
from multikueue.sandbox.apiserver.status_errors import no_route

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
VERSION: Json = {
    "major": "1",
    "minor": "36",
    "gitVersion": "v1.36.0-sandbox",
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "2026-01-01T00:00:00Z",
    "goVersion": "none",
    "compiler": "python",
    "platform": "linux/amd64",
}
_SUB_VERBS = ["get", "patch", "update"]
_STREAM_VERBS = ["create", "get"]
_ODD_VERBS = {
    "token": ["create"],
    "log": ["get"],
    "exec": _STREAM_VERBS,
    "attach": _STREAM_VERBS,
    "portforward": _STREAM_VERBS,
    "proxy": ["create", "delete", "get", "patch", "update"],
}
"""Of subresources that are no part of the object."""
_OTHER_KINDS = {
    "scale": ("autoscaling", "v1", "Scale"),
    "token": ("authentication.k8s.io", "v1", "TokenRequest"),
    "exec": ("", "v1", "PodExecOptions"),
    "attach": ("", "v1", "PodAttachOptions"),
    "portforward": ("", "v1", "PodPortForwardOptions"),
    "proxy": ("", "v1", "NodeProxyOptions"),
}
"""Subresources that are objects of another kind."""


class Discovery:
    """Answers from the kinds served at this moment."""

    def __init__(self, types: Iterable[ResourceType], address: str) -> None:
        self._address = address
        self._groups: dict[str, dict[str, list[ResourceType]]] = {}
        for row in types:
            self._groups.setdefault(row.group, {}).setdefault(row.version, []).append(row)

    def answer(self, segments: list[str], *, aggregated: bool) -> Json:
        """The document at a path.

        Raises:
            StatusError: 404.
        """
        match segments:
            case ["api" | "apis" as root] if aggregated:
                return self._aggregated(core=root == "api")
            case ["api"]:
                return self._core_versions()
            case ["apis"]:
                groups = [self._group(group) for group in self._groups if group]
                return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}
            case ["apis", group] if group in self._groups:
                return {"kind": "APIGroup", "apiVersion": "v1", **self._group(group)}
            case ["api", version] if version in self._groups.get("", {}):
                return self._resources("", version)
            case ["apis", group, version] if version in self._groups.get(group, {}):
                return self._resources(group, version)
        raise no_route()

    def _core_versions(self) -> Json:
        here = {"clientCIDR": "0.0.0.0/0", "serverAddress": self._address}
        return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": [here]}

    def _group(self, group: str) -> Json:
        versions = [{"groupVersion": f"{group}/{name}", "version": name} for name in self._versions(group)]
        return {"name": group, "versions": versions, "preferredVersion": versions[0]}

    def _versions(self, group: str) -> list[str]:
        """Stable before beta before alpha, and newer before older."""
        return sorted(self._groups[group], key=_version_rank)

    def _resources(self, group: str, version: str) -> Json:
        resources: list[Json] = []
        for row in self._groups[group][version]:
            resources.append(_resource(row))
            resources += [_subresource(row, name) for name in row.subresources]
        return {
            "kind": "APIResourceList",
            "apiVersion": "v1",
            "groupVersion": f"{group}/{version}" if group else version,
            "resources": resources,
        }

    def _aggregated(self, *, core: bool) -> Json:
        items = []
        for group in self._groups:
            if (group == "") == core:
                versions = [self._aggregated_version(group, version) for version in self._versions(group)]
                items.append({"metadata": {"name": group}, "versions": versions})
        return {
            "kind": "APIGroupDiscoveryList",
            "apiVersion": "apidiscovery.k8s.io/v2",
            "metadata": {},
            "items": items,
        }

    def _aggregated_version(self, group: str, version: str) -> Json:
        resources = [_aggregated_resource(row) for row in self._groups[group][version]]
        return {"version": version, "freshness": "Current", "resources": resources}


def _version_rank(version: str) -> tuple[int, list[int]]:
    stability = 2 if "alpha" in version else 1 if "beta" in version else 0
    digits = "".join(letter if letter.isdigit() else " " for letter in version).split()
    return stability, [-int(number) for number in digits]


def _resource(row: ResourceType) -> Json:
    return {
        "name": row.plural,
        "singularName": row.singular,
        "namespaced": row.namespaced,
        "kind": row.kind,
        "verbs": list(row.verbs),
        "shortNames": list(row.short_names),
        "categories": list(row.categories),
        "storageVersionHash": "",
    }


def _subresource(row: ResourceType, name: str) -> Json:
    return {
        "name": f"{row.plural}/{name}",
        "singularName": "",
        "namespaced": row.namespaced,
        "kind": _response_kind(row, name)["kind"],
        "verbs": _sub_verbs(name),
    }


def _response_kind(row: ResourceType, subresource: str = "") -> Json:
    group, version, kind = _OTHER_KINDS.get(subresource) or (row.group, row.version, row.kind)
    return {"group": group, "version": version, "kind": kind}


def _sub_verbs(subresource: str) -> list[str]:
    return _ODD_VERBS.get(subresource, _SUB_VERBS)


def _aggregated_resource(row: ResourceType) -> Json:
    return {
        "resource": row.plural,
        "responseKind": _response_kind(row),
        "scope": "Namespaced" if row.namespaced else "Cluster",
        "singularResource": row.singular,
        "verbs": list(row.verbs),
        "shortNames": list(row.short_names),
        "categories": list(row.categories),
        "subresources": [
            {"subresource": name, "responseKind": _response_kind(row, name), "verbs": _sub_verbs(name)}
            for name in row.subresources
        ],
    }
