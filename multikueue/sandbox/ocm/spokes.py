"""A managed cluster as its agents see it: where it is, and what they may do there."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

import attrs

from multikueue.core.model.conditions import parse_timestamp
from multikueue.core.model.names import Json
from multikueue.protocols import ApiClient
from multikueue.sandbox.apiserver.serving.server import ApiServer


@attrs.frozen
class Token:
    """A token of a service account."""

    text: str = attrs.field(repr=False)
    expires: datetime | None


@attrs.define(eq=False)
class Spoke:
    """One managed cluster."""

    client: ApiClient
    """Of its agents, which may do everything there."""
    url: str
    """Of its API server."""
    ca_pem: str
    """The certificate that clients must trust; empty: the system's."""
    issue: Callable[[str, str, int], Token]
    """Asks for a token of a service account: its namespace, its name, and for how many seconds.

    It raises `StatusError` if there is no such account.
    """
    version: str = "v1.36.0"
    labels: Json = attrs.field(factory=dict)
    """Of its ManagedCluster."""
    available: bool = True
    """Whether its agent reports that it is healthy."""


def spoke_of(server: ApiServer, client: ApiClient, labels: Json | None = None) -> Spoke:
    """A cluster of the sandbox as a spoke; `labels` are those of its ManagedCluster."""

    def issue(namespace: str, name: str, seconds: int) -> Token:
        answer = server.access.issuer.issue(namespace, name, {"spec": {"expirationSeconds": seconds}})
        return Token(answer["status"]["token"], parse_timestamp(answer["status"]["expirationTimestamp"]))

    return Spoke(client, server.url, server.ca_pem or "", issue, labels=labels or {})
