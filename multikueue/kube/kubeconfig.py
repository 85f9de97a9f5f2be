"""Reading kubeconfigs: the daemon's own, which may use everything, and workers', which come from users and may not."""

from __future__ import annotations

import base64
import binascii
import ipaddress
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import yaml

from multikueue.core.names import Json
from multikueue.errors import KubeconfigError
from multikueue.kube.config import ClusterConfig, ExecPlugin

BAD: Final = "BadKubeConfig"
INSECURE: Final = "InsecureKubeConfig"
MAX_SIZE: Final = 1 << 20
"""Bytes of a kubeconfig that are read at most: a real one has a few thousand."""

_SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_DNS_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


def parse_worker_kubeconfig(data: bytes) -> ClusterConfig:
    """Read a worker's kubeconfig and refuse what is insecure; checks and words are Kueue's.

    Beyond Kueue's checks it refuses http and files for client certificates: both would otherwise be found out later,
    with a worse message.

    Raises:
        KubeconfigError: with Kueue's reason; the message names the field and never its value.
    """
    document = _parse(data)
    clusters, users = _named(document, "clusters", "cluster"), _named(document, "users", "user")
    for check in _WHOLE_FILE_CHECKS:
        check(clusters, users)
    cluster, user, namespace = _current(document, clusters, users)
    _check_endpoint(str(cluster["server"]))
    _check_user(user)
    return ClusterConfig(
        server=str(cluster["server"]).rstrip("/"),
        ca_pem=_decoded(cluster, "certificate-authority-data"),
        token=str(user.get("token") or "").strip(),
        client_cert_pem=_decoded(user, "client-certificate-data"),
        client_key_pem=_decoded(user, "client-key-data"),
        tls_server_name=str(cluster.get("tls-server-name") or ""),
        proxy=str(cluster.get("proxy-url") or ""),
        namespace=namespace,
    )


def load_kubeconfig(path: Path, context: str | None = None) -> ClusterConfig:
    """Read the daemon's own kubeconfig: files and exec plugins are fine, it is the operator's.

    Raises:
        KubeconfigError: it cannot be read or lacks something; the message names file and field.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise KubeconfigError(BAD, f"{path}: cannot be read: {error.strerror}") from error
    try:
        return _own_config(_parse(data), path, context)
    except KubeconfigError as error:
        raise KubeconfigError(error.reason, f"{path}: {error}") from error


def load_incluster(root: Path = _SERVICE_ACCOUNT, environment: Mapping[str, str] | None = None) -> ClusterConfig:
    """The configuration of the pod this runs in.

    Raises:
        KubeconfigError: this is not a pod.
    """
    variables = environment or {}
    host, port = variables.get("KUBERNETES_SERVICE_HOST"), variables.get("KUBERNETES_SERVICE_PORT")
    if not host or not port or not (root / "token").is_file():
        raise KubeconfigError(
            BAD, "this is not a pod with a service account: name a kubeconfig with --kubeconfig or KUBECONFIG"
        )
    shown = f"[{host}]" if ":" in host else host
    namespace = root / "namespace"
    return ClusterConfig(
        server=f"https://{shown}:{port}",
        ca_pem=(root / "ca.crt").read_text(),
        token_file=str(root / "token"),
        namespace=namespace.read_text().strip() if namespace.is_file() else "",
    )


def _own_config(document: Json, path: Path, context: str | None) -> ClusterConfig:
    clusters, users = _named(document, "clusters", "cluster"), _named(document, "users", "user")
    if context is not None:
        document = {**document, "current-context": context}
    cluster, user, namespace = _current(document, clusters, users)
    exec_section = user.get("exec")
    plugin = None
    if exec_section or user.get("auth-provider"):
        plugin = ExecPlugin(str(document["current-context"]), json.dumps(document, sort_keys=True))
    return ClusterConfig(
        server=str(cluster.get("server") or "").rstrip("/"),
        ca_pem=_data_or_file(cluster, "certificate-authority", path),
        token=str(user.get("token") or "").strip(),
        token_file=_beside(path, user.get("tokenFile")),
        exec_plugin=plugin,
        client_cert_pem=_data_or_file(user, "client-certificate", path),
        client_key_pem=_data_or_file(user, "client-key", path),
        tls_server_name=str(cluster.get("tls-server-name") or ""),
        proxy=str(cluster.get("proxy-url") or ""),
        verify_tls=not cluster.get("insecure-skip-tls-verify"),
        namespace=namespace,
    )


def _parse(data: bytes) -> Json:
    if len(data) > MAX_SIZE:
        raise KubeconfigError(BAD, f"failed to parse kubeconfig(apiconfig): larger than {MAX_SIZE} bytes")
    try:
        document = yaml.safe_load(data)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        # The parser quotes the text around the error, which may be a credential: only the place is told.
        mark = getattr(error, "problem_mark", None)
        where = f" at line {mark.line + 1}, column {mark.column + 1}" if mark is not None else ""
        raise KubeconfigError(BAD, f"failed to parse kubeconfig(apiconfig): it is not YAML{where}") from None
    if not isinstance(document, dict):
        raise KubeconfigError(BAD, "failed to parse kubeconfig(apiconfig): it is not a mapping")
    return document


def _named(document: Json, section: str, field: str) -> dict[str, Json]:
    entries = document.get(section) or []
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise KubeconfigError(BAD, f"failed to parse kubeconfig(apiconfig): {section} is not a list of mappings")
    result: dict[str, Json] = {}
    for entry in entries:
        value = entry.get(field) or {}
        if not isinstance(value, dict):
            raise KubeconfigError(BAD, f"failed to parse kubeconfig(apiconfig): {section}[].{field} is not a mapping")
        result[str(entry.get("name") or "")] = value
    return result


def _current(document: Json, clusters: Mapping[str, Json], users: Mapping[str, Json]) -> tuple[Json, Json, str]:
    name = document.get("current-context")
    if not name:
        raise KubeconfigError(BAD, "no current-context is set")
    context = _named(document, "contexts", "context").get(str(name))
    if context is None:
        raise KubeconfigError(BAD, f'context "{name}" does not exist')
    cluster = clusters.get(str(context.get("cluster") or ""))
    if cluster is None or not cluster.get("server"):
        raise KubeconfigError(BAD, f'context "{name}" names no cluster with a server')
    user = users.get(str(context.get("user") or ""), {})
    return cluster, user, str(context.get("namespace") or "")


def _no_token_files(clusters: Mapping[str, Json], users: Mapping[str, Json]) -> None:
    del clusters
    if any(user.get("tokenFile") for user in users.values()):
        raise KubeconfigError(INSECURE, "tokenFile is not allowed")


def _verified_tls(clusters: Mapping[str, Json], users: Mapping[str, Json]) -> None:
    del users
    for name, cluster in clusters.items():
        if cluster.get("insecure-skip-tls-verify"):
            raise KubeconfigError(INSECURE, f"insecure TLS verification is not allowed for cluster {name}")


def _no_ca_files(clusters: Mapping[str, Json], users: Mapping[str, Json]) -> None:
    del users
    for name, cluster in clusters.items():
        if cluster.get("certificate-authority"):
            raise KubeconfigError(
                INSECURE,
                f"certificate-authority file paths are not allowed, use certificate-authority-data for cluster {name}",
            )


def _has_server(clusters: Mapping[str, Json], users: Mapping[str, Json]) -> None:
    del users
    for name, cluster in clusters.items():
        if not cluster.get("server"):
            raise KubeconfigError(INSECURE, f"server URL is required for cluster {name}")


_WHOLE_FILE_CHECKS: Final[tuple[Callable[[Mapping[str, Json], Mapping[str, Json]], None], ...]] = (
    _no_token_files,
    _verified_tls,
    _no_ca_files,
    _has_server,
)
"""All users and clusters of the file are looked at, not only the current ones."""


def _check_endpoint(server: str) -> None:
    try:
        parts = urlsplit(server)
        host = (parts.hostname or "").lower()
    except ValueError:
        raise KubeconfigError(INSECURE, "untrusted server endpoint") from None
    if not _is_host(host):
        raise KubeconfigError(INSECURE, "untrusted server endpoint")
    if parts.scheme != "https":
        raise KubeconfigError(INSECURE, "server URL must start with https://")


def _is_host(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return _DNS_NAME.fullmatch(host) is not None
    return True


def _check_user(user: Json) -> None:
    if user.get("username") or user.get("password"):
        raise KubeconfigError(INSECURE, "basic auth is not allowed")
    if user.get("exec"):
        raise KubeconfigError(INSECURE, "exec plugins are not allowed")
    if user.get("auth-provider"):
        raise KubeconfigError(INSECURE, "auth providers are not allowed")
    for field in ("client-certificate", "client-key"):
        if user.get(field):
            raise KubeconfigError(INSECURE, f"{field} file paths are not allowed, use {field}-data")


def _decoded(section: Json, field: str) -> str:
    value: Any = section.get(field)
    if not value:
        return ""
    try:
        return base64.b64decode(str(value), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        raise KubeconfigError(BAD, f"{field} is not base64 of a PEM text") from None


def _data_or_file(section: Json, field: str, kubeconfig: Path) -> str:
    inline = _decoded(section, f"{field}-data")
    if inline or not section.get(field):
        return inline
    named = Path(_beside(kubeconfig, section[field]))
    try:
        return named.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise KubeconfigError(BAD, f"{field} {named} cannot be read") from error


def _beside(kubeconfig: Path, named: Any) -> str:
    """Relative paths in a kubeconfig are relative to its folder."""
    return str(kubeconfig.parent / str(named)) if named else ""
