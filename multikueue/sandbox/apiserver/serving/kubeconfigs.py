"""A certificate authority for one server, and kubeconfigs for its users."""

from __future__ import annotations

import base64
import ssl

import attrs
import trustme

from multikueue.core.model.names import Json


@attrs.frozen
class ServerTls:
    """The server's TLS context and the CA certificate its clients must trust."""

    context: ssl.SSLContext
    ca_pem: str

    @classmethod
    def issue(cls, host: str) -> ServerTls:
        """Make a CA and a certificate for a host name or address."""
        authority = trustme.CA()
        certificate = authority.issue_cert(host, "localhost")
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        certificate.configure_cert(context)
        return cls(context, authority.cert_pem.bytes().decode())


def kubeconfig(*, name: str, url: str, ca_pem: str | None, user: str, token: str | None) -> Json:
    """A kubeconfig with one cluster, one user and one context."""
    cluster: Json = {"server": url}
    if ca_pem:
        cluster["certificate-authority-data"] = base64.b64encode(ca_pem.encode()).decode()
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": user, "user": {"token": token} if token else {}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": user}}],
    }
