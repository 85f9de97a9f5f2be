"""How to reach one API server: a value, equal when nothing about the connection differs."""

from __future__ import annotations

import attrs


@attrs.frozen
class ExecPlugin:
    """A kubeconfig's exec section: a command that prints credentials."""

    command: str
    """For errors. Its arguments and variables may hold secrets."""
    section: str = attrs.field(repr=False)
    """The section as JSON text: text, so that configurations can be compared and hashed."""
    cluster: str = attrs.field(default="", repr=False)
    """The cluster's section as JSON text, if the plugin wants to know it (`provideClusterInfo`)."""


@attrs.frozen
class ClusterConfig:
    """Address and credentials of one API server. Its repr shows no secret."""

    server: str
    ca_pem: str = attrs.field(default="", repr=False)
    """PEM of the certificate authority; empty: the system's."""
    token: str = attrs.field(default="", repr=False)
    token_file: str = ""
    """A file with the token, read again as it is rotated; takes precedence over `token`."""
    exec_plugin: ExecPlugin | None = None
    client_cert_pem: str = attrs.field(default="", repr=False)
    client_key_pem: str = attrs.field(default="", repr=False)
    tls_server_name: str = ""
    """The name the server's certificate must carry, if it is not the server's own."""
    proxy: str = attrs.field(default="", repr=False)
    verify_tls: bool = True
    namespace: str = ""
    """The context's namespace, or the pod's."""
    source: str = attrs.field(default="", eq=False)
    """Where this was read, for errors; empty where whoever hears of them knows."""
