"""The kubeconfig of a spoke, from what its ManagedCluster and its token's Secret say."""

from __future__ import annotations

import base64
import binascii
import json
from typing import Any

import attrs

from multikueue.core.model.names import Json
from multikueue.core.model.objects import dig, name_of
from multikueue.core.spokes.names import BASE_NAME


@attrs.frozen
class Address:
    """Where the API server of a spoke is."""

    url: str
    authority: str
    """The certificate authority, PEM in base64; empty: it is not told."""


def address_of(managed: Json) -> Address | None:
    """The first https address of a ManagedCluster; None if it has none. The agent of the spoke writes them."""
    listed = dig(managed, "spec", "managedClusterClientConfigs")
    for entry in listed if isinstance(listed, list) else ():
        url = dig(entry, "url")
        if isinstance(url, str) and url.startswith("https://"):
            return Address(url, str(dig(entry, "caBundle") or ""))
    return None


def token_in(secret: Json | None) -> str:
    """The token in the Secret of a ManagedServiceAccount; empty if there is none that can be used."""
    try:
        found = base64.b64decode(dig(secret, "data", "token") or "", validate=True).decode("ascii").strip()
    except (binascii.Error, UnicodeDecodeError, TypeError, ValueError):
        return ""
    return found if found.isprintable() and " " not in found else ""


def kubeconfig_of(managed: Json, secret: Json | None) -> str | None:
    """The text of a spoke's kubeconfig: JSON, which is YAML; None if address or token are missing."""
    address, token = address_of(managed), token_in(secret)
    if address is None or not token:
        return None
    name = name_of(managed)
    cluster: dict[str, Any] = {"server": address.url}
    authority = address.authority or dig(secret, "data", "ca.crt")
    if authority:
        cluster["certificate-authority-data"] = authority
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": BASE_NAME, "user": {"token": token}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": BASE_NAME}}],
        "current-context": name,
    }
    return json.dumps(document, indent=2, sort_keys=True) + "\n"
