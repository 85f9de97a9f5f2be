"""Certificates, keys and tokens of one control plane, as the files that its components read."""

from __future__ import annotations

import base64
import secrets
from pathlib import Path

import attrs
import trustme
import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from multikueue.core.model.names import Json

ADMIN = "admin"
CONTROLLER_MANAGER = "system:kube-controller-manager"
_GROUPS = {ADMIN: "system:masters"}


@attrs.define(eq=False)
class Credentials:
    """A certificate authority of its own, a server certificate, keys and static tokens, as files in `folder`.

    The same files serve every start of the API server, so clients stay trusted and tokens valid over a restart.
    """

    folder: Path
    admin_token: str = attrs.field(default="", repr=False)
    ca_pem: str = attrs.field(default="", repr=False)

    @property
    def token_file(self) -> Path:
        """`--token-auth-file`: read by the API server when it starts, not later."""
        return self.folder / "tokens.csv"

    @property
    def ca_file(self) -> Path:
        """The certificate authority that signed the API server's certificate."""
        return self.folder / "ca.pem"

    @property
    def server_certificate(self) -> Path:
        """The API server's certificate chain."""
        return self.folder / "server.pem"

    @property
    def server_key(self) -> Path:
        """The API server's private key."""
        return self.folder / "server.key"

    @property
    def service_account_key(self) -> Path:
        """The key that signs and verifies tokens of service accounts."""
        return self.folder / "service-accounts.key"

    def make(self, users: list[str]) -> dict[str, str]:
        """Write everything; return the tokens of the administrator, the controller manager and each of `users`."""
        authority = trustme.CA()
        self.ca_pem = authority.cert_pem.bytes().decode()
        authority.cert_pem.write_to_path(self.ca_file)
        server = authority.issue_cert("127.0.0.1", "localhost")
        server.private_key_pem.write_to_path(self.server_key)
        for number, certificate in enumerate(server.cert_chain_pems):
            certificate.write_to_path(self.server_certificate, append=number > 0)
        self.service_account_key.write_bytes(_private_key())
        tokens = {user: secrets.token_hex(20) for user in (ADMIN, CONTROLLER_MANAGER, *users)}
        self.admin_token = tokens[ADMIN]
        self.write_tokens(tokens)
        return tokens

    def write_tokens(self, tokens: dict[str, str]) -> None:
        """Write the static tokens as the API server reads them: token, user, uid, groups."""
        rows = [f'{token},{user},{user},"{_GROUPS.get(user, "")}"' for user, token in tokens.items()]
        self.token_file.write_text("\n".join(rows) + "\n")


def kubeconfig(name: str, *, url: str, ca_pem: str, user: str, token: str) -> Json:
    """Build a kubeconfig of one cluster and one user, all data inline."""
    ca_data = base64.b64encode(ca_pem.encode()).decode()
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "clusters": [{"name": name, "cluster": {"server": url, "certificate-authority-data": ca_data}}],
        "users": [{"name": user, "user": {"token": token}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": user}}],
    }


def write_kubeconfig(path: Path, config: Json) -> Path:
    """Write a kubeconfig as YAML, readable by us only."""
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(config))
    return path


def _private_key() -> bytes:
    # "EC PRIVATE KEY": of PKCS #8 kube-apiserver cannot read the public half.
    return ec.generate_private_key(ec.SECP256R1()).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
