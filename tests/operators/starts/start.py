"""What a controller needs to start: where it runs, and its command."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import attrs
import trustme

from multikueue.core.model.names import Json
from tests.controlplane.credentials import write_kubeconfig
from tests.controlplane.interface import Cluster
from tests.controlplane.ports import free_port

NAMESPACE: Final = "default"
"""Where the controllers are, as far as they ask."""


@attrs.frozen(kw_only=True)
class Place:
    """Where one controller runs."""

    cluster: Cluster
    folder: Path
    proxy: str = ""
    """Where what it asks of services inside the cluster is answered."""
    health: int = attrs.field(factory=free_port)

    def kubeconfig(self) -> Path:
        """The administrator's, as a file."""
        return write_kubeconfig(self.folder / "kubeconfig", self.cluster.kubeconfig())


@attrs.frozen(kw_only=True)
class Start:
    """A command, and what it needs to run."""

    arguments: tuple[str, ...]
    health: str
    """Answers 200 once it works."""
    environment: Mapping[str, str] = attrs.field(factory=dict)
    webhooks: tuple[Json, ...] = ()
    webhooks_port: int = 0
    """Where its webhooks are served; 0 if it has none, or is healthy only once they are."""
    program: str = ""
    """Which of the project's programs, if it is not the first program."""
    beside: tuple[Start, ...] = ()
    """Further programs that it needs; they end with it."""


def certified(folder: Path, *names: str) -> bytes:
    """Write `tls.crt` and `tls.key` of a server on this machine into a folder; return who has signed them.

    Args:
        folder: of the files.
        names: further names of the server.
    """
    folder.mkdir(parents=True, exist_ok=True)
    authority = trustme.CA()
    certificate = authority.issue_cert("127.0.0.1", *names)
    certificate.private_key_pem.write_to_path(folder / "tls.key")
    certificate.cert_chain_pems[0].write_to_path(folder / "tls.crt")
    return authority.cert_pem.bytes()
