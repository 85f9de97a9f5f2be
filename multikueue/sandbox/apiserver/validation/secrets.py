"""Secrets and ConfigMaps: their defaults, what they must be, and what may not change in one."""

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
_MOST = 1 << 20
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
    causes = _check_keys(secret, "data")
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
    return [*unchanged(old, new, "", "type"), *_check_immutable(old, new, "data"), *check_secret(new)]


def check_config_map(config_map: Json) -> list[Cause]:
    """What is wrong with a ConfigMap."""
    binary = config_map.get("binaryData") or {}
    twice = [key for key in config_map.get("data") or {} if key in binary]
    causes = [invalid_value(f"data[{key}]", "duplicate of key present in binaryData", key) for key in twice]
    causes += [*_check_keys(config_map, "data"), *_check_keys(config_map, "binaryData")]
    size = sum(len(text.encode()) for text in (config_map.get("data") or {}).values())
    if size + sum(len(base64.b64decode(text)) for text in binary.values()) > _MOST:
        causes.append(Cause("FieldValueTooLong", "[]", f"Too long: may not be more than {_MOST} bytes"))
    return causes


def check_config_map_update(old: Json, new: Json) -> list[Cause]:
    """Nothing of an immutable one may change."""
    return [*_check_immutable(old, new, "data", "binaryData"), *check_config_map(new)]


def _check_keys(obj: Json, field: str) -> list[Cause]:
    rule = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'"
    return [
        invalid_value(f"{field}[{key}]", rule, f'"{key}"')
        for key in obj.get(field) or {}
        if not _KEY.fullmatch(key) or key == "." or key.startswith("..")
    ]


def _check_immutable(old: Json, new: Json, *fields: str) -> list[Cause]:
    changed = [field for field in fields if (old.get(field) or {}) != (new.get(field) or {})]
    lifted = [] if new.get("immutable") else ["immutable"]
    return [forbidden_field(field, _IMMUTABLE) for field in (*lifted, *changed)] if old.get("immutable") else []
