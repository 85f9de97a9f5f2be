"""How workers are reached that a ClusterProfile describes: what an operator allows, by name of an access provider.

A profile says where a cluster is, and which providers know credentials for it. Which command runs for a provider, or
which Secret is read, only the operator says: this is the list of what is allowed.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

import attrs

BuiltIn: TypeAlias = Literal["secretreader", "cp-creds"]
"""Providers that need no command: they have the names and the rules of the reference plugins.

* `secretreader`: the token is in the Secret that the profile's `clusterName` names.
* `cp-creds`: in the Secret `<clusterName>-<managed service account>`, as Open Cluster Management writes it.
"""
ArgsPolicy: TypeAlias = Literal["Ignore", "Append"]
"""What becomes of arguments that a profile asks for."""
EnvPolicy: TypeAlias = Literal["Ignore", "AppendIfNotExists", "Replace"]
"""What becomes of the variables that a profile may ask for. A name that the operator has set, too: `AppendIfNotExists`
keeps the operator's value, `Replace` takes the profile's."""

API_VERSIONS: Final = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
"""Of the protocol between us and a command."""


@attrs.frozen
class PluginCommand:
    """A command that prints credentials, as `execConfig` describes it."""

    api_version: str
    command: str
    """An absolute path."""
    args: tuple[str, ...] = attrs.field(default=(), repr=False)
    env: tuple[tuple[str, str], ...] = attrs.field(default=(), repr=False)
    """Names and values."""
    provide_cluster_info: bool = False
    """Whether it is told which cluster the credentials are for."""
    inherit_env: bool = False
    """Whether it gets this process's variables, too. Else it has a fixed PATH, HOME and `env` alone."""


@attrs.frozen
class AccessProvider:
    """What an operator allows for a provider of this name. It has a command, or it is built in."""

    name: str
    plugin: PluginCommand | None = None
    builtin: BuiltIn | None = None
    managed_service_account: str = ""
    """Only for `cp-creds`."""
    args_policy: ArgsPolicy = "Ignore"
    env_policy: EnvPolicy = "Ignore"
    env_names: tuple[str, ...] = ()
    """The variables that a profile may ask for. Many change what a command loads, whom it asks or trusts, so no list of
    those that may not would be complete."""


@attrs.frozen
class ProfileSettings:
    """What is allowed to reach workers by ClusterProfiles."""

    providers: tuple[AccessProvider, ...] | None = None
    """In this order the first that a profile has is used. None: none is configured."""
    allow_insecure_tls: bool = False
    """Whether a profile may say that the server's certificate is not to be verified."""
