"""The connection to a worker that a ClusterProfile describes: what is honoured, what is refused, what is equal."""

from __future__ import annotations

import base64
import json
from typing import Any

import attrs
import pytest

from multikueue.core.config.access_providers import AccessProvider, PluginCommand, ProfileSettings
from multikueue.core.config.cluster_profiles import EXEC_EXTENSION, ProfileAccess, chosen_access
from multikueue.core.model.names import Json
from multikueue.errors import ClusterProfileError
from multikueue.kube import ClusterConfig
from multikueue.kube.kubeconfigs.profile_config import profile_config

V1 = "client.authentication.k8s.io/v1"
CA = "-----BEGIN CERTIFICATE-----\n"
ENCODED = base64.b64encode(CA.encode()).decode()
PLUGIN = AccessProvider("aws", PluginCommand(V1, "/bin/login", ("--own",), (("A", "own"),), provide_cluster_info=True))
SETTINGS = ProfileSettings((PLUGIN,))


def access(provider: AccessProvider = PLUGIN, **cluster: Any) -> ProfileAccess:
    extension = {"name": EXEC_EXTENSION, "extension": {"clusterName": "c1", "b": {"d": 1, "c": 2}}}
    entry = {"name": "aws", "cluster": {"server": "https://c1:6443", "extensions": [extension], **cluster}}
    return chosen_access({"status": {"accessProviders": [entry]}}, "c1", ProfileSettings((provider,)))


def config(**cluster: Any) -> ClusterConfig:
    return profile_config(access(**cluster), SETTINGS)


def test_what_a_profile_says_of_its_cluster_is_honoured() -> None:
    """`tls-server-name` and `disable-compression` too, which Kueue drops."""
    made = config(
        **{
            "certificate-authority-data": ENCODED,
            "tls-server-name": "kubernetes",
            "proxy-url": "http://proxy:3128",
            "disable-compression": True,
        }
    )

    assert (made.server, made.ca_pem, made.tls_server_name) == ("https://c1:6443", CA, "kubernetes")
    assert (made.proxy, made.disable_compression, made.verify_tls) == ("http://proxy:3128", True, True)


def test_the_plugin_runs_as_the_settings_say_and_is_told_of_the_cluster() -> None:
    plugin = config(**{"certificate-authority-data": ENCODED}).exec_plugin
    assert plugin is not None
    assert (plugin.command, plugin.args, plugin.env) == ("/bin/login", ("--own",), (("A", "own"),))
    assert (plugin.api_version, plugin.search_path, plugin.inherit_env, plugin.problem) == (V1, False, False, "")
    assert json.loads(plugin.cluster) == {
        "server": "https://c1:6443",
        "certificate-authority-data": ENCODED,
        "config": {"clusterName": "c1", "b": {"c": 2, "d": 1}},
    }


def test_a_plugin_gets_the_daemons_variables_if_the_settings_say_so() -> None:
    assert PLUGIN.plugin is not None
    open_minded = attrs.evolve(PLUGIN, plugin=attrs.evolve(PLUGIN.plugin, inherit_env=True))
    plugin = profile_config(access(open_minded), SETTINGS).exec_plugin
    assert plugin is not None
    assert plugin.inherit_env


def test_a_plugin_that_does_not_ask_for_the_cluster_is_not_told() -> None:
    assert PLUGIN.plugin is not None
    silent = attrs.evolve(PLUGIN, plugin=attrs.evolve(PLUGIN.plugin, provide_cluster_info=False))
    plugin = profile_config(access(silent), SETTINGS).exec_plugin
    assert plugin is not None
    assert plugin.cluster == ""


@pytest.mark.parametrize(
    ("policy", "expected"),
    [("AppendIfNotExists", (("A", "own"), ("B", "more"))), ("Replace", (("A", "more"), ("B", "more")))],
)
def test_variables_of_a_profile_are_added_by_the_policy(policy: Any, expected: Any) -> None:
    more = (("A", "more"), ("B", "more"))
    asked = attrs.evolve(access(attrs.evolve(PLUGIN, env_policy=policy)), more_env=more, more_args=("--more",))
    plugin = profile_config(asked, SETTINGS).exec_plugin
    assert plugin is not None
    assert (plugin.args, plugin.env) == (("--own", "--more"), expected)


REFUSED: list[tuple[Json, str]] = [
    ({"server": "https://UPPER_case:6443"}, "untrusted server endpoint"),
    ({"server": "https://[zz]:6443"}, "untrusted server endpoint"),
    ({"server": "c1"}, "untrusted server endpoint"),
    ({"server": "http://c1:6443"}, "server URL must start with https://"),
    ({"server": "https://admin:canary@c1:6443"}, "basic auth is not allowed"),
    ({"server": "https://c1:6443/?token=canary"}, "server URL must not have a query or a fragment"),
    ({"server": ""}, "server URL is required"),
    ({"insecure-skip-tls-verify": True}, "insecure TLS verification is not allowed"),
    (
        {"certificate-authority": "/etc/canary"},
        "certificate-authority file paths are not allowed, use certificate-authority-data",
    ),
    ({"certificate-authority-data": "!"}, "certificate-authority-data is not base64 of a PEM text"),
    ({"proxy-url": "file:///canary"}, "proxy-url must be an http:// or https:// URL"),
    ({"tls-server-name": "a b"}, "tls-server-name must be a host name or an IP address"),
    ({"server": 5}, "failed to parse kubeconfig(apiconfig): server is not a text"),
]


@pytest.mark.parametrize(("cluster", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_a_connection_that_must_not_be_used_is_refused_in_kueues_words(cluster: Json, message: str) -> None:
    with pytest.raises(ClusterProfileError) as caught:
        config(**cluster)
    assert (caught.value.reason, str(caught.value)) == ("BadRestConfig", message)
    assert "canary" not in repr(caught.value)


def test_tls_is_not_verified_only_if_the_settings_and_the_profile_say_so() -> None:
    allowing = attrs.evolve(SETTINGS, allow_insecure_tls=True)

    insecure: Json = {"insecure-skip-tls-verify": True}
    assert not profile_config(access(**insecure), allowing).verify_tls
    assert profile_config(access(), allowing).verify_tls
    both: Json = {**insecure, "certificate-authority-data": "eA=="}
    with pytest.raises(ClusterProfileError, match="certificate authority together with insecure-skip-tls-verify"):
        profile_config(access(**both), allowing)
    secure: Json = {"insecure-skip-tls-verify": False}
    assert profile_config(access(**secure), allowing).verify_tls
    for value in list[Any](("false", "true", "", 0, 1, [])):
        wrong: Json = {"insecure-skip-tls-verify": value}
        with pytest.raises(ClusterProfileError, match="insecure-skip-tls-verify is neither true nor false"):
            profile_config(access(**wrong), allowing)


def test_equal_profiles_make_equal_configurations() -> None:
    """Whatever the order of keys: a heartbeat of the profile makes no new connection."""
    assert config() == config()
    first, second = access(), access()
    assert profile_config(attrs.evolve(first, config={"b": 1, "a": 2}), SETTINGS) == profile_config(
        attrs.evolve(second, config={"a": 2, "b": 1}), SETTINGS
    )
    assert config() != config(server="https://c1:6444")
    assert profile_config(access(), SETTINGS, "one") != profile_config(access(), SETTINGS, "two")


def test_an_extension_that_is_nested_without_end_is_refused() -> None:
    nested: Json = {}
    for _ in range(100_000):
        nested = {"a": nested}
    with pytest.raises(ClusterProfileError) as caught:
        profile_config(attrs.evolve(access(), config=nested), SETTINGS)
    message = f"the extension {EXEC_EXTENSION} is nested too deeply"
    assert (caught.value.reason, str(caught.value)) == ("BadClusterProfile", message)
