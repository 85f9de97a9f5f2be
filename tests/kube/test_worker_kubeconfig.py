"""Workers' kubeconfigs: what is refused, in Kueue's words, and what is not shown."""

from __future__ import annotations

import base64
import contextlib
import json
from pathlib import Path
from typing import Any

import attrs
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from multikueue.core.model.names import Json
from multikueue.errors import KubeconfigError
from multikueue.kube import parse_worker_kubeconfig
from multikueue.kube.kubernetes_yaml import KubernetesDumper

_UNREAD = "failed to parse kubeconfig(apiconfig): "
_NO_FLAGS: tuple[Any, ...] = ("false", "true", "n", "", 0, 1, [])
CANARY = "s3cr3t-canary"
PEM = base64.b64encode(b"-----BEGIN CERTIFICATE-----").decode()


def kubeconfig(
    cluster: Json | None = None, user: Json | None = None, whole: Json | None = None, **section: Any
) -> Json:
    """A good kubeconfig, with changes."""
    good: Json = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": "https://w:6443", **(cluster or {})}}],
        "users": [{"name": "u", "user": {"token": CANARY} if user is None else user}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u", "namespace": "n"}}],
        "current-context": "x",
    }
    return {**good, **(whole or {}), **section}


def refusal(data: Json | bytes) -> KubeconfigError:
    """The error a kubeconfig is refused with; never with a secret in it."""
    raw = data if isinstance(data, bytes) else json.dumps(data).encode()
    with pytest.raises(KubeconfigError) as caught:
        parse_worker_kubeconfig(raw)
    error = caught.value
    assert "canary" not in f"{error!r}{error.__cause__!r}"
    assert error.__suppress_context__, "a traceback would quote what could not be read"
    return error


def test_a_text_and_a_mapping_are_read_as_well() -> None:
    given = kubeconfig()
    parsed = [parse_worker_kubeconfig(form) for form in (json.dumps(given).encode(), json.dumps(given), given)]
    assert parsed == [parsed[0]] * 3
    for wrong in ({"a": object()}, "[", {"clusters": {1, 2}}):
        with pytest.raises(KubeconfigError, match="failed to parse kubeconfig"):
            parse_worker_kubeconfig(wrong)


def test_a_good_one_is_read() -> None:
    """Token, certificates, name and proxy."""
    cluster = {"certificate-authority-data": PEM, "tls-server-name": "k", "proxy-url": f"http://a:{CANARY}@p:1"}
    user = {"token": f" {CANARY}\n", "client-certificate-data": PEM, "client-key-data": PEM}
    config = parse_worker_kubeconfig(json.dumps(kubeconfig(cluster, user)).encode())
    assert attrs.asdict(config) == {
        "server": "https://w:6443",
        "ca_pem": "-----BEGIN CERTIFICATE-----",
        "token": CANARY,
        "token_file": "",
        "exec_plugin": None,
        "client_cert_pem": "-----BEGIN CERTIFICATE-----",
        "client_key_pem": "-----BEGIN CERTIFICATE-----",
        "tls_server_name": "k",
        "proxy": f"http://a:{CANARY}@p:1",
        "disable_compression": False,
        "verify_tls": True,
        "namespace": "n",
        "files": {"ca": "", "client_cert": "", "client_key": ""},
        "token_hook": None,
        "headers": (),
        "proxy_headers": (),
        "strict_tls": False,
        "source": "",
    }
    assert CANARY not in repr(config)


@pytest.mark.parametrize("kind", [None, "", "Config"])
def test_a_kubeconfig_need_not_say_that_it_is_one(kind: str | None) -> None:
    """As client-go reads it; with another kind it refuses it."""
    assert parse_worker_kubeconfig(json.dumps(kubeconfig(kind=kind)).encode()).server == "https://w:6443"


@pytest.mark.parametrize(
    "server", ["https://10.0.0.1", "https://[::1]:6443", "https://[::1]", "https://W.Example/k8s/x", "https://w:6443/"]
)
def test_addresses_that_are_trusted(server: str) -> None:
    config = parse_worker_kubeconfig(json.dumps(kubeconfig({"server": server})).encode())
    assert config.server == server.rstrip("/")


OTHER_USER = {"users": [{"name": "u", "user": {}}, {"name": "other", "user": {"tokenFile": "/etc/shadow"}}]}
OTHER_CLUSTER = [{"name": "c", "cluster": {"server": "https://w"}}, {"name": "other", "cluster": {}}]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (kubeconfig(whole=OTHER_USER), "tokenFile is not allowed"),
        (kubeconfig(kind="Secret"), f'{_UNREAD}it is of kind "Secret", and a kubeconfig is of kind Config'),
        (kubeconfig(kind="config"), f'{_UNREAD}it is of kind "config", and a kubeconfig is of kind Config'),
        (kubeconfig(kind=f"a {CANARY}"), f"{_UNREAD}it is of another kind, and a kubeconfig is of kind Config"),
        (kubeconfig(kind=5), f"{_UNREAD}it is of another kind, and a kubeconfig is of kind Config"),
        (kubeconfig({"insecure-skip-tls-verify": True}), "insecure TLS verification is not allowed for cluster c"),
        *(
            (kubeconfig({field: value}), f"{_UNREAD}{field} is neither true nor false: write it without quotes")
            for field in ("insecure-skip-tls-verify", "disable-compression")
            for value in _NO_FLAGS
        ),
        (
            kubeconfig({"certificate-authority": "/ca.crt"}),
            "certificate-authority file paths are not allowed, use certificate-authority-data for cluster c",
        ),
        (kubeconfig(clusters=OTHER_CLUSTER), "server URL is required for cluster other"),
        (kubeconfig(user={"username": "a", "password": CANARY}), "basic auth is not allowed"),
        (kubeconfig(user={"exec": {"command": CANARY}}), "exec plugins are not allowed"),
        (kubeconfig(user={"auth-provider": {"name": CANARY}}), "auth providers are not allowed"),
        *(
            (kubeconfig({"server": server}), "untrusted server endpoint")
            for server in (
                "w:6443",
                "https://",
                "https://a_b",
                "https://w:port",
                f"https://{'a' * 254}",
                f"https://{'a' * 64}.b",
                "https://[",
            )
        ),
    ],
)
def test_kueues_checks(data: Json, message: str) -> None:
    """Word by word: people search for these."""
    error = refusal(data)
    assert (error.reason, str(error)) == ("InsecureKubeConfig", message)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (kubeconfig({"server": "http://w"}), "https://"),
        (kubeconfig({"server": f"https://me:{CANARY}@w"}), "basic auth is not allowed"),
        (kubeconfig({"server": f"https://w?token={CANARY}"}), "query"),
        (kubeconfig({"proxy-url": f"socks5://a:{CANARY}@p"}), "proxy-url must be"),
        (kubeconfig(user={"client-certificate": "/a"}), "client-certificate file paths are not allowed"),
        (kubeconfig(user={"client-key": "/a"}), "client-key file paths are not allowed"),
        (kubeconfig(user={"client-key-data": PEM}), "together"),
        (kubeconfig(user={"client-key-data": f"!{CANARY}"}), "client-key-data is not base64"),
        (kubeconfig({"certificate-authority-data": "w6Q="}), "certificate-authority-data is not base64 of a PEM"),
        (kubeconfig(user={"token": f"{CANARY}\nX-Other: header"}), "token is not one word"),
        (kubeconfig(user={"token": f"{CANARY}ä"}), "token is not one word"),
        (kubeconfig(user={"token": CANARY, "as": "admin"}), "impersonation"),
        (kubeconfig(whole={"current-context": ""}), "no current-context"),
        (kubeconfig(whole={"current-context": "y"}), 'context "y" does not exist'),
        (kubeconfig(whole={"current-context": "y\x1b[2J\nz"}), 'context "y [2J z" does not exist'),
        (kubeconfig(whole={"current-context": "y" * 2_000}), "yyy ..."),
        (kubeconfig(users=[]), 'user "u", which does not exist'),
        (kubeconfig(clusters=[]), "names no cluster"),
        (kubeconfig(clusters={}, users=[1]), "users is not a list of mappings"),
        (kubeconfig(users=[{"name": "u", "user": [CANARY]}]), "is not a mapping"),
        (kubeconfig({"tls-server-name": ".example.com"}), "tls-server-name must be a host name"),
        (kubeconfig({"tls-server-name": "a" * 64}), "tls-server-name must be a host name"),
        (kubeconfig({"proxy-url": f"http://a:{CANARY}@..:1"}), "proxy-url must be"),
        (kubeconfig(user={"token": [CANARY]}), "token is not a text"),
        (kubeconfig(whole={"current-context": {CANARY: 1}}), "current-context is not a text"),
        (b"[" + b"[]," * 20_000 + b"]", "more than 10000 values"),
        (f"a: b: {CANARY}".encode(), r"not YAML at line 1, column 5"),
        (f"!!timestamp {CANARY}".encode(), "not YAML"),
        (f"!!bool {CANARY}".encode(), "not YAML"),
        (b"\xff" + CANARY.encode(), "not YAML"),
        (b"[" * 100_000, "levels of nesting"),
        (b"- a", "not a mapping"),
        (b"", "not a mapping"),
        (b" " * 2_000_000, "larger than"),
    ],
)
def test_what_else_is_refused(data: Json | bytes, message: str) -> None:
    """Without a check it would fail later with a worse message, or never."""
    error = refusal(data)
    assert error.reason == "InsecureKubeConfig"
    assert message in str(error)


@pytest.mark.parametrize("token", ["0123", "1e5", "2026-01-01", "0x1f", "1_000"])
def test_tokens_stay_text(token: str) -> None:
    """YAML would read them as numbers or dates."""
    text = yaml.dump(kubeconfig(), Dumper=KubernetesDumper).replace(f"token: {CANARY}", f"token: {token}")
    assert parse_worker_kubeconfig(text.encode()).token == token


@given(st.binary() | st.text().map(str.encode))
def test_whatever_is_read_only_one_kind_of_error_comes_out(data: bytes) -> None:
    with pytest.raises(KubeconfigError):
        parse_worker_kubeconfig(data)


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=4,
)


@given(st.sampled_from(["clusters", "users", "contexts", "current-context"]), JUNK)
def test_junk_in_any_section_is_an_error_and_no_crash(section: str, junk: Any) -> None:
    with pytest.raises(KubeconfigError):
        parse_worker_kubeconfig(json.dumps(kubeconfig(whole={section: junk})).encode())


@given(
    st.sampled_from(["server", "certificate-authority-data", "proxy-url", "tls-server-name", "extensions"])
    | st.sampled_from(["token", "client-key-data", "as", "exec"]),
    JUNK,
)
def test_junk_in_any_field_is_read_or_refused(field: str, junk: Any) -> None:
    data = kubeconfig({field: junk}, {field: junk, "client-certificate-data": PEM})
    with contextlib.suppress(KubeconfigError):
        parse_worker_kubeconfig(json.dumps(data).encode())


@pytest.mark.parametrize("given", [Path("kubeconfig"), None, 5, [("a", 1)], bytearray(b"{}")])
def test_what_is_no_kubeconfig_names_the_parameter(given: Any) -> None:
    """Somebody hands in the path, as to `load_kubeconfig`."""
    with pytest.raises(TypeError, match=f"data: the text of a kubeconfig or what it holds, not {type(given).__name__}"):
        parse_worker_kubeconfig(given)
