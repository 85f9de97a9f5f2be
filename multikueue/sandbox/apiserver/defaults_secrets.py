"""Secrets: `stringData` becomes base64 `data`, and the type is fixed."""

from __future__ import annotations

import base64

from multikueue.core.names import Json
from multikueue.sandbox.apiserver.statuses import Cause


def create_secret(secret: Json) -> list[Cause]:
    """Encode `stringData` and default the type."""
    for key, text in (secret.pop("stringData", None) or {}).items():
        data = secret.get("data") or {}
        secret["data"] = {**data, key: base64.b64encode(text.encode()).decode()}
    secret.setdefault("type", "Opaque")
    return []


def update_secret(old: Json, new: Json) -> list[Cause]:
    """Encode `stringData`; the type may not change, nor the data of an immutable secret."""
    create_secret(new)
    if old.get("type") != new.get("type"):
        return [Cause("FieldValueInvalid", "type", "Invalid value: field is immutable")]
    if old.get("immutable") and old.get("data") != new.get("data"):
        return [Cause("FieldValueForbidden", "data", "Forbidden: field is immutable when `immutable` is set")]
    return []
