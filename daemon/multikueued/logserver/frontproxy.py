"""Who asks, by the word of the manager's API server. Pure.

An aggregated API is called by the API server alone, its *front proxy*: it presents a client certificate, and names the
user in headers. ConfigMap `kube-system/extension-apiserver-authentication` says which authority signs that certificate,
which names it may have, and which headers these are. Without the certificate the headers are worth nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Protocol, Self
from urllib.parse import unquote

import attrs

from multikueue.core.model.names import Json
from multikueue.core.model.objects import dig
from multikueue.webhook.certificates import read_certificates
from multikueue.webhook.errors import UnusableError
from multikueued.serving.users import User


class Headers(Protocol):
    """Of a request, as aiohttp has them: a name may be there several times, and its case does not count."""

    def __iter__(self) -> Iterator[str]:
        """The names."""

    def getall(self, key: str, default: list[str], /) -> list[str]:
        """All values of a name."""


@attrs.frozen
class FrontProxy:
    """By what the front proxy is known, and where it names the user."""

    authorities: str = attrs.field(repr=False)
    """PEM: who signs its client certificate."""
    names: frozenset[str]
    """The common names that its certificate may have; empty: any."""
    user_headers: tuple[str, ...]
    group_headers: tuple[str, ...]
    uid_headers: tuple[str, ...]
    extra_prefixes: tuple[str, ...]

    @classmethod
    def read(cls, config_map: Json) -> Self:
        """Read the ConfigMap.

        Raises:
            UnusableError: the aggregation layer is not configured, or what is there cannot be used.
        """
        data = dig(config_map, "data") or {}
        authorities = str(data.get("requestheader-client-ca-file") or "")
        if not authorities:
            raise UnusableError("it has no requestheader-client-ca-file: the API server's aggregation layer is not on")
        read_certificates(authorities)
        proxy = cls(
            authorities,
            frozenset(_texts(data, "requestheader-allowed-names")),
            _texts(data, "requestheader-username-headers"),
            _texts(data, "requestheader-group-headers"),
            _texts(data, "requestheader-uid-headers"),
            _texts(data, "requestheader-extra-headers-prefix"),
        )
        if not proxy.user_headers:
            raise UnusableError("it names no requestheader-username-headers")
        return proxy

    def user(self, certificate: Mapping[str, Any] | None, headers: Headers) -> User | None:
        """Who asks; None if nobody vouches for it.

        Args:
            certificate: the client's, as `ssl` gives one that it has verified against `authorities`; None or empty:
                there is none.
            headers: of the request.
        """
        names = [*_common_names(certificate or {})]
        if len(names) != 1 or (self.names and names[0] not in self.names):
            return None
        name = next(_values(headers, self.user_headers), "")
        user = User(
            name,
            tuple(_values(headers, self.group_headers)),
            next(_values(headers, self.uid_headers), ""),
            self._extra(headers),
        )
        return user if name and user.is_text else None

    def _extra(self, headers: Headers) -> dict[str, tuple[str, ...]]:
        extra: dict[str, tuple[str, ...]] = {}
        for prefix in self.extra_prefixes:
            for header in dict.fromkeys(str(name).lower() for name in headers):
                if header.startswith(prefix.lower()):
                    key = unquote(header[len(prefix) :]).lower()
                    extra[key] = (*extra.get(key, ()), *headers.getall(header, []))
        return extra


def _texts(data: Json, field: str) -> tuple[str, ...]:
    try:
        listed = json.loads(data.get(field) or "[]")
    except ValueError:
        listed = None
    if not isinstance(listed, list):
        raise UnusableError(f"its {field} is no list")
    return tuple(map(str, listed))


def _common_names(certificate: Mapping[str, Any]) -> Iterator[str]:
    for part in certificate.get("subject", ()):
        yield from (value for field, value in part if field == "commonName")


def _values(headers: Headers, names: tuple[str, ...]) -> Iterator[str]:
    for name in names:
        yield from (value for value in headers.getall(name, []) if value)
