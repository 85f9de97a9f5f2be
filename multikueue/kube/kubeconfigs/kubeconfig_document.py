"""Parses kubeconfigs: what the daemon's own and the workers' kubeconfigs have in common."""

from __future__ import annotations

import base64
import ipaddress
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, NoReturn
from urllib.parse import SplitResult, urlsplit

import attrs
import yaml

from multikueue.core.model.name_lists import instead
from multikueue.core.model.names import Json
from multikueue.core.model.objects import shortened
from multikueue.core.model.outside_text import one_line
from multikueue.errors import KubeconfigError
from multikueue.kube.kubernetes_yaml import MAX_SIZE, KubernetesLoader, OutOfBoundsError

_KIND: Final = re.compile(r"[A-Za-z]{1,63}")
MAX_HOST: Final = 253
MAX_TOLD: Final = 1_000
"""Bytes of why a kubeconfig is refused."""

_DNS_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*")


class _Loader(KubernetesLoader):
    """Reads numbers as text, too: a token of digits stays as it is."""

    def kind_of(self, value: str) -> str:
        """See `KubernetesLoader`."""
        kind = super().kind_of(value)
        return "str" if kind in ("int", "float") else kind


class _ForeignLoader(_Loader):
    aliases = False


FLAGS: Final = ("insecure-skip-tls-verify", "disable-compression", "provideClusterInfo")
"""Of a kubeconfig's clusters and users, and of an exec plugin: all that we read and that is true or false. None that we
read is a number."""


@attrs.frozen
class Document:
    """The sections of a kubeconfig by name. The repr shows no secret."""

    current_context: str = ""
    clusters: Mapping[str, Json] = attrs.field(factory=dict, repr=False)
    users: Mapping[str, Json] = attrs.field(factory=dict, repr=False)
    contexts: Mapping[str, Json] = attrs.field(factory=dict, repr=False)

    @classmethod
    def parse(cls, data: bytes, *, foreign: bool = False) -> Document:
        """Parse YAML or JSON.

        Args:
            data: the kubeconfig.
            foreign: whether somebody else than the operator may have written it.

        Raises:
            Refusal: it is no kubeconfig. The message names the place and quotes nothing.
        """
        parsed = _parsed(data, _ForeignLoader if foreign else _Loader)
        sections = (_named(parsed, f"{field}s", field) for field in ("cluster", "user", "context"))
        return cls(text(parsed, "current-context"), *sections)

    def merged(self, other: Document) -> Document:
        """Both documents. This one wins where both name something, as kubectl merges the files of KUBECONFIG."""
        return Document(
            self.current_context or other.current_context,
            {**other.clusters, **self.clusters},
            {**other.users, **self.users},
            {**other.contexts, **self.contexts},
        )

    def select(self, context: str | None = None) -> ContextSelection:
        """Cluster, user and namespace of a context; None: the current one.

        Raises:
            Refusal: there is no such context, or it names no cluster with a server.
        """
        name = context or self.current_context
        if not name:
            refuse("no current-context is set")
        section = self.contexts.get(name)
        if section is None:
            refuse(f'context "{name}" does not exist{instead(name, self.contexts) if context else ""}')
        cluster = self.clusters.get(text(section, "cluster"))
        if cluster is None or not cluster.get("server"):
            refuse(f'context "{name}" names no cluster with a server')
        user_name = text(section, "user")
        if user_name and user_name not in self.users:
            refuse(f'context "{name}" names user "{user_name}", which does not exist')
        namespace = text(section, "namespace")
        selection = ContextSelection(cluster, self.users.get(user_name, {}), namespace)
        selection.check()
        return selection


@attrs.frozen
class ContextSelection:
    """What a context selects, with decoded values."""

    cluster: Json = attrs.field(repr=False)
    user: Json = attrs.field(repr=False)
    namespace: str = ""

    def check(self) -> None:
        """Refuse settings that this client would ignore or cannot use.

        Raises:
            Refusal: the message names the field and never its value.
        """
        for field in ("as", "as-uid", "as-groups", "as-user-extra"):
            if self.user.get(field):
                refuse(f"impersonation ({field}) is not supported: use credentials of the identity itself")
        proxy = text(self.cluster, "proxy-url")
        url = split_url(proxy)
        if proxy and (url is None or url.scheme not in ("http", "https") or not is_host(url.hostname)):
            refuse("proxy-url must be an http:// or https:// URL")
        check_trust(self.cluster)
        name = text(self.cluster, "tls-server-name")
        if name and not is_host(name):
            refuse("tls-server-name must be a host name or an IP address")

    @property
    def server(self) -> str:
        """The server's address without a trailing slash."""
        return text(self.cluster, "server").strip().rstrip("/")

    @property
    def token(self) -> str:
        """The bearer token; empty: none."""
        token = text(self.user, "token").strip()
        if not is_token(token):
            refuse("token is not one word of plain characters")
        return token


def pem(section: Json, field: str) -> str:
    """The decoded text of a `…-data` field; empty: none."""
    try:
        return base64.b64decode("".join(text(section, field).split()), validate=True).decode("ascii")
    except ValueError:
        refuse(f"{field} is not base64 of a PEM text")


class KubeconfigFault(Exception):
    """Why a kubeconfig cannot be used. It does not leave this layer: `refused_as` makes a `KubeconfigError` of it."""


def refuse(message: str) -> NoReturn:
    """Raise a `KubeconfigFault` without a cause: a parser's error quotes what it could not read. Names in the message
    are whatever the kubeconfig says, and it is shown at terminals and in conditions."""
    raise KubeconfigFault(shortened(one_line(message), MAX_TOLD)) from None


@contextmanager
def refused_as(reason: str, source: str = "") -> Iterator[None]:
    """Turn a refusal into an error for users.

    Args:
        reason: Kueue's condition reason.
        source: the file, if the user may not know it.

    Raises:
        KubeconfigError: something inside was refused.
    """
    try:
        yield
    except KubeconfigFault as refusal:
        raise KubeconfigError(reason, f"{source}: {refusal}" if source else str(refusal)) from None


def text(section: Json, field: str) -> str:
    """The value of a field; empty: none.

    Raises:
        Refusal: it is not a string.
    """
    value = section.get(field)
    if value is None:
        return ""
    if not isinstance(value, str):
        refuse(f"failed to parse kubeconfig(apiconfig): {field} is not a text")
    return value


def flag(section: Mapping[str, Any], field: str) -> bool:
    """Whether a field says true; without one it is false. As for client-go a text or a number is neither.

    Raises:
        Refusal: it is neither true nor false. What is meant may be less security, or more.
    """
    assert field in FLAGS, "what is not listed is not checked where nobody reads it"
    value = section.get(field)
    if value is None:
        return False
    if not isinstance(value, bool):
        refuse(f"failed to parse kubeconfig(apiconfig): {field} is neither true nor false: write it without quotes")
    return value


def check_trust(cluster: Mapping[str, Any]) -> None:
    """Refuse a cluster that names whom it trusts, and that it trusts anybody.

    Raises:
        Refusal: client-go refuses it, too.
    """
    named = cluster.get("certificate-authority-data") or cluster.get("certificate-authority")
    if named and flag(cluster, "insecure-skip-tls-verify"):
        refuse("a certificate authority together with insecure-skip-tls-verify is not allowed: leave out one of them")


def is_host(host: str | None) -> bool:
    """Whether a text is a DNS name or an IP address."""
    try:
        ipaddress.ip_address(host or "")
    except ValueError:
        return host is not None and len(host) <= MAX_HOST and _DNS_NAME.fullmatch(host.lower()) is not None
    return True


def is_loopback(host: str | None) -> bool:
    """Whether what is sent there does not leave the machine."""
    try:
        return host == "localhost" or ipaddress.ip_address(host or "").is_loopback
    except ValueError:
        return False


def split_url(url: str) -> SplitResult | None:
    """The parts of a URL; None if it is not a URL."""
    try:
        parts = urlsplit(url)
        return parts if parts.port != 0 else None  # `port` raises ValueError if it is not a number
    except ValueError:
        return None


def is_token(word: str) -> bool:
    """Whether a text may stand in an Authorization header."""
    return word.isascii() and word.isprintable() and " " not in word


def _parsed(data: bytes, loader: type[_Loader]) -> Json:
    if len(data) > MAX_SIZE:
        refuse(f"failed to parse kubeconfig(apiconfig): larger than {MAX_SIZE} bytes")
    try:
        document = yaml.load(data, loader)
    except OutOfBoundsError as error:
        refuse(f"failed to parse kubeconfig(apiconfig): {error.problem}")
    except yaml.MarkedYAMLError as error:
        # The parser quotes the text around the error, which may be a credential. We report only the place.
        mark = error.problem_mark
        where = f" at line {mark.line + 1}, column {mark.column + 1}" if mark is not None else ""
        refuse(f"failed to parse kubeconfig(apiconfig): it is not YAML{where}")
    except (yaml.YAMLError, ValueError, TypeError, AttributeError, LookupError, RecursionError):
        # unknown tags, encodings or deep nesting
        refuse("failed to parse kubeconfig(apiconfig): it is not YAML")
    if not isinstance(document, dict):
        refuse("failed to parse kubeconfig(apiconfig): it is not a mapping")
    kind = document.get("kind")
    if kind not in (None, "", "Config"):
        shown = f'of kind "{kind}"' if isinstance(kind, str) and _KIND.fullmatch(kind) else "of another kind"
        refuse(f"failed to parse kubeconfig(apiconfig): it is {shown}, and a kubeconfig is of kind Config")
    return document


def _named(document: Json, section: str, field: str) -> dict[str, Json]:
    entries = document.get(section) or []
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        refuse(f"failed to parse kubeconfig(apiconfig): {section} is not a list of mappings")
    result: dict[str, Json] = {}
    for entry in entries:
        value = entry.get(field) or {}
        if not isinstance(value, dict):
            refuse(f"failed to parse kubeconfig(apiconfig): {section}[].{field} is not a mapping")
        for part in (value, value.get("exec")):
            if isinstance(part, dict):
                for known in FLAGS:
                    flag(part, known)
        name = text(entry, "name")
        if name in result:
            refuse(f'failed to parse kubeconfig(apiconfig): {section} has two entries named "{name}"')
        result[name] = value
    return result
