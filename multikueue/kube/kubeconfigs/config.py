"""How to reach an API server: the value, and the two ways the daemon finds its own: a kubeconfig, or its pod.

The daemon's own kubeconfig may name files and exec plugins, because the operator wrote it. For workers' kubeconfigs see
`worker_kubeconfig`.
"""

from __future__ import annotations

import base64
import itertools
import json
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

import attrs

from multikueue.core.model.names import Json
from multikueue.core.model.objects import dig
from multikueue.errors import KubeconfigError
from multikueue.kube.credentials.exec_plugin import ExecPlugin
from multikueue.kube.kubeconfigs.kubeconfig_document import (
    ContextSelection,
    Document,
    flag,
    is_loopback,
    pem,
    refuse,
    refused_as,
    split_url,
    text,
)
from multikueue.kube.named_files import named_bytes, named_text

REASON: Final = "BadKubeConfig"
SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where kubelet puts the token and the certificate authority."""

_FOR_PLUGINS: Final = "client.authentication.k8s.io/exec"
"""The extension of a cluster that plugins are shown."""
IN_CLEAR: Final = "server is http:// on another machine: credentials are sent over TLS or to this machine only"
PAIR: Final = "a client certificate and its key must be given together"
_FILES: Final = ("certificate-authority", "client-certificate", "client-key", "tokenFile")


Headers: TypeAlias = tuple[tuple[str, str], ...]


@attrs.frozen
class CertificateFiles:
    """Paths of PEM files; empty: none."""

    ca: str = ""
    client_cert: str = ""
    client_key: str = ""
    """Empty: the key is in the certificate's file."""


@attrs.frozen
class TokenHook:
    """Asked for the `Authorization` header of each request, and again after a 401.

    Two are equal if they ask the same object: what it answers changes with time.
    """

    ask: Callable[[], Awaitable[str]] = attrs.field(eq=False, repr=False)
    """Returns the header's value, such as `Bearer xyz`; empty: none."""
    asked: object = attrs.field(eq=id, repr=False)


@attrs.frozen
class ClusterConfig:
    """Address and credentials of one API server. Equal values mean the same connection. The repr shows no secret."""

    server: str
    ca_pem: str = attrs.field(default="", repr=False)
    """PEM of the certificate authority; empty: the system's."""
    token: str = attrs.field(default="", repr=False)
    token_file: str = ""
    """A file that holds the token and is rotated; takes precedence over `token`."""
    exec_plugin: ExecPlugin | None = None
    """Takes precedence over all others."""
    client_cert_pem: str = attrs.field(default="", repr=False)
    client_key_pem: str = attrs.field(default="", repr=False)
    tls_server_name: str = ""
    """The name that the server's certificate must have, if it differs from the server's address."""
    proxy: str = attrs.field(default="", repr=False)
    """The proxy's URL. It may hold a password."""
    disable_compression: bool = False
    """Whether to ask the server for answers that are not compressed."""
    verify_tls: bool = True
    namespace: str = ""
    """The namespace of the context, or of the pod."""
    files: CertificateFiles = CertificateFiles()
    """Certificates in files that are read whenever a client opens; the texts above take precedence."""
    token_hook: TokenHook | None = None
    """Takes precedence over `token` and `token_file`."""
    headers: Headers = attrs.field(default=(), repr=False)
    """What each request has beside the client's own headers."""
    proxy_headers: Headers = attrs.field(default=(), repr=False)
    """What the proxy is sent when a connection through it opens."""
    strict_tls: bool = False
    """Whether the server's certificates must have the fields that Python 3.13 requires. kube-apiserver's
    lack some."""
    source: str = attrs.field(default="", eq=False)
    """The file this came from, for error messages; empty if the reader of the error knows it."""

    @property
    def tells_in_clear(self) -> bool:
        """Whether others on the way to the server, or to a proxy, could read the credentials that it gets."""
        url = split_url(self.server)
        if url is None or url.scheme != "http" or (is_loopback(url.hostname) and not self.proxy):
            return False
        sent = any(name.lower() in ("authorization", "cookie") for name, _ in self.headers)
        return bool(sent or self.token or self.token_file or self.exec_plugin or self.token_hook)


def load_incluster(environment: Mapping[str, str], *, root: str | os.PathLike[str] = SERVICE_ACCOUNT) -> ClusterConfig:
    """Read the configuration of the pod that this process runs in.

    Args:
        environment: the process's variables. kubelet puts the server's address there.
        root: the folder of the service account's files.

    Raises:
        KubeconfigError: this is not a pod, or it has no service account.
    """
    host, port = environment.get("KUBERNETES_SERVICE_HOST"), environment.get("KUBERNETES_SERVICE_PORT")
    folder = Path(root)
    try:
        if not host or not port or not (folder / "token").is_file():
            raise FileNotFoundError("no service account")
        authority = named_text(folder / "ca.crt")
        namespace = named_text(folder / "namespace").strip() if (folder / "namespace").is_file() else ""
    except (OSError, UnicodeDecodeError):
        message = "this is not a pod with a service account: name a kubeconfig with --kubeconfig or KUBECONFIG"
        raise KubeconfigError(REASON, message) from None
    server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    return ClusterConfig(server, ca_pem=authority, token_file=str(folder / "token"), namespace=namespace)


def load_kubeconfig(
    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]], context: str | None = None
) -> ClusterConfig:
    """Read the daemon's own kubeconfig.

    Args:
        path: one file; or several, which are merged as kubectl merges them: the first file that names something wins,
            and missing files are ignored.
        context: the context to use; None: the current one.

    Raises:
        KubeconfigError: it cannot be read or lacks something. The message names file and field, and no secret.
        TypeError: `path` is something else.
    """
    given = path if isinstance(path, Sequence) and not isinstance(path, str | bytes) else [path]
    with refused_as(REASON):
        paths = [_path(name) for name in given]
    if len(paths) > 1:
        paths = [path for path in paths if path.exists()] or paths[:1]
    merged = Document()
    for file in paths:
        with refused_as(REASON, str(file)):
            merged = merged.merged(_read(file))
    source = os.pathsep.join(str(file) for file in paths)
    with refused_as(REASON, source):
        return _config(merged, context, source)


def _path(given: object) -> Path:
    if not isinstance(given, str | os.PathLike):
        raise TypeError(f"path: a path or several, not {type(given).__name__}")
    path = Path(given)
    if not os.fspath(given):  # as an empty KUBECONFIG is
        refuse("path is empty: name a file")
    if "\n" in str(path) or str(path).startswith("{"):
        refuse("path is the text of a kubeconfig, not where it is: parse_worker_kubeconfig reads texts")
    return path


def _read(path: Path) -> Document:
    try:
        document = Document.parse(named_bytes(path))
    except OSError as error:
        refuse(f"cannot be read: {error.strerror}")
    folder = path.parent  # what paths in the file are relative to
    for section in (*document.clusters.values(), *document.users.values()):
        for field in _FILES:
            if section.get(field):
                section[field] = str(folder / str(section[field]))
        plugin = section.get("exec")
        if isinstance(plugin, dict) and os.sep in str(plugin.get("command")):
            plugin["command"] = str(folder / str(plugin["command"]))
    return document


def inline_config(selection: ContextSelection) -> ClusterConfig:
    """What a kubeconfig holds itself, without the files and plugins that it names.

    Raises:
        Refusal: a value cannot be used. The message names the field and never its value.
    """
    cluster, user = selection.cluster, selection.user
    return ClusterConfig(
        server=selection.server,
        ca_pem=pem(cluster, "certificate-authority-data"),
        token=selection.token,
        client_cert_pem=pem(user, "client-certificate-data"),
        client_key_pem=pem(user, "client-key-data"),
        tls_server_name=text(cluster, "tls-server-name"),
        proxy=text(cluster, "proxy-url"),
        disable_compression=flag(cluster, "disable-compression"),
        namespace=selection.namespace,
    )


def _config(document: Document, context: str | None, source: str) -> ClusterConfig:
    selection = document.select(context)
    cluster, user = selection.cluster, selection.user
    _check(selection)
    inline = inline_config(selection)
    config = attrs.evolve(
        inline,
        ca_pem=inline.ca_pem or _content(cluster, "certificate-authority"),
        token_file=text(user, "tokenFile"),
        client_cert_pem=inline.client_cert_pem or _content(user, "client-certificate"),
        client_key_pem=inline.client_key_pem or _content(user, "client-key"),
        verify_tls=not flag(cluster, "insecure-skip-tls-verify"),
        source=source,
    )
    if bool(config.client_cert_pem) != bool(config.client_key_pem):
        refuse(PAIR)
    config = attrs.evolve(config, exec_plugin=_plugin(selection, config))
    if config.tells_in_clear:
        refuse(IN_CLEAR)
    return config


def _check(selection: ContextSelection) -> None:
    url = split_url(selection.server)
    if url is None or url.scheme not in ("http", "https") or not url.hostname or url.query or url.fragment:
        refuse("server must be an http:// or https:// URL without a query")
    user = selection.user
    if user.get("username") or user.get("password") or url.username is not None:
        refuse("basic auth is not supported, by API servers neither: use a token or a client certificate")
    if user.get("auth-provider"):
        refuse("auth-provider is not supported any more: use the exec plugin of your provider")


def _plugin(selection: ContextSelection, config: ClusterConfig) -> ExecPlugin | None:
    section = selection.user.get("exec")
    if not section:
        return None
    if not isinstance(section, dict) or not section.get("command") or not section.get("apiVersion"):
        refuse("exec needs at least apiVersion and command")
    args, env = section.get("args") or [], section.get("env") or []
    lists = isinstance(args, list) and isinstance(env, list)
    named: list[tuple[Any, Any]] = (
        [(dig(variable, "name"), dig(variable, "value")) for variable in env] if lists else []
    )
    if not lists or not all(isinstance(word, str) for word in (*args, *itertools.chain(*named))):
        refuse("exec: args must be a list of texts, and env a list of names and values")
    shown = cluster_info(config, exec_extension(selection.cluster)) if flag(section, "provideClusterInfo") else ""
    command, version = text(section, "command"), text(section, "apiVersion")
    plugin = ExecPlugin(command, args, named, version, shown, search_path=True, inherit_env=True)
    if plugin.problem:
        refuse(plugin.problem)
    return plugin


def exec_extension(cluster: Json) -> object:
    """What a cluster's section, of a kubeconfig or a ClusterProfile, has for exec plugins; None: nothing."""
    extensions = cluster.get("extensions")
    for_plugins = (
        [extension for extension in extensions if dig(extension, "name") == _FOR_PLUGINS]
        if isinstance(extensions, list)
        else []
    )
    return for_plugins[0].get("extension") if for_plugins else None


def cluster_info(config: ClusterConfig, extension: object = None) -> str:
    """The cluster as an ExecCredential describes it, as JSON text. Equal clusters have equal texts.

    The order of the members is client-go's; empty ones are left out, except `config`.

    Args:
        config: of the cluster.
        extension: see `exec_extension`.
    """
    info: Json = {
        "server": config.server,
        "tls-server-name": config.tls_server_name,
        "insecure-skip-tls-verify": not config.verify_tls,
        "certificate-authority-data": base64.b64encode(config.ca_pem.encode()).decode(),
        "proxy-url": config.proxy,
        "disable-compression": config.disable_compression,
    }
    settings = json.dumps(extension, sort_keys=True, separators=(",", ":"))
    encoded = json.dumps({name: value for name, value in info.items() if value}, separators=(",", ":"))
    return f'{encoded[:-1]},"config":{settings}}}'


def _content(section: Json, field: str) -> str:
    """The text of a file that is named in a field; empty: none is named."""
    try:
        return named_text(Path(section[field])) if section.get(field) else ""
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        refuse(f"{field} {section[field]} cannot be read: {why}")
