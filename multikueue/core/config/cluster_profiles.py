"""What a ClusterProfile says about how its cluster is reached. Reasons and messages are those of Kueue.

Everything in a profile's status may be wrong in any way: others write it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NoReturn

import attrs

from multikueue.core.config.access_providers import AccessProvider, ProfileSettings
from multikueue.core.model.kinds import CLUSTER_PROFILE
from multikueue.core.model.names import OBJECT_NAME, Json
from multikueue.core.model.objects import dig
from multikueue.errors import Cause, ClusterProfileError

FEATURE_DISABLED: Final = "MultiKueueClusterProfileFeatureDisabled"
"""Kueue's reason while nothing is set for ClusterProfiles."""
BAD_PROFILE: Final = "BadClusterProfile"
"""Kueue's reason for a profile that gives no connection."""

EXEC_EXTENSION: Final = "client.authentication.k8s.io/exec"
"""The extension of a cluster that a plugin gets as its `config`."""
ARGS_EXTENSION: Final = "clusterprofiles.multicluster.x-k8s.io/exec/additional-args"
ENVS_EXTENSION: Final = "clusterprofiles.multicluster.x-k8s.io/exec/additional-envs"


@attrs.frozen
class ProfileAccess:
    """How the cluster of a profile is reached: by which provider, at which address. A value: equal is the same."""

    provider: AccessProvider
    cluster: Mapping[str, Any] = attrs.field(repr=False)
    """The section `cluster` of the chosen provider, with the fields of a kubeconfig."""
    config: Any = None
    """What the profile tells the plugin: the content of the extension, normally an object; None: nothing."""
    more_args: tuple[str, ...] = attrs.field(default=(), repr=False)
    """Arguments of the profile, if the provider's policy takes them."""
    more_env: tuple[tuple[str, str], ...] = attrs.field(default=(), repr=False)
    """Those variables of the profile that the provider's policy takes."""

    @property
    def cluster_name(self) -> str:
        """What the profile's manager calls the cluster.

        Raises:
            ClusterProfileError: it does not say, in the words of the reference plugins.
        """
        if self.config is None:
            refuse("getting credentials: missing ExecCredential.Spec.Cluster.Config", Cause.UNNAMED)
        name = dig(self.config, "clusterName")
        if not isinstance(name, str) or not name:
            refuse("getting credentials: missing clusterName in ExecCredential.Spec.Cluster.Config", Cause.UNNAMED)
        if OBJECT_NAME.fullmatch(name) is None:
            why = "clusterName in ExecCredential.Spec.Cluster.Config is not an object's name"
            refuse(f"getting credentials: {why}", Cause.UNNAMED)
        return name


def profile_reference(cluster: Json) -> str | None:
    """The ClusterProfile that a MultiKueueCluster names; None if it has its kubeconfig from elsewhere."""
    reference = dig(cluster, "spec", "clusterSource", "clusterProfileRef")
    return str(dig(reference, "name") or "") if reference else None


def enabled(settings: ProfileSettings | None) -> ProfileSettings:
    """The settings, if ClusterProfiles are used at all.

    Raises:
        ClusterProfileError: they are not; in the words of a Kueue whose gate is off.
    """
    if settings is None:
        refuse("MultiKueueClusterProfile feature gate is disabled", Cause.PROFILES_OFF, FEATURE_DISABLED)
    return settings


def chosen_access(profile: Json | None, name: str, settings: ProfileSettings) -> ProfileAccess:
    """How the cluster of a profile is reached.

    Args:
        profile: None: there is none of that name.
        name: of the profile.
        settings: what the operator allows.

    Raises:
        ClusterProfileError: by nothing that is allowed; with Kueue's reason and message.
    """
    if profile is None:
        refuse(f'{CLUSTER_PROFILE.gvk.kind}.{CLUSTER_PROFILE.gvk.group} "{name}" not found', Cause.PROFILE_MISSING)
    if settings.providers is None:
        refuse("no access provider configured", Cause.NO_PROVIDER)
    offered = offered_clusters(profile)
    provider = next((known for known in settings.providers if known.name in offered), None)
    if provider is None:
        refuse(f'no matching cluster accessor found for cluster profile "{name}"', Cause.OTHER_PROVIDER)
    if provider.plugin is None and provider.builtin is None:
        refuse(f'no exec config found for provider "{provider.name}"', Cause.NO_PROVIDER)
    cluster = offered[provider.name]
    extensions = list(_extensions(cluster))
    config = next((content for named, content in extensions if named == EXEC_EXTENSION), None)
    taken = ProfileAccess(provider, {field: value for field, value in cluster.items() if field != "extensions"}, config)
    return _with_additions(taken, extensions) if provider.plugin is not None else taken


def offered_clusters(profile: Json) -> dict[str, Json]:
    """By provider's name, the cluster as that provider reaches it. Later ones override, and those of the field's old
    name come first."""
    clusters: dict[str, Json] = {}
    for field in ("credentialProviders", "accessProviders"):
        entries = dig(profile, "status", field)
        for entry in entries if isinstance(entries, list) else ():
            name, cluster = dig(entry, "name"), dig(entry, "cluster")
            if isinstance(name, str):
                clusters[name] = cluster if isinstance(cluster, dict) else {}
    return clusters


def _extensions(cluster: Json) -> Iterator[tuple[str, Any]]:
    entries = cluster.get("extensions")
    for entry in entries if isinstance(entries, list) else ():
        name = dig(entry, "name")
        if isinstance(name, str):
            yield name, dig(entry, "extension")


def _with_additions(access: ProfileAccess, extensions: list[tuple[str, Any]]) -> ProfileAccess:
    """With the arguments and variables of the profile, as far as the provider's policies take them."""
    provider, args, env = access.provider, list[str](), dict[str, str]()
    for name, content in extensions:
        if name == ARGS_EXTENSION and provider.args_policy == "Append":
            args += _more_args(content)
        elif name == ENVS_EXTENSION and provider.env_policy != "Ignore":
            env |= {named: value for named, value in _more_env(content).items() if named in provider.env_names}
    return attrs.evolve(access, more_args=tuple(args), more_env=tuple(sorted(env.items())))


def _more_args(content: Any) -> list[str]:
    """A list of texts. A ClusterProfile's definition takes nothing but objects, so it is the member `args` of one."""
    listed = content.get("args") if isinstance(content, dict) else content
    if not isinstance(listed, list) or not all(_is_word(argument) for argument in listed):
        advice = 'failed to unmarshal additional CLI args extension: write it as {"args": ["--flag=value"]}'
        refuse(advice, Cause.ADDITIONS)
    return listed


def _more_env(content: Any) -> dict[str, str]:
    if not isinstance(content, dict) or not all(_is_word(text) for pair in content.items() for text in pair):
        refuse("failed to unmarshal additional env vars extension: write it as names and texts", Cause.ADDITIONS)
    return content


def _is_word(value: Any) -> bool:
    return isinstance(value, str) and "\0" not in value


def refuse(message: str, cause: Cause, reason: str = BAD_PROFILE) -> NoReturn:
    """
    Raises:
        ClusterProfileError: always.
    """
    raise ClusterProfileError(reason, message, cause)
