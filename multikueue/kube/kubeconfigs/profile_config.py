"""Makes the configuration of a worker that a ClusterProfile describes.

Whoever writes the profile chooses the server, so the checks are those of workers' kubeconfigs: https, no files, and no
proxy but the one that is named.
"""

from __future__ import annotations

from typing import Final

import attrs

from multikueue.core.config.access_providers import PluginCommand, ProfileSettings
from multikueue.core.config.cluster_profiles import BAD_PROFILE, EXEC_EXTENSION, ProfileAccess
from multikueue.core.model.names import Json
from multikueue.errors import ClusterProfileError, KubeconfigError
from multikueue.kube.credentials.exec_plugin import ExecPlugin
from multikueue.kube.kubeconfigs.config import ClusterConfig, cluster_info, inline_config
from multikueue.kube.kubeconfigs.kubeconfig_document import ContextSelection, check_trust, flag, refuse, refused_as
from multikueue.kube.kubeconfigs.worker_kubeconfig import check_endpoint

REASON: Final = "BadRestConfig"
"""Kueue's condition reason for a connection that must not be used."""
_INSECURE: Final = "insecure-skip-tls-verify"


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
    if flag(cluster, _INSECURE):
        refuse("insecure TLS verification is not allowed")
    if cluster.get("certificate-authority"):
        refuse("certificate-authority file paths are not allowed, use certificate-authority-data")
    check_endpoint(selection.server)
    return inline_config(selection)


def profile_config(access: ProfileAccess, settings: ProfileSettings, token: str = "") -> ClusterConfig:
    """The configuration for what a ClusterProfile says. Equal profiles make equal ones.

    Args:
        access: the provider that was chosen, and the cluster's address.
        settings: what the operator allows.
        token: of a built-in provider; others run their plugin for it.

    Raises:
        ClusterProfileError: the address may not be used. The message names the field and never its value.
    """
    try:
        with refused_as(REASON):
            insecure = settings.allow_insecure_tls and flag(access.cluster, _INSECURE)
            if insecure:
                check_trust(access.cluster)
        cluster = {field: value for field, value in access.cluster.items() if not (insecure and field == _INSECURE)}
        config = parse_profile_cluster(cluster)
    except KubeconfigError as error:
        raise ClusterProfileError(error.reason, str(error)) from None
    reached = attrs.evolve(config, verify_tls=not insecure, token=token)
    plugin = access.provider.plugin
    return reached if plugin is None else attrs.evolve(reached, exec_plugin=_plugin(plugin, access, reached))


def _plugin(command: PluginCommand, access: ProfileAccess, config: ClusterConfig) -> ExecPlugin:
    try:
        info = cluster_info(config, access.config) if command.provide_cluster_info else ""
    except RecursionError:  # the profile's extension has up to 1,024 levels
        raise ClusterProfileError(BAD_PROFILE, f"the extension {EXEC_EXTENSION} is nested too deeply") from None
    own = ExecPlugin(
        command.command, command.args, command.env, command.api_version, info, inherit_env=command.inherit_env
    )
    replace = access.provider.env_policy == "Replace"
    return own.extended(access.more_args, dict(access.more_env), replace=replace)
