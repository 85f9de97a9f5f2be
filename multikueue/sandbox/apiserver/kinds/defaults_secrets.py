"""Secrets: `stringData` becomes base64 `data`, and the type has a default."""

from __future__ import annotations

import base64

from multikueue.core.model.names import Json


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
