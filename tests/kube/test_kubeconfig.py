"""The daemon's own kubeconfigs, and the service account of its pod."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest
import yaml

from multikueue.core.model.names import Json
from multikueue.errors import KubeconfigError
from multikueue.kube import load_incluster, load_kubeconfig
from multikueue.kube.http.transport import ssl_context

CANARY = "s3cr3t-canary"


def write(
    path: Path, *, name: str = "a", cluster: Json | None = None, user: Json | None = None, current: str = ""
) -> Path:
    """A kubeconfig with one context."""
    document = {
        "clusters": [{"name": name, "cluster": {"server": f"https://{name}", **(cluster or {})}}],
        "users": [{"name": name, "user": {"token": CANARY} if user is None else user}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": current,
    }
    path.write_text(yaml.safe_dump(document))
    return path


def test_files_are_found_beside_the_kubeconfig(tmp_path: Path) -> None:
    """As kubectl finds them."""
    for name in ("ca", "crt", "key"):
        (tmp_path / name).write_text(name)
    user = {"client-certificate": "crt", "client-key": str(tmp_path / "key"), "tokenFile": "token"}
    path = write(tmp_path / "k", cluster={"certificate-authority": "ca"}, user=user)
    config = load_kubeconfig(path, "a")
    assert (config.ca_pem, config.client_cert_pem, config.client_key_pem) == ("ca", "crt", "key")
    assert config.token_file == str(tmp_path / "token")


def test_what_is_inline_wins_over_files(tmp_path: Path) -> None:
    data = base64.b64encode(b"inline").decode()
    path = write(tmp_path / "k", cluster={"certificate-authority": "gone", "certificate-authority-data": data})
    assert load_kubeconfig(path, "a").ca_pem == "inline"


def test_several_files_are_merged_and_the_first_that_names_something_wins(tmp_path: Path) -> None:
    """Like the files of KUBECONFIG. Missing files are ignored."""
    first = write(tmp_path / "1", name="a")
    second = write(tmp_path / "2", name="b", current="b")
    third = write(tmp_path / "3", name="a", cluster={"server": "https://other"}, current="a")
    files = [tmp_path / "none", first, second, third]
    assert load_kubeconfig(files).server == "https://b"
    assert load_kubeconfig(files, "a").server == "https://a"


def test_tls_need_not_be_verified_if_the_operator_says_so(tmp_path: Path) -> None:
    path = write(tmp_path / "k", cluster={"insecure-skip-tls-verify": True, "server": "http://localhost:8001/"})
    config = load_kubeconfig(path, "a")
    assert (config.server, config.verify_tls) == ("http://localhost:8001", False)


@pytest.mark.parametrize(
    ("section", "field", "message"),
    [
        ("cluster", "certificate-authority-data", "certificate-authority-data is not a PEM certificate"),
        ("user", "client-certificate-data", "client-certificate-data and client-key-data are not a PEM pair"),
    ],
)
def test_errors_of_bad_certificates_name_the_file(tmp_path: Path, section: str, field: str, message: str) -> None:
    """Only the client reads them, so this error comes later than the others."""
    given = {section: {field: base64.b64encode(b"no PEM").decode()}}
    path = write(tmp_path / "k", cluster=given.get("cluster"), user=given.get("user"))
    with pytest.raises(KubeconfigError) as caught:
        ssl_context(load_kubeconfig(path, "a"))
    assert str(caught.value).startswith(f"{path}: {message}")


def test_an_exec_plugin_is_a_value_without_secrets_in_its_repr(tmp_path: Path) -> None:
    section = {"apiVersion": "client.authentication.k8s.io/v1", "command": "./login", "args": [CANARY]}
    path = write(tmp_path / "k", user={"exec": {**section, "provideClusterInfo": True}})
    config = load_kubeconfig(path, "a")
    assert config == load_kubeconfig(path, "a")
    assert config.exec_plugin is not None
    assert config.exec_plugin.command == str(tmp_path / "./login")
    assert json.loads(config.exec_plugin.cluster) == {"server": "https://a", "config": None}
    assert CANARY not in repr(config)


@pytest.mark.parametrize(
    ("cluster", "user", "message"),
    [
        ({"certificate-authority": "gone"}, {}, "certificate-authority .*gone cannot be read"),
        ({"server": "a:6443"}, {}, "server must be"),
        ({}, {"username": "u", "password": CANARY}, "basic auth is not supported"),
        ({}, {"auth-provider": {"name": "gcp", "config": {"access-token": CANARY}}}, "auth-provider is not supported"),
        ({}, {"exec": {"command": "c", "args": [CANARY]}}, "exec needs at least apiVersion and command"),
        ({}, {"exec": CANARY}, "exec needs"),
        ({}, {"exec": {"apiVersion": "v2", "command": "c", "args": [CANARY]}}, 'exec plugin: invalid apiVersion "v2"'),
        *(
            (
                {},
                {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "c", **wrong}},
                "exec: args must be",
            )
            for wrong in (
                {"args": CANARY},
                {"env": [{"name": "A"}]},
                {"env": CANARY},
                {"env": [CANARY]},
                {"args": [True]},
            )
        ),
        ({}, {"as": "root", "token": CANARY}, "impersonation"),
        ({}, {"token": f"{CANARY} x"}, "token is not one word"),
    ],
)
def test_errors_name_file_and_field(tmp_path: Path, cluster: Json, user: Json, message: str) -> None:
    """And never a value that may be a secret."""
    path = write(tmp_path / "k", cluster=cluster, user=user)
    with pytest.raises(KubeconfigError, match=message) as caught:
        load_kubeconfig(path, "a")
    assert str(caught.value).startswith(f"{path}: ")
    assert "canary" not in f"{caught.value!r}{caught.value.__cause__!r}"


def test_a_file_that_is_not_there_or_no_kubeconfig_is_named(tmp_path: Path) -> None:
    with pytest.raises(KubeconfigError, match=r"none: cannot be read: No such file"):
        load_kubeconfig(tmp_path / "none")
    (tmp_path / "bad").write_text(f"{{ {CANARY}")
    with pytest.raises(KubeconfigError, match=r"bad: failed to parse.*line 1"):
        load_kubeconfig([tmp_path / "none", tmp_path / "bad"])


def test_a_pods_service_account_is_used(tmp_path: Path) -> None:
    for name in ("token", "ca.crt", "namespace"):
        (tmp_path / name).write_text(f"{name}\n")
    environment = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
    config = load_incluster(environment, root=tmp_path)
    assert (config.server, config.ca_pem, config.namespace) == ("https://[fd00::1]:443", "ca.crt\n", "namespace")
    assert (config.token, config.token_file) == ("", str(tmp_path / "token"))


@pytest.mark.parametrize("missing", ["token", "ca.crt", "host"])
def test_outside_of_a_pod_it_says_what_to_do(tmp_path: Path, missing: str) -> None:
    for name in {"token", "ca.crt"} - {missing}:
        (tmp_path / name).write_text(name)
    environment = {} if missing == "host" else {"KUBERNETES_SERVICE_HOST": "h", "KUBERNETES_SERVICE_PORT": "1"}
    with pytest.raises(KubeconfigError, match="--kubeconfig or KUBECONFIG"):
        load_incluster(environment, root=tmp_path)
