"""Workers' kubeconfigs. They come from users, so they may name nothing that is ours: no file and no command.

Checks and words are Kueue's, in Kueue's order.
"""

from __future__ import annotations

from typing import Final

from multikueue.kube.config import ClusterConfig
from multikueue.kube.kubeconfig_document import Document, Selection, is_host, refuse, split_url

REASON: Final = "InsecureKubeConfig"
"""Kueue's reason for whatever is wrong with a kubeconfig's content."""


def parse_worker_kubeconfig(data: bytes) -> ClusterConfig:
    """Read a worker's kubeconfig and refuse what is insecure.

    Beyond Kueue's checks it refuses http, a query or password in the server's URL, files for client certificates, and
    impersonation: all would be found out later with a worse message, or not at all.

    Raises:
        KubeconfigError: with Kueue's reason; the message names the field and never its value.
    """
    document = Document.parse(data, REASON)
    _check_file(document)
    selection = document.select()
    _check_endpoint(selection.server)
    _check_user(selection)
    cluster, user = selection.cluster, selection.user
    config = ClusterConfig(
        server=selection.server,
        ca_pem=selection.pem(cluster, "certificate-authority-data"),
        token=selection.token,
        client_cert_pem=selection.pem(user, "client-certificate-data"),
        client_key_pem=selection.pem(user, "client-key-data"),
        tls_server_name=selection.tls_server_name,
        proxy=selection.proxy,
        namespace=selection.namespace,
    )
    if bool(config.client_cert_pem) != bool(config.client_key_pem):
        refuse(REASON, "client-certificate-data and client-key-data must be given together")
    return config


def _check_file(document: Document) -> None:
    """All users and clusters of the file are looked at, not only the current ones."""
    if any(user.get("tokenFile") for user in document.users.values()):
        refuse(REASON, "tokenFile is not allowed")
    for name, cluster in document.clusters.items():
        if cluster.get("insecure-skip-tls-verify"):
            refuse(REASON, f"insecure TLS verification is not allowed for cluster {name}")
        if cluster.get("certificate-authority"):
            refuse(
                REASON,
                f"certificate-authority file paths are not allowed, use certificate-authority-data for cluster {name}",
            )
        if not cluster.get("server"):
            refuse(REASON, f"server URL is required for cluster {name}")


def _check_endpoint(server: str) -> None:
    url = split_url(server)
    if url is None or not is_host(url.hostname):
        refuse(REASON, "untrusted server endpoint")
    if url.scheme != "https":
        refuse(REASON, "server URL must start with https://")
    if url.username is not None or url.password is not None:
        refuse(REASON, "basic auth is not allowed")
    if url.query or url.fragment:
        refuse(REASON, "server URL must not have a query or a fragment")


def _check_user(selection: Selection) -> None:
    user = selection.user
    if user.get("username") or user.get("password"):
        refuse(REASON, "basic auth is not allowed")
    if user.get("exec"):
        refuse(REASON, "exec plugins are not allowed")
    if user.get("auth-provider"):
        refuse(REASON, "auth providers are not allowed")
    for field in ("client-certificate", "client-key"):
        if user.get(field):
            refuse(REASON, f"{field} file paths are not allowed, use {field}-data")
