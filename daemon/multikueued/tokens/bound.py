"""What a Secret with a worker's kubeconfig says about its bound token, and when that is renewed. Pure.

Times are this process's own: when the token was asked for, and that plus its life. So a worker's clock that is wrong
changes nothing. Where the one who wrote the Secret has another clock, the token is renewed earlier.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Final

import attrs

from multikueue.core.model.conditions import parse_timestamp, timestamp
from multikueue.core.model.names import OBJECT_NAME, SHORT_NAME, Json, ObjectKey
from multikueue.core.model.objects import annotations_of, dig
from multikueue.errors import Unreachable
from multikueued.clusters import ClusterClient

ACCOUNT: Final = "multikueue.dev/bound-account"
"""NAMESPACE/NAME of the service account on the worker. A Secret with it is renewed."""
HOLDER: Final = "multikueue.dev/bound-to"
"""The Secret on the worker, in the account's namespace, that the token is bound to: without it the token is void."""
ISSUED: Final = "multikueue.dev/token-issued"
EXPIRES: Final = "multikueue.dev/token-expires"

PART: Final = 0.8
"""Of its life, after which a token is renewed."""
LATE: Final = 0.9
"""Of its life, after which a token that was not renewed is a warning of the doctor's."""
SKEW: Final = timedelta(minutes=1)
"""A token from so far in the future was asked for by another clock."""
SHORTEST: Final = timedelta(minutes=10)
"""API servers give no shorter life."""
DEFAULT_LIFE: Final = timedelta(days=7)


@attrs.frozen
class Bound:
    """A bound token, without the token."""

    account: ObjectKey
    """The service account on the worker."""
    holder: str = ""
    """Empty: it is bound to its account alone."""
    issued: datetime | None = None
    expires: datetime | None = None

    @property
    def life(self) -> timedelta:
        """How long it lasts, and how long a new one shall."""
        if self.issued is None or self.expires is None or self.expires <= self.issued:
            return DEFAULT_LIFE
        return max(self.expires - self.issued, SHORTEST)

    @property
    def renewed_at(self) -> datetime | None:
        """When it is renewed; None: it is not known how long it lasts, so at once."""
        if self.issued is None or self.expires is None or self.expires <= self.issued:
            return None
        return self.issued + (self.expires - self.issued) * PART

    def is_due(self, now: datetime) -> bool:
        """Whether it is to be renewed."""
        at = self.renewed_at
        return at is None or self.issued is None or now >= at or self.issued > now + SKEW

    def is_late(self, now: datetime) -> bool:
        """Whether it should have been renewed long ago."""
        if self.issued is None or self.expires is None:
            return True
        return now >= self.issued + (self.expires - self.issued) * LATE

    def with_life(self, issued: datetime, life: timedelta) -> Bound:
        """The same for a token that was just issued."""
        return attrs.evolve(self, issued=issued, expires=issued + life)

    @property
    def until(self) -> str:
        """When it ends, in words."""
        return timestamp(self.expires) if self.expires is not None else "a time that nobody knows"

    @property
    def annotations(self) -> Mapping[str, str]:
        """As they stand on the Secret."""
        texts = {ACCOUNT: str(self.account), HOLDER: self.holder}
        times = {ISSUED: self.issued, EXPIRES: self.expires}
        texts |= {name: timestamp(at) for name, at in times.items() if at is not None}
        return {name: text for name, text in texts.items() if text}


NOT_BOUND: Final[Mapping[str, None]] = dict.fromkeys((ACCOUNT, HOLDER, ISSUED, EXPIRES))
"""A merge patch of the annotations for a token that is not renewed."""


def bound_in(secret: Json) -> Bound | None:
    """What a Secret says; None: its token is not bound, or the annotation names no account."""
    annotations = annotations_of(secret)
    namespace, _, name = str(annotations.get(ACCOUNT) or "").partition("/")
    if not SHORT_NAME.fullmatch(namespace) or not OBJECT_NAME.fullmatch(name):
        return None
    holder = str(annotations.get(HOLDER) or "")
    holder = holder if OBJECT_NAME.fullmatch(holder) else ""
    return Bound(
        ObjectKey(namespace, name),
        holder,
        parse_timestamp(annotations.get(ISSUED)),
        parse_timestamp(annotations.get(EXPIRES)),
    )


def request_spec(bound: Bound, life: timedelta) -> Json:
    """The spec of the TokenRequest for such a token."""
    spec: Json = {"expirationSeconds": int(life.total_seconds())}
    if bound.holder:
        spec["boundObjectRef"] = {"apiVersion": "v1", "kind": "Secret", "name": bound.holder}
    return spec


def life_of(answer: Json) -> timedelta:
    """How long the token of an answered TokenRequest lasts: API servers may shorten what was asked for.

    Both its ends are by the server's clock, so only their distance is used. It is in the token; a server whose tokens
    cannot be read says it in the answer.
    """
    claims = claims_of(str(dig(answer, "status", "token") or ""))
    began, ends = claims.get("iat"), claims.get("exp")
    if isinstance(began, int | float) and isinstance(ends, int | float) and 0 < ends - began < 1e10:
        return timedelta(seconds=ends - began)
    seconds = dig(answer, "spec", "expirationSeconds")
    return timedelta(seconds=seconds) if isinstance(seconds, int) and 0 < seconds < 1e10 else SHORTEST


def claims_of(token: str) -> Json:
    """The claims of a JWT; none if it is no JWT. Whether it is valid is the server's to say."""
    parts = token.split(".")
    if len(parts) != 3:
        return {}
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (ValueError, RecursionError):
        return {}
    return claims if isinstance(claims, dict) else {}


async def issue(
    client: ClusterClient, bound: Bound, life: timedelta, clock: Callable[[], datetime]
) -> tuple[str, Bound]:
    """A new token of an account, and what is known of it: it may last less than was asked for.

    Raises:
        ApiError: the worker refuses, does not answer, or answers without a token.
    """
    began, account = clock(), bound.account
    answer = await client.request_token(account, request_spec(bound, life))
    token = str(dig(answer, "status", "token") or "")
    if not token:
        raise Unreachable(f"the TokenRequest for {account} was answered without a token")
    return token, bound.with_life(began, life_of(answer))
