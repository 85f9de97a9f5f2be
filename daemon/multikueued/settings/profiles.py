"""The settings of workers that ClusterProfiles describe: the access providers, and what each runs or reads.

They have Kueue's form: `multiKueue.clusterProfile.accessProviders`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Final, Literal

import attrs

from multikueue.core.config.access_providers import (
    API_VERSIONS,
    AccessProvider,
    ArgsPolicy,
    BuiltIn,
    EnvPolicy,
    PluginCommand,
    ProfileSettings,
)

OCM_ACCOUNT: Final = "multikueue"
"""The managed service account that Open Cluster Management's set-up for Kueue makes."""
_MISSING: Final = "must be specified"
"""Kueue's words."""


@attrs.frozen
class VariableSettings:
    """A variable of a command's environment."""

    name: str = ""
    value: str = ""


@attrs.frozen
class ExecSettings:
    """A command that prints credentials."""

    api_version: str = ""
    """`client.authentication.k8s.io/v1`, or `v1beta1`."""
    command: str = ""
    """An absolute path. Only commands that stand here are run, whatever a profile says."""
    args: tuple[str, ...] = ()
    env: tuple[VariableSettings, ...] = ()
    provide_cluster_info: bool = False
    """Whether it is told which cluster the credentials are for. The reference plugins need it."""
    interactive_mode: Literal["Never", "IfAvailable", "Always"] = "Never"
    """It never is interactive, whatever stands here: nobody could answer."""
    install_hint: str = ""


@attrs.frozen
class AccessProviderSettings:
    """What is allowed for a provider that profiles name."""

    name: str = ""
    """As in `status.accessProviders[].name` of a ClusterProfile."""
    exec_config: ExecSettings | None = None
    """What runs to get credentials."""
    builtin: BuiltIn | None = None
    """Instead of a command: where the daemon itself reads the token."""
    managed_service_account: str | None = None
    """Only for `cp-creds`: the Secret is `<clusterName>-<this>`. By default the one of OCM's set-up for Kueue,
    `multikueue`."""
    inherit_env: bool = False
    """Only for `execConfig`: whether the command gets the daemon's variables, too."""
    profile_sourced_cli_args_policy: ArgsPolicy = "Ignore"
    profile_sourced_env_vars_policy: EnvPolicy = "Ignore"
    profile_sourced_env_vars: tuple[str, ...] = ()
    """Names of the variables that a profile may set, where the policy takes any."""

    def provider(self) -> AccessProvider:
        """The same as the library's."""
        plugin = None
        if self.exec_config is not None:
            own = self.exec_config
            env = tuple((variable.name, variable.value) for variable in own.env)
            plugin = PluginCommand(
                own.api_version, own.command, own.args, env, own.provide_cluster_info, self.inherit_env
            )
        account = self.managed_service_account or OCM_ACCOUNT
        return AccessProvider(
            self.name,
            plugin,
            self.builtin,
            account if self.builtin == "cp-creds" else "",
            self.profile_sourced_cli_args_policy,
            self.profile_sourced_env_vars_policy,
            self.profile_sourced_env_vars,
        )


@attrs.frozen
class ClusterProfileSettings:
    """Workers that ClusterProfiles describe: MultiKueueClusters with `clusterProfileRef`. Without this section they are
    refused, as by a Kueue whose gate `MultiKueueClusterProfile` is off."""

    access_providers: tuple[AccessProviderSettings, ...] = ()
    """What may be used, in this order: of a profile the first that it has. Each has a `name` and either `execConfig` or
    `builtin`; see [workers by ClusterProfile](workers.md#settings-of-access-providers)."""
    allow_insecure_tls: bool = False
    """Whether a profile may say `insecure-skip-tls-verify`: then whoever is between the daemon and the worker can read
    the token. Otherwise such a profile is refused."""

    def profile_settings(self) -> ProfileSettings:
        """The same as the library's settings."""
        providers = tuple(provider.provider() for provider in self.access_providers)
        return ProfileSettings(providers or None, self.allow_insecure_tls)


def profile_contradictions(settings: ClusterProfileSettings | None) -> Iterator[str]:
    """What cannot be used: the setting, and why. Where Kueue refuses the same, in its words. None: no section."""
    if settings is None:
        return
    known: set[str] = set()
    for number, provider in enumerate(settings.access_providers):
        entry = f"clusterProfile.accessProviders[{number}]"
        yield from _provider_contradictions(entry, provider)
        if provider.name in known:
            yield f'{entry}.name: there is another provider "{provider.name}" above: only the first would be used'
        known.add(provider.name)


def _provider_contradictions(place: str, provider: AccessProviderSettings) -> Iterator[str]:
    if not provider.name:
        yield f"{place}.name: {_MISSING}"
    if provider.exec_config is not None and provider.builtin is not None:
        yield f"{place}.builtin: execConfig says already where credentials come from: keep one of the two"
    elif provider.exec_config is not None:
        yield from _exec_contradictions(f"{place}.execConfig", provider.exec_config)
    elif provider.builtin is None:
        yield f"{place}.execConfig: {_MISSING}, or builtin: secretreader or cp-creds"
    if (provider.profile_sourced_env_vars_policy != "Ignore") != bool(provider.profile_sourced_env_vars):
        yield (
            f"{place}.profileSourcedEnvVars: list the variables that a profile may set, "
            "with profileSourcedEnvVarsPolicy: AppendIfNotExists or Replace; or leave both out"
        )
    if provider.managed_service_account is not None and provider.builtin != "cp-creds":
        yield f"{place}.managedServiceAccount: only builtin: cp-creds uses it: leave it out"


def _exec_contradictions(place: str, config: ExecSettings) -> Iterator[str]:
    if not config.command:
        yield f"{place}.command: {_MISSING}"
    elif not os.path.isabs(config.command):
        yield f'{place}.command: "{config.command}" is not an absolute path: PATH is not searched'
    if not config.api_version:
        yield f"{place}.apiVersion: {_MISSING}"
    elif config.api_version not in API_VERSIONS:
        yield f'{place}.apiVersion: "{config.api_version}" is not one of {", ".join(API_VERSIONS)}'
    for number, variable in enumerate(config.env):
        if not variable.name:
            yield f"{place}.env[{number}].name: {_MISSING}"
