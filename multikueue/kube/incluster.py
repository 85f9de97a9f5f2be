"""The service account of the pod this runs in."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from multikueue.errors import KubeconfigError
from multikueue.kube.config import ClusterConfig

SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where kubelet puts the token and the certificate authority."""


def load_incluster(environment: Mapping[str, str], *, root: Path = SERVICE_ACCOUNT) -> ClusterConfig:
    """The configuration of the pod this runs in.

    Args:
        environment: the process's variables: kubelet puts the server's address there.
        root: where the service account's files are.

    Raises:
        KubeconfigError: this is not a pod, or it has no service account.
    """
    host, port = environment.get("KUBERNETES_SERVICE_HOST"), environment.get("KUBERNETES_SERVICE_PORT")
    try:
        if not host or not port or not (root / "token").is_file():
            raise FileNotFoundError("no service account")
        authority = (root / "ca.crt").read_text()
        namespace = (root / "namespace").read_text().strip() if (root / "namespace").is_file() else ""
    except (OSError, UnicodeDecodeError):
        raise KubeconfigError(
            "BadKubeConfig",
            "this is not a pod with a service account: name a kubeconfig with --kubeconfig or KUBECONFIG",
        ) from None
    shown = f"[{host}]" if ":" in host else host
    return ClusterConfig(
        server=f"https://{shown}:{port}", ca_pem=authority, token_file=str(root / "token"), namespace=namespace
    )
