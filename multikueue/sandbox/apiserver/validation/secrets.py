"""Secrets: their defaults, what they must be, and what may not change in one."""

from __future__ import annotations

import base64
import json
import re

from multikueue.core.model.names import Json
from multikueue.sandbox.apiserver.status_errors import Cause
from multikueue.sandbox.apiserver.validation.rules import forbidden_field, invalid_value, required, unchanged

_KEY = re.compile(r"[-._a-zA-Z0-9]{1,253}")
_ALL_OF = {
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
}
_IMMUTABLE = "field is immutable when `immutable` is set"


def fill_secret(secret: Json) -> None:
    """Encode `stringData` and default the type."""
    for key, text in (secret.pop("stringData", None) or {}).items():
        data = secret.get("data") or {}
        secret["data"] = {**data, key: base64.b64encode(text.encode()).decode()}
    secret.setdefault("type", "Opaque")


def keep_secret_type(old: Json, secret: Json) -> None:
    """A replacement without a type keeps the old one."""
    if not secret.get("type") and old.get("type"):
        secret["type"] = old["type"]


def check_secret(secret: Json) -> list[Cause]:
    """What is wrong with a Secret."""
    data = secret.get("data") or {}
    rule = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'"
    causes = [invalid_value(f"data[{key}]", rule, key) for key in data if not _KEY.fullmatch(key) or key in (".", "..")]
    kind = secret.get("type")
    causes += [required(f"data[{key}]") for key in _ALL_OF.get(kind or "", ()) if key not in data]
    if kind == "kubernetes.io/basic-auth" and not ({"username", "password"} & data.keys()):
        causes += [required("data[username]"), required("data[password]")]
    if kind == "kubernetes.io/service-account-token":
        name = "kubernetes.io/service-account.name"
        if not (secret["metadata"].get("annotations") or {}).get(name):
            causes.append(required(f"metadata.annotations[{name}]"))
    if kind in ("kubernetes.io/dockercfg", "kubernetes.io/dockerconfigjson") and not causes:
        causes += _check_docker(data, _ALL_OF[kind][0])
    return causes


def _check_docker(data: Json, key: str) -> list[Cause]:
    try:
        json.loads(base64.b64decode(data[key]))
    except ValueError as error:
        return [invalid_value(f"data[{key}]", str(error), '"<secret contents redacted>"')]
    return []


def check_secret_update(old: Json, new: Json) -> list[Cause]:
    """The type may not change, nor anything of an immutable secret."""
    causes = list(unchanged(old, new, "", "type"))
    if old.get("immutable"):
        if not new.get("immutable"):
            causes.append(forbidden_field("immutable", _IMMUTABLE))
        if old.get("data") != new.get("data"):
            causes.append(forbidden_field("data", _IMMUTABLE))
    return causes + check_secret(new)
