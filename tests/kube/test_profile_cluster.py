"""The connection that an access provider of a ClusterProfile describes."""

from __future__ import annotations

import base64
from typing import Any

import attrs
import pytest

from multikueue.core.model.kinds import JOB
from multikueue.core.model.names import Json, ObjectKey
from multikueue.errors import KubeconfigError
from multikueue.kube import ClusterConfig
from multikueue.kube.credentials.exec_plugin import ExecPlugin
from multikueue.kube.kubeconfigs.profile_config import parse_profile_cluster
from multikueue.kube.kubeconfigs.worker_kubeconfig import credentials_digest
from tests.kube.exec_plugins import CANARY
from tests.kube.scripted import job, says, talking

PEM = base64.b64encode(b"-----BEGIN CERTIFICATE-----").decode()
_NO_FLAGS: tuple[Any, ...] = ("false", "true", "n", "", 0, 1, [])
_HOW = "write it without quotes"
WHOLE: Json = {
    "server": "https://w1:6443/",
    "certificate-authority-data": PEM,
    "tls-server-name": "kubernetes",
    "proxy-url": "http://proxy:3128",
    "disable-compression": True,
    "extensions": [{"name": "client.authentication.k8s.io/exec", "extension": {"clusterName": "c1"}}],
}


def test_a_cluster_is_a_value() -> None:
    """Name and compression are kept, which upstream drops. The same again is the same, whatever else has changed."""
    config = parse_profile_cluster(WHOLE)
    assert config == ClusterConfig(
        "https://w1:6443",
        ca_pem="-----BEGIN CERTIFICATE-----",
        tls_server_name="kubernetes",
        proxy="http://proxy:3128",
        disable_compression=True,
    )
    again = parse_profile_cluster(dict(reversed(list(WHOLE.items()))))
    assert (config, hash(config)) == (again, hash(again))


def test_a_cluster_needs_no_more_than_a_server() -> None:
    """Without an authority the system's are trusted, and without a proxy there is none."""
    assert parse_profile_cluster({"server": "https://w1"}) == ClusterConfig("https://w1")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"server": ""}, "server URL is required"),
        ({"server": "http://w1"}, "server URL must start with https://"),
        ({"server": "https://W_1"}, "untrusted server endpoint"),
        ({"server": f"https://a:{CANARY}@w1"}, "basic auth is not allowed"),
        ({"server": f"https://w1?token={CANARY}"}, "server URL must not have a query or a fragment"),
        (
            {"insecure-skip-tls-verify": True, "certificate-authority-data": ""},
            "insecure TLS verification is not allowed",
        ),
        (
            {"insecure-skip-tls-verify": True},
            "a certificate authority together with insecure-skip-tls-verify is not allowed: leave out one of them",
        ),
        (
            {"certificate-authority": f"/{CANARY}"},
            "certificate-authority file paths are not allowed, use certificate-authority-data",
        ),
        ({"certificate-authority-data": CANARY}, "certificate-authority-data is not base64 of a PEM text"),
        ({"proxy-url": f"socks5://{CANARY}"}, "proxy-url must be an http:// or https:// URL"),
        ({"tls-server-name": f"{CANARY} x"}, "tls-server-name must be a host name or an IP address"),
        *(
            ({field: value}, f"failed to parse kubeconfig(apiconfig): {field} is neither true nor false: {_HOW}")
            for field in ("insecure-skip-tls-verify", "disable-compression")
            for value in _NO_FLAGS
        ),
        ({"server": [CANARY]}, "failed to parse kubeconfig(apiconfig): server is not a text"),
    ],
)
def test_clusters_that_are_refused(wrong: Json, message: str) -> None:
    with pytest.raises(KubeconfigError) as caught:
        parse_profile_cluster({**WHOLE, **wrong})
    assert (caught.value.reason, str(caught.value)) == ("BadRestConfig", message)


def test_credentials_are_told_apart_without_being_told() -> None:
    """A digest of the address and of the credentials, or of the plugin that prints them."""
    config = parse_profile_cluster(WHOLE)
    configs = [
        config,
        attrs.evolve(config, token=CANARY),
        attrs.evolve(config, exec_plugin=ExecPlugin("/plugin", ["a"])),
    ]
    digests = list(map(credentials_digest, configs))
    assert len(set(digests)) == 3
    assert CANARY not in "".join(digests)


async def test_no_proxy_is_taken_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the one that is named."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    async with talking(says(200, job("1"))) as (server, client):
        assert await client.get(JOB, ObjectKey("n", "a")) == job("1")
        assert "gzip" in server.asked[0].headers["Accept-Encoding"]


async def test_compression_can_be_turned_off() -> None:
    async with talking(says(200, job("1")), disable_compression=True) as (server, client):
        await client.get(JOB, ObjectKey("n", "a"))
        assert server.asked[0].headers["Accept-Encoding"] == "identity"
