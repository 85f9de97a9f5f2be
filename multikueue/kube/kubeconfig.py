"""The daemon's own kubeconfigs: files and exec plugins are fine, for they are the operator's."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import attrs

from multikueue.core.model.names import Json
from multikueue.core.model.objects import dig
from multikueue.errors import KubeconfigError
from multikueue.kube.config import ClusterConfig, ExecPlugin
from multikueue.kube.kubeconfig_document import Document, Selection, refuse, resolved, split_url

REASON: Final = "BadKubeConfig"

_TOLD_TO_PLUGINS: Final = ("server", "tls-server-name", "insecure-skip-tls-verify", "proxy-url")
_FILES: Final = ("certificate-authority", "client-certificate", "client-key", "tokenFile")


def load_kubeconfig(path: Path | Sequence[Path], context: str | None = None) -> ClusterConfig:
    """Read the daemon's own kubeconfig.

    Args:
        path: of the file; or several files, merged as kubectl does: the first that names something wins, and those
            that do not exist are passed over.
        context: if not the current one.

    Raises:
        KubeconfigError: it cannot be read or lacks something; the message names file and field, and no secret.
    """
    paths = [path] if isinstance(path, Path) else list(path)
    if len(paths) > 1:
        paths = [path for path in paths if path.exists()] or paths[:1]
    merged = Document(REASON)
    for one in paths:
        merged = merged.merged(_read(one))
    where = os.pathsep.join(str(one) for one in paths)
    try:
        return attrs.evolve(_config(merged, context), source=where)
    except KubeconfigError as error:
        refuse(REASON, f"{where}: {error}")


def _read(path: Path) -> Document:
    try:
        data = path.read_bytes()
    except OSError as error:
        refuse(REASON, f"{path}: cannot be read: {error.strerror}")
    try:
        document = Document.parse(data, REASON)
    except KubeconfigError as error:
        refuse(REASON, f"{path}: {error}")
    for section in (*document.clusters.values(), *document.users.values()):
        for field in _FILES:
            if section.get(field):
                section[field] = resolved(section[field], path.parent)
        plugin = section.get("exec")
        if isinstance(plugin, dict) and os.sep in str(plugin.get("command")):
            plugin["command"] = resolved(plugin["command"], path.parent)
    return document


def _config(document: Document, context: str | None) -> ClusterConfig:
    selection = document.select(context)
    cluster, user = selection.cluster, selection.user
    _check(selection)
    return ClusterConfig(
        server=selection.server,
        ca_pem=_data_or_file(selection, cluster, "certificate-authority"),
        token=selection.token,
        token_file=str(user.get("tokenFile") or ""),
        exec_plugin=_plugin(selection),
        client_cert_pem=_data_or_file(selection, user, "client-certificate"),
        client_key_pem=_data_or_file(selection, user, "client-key"),
        tls_server_name=selection.tls_server_name,
        proxy=selection.proxy,
        verify_tls=not cluster.get("insecure-skip-tls-verify"),
        namespace=selection.namespace,
    )


def _check(selection: Selection) -> None:
    url = split_url(selection.server)
    if url is None or url.scheme not in ("http", "https") or not url.hostname or url.query or url.fragment:
        refuse(REASON, "server must be an http:// or https:// URL without a query")
    user = selection.user
    if user.get("username") or user.get("password") or url.username is not None:
        refuse(REASON, "basic auth is not supported, by API servers neither: use a token or a client certificate")
    if user.get("auth-provider"):
        refuse(REASON, "auth-provider is not supported any more: use the exec plugin of your provider")


def _plugin(selection: Selection) -> ExecPlugin | None:
    section = selection.user.get("exec")
    if not section:
        return None
    if not isinstance(section, dict) or not section.get("command") or not section.get("apiVersion"):
        refuse(REASON, "exec needs at least apiVersion and command")
    told = json.dumps(_told_to_plugin(selection), sort_keys=True) if section.get("provideClusterInfo") else ""
    return ExecPlugin(str(section["command"]), json.dumps(section, sort_keys=True), told)


def _told_to_plugin(selection: Selection) -> Json:
    """The cluster as an ExecCredential shows it: files as data, and the settings meant for the plugin."""
    cluster = selection.cluster
    told = {field: cluster[field] for field in _TOLD_TO_PLUGINS if cluster.get(field)}
    authority = _data_or_file(selection, cluster, "certificate-authority")
    if authority:
        told["certificate-authority-data"] = base64.b64encode(authority.encode()).decode()
    for extension in cluster.get("extensions") or ():
        if dig(extension, "name") == "client.authentication.k8s.io/exec":
            told["config"] = extension.get("extension")
    return told


def _data_or_file(selection: Selection, section: Json, field: str) -> str:
    inline = selection.pem(section, f"{field}-data")
    if inline or not section.get(field):
        return inline
    try:
        return Path(section[field]).read_text()
    except (OSError, UnicodeDecodeError):
        refuse(REASON, f"{field} {section[field]} cannot be read")
