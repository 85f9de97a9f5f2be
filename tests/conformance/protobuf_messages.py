"""
Write the table of protobuf messages that the sandbox reads: `python -m tests.conformance.protobuf_messages`.

It needs Go's module cache with `k8s.io/api` and `k8s.io/apimachinery` of the version below (`go mod download` fetches
them). The `.proto` files there give numbers and types; the Go types give what JSON makes of them: the name of a field,
whether it is left out when it is zero, and whether its fields stand in its parent.
"""

from __future__ import annotations

import json
import re
import subprocess
from functools import cache
from pathlib import Path

import attrs

from multikueue.core.model.names import Json
from tests.controlplane.binaries import KUBERNETES

TARGET = Path(__file__).parents[2] / "multikueue" / "sandbox" / "apiserver" / "protobuf" / "messages.json"
MODULES = KUBERNETES.replace("v1.", "v0.")
_ROOTS = {
    "core.v1": "Namespace Pod ConfigMap Secret ServiceAccount Service Node LimitRange ResourceQuota PodTemplate "
    "PersistentVolumeClaim Event",
    "batch.v1": "Job CronJob",
    "apps.v1": "Deployment StatefulSet ReplicaSet",
    "coordination.v1": "Lease",
    "scheduling.v1": "PriorityClass",
    "rbac.v1": "Role RoleBinding ClusterRole ClusterRoleBinding",
    "events.v1": "Event",
    "authentication.v1": "TokenRequest TokenReview SelfSubjectReview",
    "authorization.v1": "LocalSubjectAccessReview SelfSubjectAccessReview SelfSubjectRulesReview SubjectAccessReview",
    "apis.meta.v1": "DeleteOptions",
}
_GROUPS = {
    "core.v1": "v1",
    "batch.v1": "batch/v1",
    "apps.v1": "apps/v1",
    "coordination.v1": "coordination.k8s.io/v1",
    "scheduling.v1": "scheduling.k8s.io/v1",
    "rbac.v1": "rbac.authorization.k8s.io/v1",
    "events.v1": "events.k8s.io/v1",
    "authentication.v1": "authentication.k8s.io/v1",
    "authorization.v1": "authorization.k8s.io/v1",
}
_SPECIAL = ("Quantity", "IntOrString", "Time", "MicroTime", "RawExtension", "FieldsV1", "ExtraValue", "Duration")
_SCALARS = ("string", "bytes", "bool", "int32", "int64")
_FIELD = re.compile(r"^  (?:(?P<kind>optional|repeated) (?P<type>\S+)|map<string, (?P<value>\S+)>) \w+ = (?P<n>\d+);")
_GO_FIELD = re.compile(r"^\t(?:\w+\s+)?(?P<type>[\w.*\[\]]+)\s+`(?P<tag>[^`]*)`", re.MULTILINE)


@attrs.frozen
class GoField:
    """What Go says of a field."""

    type: str
    name: str
    flags: str


@cache
def folder(package: str) -> Path:
    """Where a package's sources are: `core.v1` in `k8s.io/api`, `apis.meta.v1` in `k8s.io/apimachinery/pkg`."""
    root = subprocess.run(["go", "env", "GOMODCACHE"], check=True, capture_output=True, text=True).stdout.strip()
    machinery = package.split(".", maxsplit=1)[0] in ("apis", "api", "util", "runtime")
    module = f"apimachinery@{MODULES}/pkg" if machinery else f"api@{MODULES}"
    return Path(root, "k8s.io", module, *package.split("."))


@cache
def _messages(package: str) -> dict[str, list[str]]:
    text = (folder(package) / "generated.proto").read_text()
    messages = re.findall(r"^message (\w+) {\n(.*?)^}", text, re.DOTALL | re.MULTILINE)
    return {name: body.splitlines() for name, body in messages}


@cache
def _go_fields(package: str, name: str) -> dict[str, GoField]:
    """By field number."""
    text = (folder(package) / "types.go").read_text()
    struct = re.search(rf"^type {name} struct {{\n(.*?)^}}", text, re.DOTALL | re.MULTILINE)
    fields = {}
    for match in _GO_FIELD.finditer(struct[1] if struct else ""):
        number = re.search(r'protobuf:"\w+,(\d+)', match["tag"])
        tag = re.search(r'json:"(\w*)([^"]*)"', match["tag"])
        if number and tag:
            fields[number[1]] = GoField(match["type"], tag[1], tag[2])
    return fields


def _qualified(package: str, name: str) -> str:
    if name in _SCALARS:
        return name
    if not name.startswith("."):
        return f"{package}.{name}"
    return name.removeprefix(".k8s.io.api.").removeprefix(".k8s.io.apimachinery.pkg.")


def _field(package: str, line: str, go: dict[str, GoField]) -> tuple[str, str] | None:
    """A line of the table, and the type it refers to; None for a line that is no field."""
    match = _FIELD.match(line)
    if match is None:
        return None
    named = _qualified(package, match["type"] or match["value"])
    of_go = go[match["n"]]
    form = "{}" if match["value"] else "[]" if match["kind"] == "repeated" else ""
    scalar = named in _SCALARS and "omitempty" in of_go.flags
    if not form and not of_go.type.startswith("*") and (scalar or "omitzero" in of_go.flags):
        form = "?"
    name = "-" if "inline" in of_go.flags else of_go.name
    return f"{match['n']} {name} {form}{named}", named


def table() -> Json:
    """The messages that the roots lead to, each with its fields."""
    roots = {
        f"{_GROUPS.get(package, '*')}/{kind}": f"{package}.{kind}"
        for package, kinds in _ROOTS.items()
        for kind in kinds.split()
    }
    messages: dict[str, list[str]] = {}
    waiting = list(roots.values())
    while waiting:
        package, _, name = waiting.pop().rpartition(".")
        if not package or name in _SPECIAL or f"{package}.{name}" in messages:
            continue
        go = _go_fields(package, name)
        fields = [field for line in _messages(package)[name] if (field := _field(package, line, go))]
        messages[f"{package}.{name}"] = [text for text, _ in fields]
        waiting += [named for _, named in fields]
    return {"kubernetes": KUBERNETES, "roots": roots, "messages": messages}


def main() -> None:
    """Write the file: one message a line."""
    made = table()
    lines = [f"{json.dumps(name)}: {json.dumps(made['messages'][name])}" for name in sorted(made["messages"])]
    head = f'"kubernetes": {json.dumps(made["kubernetes"])},\n"roots": {json.dumps(made["roots"], sort_keys=True)}'
    TARGET.write_text("{" + head + ',\n"messages": {\n' + ",\n".join(lines) + "\n}}\n")


if __name__ == "__main__":
    main()
