"""Makes the configuration of a worker that a ClusterProfile describes."""

from __future__ import annotations

import attrs

from multikueue.core.config.access_providers import PluginCommand, ProfileSettings
from multikueue.core.config.cluster_profiles import BAD_PROFILE, EXEC_EXTENSION, ProfileAccess
from multikueue.errors import ClusterProfileError, KubeconfigError
from multikueue.kube.config import ClusterConfig, cluster_info
from multikueue.kube.credentials.exec_plugin import ExecPlugin
from multikueue.kube.profile_cluster import parse_profile_cluster

_INSECURE = "insecure-skip-tls-verify"


def profile_config(access: ProfileAccess, settings: ProfileSettings, token: str = "") -> ClusterConfig:
    """The configuration for what a ClusterProfile says. Equal profiles make equal ones.

    Args:
        access: the provider that was chosen, and the cluster's address.
        settings: what the operator allows.
        token: of a built-in provider; others run their plugin for it.

    Raises:
        ClusterProfileError: the address may not be used. The message names the field and never its value.
    """
    insecure = settings.allow_insecure_tls and bool(access.cluster.get(_INSECURE))
    cluster = {field: value for field, value in access.cluster.items() if not (insecure and field == _INSECURE)}
    try:
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
