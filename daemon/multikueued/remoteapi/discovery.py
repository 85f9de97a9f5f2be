"""Which API the server serves, as discovery and OpenAPI tell it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from multikueue.core.model.names import Json
from multikueued.api_answers import GROUP, PARTS, REMOTE_JOB, VERSION, WHOLE


def documents() -> dict[str, Json]:
    """Discovery, by path."""
    version = {"groupVersion": f"{GROUP}/{VERSION}", "version": VERSION}
    group: Json = {"name": GROUP, "versions": [version], "preferredVersion": version}
    entry: Json = {"singularName": "", "namespaced": True, "kind": REMOTE_JOB.gvk.kind, "verbs": ["get"]}
    reads = ["get", "list", "watch"]
    resources = [
        {**entry, "name": REMOTE_JOB.plural, "singularName": "remotejob", "verbs": reads, "shortNames": ["rj"]},
        *({**entry, "name": f"{REMOTE_JOB.plural}/{part}"} for part in PARTS),
        {**entry, "name": "fleet", "kind": "Fleet", "namespaced": False},
        *({**entry, "name": name, "kind": kind, "verbs": ["list"]} for name, kind in WHOLE.items()),
        {**entry, "name": "remotenamespaces", "kind": "RemoteNamespace", "namespaced": False, "verbs": ["list"]},
    ]
    listed = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version["groupVersion"]}
    return {
        "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": [group]},
        f"/apis/{GROUP}": {"kind": "APIGroup", "apiVersion": "v1", **group},
        f"/apis/{GROUP}/{VERSION}": {**listed, "resources": resources},
        "/openapi/v3": {"paths": {_OPENAPI: {"serverRelativeURL": f"/openapi/v3/{_OPENAPI}"}}},
        f"/openapi/v3/{_OPENAPI}": _openapi(),
    }


_OPENAPI: Final = f"apis/{GROUP}/{VERSION}"
_TIME: Final = {"type": "string", "format": "date-time"}
_TEXT: Final = {"type": "string"}


def _listed(about: str, **fields: Json) -> Json:
    return {"type": "array", "description": about, "items": {"type": "object", "properties": fields}}


JOB_STATUS: Final[Mapping[str, Json]] = {
    "job": _TEXT | {"description": "TYPE/NAME."},
    "state": _TEXT | {"description": "Where it is on its way, as `multikueue get jobs` says."},
    "cluster": _TEXT | {"description": "The worker that has it."},
    "offeredTo": {"type": "array", "items": _TEXT, "description": "The workers that are asked."},
    "queue": _TEXT | {"description": "Its LocalQueue."},
    "clusterQueue": _TEXT | {"description": "The ClusterQueue of the manager."},
    "workload": _TEXT | {"description": "Name of its Workload on the manager."},
    "since": _TIME | {"description": "Since when it is in this state."},
    "reason": _TEXT | {"description": "Why it is in this state."},
    "next": _listed("What happens next.", text=_TEXT, at=_TIME),
    "placements": _listed("The workers that have had it.", cluster=_TEXT, since=_TIME, until=_TIME, reason=_TEXT),
}
"""The fields of a job's status, as OpenAPI says it."""


def _openapi() -> Json:
    """What `kubectl explain` shows."""
    object_meta = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
    kinds = {"group": GROUP, "version": VERSION, "kind": REMOTE_JOB.gvk.kind}
    metadata = {"allOf": [{"$ref": f"#/components/schemas/{object_meta}"}]}
    job_status = {"type": "object", "description": "Where it is, and why.", "properties": JOB_STATUS}
    job: Json = {
        "type": "object",
        "description": "A job that MultiKueue looks after.",
        "properties": {"apiVersion": _TEXT, "kind": _TEXT, "metadata": metadata, "status": job_status},
        "x-kubernetes-group-version-kind": [kinds],
    }
    got = {"responses": {"200": {"description": "OK"}}, "x-kubernetes-action": "list"}
    path = f"/apis/{GROUP}/{VERSION}/namespaces/{{namespace}}/{REMOTE_JOB.plural}"
    schemas = {"dev.multikueue.remote.v1alpha1.RemoteJob": job, object_meta: {"type": "object"}}
    return {
        "openapi": "3.0.0",
        "info": {"title": "multikueue", "version": VERSION},
        "paths": {path: {"get": {**got, "x-kubernetes-group-version-kind": kinds}}},
        "components": {"schemas": schemas},
    }
