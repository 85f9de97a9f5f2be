"""What a `Configuration` or `ApiClient` of kubernetes-asyncio says holds for our client, field by field."""

from __future__ import annotations

import asyncio
import ssl
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
import trustme
from kubernetes_asyncio.client import ApiClient, BatchV1Api, Configuration

from multikueue.core.model.kinds import JOB
from multikueue.core.model.names import ObjectKey
from multikueue.errors import KubeconfigError, NotSent, Unauthorized, Unreachable
from multikueue.kube import ClusterConfig, KubeClient
from multikueue.kube.http.transport import ssl_context
from multikueue.kube.kubeconfigs.client_configuration import cluster_config, configuration
from tests.kube.scripted import ScriptedServer, job, refuses, says, serving

KEY = ObjectKey("default", "a")


def made(host: str = "http://api", **fields: Any) -> Configuration:
    """A Configuration with these fields."""
    configuration = Configuration(host=host)
    for name, value in fields.items():
        setattr(configuration, name, value)
    return configuration


async def asked(given: Any, server: ScriptedServer) -> None:
    """Send one request."""
    given.host = server.url
    async with KubeClient(given, name="w1") as client:
        await client.get(JOB, KEY)


@pytest.mark.parametrize(
    ("key", "prefix", "header"),
    [
        ("t", "Bearer", "Bearer t"),
        ("Bearer t", None, "Bearer t"),
        ("bearer t", None, "Bearer t"),
        ("abc", "Basic", "Basic abc"),
        ("bare", None, "bare"),
    ],
)
@pytest.mark.parametrize("hooked", [False, True])
async def test_the_api_key_with_its_prefix_is_the_authorization(
    key: str, prefix: str | None, header: str, hooked: bool
) -> None:
    given = made(api_key={"BearerToken": key}, api_key_prefix={"BearerToken": prefix} if prefix else {})
    if hooked:
        given.refresh_api_key_hook = lambda _: None
    async with serving(says(200, job("1"))) as server:
        await asked(given, server)
    assert [value.lower() for value in server.authorizations] == [header.lower()]


@pytest.mark.parametrize("coroutine", [False, True])
async def test_the_hook_is_asked_per_request_and_again_after_a_401(coroutine: bool) -> None:
    tokens = iter(["one", "two", "three"])

    def renew(given: Configuration) -> None:
        given.api_key = {"BearerToken": next(tokens)}

    async def renew_later(given: Configuration) -> None:
        renew(given)

    given = made(refresh_api_key_hook=renew_later if coroutine else renew, api_key_prefix={"BearerToken": "Bearer"})
    async with serving(says(200, job("1")), refuses(401), says(200, job("1"))) as server:
        given.host = server.url
        async with KubeClient(given, name="w1") as client:
            await client.get(JOB, KEY)
            await client.get(JOB, KEY)
    assert server.authorizations == ["Bearer one", "Bearer two", "Bearer three"]


async def test_a_hook_that_fails_is_an_error_of_the_request_without_its_words() -> None:
    def fails(_: Configuration) -> None:
        raise ValueError("canary")

    async with serving(says(200, job("1"))) as server:
        with pytest.raises(Unauthorized, match="refresh_api_key_hook failed: ValueError") as caught:
            await asked(made(refresh_api_key_hook=fails), server)
    assert "canary" not in str(caught.value)
    assert not server.asked


async def test_default_headers_of_an_api_client_are_sent() -> None:
    async with serving(says(200, job("1"))) as server:
        api = ApiClient(made(server.url), "Impersonate-User", "jane")
        async with api:
            api.set_default_header("accept", "text/plain")
            async with KubeClient(api, name="w1") as client:
                await client.get(JOB, KEY)
            api.user_agent = "mine/1"
            async with KubeClient(api, name="w1") as client:
                await client.get(JOB, KEY)
    first, second = (request.headers for request in server.asked)
    assert (first["Impersonate-User"], first["Accept"], first["User-Agent"]) == (
        "jane",
        "application/json",
        "multikueue",
    )
    assert second["User-Agent"] == "mine/1"


async def test_certificates_are_read_from_their_files_off_the_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority, threads = trustme.CA(), []
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("api.example").configure_cert(tls)
    authority.configure_trust(tls)
    tls.verify_mode = ssl.CERT_REQUIRED
    mine = authority.issue_cert("me@example.com")
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    mine.cert_chain_pems[0].write_to_path(tmp_path / "cert.pem")
    mine.private_key_pem.write_to_path(tmp_path / "key.pem")
    mine.private_key_and_cert_chain_pem.write_to_path(tmp_path / "both.pem")

    def recording(*given: Any) -> ssl.SSLContext:
        threads.append(threading.current_thread())
        return ssl_context(*given)

    monkeypatch.setattr("multikueue.kube.http.requester.ssl_context", recording)
    files = {"ssl_ca_cert": str(tmp_path / "ca.pem"), "tls_server_name": "api.example"}
    pair = {"cert_file": str(tmp_path / "cert.pem"), "key_file": str(tmp_path / "key.pem")}
    async with serving(says(200, job("1")), tls=tls) as server:
        await asked(made(**files, **pair), server)
        await asked(made(**files, cert_file=str(tmp_path / "both.pem")), server)
        await asked(made(**pair, verify_ssl=False), server)
        with pytest.raises(NotSent, match="not trusted"):
            await asked(made(**pair, ssl_ca_cert=files["ssl_ca_cert"]), server)  # without the name
    assert len(server.asked) == 3
    assert threading.current_thread() not in threads


@pytest.mark.parametrize("field", ["ssl_ca_cert", "cert_file"])
async def test_a_file_that_is_not_there_is_named(field: str, tmp_path: Path) -> None:
    with pytest.raises(KubeconfigError, match=r"Configuration: .*/none.pem"):
        async with KubeClient(made("https://api", **{field: str(tmp_path / "none.pem")}), name="w1"):
            pass


@pytest.mark.parametrize("lenient", [False, True])
def test_strict_verification_is_left_as_python_has_it(lenient: bool) -> None:
    flags = ssl_context(cluster_config(made("https://api", disable_strict_ssl_verification=lenient))).verify_flags
    default = ssl.create_default_context().verify_flags
    assert flags & ssl.VERIFY_X509_STRICT == (0 if lenient else default & ssl.VERIFY_X509_STRICT)


async def test_requests_go_through_the_proxy_with_its_headers() -> None:
    heads: list[bytes] = []

    async def refuses_all(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(refuses_all, "127.0.0.1", 0) as proxy:
        address = f"http://127.0.0.1:{proxy.sockets[0].getsockname()[1]}"
        given = made("https://api.example", proxy=address, proxy_headers={"X-Team": "batch"})
        async with KubeClient(given, name="w1") as client:
            with pytest.raises(Unreachable, match="the proxy answered 407"):
                await client.get(JOB, KEY)
    assert heads[0].startswith(b"CONNECT api.example:443")
    assert b"X-Team: batch" in heads[0]


def test_basic_auth_is_refused() -> None:
    with pytest.raises(KubeconfigError, match="basic auth is not supported"):
        cluster_config(made(username="jane", password="canary"))


def test_equal_configurations_are_equal_values_and_a_later_change_has_no_effect() -> None:
    """Equality decides whether a pool connects again."""
    given = made(api_key={"BearerToken": "t"}, api_key_prefix={"BearerToken": "Bearer"})
    before = cluster_config(given)
    assert before == cluster_config(made(api_key={"BearerToken": "Bearer t"}))
    given.api_key["BearerToken"] = "other"
    assert before.token == "t"
    hooked = made(refresh_api_key_hook=lambda _: None)
    assert cluster_config(hooked) == cluster_config(hooked)
    assert cluster_config(hooked) != cluster_config(made(refresh_api_key_hook=lambda _: None))


async def test_the_way_back_reaches_the_same_server(tmp_path: Path) -> None:
    authority = trustme.CA()
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(tls)
    answer = {**job("1"), "spec": {"template": {"spec": {"containers": []}}}}
    async with serving(says(200, answer), tls=tls) as server:
        config = ClusterConfig(server.url, ca_pem=authority.cert_pem.bytes().decode(), token="t")
        async with ApiClient(configuration(config, tmp_path)) as api:
            read_job = await BatchV1Api(api).read_namespaced_job("a", "default")
    assert read_job.metadata.name == "a"
    assert server.authorizations == ["Bearer t"]


def test_nothing_of_it_is_imported_before_it_is_needed() -> None:
    """It takes 1.5 s of CPU and 77 MB."""
    code = (
        "import sys, multikueue, multikueued.cli; multikueue.KubeClient, multikueue.Manager, multikueue.ClusterPool; "
        "import multikueue.testing; sys.exit('kubernetes_asyncio' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("given", ["/root/.kube/config", Path("kubeconfig"), {"server": "https://h"}, None])
def test_what_says_of_no_server_names_the_parameter(given: Any) -> None:
    """A path, as `load_kubeconfig` takes one, was an `AttributeError: ... 'username'`."""
    with pytest.raises(TypeError, match=f"config: a ClusterConfig, .*, not {type(given).__name__}: load_kubeconfig"):
        KubeClient(given, name="w1")
