"""What the server answers beside logs: which API it serves, errors as API servers have them, its own lines. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Final

from multikueue.core.model.names import GVK, Json, Resource

GROUP: Final = "remote.multikueue.dev"
VERSION: Final = "v1alpha1"
REMOTE_JOB: Final = Resource(GVK(GROUP, VERSION, "RemoteJob"), "remotejobs")
SUBRESOURCE: Final = "log"
"""API servers end requests after a minute, except for some subresources: this name is one of theirs."""
PARTS: Final = (SUBRESOURCE, "pods", "events", "explain")
"""All subresources of a job."""
WHOLE: Final = {
    "overview": "Overview",
    "timeline": "Timeline",
    "places": "Places",
    "causes": "Causes",
    "jobpage": "JobPage",
}
"""What is made of all jobs of a namespace, or of the fleet: the kind by the name in a path."""
API_SERVICE: Final = Resource(GVK("apiregistration.k8s.io", "v1", "APIService"), "apiservices", namespaced=False)
API_SERVICE_NAME: Final = f"{VERSION}.{GROUP}"
LOG_PATH: Final = f"/apis/{GROUP}/{VERSION}/namespaces/{{namespace}}/{REMOTE_JOB.plural}/{{name}}/{SUBRESOURCE}"
NOTE: Final = "--- multikueue: "
"""How lines of the server's own begin: those of a job have their time before anything else, if times are asked for."""
END: Final = "this ends here: "
"""How the note begins that says why an answer has no more."""
_REASONS: Final = {410: "Expired", 500: "InternalError", 504: "Timeout"}
"""Where API servers say it in other words than HTTP."""


def status(code: int, message: str, name: str = "", retry_after: int = 0) -> Json:
    """An error as API servers have it, so that kubectl prints it well."""
    details: Json = {"name": name, "group": GROUP, "kind": REMOTE_JOB.plural} if name else {}
    if retry_after:
        details["retryAfterSeconds"] = retry_after
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": _REASONS.get(code, HTTPStatus(code).phrase.replace(" ", "")),
        **({"details": details} if details else {}),
        "code": code,
    }


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
