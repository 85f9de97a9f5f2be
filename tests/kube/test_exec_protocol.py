"""What plugins are told, and each answer that is bad: client-go's words, and nothing of what was printed."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import attrs
import pytest

from multikueue.core.model.names import Json
from multikueue.kube.credentials.credential import Credential, KeyPair
from multikueue.kube.credentials.exec_plugin import API_VERSIONS, V1, ExecPlugin
from multikueue.kube.credentials.exec_protocol import BadAnswer, exec_info, read_answer
from multikueue.kube.kubeconfigs.config import ClusterConfig, cluster_info, exec_extension
from tests.kube.exec_plugins import CANARY

PLUGIN = ExecPlugin("/plugin")
WORKER = ClusterConfig("https://w1:6443", ca_pem="PEM", proxy="http://proxy:3128")


def answer(status: Any, **members: Any) -> bytes:
    """What a plugin prints."""
    return json.dumps({"apiVersion": V1, "kind": "ExecCredential", "status": status, **members}).encode()


@pytest.mark.parametrize("version", API_VERSIONS)
def test_a_plugin_is_told_what_client_go_tells(version: str) -> None:
    """Compact, in its order, `interactive` always, and no cluster unless it asks for it."""
    info = exec_info(attrs.evolve(PLUGIN, api_version=version))
    assert info == f'{{"kind":"ExecCredential","apiVersion":"{version}","spec":{{"interactive":false}}}}'


def test_a_plugin_that_asks_for_it_is_told_the_cluster() -> None:
    """As it was seen with client-go. `config` is what the cluster's extension holds."""
    info = exec_info(attrs.evolve(PLUGIN, cluster=cluster_info(WORKER, {"clusterName": "c1"})))
    assert info == (
        '{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1",'
        '"spec":{"cluster":{"server":"https://w1:6443","certificate-authority-data":"UEVN",'
        '"proxy-url":"http://proxy:3128","config":{"clusterName":"c1"}},"interactive":false}}'
    )


def test_config_is_null_without_an_extension_and_empty_members_are_left_out() -> None:
    assert cluster_info(ClusterConfig("https://w1")) == '{"server":"https://w1","config":null}'
    whole = attrs.evolve(WORKER, tls_server_name="k", disable_compression=True, verify_tls=False)
    members = ["server", "tls-server-name", "insecure-skip-tls-verify", "certificate-authority-data", "proxy-url"]
    assert list(json.loads(cluster_info(whole))) == [*members, "disable-compression", "config"]


@pytest.mark.parametrize(
    ("extensions", "extension"),
    [
        (None, None),
        ("x", None),
        (["x"], None),
        ([{"name": "other", "extension": {"a": 1}}], None),
        ([{"name": "client.authentication.k8s.io/exec"}], None),
        ([{"name": "client.authentication.k8s.io/exec", "extension": {"a": 1}}], {"a": 1}),
    ],
)
def test_only_the_reserved_extension_reaches_a_plugin(extensions: Any, extension: Any) -> None:
    assert exec_extension({"extensions": extensions}) == extension


@pytest.mark.parametrize(
    ("status", "credential"),
    [
        ({"token": " t\n"}, Credential("t")),
        ({"token": "t", "expirationTimestamp": None}, Credential("t")),
        (
            {"token": "t", "expirationTimestamp": "2026-01-02T03:04:05Z"},
            Credential("t", expires=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)),
        ),
        ({"clientCertificateData": "c", "clientKeyData": "k"}, Credential("", KeyPair("c", "k"))),
        ({"token": "t", "clientCertificateData": "c", "clientKeyData": "k"}, Credential("t", KeyPair("c", "k"))),
    ],
)
def test_good_answers(status: Json, credential: Credential) -> None:
    assert read_answer(answer(status), V1) == credential


CONFIGURED = "exec plugin is configured to use API version client.authentication.k8s.io/v1, plugin returned version "


@pytest.mark.parametrize(
    ("printed", "message"),
    [
        (b"", "decoding stdout: it is not JSON"),
        (CANARY.encode(), "decoding stdout: it is not JSON"),
        (b"\xff\xfe\xff", "decoding stdout: it is not JSON"),
        (b"[" * 100_000, "decoding stdout: it is not JSON"),
        (f'["{CANARY}"]'.encode(), "decoding stdout: its kind is not ExecCredential"),
        (answer({"token": CANARY}, kind=CANARY), "decoding stdout: its kind is not ExecCredential"),
        (answer({"token": CANARY}, apiVersion=API_VERSIONS[1]), CONFIGURED + API_VERSIONS[1]),
        (answer({"token": CANARY}, apiVersion="v1"), CONFIGURED + "v1"),
        (answer({"token": CANARY}, apiVersion=CANARY), CONFIGURED + "(not a version)"),
        (answer({"token": CANARY}, apiVersion=None), CONFIGURED + "(not a version)"),
        (answer(None), "exec plugin didn't return a status field"),
        (answer([CANARY]), "decoding stdout: status is not an object"),
        (answer({}), "exec plugin didn't return a token or cert/key pair"),
        (answer({"token": " "}), "exec plugin didn't return a token or cert/key pair"),
        (answer({"password": CANARY}), "exec plugin didn't return a token or cert/key pair"),
        (answer({"clientKeyData": CANARY}), "exec plugin returned only certificate or key, not both"),
        (answer({"clientCertificateData": CANARY}), "exec plugin returned only certificate or key, not both"),
        (answer({"token": "t", "clientKeyData": CANARY}), "exec plugin returned only certificate or key, not both"),
        (answer({"token": [CANARY]}), "decoding stdout: status.token is not a text"),
        (answer({"token": 7}), "decoding stdout: status.token is not a text"),
        (
            answer({"token": f"{CANARY}\r\nX-Evil: 1"}),
            "decoding stdout: status.token is not one word of plain characters",
        ),
        (
            answer({"token": CANARY, "expirationTimestamp": CANARY}),
            "decoding stdout: status.expirationTimestamp is not a time of RFC 3339",
        ),
    ],
)
def test_bad_answers(printed: bytes, message: str) -> None:
    with pytest.raises(BadAnswer) as caught:
        read_answer(printed, V1)
    assert str(caught.value) == message
    assert caught.value.__suppress_context__


@pytest.mark.parametrize(
    ("plugin", "problem"),
    [
        (PLUGIN, ""),
        (attrs.evolve(PLUGIN, api_version=API_VERSIONS[1]), ""),
        (ExecPlugin("plugin", search_path=True), ""),
        (ExecPlugin("plugin"), 'exec plugin: command "plugin" is not an absolute path'),
        (ExecPlugin("./plugin"), 'exec plugin: command "./plugin" is not an absolute path'),
        (ExecPlugin("", search_path=True), 'exec plugin: command "" is not an absolute path'),
        (
            ExecPlugin("/plugin", api_version="client.authentication.k8s.io/v1alpha1"),
            'exec plugin: invalid apiVersion "client.authentication.k8s.io/v1alpha1"',
        ),
        (ExecPlugin("/plugin", [f"{CANARY}\0"]), "exec plugin: command, args or env hold a NUL character"),
        (ExecPlugin("/plugin", env={"A": f"{CANARY}\0"}), "exec plugin: command, args or env hold a NUL character"),
        (ExecPlugin("/plugin", env={"": CANARY}), "exec plugin: a variable of env has no name, or a name with ="),
        (ExecPlugin("/plugin", env={"A=B": CANARY}), "exec plugin: a variable of env has no name, or a name with ="),
    ],
)
def test_plugins_that_cannot_be_run_are_known_before(plugin: ExecPlugin, problem: str) -> None:
    assert plugin.problem == problem


def test_equal_plugins_are_equal() -> None:
    """Whatever the order of variables and of the extension's members: a profile that is rewritten changes none."""
    plugin = ExecPlugin(
        "/p", ["a"], {"A": "1", "B": "2"}, cluster=cluster_info(WORKER, {"x": 1, "y": {"a": 1, "b": 2}})
    )
    other = ExecPlugin(
        "/p",
        ("a",),
        (("B", "2"), ("A", "0"), ("A", "1")),
        cluster=cluster_info(WORKER, {"y": {"b": 2, "a": 1}, "x": 1}),
    )
    assert plugin == other
    assert hash(plugin) == hash(other)
    assert attrs.evolve(WORKER, exec_plugin=plugin) == attrs.evolve(WORKER, exec_plugin=other)
    assert hash(attrs.evolve(WORKER, exec_plugin=plugin)) == hash(attrs.evolve(WORKER, exec_plugin=other))
    assert plugin != attrs.evolve(plugin, cluster=cluster_info(WORKER, {"x": 2}))


def test_what_a_profile_asks_for_is_added_to_a_copy() -> None:
    """Upstream changes the entry that all clusters share."""
    plugin = ExecPlugin("/p", ["get"], {"A": "own"})
    assert plugin.extended(["more"], {"A": "theirs", "B": "b"}) == ExecPlugin(
        "/p", ["get", "more"], {"A": "own", "B": "b"}
    )
    assert plugin.extended(env={"A": "theirs"}, replace=True) == ExecPlugin("/p", ["get"], {"A": "theirs"})
    assert plugin.extended() == plugin == ExecPlugin("/p", ["get"], {"A": "own"})
