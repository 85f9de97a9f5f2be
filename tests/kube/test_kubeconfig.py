"""The daemon's own kubeconfigs, and the service account of its pod."""

from __future__ import annotations

import base64
import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from multikueue.core.model.names import Json
from multikueue.errors import KubeconfigError, Unauthorized
from multikueue.kube import ClusterConfig, KubeClient, load_incluster, load_kubeconfig
from multikueue.kube.credentials.sources import TokenFile
from multikueue.kube.http.transport import ssl_context
from multikueue.kube.kubeconfigs.kubeconfig_document import FLAGS
from multikueue.kube.kubernetes_yaml import MAX_SIZE

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


def test_a_path_is_what_python_takes_for_one(tmp_path: Path) -> None:
    """A text is a sequence: it was taken apart, letter by letter."""
    path = write(tmp_path / "k", current="a")
    same = load_kubeconfig(path)
    assert [load_kubeconfig(given) for given in (str(path), [str(path)], (path,))] == [same] * 3
    with pytest.raises(KubeconfigError, match="none: cannot be read"):
        load_kubeconfig(str(tmp_path / "none"))


@pytest.mark.parametrize("text", ["apiVersion: v1\nusers: [{name: u, user: {token: secret}}]", '{"users": ["secret"]}'])
def test_a_text_of_a_kubeconfig_is_no_path_and_is_not_shown(text: str) -> None:
    """It stood in the message, with its token."""
    with pytest.raises(KubeconfigError, match="the text of a kubeconfig") as caught:
        load_kubeconfig([text])
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("given", "named"),
    [
        (None, "NoneType"),
        (5, "int"),
        ({"users": []}, "dict"),
        ([None], "NoneType"),
        (b"/k", "bytes"),
        ([b"/k"], "bytes"),
    ],
)
def test_what_is_no_path_names_the_parameter(given: Any, named: str) -> None:
    with pytest.raises(TypeError, match=f"path: a path or several, not {named}"):
        load_kubeconfig(given)


@pytest.mark.parametrize("given", ["", [""]])
def test_an_empty_path_names_no_file(given: Any) -> None:
    """What `os.environ.get("KUBECONFIG", "")` gives: it was the working directory."""
    with pytest.raises(KubeconfigError, match="path is empty: name a file"):
        load_kubeconfig(given)


def test_tls_need_not_be_verified_if_the_operator_says_so(tmp_path: Path) -> None:
    path = write(tmp_path / "k", cluster={"insecure-skip-tls-verify": True, "server": "http://localhost:8001/"})
    config = load_kubeconfig(path, "a")
    assert (config.server, config.verify_tls) == ("http://localhost:8001", False)


_TRUE = [word for text in ("y", "yes", "true", "on") for word in (text, text.capitalize(), text.upper())]
_FALSE = [word for text in ("n", "no", "false", "off") for word in (text, text.capitalize(), text.upper())]
_NEITHER = ('"true"', '"false"', "'n'", "0", "1", "1.0", '"0"', '""', "[]", "{}", "tRue", "!!str false", "2026-01-01")


@pytest.mark.parametrize("field", FLAGS)
def test_booleans_are_what_client_go_reads_and_all_else_is_an_error(tmp_path: Path, field: str) -> None:
    """client-go 0.36.3 was asked. Quotes, as templates write them, once turned the verification of TLS off."""

    def read(word: str) -> bool:
        in_exec = field == "provideClusterInfo"
        user: Json = {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "x", field: "WORD"}}
        path = write(tmp_path / "k", cluster={} if in_exec else {field: "WORD"}, user=user if in_exec else {})
        path.write_text(path.read_text().replace("WORD", word))
        config = load_kubeconfig(path, "a")
        shown = config.exec_plugin is not None and config.exec_plugin.cluster != ""
        return {FLAGS[0]: not config.verify_tls, FLAGS[1]: config.disable_compression, FLAGS[2]: shown}[field]

    assert [read(word) for word in _TRUE] == [True] * len(_TRUE)
    assert [read(word) for word in (*_FALSE, "", "null", "~", '!!bool "false"')] == [False] * (len(_FALSE) + 4)
    for word in _NEITHER:
        with pytest.raises(KubeconfigError, match=f"{field} is neither true nor false: write it without quotes"):
            read(word)


@pytest.mark.parametrize("section", ["clusters", "users", "contexts"])
def test_two_of_one_name_are_an_error(tmp_path: Path, section: str) -> None:
    """As for client-go: which of them is meant nobody knows, and the first was taken. Over several files it is."""
    path = write(tmp_path / "k")
    document = yaml.safe_load(path.read_text())
    path.write_text(yaml.safe_dump({**document, section: document[section] * 2}))
    with pytest.raises(KubeconfigError, match=f'{section} has two entries named "a"'):
        load_kubeconfig(path, "a")


def test_a_cluster_that_is_not_used_is_read_as_well(tmp_path: Path) -> None:
    """As client-go: a file of which half means something else is not right in the other half."""
    first, second = write(tmp_path / "1", name="a"), write(tmp_path / "2", name="b", cluster={FLAGS[0]: "false"})
    with pytest.raises(KubeconfigError, match=FLAGS[0]):
        load_kubeconfig([first, second], "a")


@pytest.mark.parametrize(
    ("server", "proxy", "refused"),
    [
        ("http://api.example.com", "", True),
        ("http://10.0.0.1:8001", "", True),
        ("http://127.0.0.1.example.com", "", True),
        ("http://localhost.example.com", "", True),
        ("HTTP://api.example.com", "", True),
        ("http://0.0.0.0:8001", "", True),
        ("http://127.0.0.1:8001", "http://proxy:3128", True),
        ("http://127.0.0.1:8001", "", False),
        ("http://127.9.9.9:8001", "", False),
        ("http://[::1]:8001", "", False),
        ("http://LOCALHOST:8001", "", False),
        ("https://api.example.com", "http://proxy:3128", False),
    ],
)
@pytest.mark.parametrize(
    "user",
    [
        {"token": CANARY},
        {"tokenFile": "token"},
        {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "x"}},
    ],
)
def test_credentials_go_over_tls_or_to_this_machine_only(
    tmp_path: Path, server: str, proxy: str, refused: bool, user: Json
) -> None:
    """client-go sends none without TLS; an error tells whoever wonders why all is forbidden."""
    cluster = {"server": server, **({"proxy-url": proxy} if proxy else {})}
    path = write(tmp_path / "k", cluster=cluster, user=user)
    with pytest.raises(KubeconfigError, match="over TLS or to this machine") if refused else contextlib.nullcontext():
        load_kubeconfig(path, "a")
    load_kubeconfig(write(tmp_path / "none", cluster=cluster, user={}), "a")


@pytest.mark.parametrize("given", [{"token": CANARY}, {"token_file": "/x"}, {"headers": (("Authorization", "x"),)}])
async def test_no_client_opens_that_would_send_credentials_in_clear(given: Json) -> None:
    """Also for a configuration that no kubeconfig has made."""
    with pytest.raises(KubeconfigError, match="over TLS or to this machine"):
        async with KubeClient(ClusterConfig("http://api.example.com", **given), name="m"):
            pass
    for reached in ("http://127.0.0.1:1", "https://api.example.com"):
        async with KubeClient(ClusterConfig(reached, **given), name="m"):
            pass
    async with KubeClient(ClusterConfig("http://api.example.com"), name="m"):
        pass


@pytest.mark.parametrize(
    ("section", "field", "message"),
    [
        ("cluster", "certificate-authority-data", "certificate-authority-data is not a PEM certificate"),
        ("user", "client-key-data", "client-certificate-data and client-key-data are not a PEM pair"),
    ],
)
def test_errors_of_bad_certificates_name_the_file(tmp_path: Path, section: str, field: str, message: str) -> None:
    """Only the client reads them, so this error comes later than the others."""
    broken = base64.b64encode(b"no PEM").decode()
    beside = {"client-certificate-data": broken} if section == "user" else {}
    given = {section: {field: broken, **beside}}
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
        ({}, {"client-certificate-data": "eA=="}, "a client certificate and its key must be given together"),
        ({}, {"client-key-data": "eA==", "token": CANARY}, "a client certificate and its key must be given together"),
        (
            {"insecure-skip-tls-verify": True, "certificate-authority-data": "eA=="},
            {"token": CANARY},
            "a certificate authority together with insecure-skip-tls-verify is not allowed",
        ),
        (
            {"insecure-skip-tls-verify": True, "certificate-authority": "ca.crt"},
            {},
            "a certificate authority together with insecure-skip-tls-verify is not allowed",
        ),
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


def test_the_folder_of_a_pods_account_is_what_python_takes_for_a_path(tmp_path: Path) -> None:
    for name in ("token", "ca.crt"):
        (tmp_path / name).write_text(name)
    variables = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}
    assert load_incluster(variables, root=str(tmp_path)) == load_incluster(variables, root=tmp_path)


@pytest.fixture
def large(tmp_path: Path) -> Path:
    """A file that is larger than what is read of one; it takes no room."""
    with (tmp_path / "large").open("wb") as file:
        file.truncate(MAX_SIZE + 1)
    return tmp_path / "large"


@pytest.mark.parametrize("field", ["certificate-authority", "client-certificate", "client-key"])
def test_a_file_without_end_is_refused_and_not_read(tmp_path: Path, large: Path, field: str) -> None:
    """`/dev/zero` took all memory there was."""
    of_cluster = field == "certificate-authority"
    section = {field: str(large)}
    path = write(tmp_path / "k", cluster=section if of_cluster else {}, user={} if of_cluster else section)
    with pytest.raises(KubeconfigError, match=f"{field} .* cannot be read"):
        load_kubeconfig(path, "a")


def test_nor_is_a_kubeconfig_without_end(large: Path) -> None:
    with pytest.raises(KubeconfigError, match=rf"large: cannot be read: it is larger than {MAX_SIZE} bytes$"):
        load_kubeconfig(large)


async def test_nor_is_a_token_without_end(large: Path) -> None:
    with pytest.raises(Unauthorized, match="cannot be read"):
        await TokenFile(large).credential()


def test_a_context_that_is_not_there_is_told_with_those_that_may_be_meant(tmp_path: Path) -> None:
    """Of the operator's own kubeconfig; what somebody else has written is not quoted further."""
    contexts = [{"name": name, "context": {"cluster": "c"}} for name in ("kind-manager", "oslo", *"fedcba")]
    path = tmp_path / "config"
    path.write_text(json.dumps({"contexts": contexts, "current-context": "kind-manger"}))
    for wanted, ending in (
        ("kind-manger", ': did you mean "kind-manager"?'),
        ("zzz", "; there are a, b, c, d, e and 3 more"),
    ):
        with pytest.raises(KubeconfigError) as refused:
            load_kubeconfig(path, wanted)
        assert str(refused.value).endswith(f'context "{wanted}" does not exist{ending}')
    with pytest.raises(KubeconfigError, match=r'context "kind-manger" does not exist$'):
        load_kubeconfig(path)


def test_a_file_that_it_names_is_read_within_a_bound(tmp_path: Path) -> None:
    """`certificate-authority: /dev/zero` took all memory."""
    large = tmp_path / "ca.crt"
    large.write_bytes(bytes(MAX_SIZE + 1))
    path = write(tmp_path / "config", cluster={"certificate-authority": str(large)})
    with pytest.raises(KubeconfigError, match=rf"certificate-authority .*ca.crt cannot be read: .* than {MAX_SIZE}"):
        load_kubeconfig(path, "a")
