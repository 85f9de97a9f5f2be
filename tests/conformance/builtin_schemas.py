"""
Write the schemas of builtin kinds that the sandbox ships: `python -m tests.conformance.builtin_schemas`.

They come from a real API server's OpenAPI documents. What those leave out is read from the Go types of the same
release: which fields are dropped when they are empty (`omitempty` on a value) and which are written as null.
"""

from __future__ import annotations

import json
import re
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import anyio

from multikueue.core.model.names import Json
from tests.conformance.client import connected
from tests.conformance.planes import real_without_controllers
from tests.controlplane.binaries import KUBERNETES

TARGET = Path(__file__).parents[2] / "multikueue" / "sandbox" / "apiserver" / "kinds" / "builtin_schemas.json"
_KINDS = {
    "api/v1": "Namespace Pod ConfigMap Secret ServiceAccount Service Node LimitRange ResourceQuota PodTemplate "
    "PersistentVolumeClaim Event",
    "apis/batch/v1": "Job CronJob",
    "apis/apps/v1": "Deployment StatefulSet ReplicaSet",
    "apis/coordination.k8s.io/v1": "Lease",
    "apis/scheduling.k8s.io/v1": "PriorityClass",
    "apis/rbac.authorization.k8s.io/v1": "Role RoleBinding ClusterRole ClusterRoleBinding",
    "apis/events.k8s.io/v1": "Event",
}
_KEPT = (
    "type",
    "format",
    "default",
    "required",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-map-type",
    "x-kubernetes-patch-merge-key",
    "x-kubernetes-patch-strategy",
)
_FIELD = re.compile(r"^\s+\w*\s*(?P<type>[\w.*\[\]]+)\s+`[^`]*json:\"(?P<name>\w+)(?P<flags>[,\w]*)\"")


async def _documents() -> Json:
    """All definitions, and the root of each kind as `group/version/kind`."""
    definitions: Json = {}
    roots: Json = {}
    async with real_without_controllers() as plane, connected(plane) as client:
        for path, kinds in _KINDS.items():
            _, document = await client.get(f"/openapi/v3/{path}")
            schemas = document["components"]["schemas"]
            definitions |= schemas
            for name, schema in schemas.items():
                for gvk in schema.get("x-kubernetes-group-version-kind") or ():
                    if gvk["kind"] in kinds.split() and path.endswith(f"{gvk['group']}/{gvk['version']}".lstrip("/")):
                        roots[f"{gvk['group']}/{gvk['version']}/{gvk['kind']}"] = name
    return {"roots": roots, "definitions": definitions}


@cache
def _go_fields(definition: str) -> dict[str, tuple[str, str]]:
    """Go type and tag flags by JSON name, of the struct that a definition was made from."""
    package, _, name = definition.removeprefix("io.k8s.").rpartition(".")
    module, _, path = package.partition(".pkg.") if ".pkg." in package else package.partition(".")
    folder = f"{module}@{KUBERNETES.replace('v1.', 'v0.')}/{'pkg/' if '.pkg.' in package else ''}"
    cache_root = subprocess.run(["go", "env", "GOMODCACHE"], check=True, capture_output=True, text=True).stdout.strip()
    text = Path(cache_root, "k8s.io", folder, path.replace(".", "/"), "types.go").read_text()
    struct = re.search(rf"^type {name} struct {{\n(.*?)^}}", text, re.DOTALL | re.MULTILINE)
    lines = struct.group(1).splitlines() if struct else []
    matches = (_FIELD.match(line) for line in lines)
    return {match["name"]: (match["type"], match["flags"]) for match in matches if match}


def _slim(schema: Json) -> Json:
    slim = {key: schema[key] for key in _KEPT if key in schema}
    reference = schema.get("$ref") or next((part["$ref"] for part in schema.get("allOf") or ()), "")
    if reference:
        slim["$ref"] = reference.rpartition("/")[2]
    if isinstance(schema.get("items"), dict):
        slim["items"] = _slim(schema["items"])
    if isinstance(schema.get("additionalProperties"), dict):
        slim["additionalProperties"] = _slim(schema["additionalProperties"])
    return slim


def _definition(name: str, schema: Json) -> Json:
    slim = _slim(schema)
    if "properties" not in schema:
        return slim
    fields = _go_fields(name)
    slim["properties"] = {key: _property(child, *fields.get(key, ("", ""))) for key, child in sorted(_items(schema))}
    return slim


def _items(schema: Json) -> list[tuple[str, Any]]:
    return list(schema["properties"].items())


def _property(schema: Json, go_type: str, flags: str) -> Json:
    slim = _slim(schema)
    if go_type.startswith("*") or not go_type:
        return slim
    is_time, is_slice = go_type.endswith("Time"), go_type.startswith("[]")
    if (is_time and "omitzero" not in flags) or (is_slice and "omit" not in flags):
        slim["x-null"] = True  # a struct is never empty for encoding/json
    elif ("omitempty" in flags and slim.get("type")) or "omitzero" in flags:
        slim["x-omit-empty"] = True
    return slim


def _reachable(definitions: Json, roots: list[str]) -> Json:
    reachable: Json = {}
    waiting = list(roots)
    while waiting:
        name = waiting.pop()
        if name not in reachable:
            reachable[name] = _definition(name, definitions[name])
            waiting += re.findall(r'"\$ref": "([^"]+)"', json.dumps(reachable[name]))
    return reachable


def main() -> None:
    """Write the file: one definition a line."""
    documents = anyio.run(_documents)
    roots = documents["roots"]
    definitions = _reachable(documents["definitions"], list(roots.values()))
    lines = [f"{json.dumps(name)}: {json.dumps(definitions[name])}" for name in sorted(definitions)]
    head = f'"kubernetes": {json.dumps(KUBERNETES)},\n"roots": {json.dumps(roots, sort_keys=True)}'
    TARGET.write_text("{" + head + ',\n"definitions": {\n' + ",\n".join(lines) + "\n}}\n")


if __name__ == "__main__":
    main()
