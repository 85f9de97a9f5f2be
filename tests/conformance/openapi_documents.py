"""
Write what `kubectl explain` tells of builtin kinds: `python -m tests.conformance.openapi_documents`.

It needs Go's module cache with `k8s.io/kubernetes` of the version below, whose `api/openapi-spec` holds the documents
that its API server publishes. Only the schemas of the kinds that the sandbox serves are kept, and of those what they
refer to.
"""

from __future__ import annotations

import gzip
import json
import re
import subprocess
from pathlib import Path

from multikueue.core.model.names import Json
from multikueue.sandbox.apiserver.kinds.resources import builtin_types
from tests.controlplane.binaries import KUBERNETES

TARGET = Path(__file__).parents[2] / "multikueue" / "sandbox" / "apiserver" / "kinds" / "builtin_openapi.json.gz"
_KIND = "x-kubernetes-group-version-kind"


def _folder() -> Path:
    root = subprocess.run(["go", "env", "GOMODCACHE"], check=True, capture_output=True, text=True).stdout.strip()
    return Path(root, "k8s.io", f"kubernetes@{KUBERNETES}", "api", "openapi-spec", "v3")


def _document(group: str, version: str) -> Json:
    place = f"apis__{group}__{version}" if group else f"api__{version}"
    document: Json = json.loads((_folder() / f"{place}_openapi.json").read_text())
    return document


def collected() -> Json:
    """The schemas by name, and the one of each kind as `group/version/kind`."""
    published: Json = {}
    roots: Json = {}
    for row in builtin_types():
        schemas = _document(row.group, row.version)["components"]["schemas"]
        published |= schemas
        for name, schema in schemas.items():
            if {"group": row.group, "version": row.version, "kind": row.kind} in schema.get(_KIND, ()):
                roots[f"{row.group}/{row.version}/{row.kind}"] = name
    collected: Json = {}
    waiting = list(roots.values())
    while waiting:
        name = waiting.pop()
        if name not in collected:
            collected[name] = {key: value for key, value in published[name].items() if key != _KIND}
            waiting += re.findall(r'"#/components/schemas/([^"]+)"', json.dumps(collected[name]))
    return {"kubernetes": KUBERNETES, "roots": roots, "schemas": collected}


def main() -> None:
    """Write the file: compressed, and the same bytes for the same documents."""
    text = json.dumps(collected(), sort_keys=True, separators=(",", ":"))
    TARGET.write_bytes(gzip.compress(text.encode(), compresslevel=9, mtime=0))


if __name__ == "__main__":
    main()
