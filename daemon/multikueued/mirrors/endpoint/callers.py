"""Who asks, by the certificate of their connection, and whether they may, by the manager's word.

A request does not say for which user it is: the API server has checked that. So only those are answered who may do
with our Node what an API server may: the resource `nodes/proxy`, as a kubelet asks about it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final, TypeAlias

import anyio
import attrs
import structlog

from multikueue.core.model.names import Json
from multikueue.core.model.objects import dig
from multikueue.errors import ApiError
from multikueue.webhook.certificates import read_certificates
from multikueue.webhook.errors import UnusableError
from multikueued.mirrors.endpoint.routes import Verb
from multikueued.serving.caller_tls import CallerTls
from multikueued.serving.kept_answers import ALLOWED_FOR, REFUSED_FOR, KeptAnswers
from multikueued.serving.refusal import RefusedError
from multikueued.serving.reviews import Create, may
from multikueued.serving.users import User

KEPT: Final = 256
"""Answers that are kept, the oldest are forgotten first."""
REVIEWS: Final = 8
"""Asked at a time."""
EVERYBODY: Final = "system:authenticated"

_Asked: TypeAlias = tuple[str, tuple[str, ...], Verb, str]
"""User, groups, verb and Node."""

log = structlog.get_logger(__name__)


@attrs.define(eq=False)
class KubeletTls(CallerTls):
    """Of a server that API servers call as a kubelet: without a client certificate the handshake fails."""

    demanded = True
    field = "client-ca-file"

    def take(self, config_map: Json) -> None:
        """See `CallerTls.take`."""
        authorities = str(dig(config_map, "data", self.field) or "")
        if not authorities:
            why = f"it has no {self.field}: the API server shows no certificate by which it is known to kubelets"
            raise UnusableError(f"{why}, so logs of mirrors are not served. Set its --client-ca-file")
        read_certificates(authorities)
        self.trust(authorities)


def caller(certificate: Mapping[str, Any] | None) -> User:
    """Who has a certificate, as API servers read it: the common name is the user, organizations are groups.

    Args:
        certificate: as `ssl` gives one that it has verified.

    Raises:
        RefusedError: nobody can be told by it.
    """
    subject = [pair for part in (certificate or {}).get("subject", ()) for pair in part]
    names = [value for field, value in subject if field == "commonName"]
    if len(names) != 1 or not names[0]:
        raise RefusedError(401, "Unauthorized\n")
    groups = (value for field, value in subject if field == "organizationName")
    return User(names[0], (*groups, EVERYBODY))


@attrs.define(eq=False)
class NodeRights:
    """Who may ask kubelets, by the manager cluster's word."""

    create: Create
    """Asks the manager's API server."""
    _answers: KeptAnswers[_Asked, bool] = attrs.field(
        factory=lambda: KeptAnswers(ALLOWED_FOR, REFUSED_FOR, KEPT, anyio.CapacityLimiter(REVIEWS)), init=False
    )

    async def check(self, user: User, verb: Verb, node: str) -> None:
        """
        Args:
            user: who asks.
            verb: of `nodes/proxy`.
            node: the Node; empty: of all Nodes.

        Raises:
            RefusedError: who asks may not, or nobody says.
        """
        try:
            ask = partial(self._ask, user, verb, node)
            allowed = await self._answers.of((user.name, user.groups, verb, node), ask)
        except (ApiError, TimeoutError) as error:
            log.warning("cannot tell who may ask for logs of mirrors", error=str(error) or "no answer in time")
            raise RefusedError(502, "the manager cluster does not say who may ask this\n") from error
        if not allowed:
            what = f"Forbidden (user={user.name}, verb={verb}, resource=nodes, subresource=proxy)"
            raise RefusedError(403, f"{what}\n")

    async def _ask(self, user: User, verb: Verb, node: str) -> bool:
        resource = {"verb": verb, "group": "", "version": "v1", "resource": "nodes", "subresource": "proxy"}
        return await may(self.create, user, resourceAttributes={**resource, **({"name": node} if node else {})})
