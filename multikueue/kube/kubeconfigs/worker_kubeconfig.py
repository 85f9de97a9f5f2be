"""Parses workers' kubeconfigs. Users write them, so they must not name files or commands of the daemon's host.

Checks, messages and their order are Kueue's.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final

import attrs

from multikueue.kube.kubeconfigs.config import PAIR, ClusterConfig, inline_config
from multikueue.kube.kubeconfigs.kubeconfig_document import (
    ContextSelection,
    Document,
    flag,
    is_host,
    refuse,
    refused_as,
    split_url,
)

REASON: Final = "InsecureKubeConfig"
"""Kueue's condition reason for a kubeconfig with bad content."""

_DIGITS: Final = 16
_NO_CREDENTIALS: Final = ("source", "namespace", "disable_compression")


@refused_as(REASON)
def parse_worker_kubeconfig(data: bytes | str | Mapping[str, Any]) -> ClusterConfig:
    """Parse a worker's kubeconfig and refuse what is insecure.

    Beyond Kueue's checks it refuses http, a query or password in the server's URL, client certificates in files, and
    impersonation: without a check they would fail later with a worse message, or never.

    Args:
        data: YAML or JSON, or what it holds.

    Raises:
        KubeconfigError: with Kueue's reason. The message names the field and never its value.
        TypeError: `data` is something else, as a path.
    """
    if not isinstance(data, bytes | str | Mapping):
        raise TypeError(f"data: the text of a kubeconfig or what it holds, not {type(data).__name__}")
    try:
        raw = data if isinstance(data, bytes) else (data if isinstance(data, str) else json.dumps(data)).encode()
    except (TypeError, ValueError):
        refuse("failed to parse kubeconfig(apiconfig): it is not JSON")
    document = Document.parse(raw, foreign=True)
    _check_file(document)
    selection = document.select()
    check_endpoint(selection.server)
    _check_user(selection)
    config = inline_config(selection)
    if bool(config.client_cert_pem) != bool(config.client_key_pem):
        refuse(PAIR)
    return config


def credentials_digest(config: ClusterConfig) -> str:
    """Tells one address and its credentials from another. It gives nothing away: tokens are long and random."""
    fields = attrs.asdict(config, filter=lambda field, _: field.name not in _NO_CREDENTIALS)
    return hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()[:_DIGITS]


def _check_file(document: Document) -> None:
    """Check all users and clusters of the file, not only those of the current context."""
    if any(user.get("tokenFile") for user in document.users.values()):
        refuse("tokenFile is not allowed")
    for name, cluster in document.clusters.items():
        if flag(cluster, "insecure-skip-tls-verify"):
            refuse(f"insecure TLS verification is not allowed for cluster {name}")
        if cluster.get("certificate-authority"):
            why = "certificate-authority file paths are not allowed, use certificate-authority-data"
            refuse(f"{why} for cluster {name}")
        if not cluster.get("server"):
            refuse(f"server URL is required for cluster {name}")


def check_endpoint(server: str) -> None:
    """Refuse an address that is not https, or holds more than an address."""
    url = split_url(server)
    if url is None or not is_host(url.hostname):
        refuse("untrusted server endpoint")
    if url.scheme != "https":
        refuse("server URL must start with https://")
    if url.username is not None or url.password is not None:
        refuse("basic auth is not allowed")
    if url.query or url.fragment:
        refuse("server URL must not have a query or a fragment")


def _check_user(selection: ContextSelection) -> None:
    user = selection.user
    if user.get("username") or user.get("password"):
        refuse("basic auth is not allowed")
    if user.get("exec"):
        refuse("exec plugins are not allowed")
    if user.get("auth-provider"):
        refuse("auth providers are not allowed")
    for field in ("client-certificate", "client-key"):
        if user.get(field):
            refuse(f"{field} file paths are not allowed, use {field}-data")
