"""The connection that an access provider of a ClusterProfile describes: its member `cluster`.

Whoever writes the profile chooses the server, so the checks are those of workers' kubeconfigs: https, no files, and no
proxy but the one that is named.
"""

from __future__ import annotations

from typing import Final

from multikueue.core.model.names import Json
from multikueue.kube.config import ClusterConfig, inline_config
from multikueue.kube.kubeconfig_document import ContextSelection, refuse, refused_as
from multikueue.kube.worker_kubeconfig import check_endpoint

REASON: Final = "BadRestConfig"
"""Kueue's condition reason for a connection that must not be used."""


@refused_as(REASON)
def parse_profile_cluster(cluster: Json) -> ClusterConfig:
    """The address of a worker, without credentials: the caller adds `exec_plugin` or `token` with `attrs.evolve`.

    `config.exec_extension` tells what such a cluster has for exec plugins.

    Raises:
        KubeconfigError: with the reason `BadRestConfig`. The message names the field and never its value.
    """
    selection = ContextSelection(cluster, {})
    selection.check()
    if not cluster.get("server"):
        refuse("server URL is required")
    if cluster.get("insecure-skip-tls-verify"):
        refuse("insecure TLS verification is not allowed")
    if cluster.get("certificate-authority"):
        refuse("certificate-authority file paths are not allowed, use certificate-authority-data")
    check_endpoint(selection.server)
    return inline_config(selection)
