"""How to reach one API server: a value, equal when nothing about the connection differs."""

from __future__ import annotations

import attrs


@attrs.frozen
class ExecPlugin:
    """A kubeconfig's exec section: a command that prints credentials."""

    context: str
    """Name of the context in the kubeconfig."""
    kubeconfig: str = attrs.field(repr=False)
    """The kubeconfig as JSON text, for the plugin loader."""


@attrs.frozen
class ClusterConfig:
    """Address and credentials of one API server. Its repr shows no secret."""

    server: str
    ca_pem: str = attrs.field(default="", repr=False)
    """PEM of the certificate authority; empty: the system's."""
    token: str = attrs.field(default="", repr=False)
    token_file: str = ""
    """A file with the token, read again as it is rotated (in-cluster)."""
    exec_plugin: ExecPlugin | None = attrs.field(default=None, repr=False)
    client_cert_pem: str = attrs.field(default="", repr=False)
    client_key_pem: str = attrs.field(default="", repr=False)
    tls_server_name: str = ""
    """The name the server's certificate must carry, if it is not the server's own."""
    proxy: str = attrs.field(default="", repr=False)
    verify_tls: bool = True
    namespace: str = ""
    """The context's namespace, or the pod's."""
