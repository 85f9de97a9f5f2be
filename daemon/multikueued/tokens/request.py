"""Asks an API server for a bound token, for the command line as for the daemon."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from multikueue.core.model.names import ObjectKey
from multikueue.core.model.objects import dig
from multikueue.errors import Unreachable
from multikueued.clusters import ClusterClient
from multikueued.tokens.bound import Bound, life_of, request_spec


async def issue(
    client: ClusterClient, bound: Bound, life: timedelta, clock: Callable[[], datetime]
) -> tuple[str, Bound]:
    """A new token of an account, and what is known of it: it may last less than was asked for.

    Raises:
        ApiError: the worker refuses, does not answer, or answers without a token.
    """
    began, account = clock(), ObjectKey(bound.account.namespace, bound.account.name)
    answer = await client.request_token(account, request_spec(bound, life))
    token = str(dig(answer, "status", "token") or "")
    if not token:
        raise Unreachable(f"the TokenRequest for {account} was answered without a token")
    return token, bound.with_life(began, life_of(answer))
