"""Managed service accounts: the agent that makes them on a cluster and keeps their tokens on the hub, and the syncer.

The syncer copies the tokens to where the ClusterProfiles are.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Final

import attrs

from multikueue.core.machinery.action import Action
from multikueue.core.model.conditions import new_condition, parse_timestamp, timestamp
from multikueue.core.model.kinds import NAMESPACE, SECRET
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import dig, is_terminating, labels_of, name_of
from multikueue.protocols import ApiClient, read
from multikueue.sandbox.objects import built, owned_by
from multikueue.sandbox.ocm.kinds import (
    ACCOUNT,
    AGENT_NAMESPACE,
    CLUSTER_NAME_LABEL,
    MANAGER,
    MANAGER_LABEL,
    PROFILE,
    SERVICE_ACCOUNT,
    SYNC_LABEL,
    SYNCED_LABEL,
    TOKEN_LABEL,
)
from multikueue.sandbox.ocm.spokes import Spoke, Token
from multikueue.sandbox.ocm.writing import ensure, is_owned_by, remove, write_status

RENEWED: Final = 0.2
"""The part of a token's validity that is left when it is replaced."""
SHORTEST: Final = 600
"""Seconds: no API server issues a token for less."""
_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)(h|ms|m|s)")
_UNITS: Final = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}


def seconds_of(duration: str) -> float:
    """A duration as Go writes it, such as `8640h0m0s`, in seconds."""
    return sum(float(number) * _UNITS[unit] for number, unit in _DURATION.findall(duration))


@attrs.define(eq=False)
class AccountReconciler:
    """Keeps the ManagedServiceAccounts of a hub. Keys are theirs; the namespace is the cluster's name."""

    client: ApiClient
    clock: Callable[[], datetime]
    spokes: Mapping[str, Spoke]

    async def reconcile(self, key: ObjectKey) -> Action:
        """Make an account and its token, or replace a token that ends soon."""
        spoke, account = self.spokes.get(key.namespace), await read(self.client, ACCOUNT, key)
        if spoke is None or not spoke.available:
            return Action.done()
        if account is None or is_terminating(account):
            await self._forget(spoke, key.name)
            return Action.done()
        await ensure(spoke.client, NAMESPACE, built(NAMESPACE, AGENT_NAMESPACE))
        await ensure(spoke.client, SERVICE_ACCOUNT, built(SERVICE_ACCOUNT, key.name, AGENT_NAMESPACE))
        secret, now = await read(self.client, SECRET, key), self.clock()
        renewal = self._renewal(account)
        if secret is None or not dig(secret, "data", "token") or (renewal is not None and renewal <= now):
            token = spoke.issue(AGENT_NAMESPACE, key.name, max(SHORTEST, int(_validity(account))))
            await self._report(account, spoke, token)
            account = await self.client.get(ACCOUNT, key)
            renewal = self._renewal(account)
        return Action.done() if renewal is None else Action.after((renewal - now).total_seconds())

    def _renewal(self, account: Json) -> datetime | None:
        """When the token is to be replaced; None: it is not, or there is none."""
        expires = parse_timestamp(dig(account, "status", "expirationTimestamp"))
        if expires is None or dig(account, "spec", "rotation", "enabled") is False:
            return None
        made = parse_timestamp(dig(account, "status", "tokenSecretRef", "lastRefreshTimestamp")) or expires
        return expires - RENEWED * (expires - made)  # of the token's own life, whatever is asked for by now

    async def _report(self, account: Json, spoke: Spoke, token: Token) -> None:
        """Write the Secret with a token, and tell of it in the account's status."""
        namespace, name = account["metadata"]["namespace"], name_of(account)
        data = {"token": token.text, "ca.crt": spoke.ca_pem}
        encoded = {field: base64.b64encode(text.encode()).decode() for field, text in data.items()}
        secret = built(SECRET, name, namespace, labels={TOKEN_LABEL: "true"}, type="Opaque", data=encoded)
        secret["metadata"]["ownerReferences"] = [owned_by(ACCOUNT, account)]
        await ensure(self.client, SECRET, secret, "data")
        now = self.clock()
        status: Json = {
            "tokenSecretRef": {"name": name, "lastRefreshTimestamp": timestamp(now)},
            "conditions": [
                new_condition("SecretCreated", True, "SecretCreated", "", now=now),
                new_condition("TokenReported", True, "TokenReported", "", now=now),
            ],
        }
        if token.expires is not None:
            status["expirationTimestamp"] = timestamp(token.expires)
        await write_status(self.client, ACCOUNT, account, status)

    async def _forget(self, spoke: Spoke, name: str) -> None:
        """Remove the account on the cluster: its tokens are worth nothing then."""
        there = await read(spoke.client, SERVICE_ACCOUNT, ObjectKey(AGENT_NAMESPACE, name))
        if there is not None:
            await remove(spoke.client, SERVICE_ACCOUNT, there)


def _validity(account: Json) -> float:
    return seconds_of(dig(account, "spec", "rotation", "validity") or "8640h")


@attrs.define(eq=False)
class SyncReconciler:
    """Copies tokens. Keys are those of ClusterProfiles."""

    client: ApiClient

    async def reconcile(self, key: ObjectKey) -> Action:
        """Copy the tokens of a profile's cluster, and delete the copies of accounts that are gone."""
        profile = await read(self.client, PROFILE, key)
        if profile is None or not is_ocms(profile):
            return Action.done()
        listed = await self.client.list(ACCOUNT, namespace=key.name, label_selector=f"{SYNC_LABEL}=true")
        for account in listed.items:
            await self._copy(profile, account)
        there = {f"{key.name}-{name_of(account)}" for account in listed.items}
        copies = await self.client.list(SECRET, namespace=key.namespace, label_selector=SYNCED_LABEL)
        for copy in copies.items:
            if is_owned_by(copy, profile) and labels_of(copy)[SYNCED_LABEL] not in there:
                await remove(self.client, SECRET, copy)
        return Action.done()

    async def _copy(self, profile: Json, account: Json) -> None:
        """Copy one token; one that is not there yet is waited for."""
        cluster, source = account["metadata"]["namespace"], dig(account, "status", "tokenSecretRef", "name")
        secret = await read(self.client, SECRET, ObjectKey(cluster, source)) if source else None
        if secret is None:
            return
        name = f"{cluster}-{name_of(account)}"
        namespace, labels = profile["metadata"]["namespace"], {SYNCED_LABEL: name}
        copy = built(SECRET, name, namespace, labels=labels, type="Opaque", data=secret.get("data") or {})
        copy["metadata"]["ownerReferences"] = [owned_by(PROFILE, profile)]
        await ensure(self.client, SECRET, copy, "data")


def is_ocms(profile: Json) -> bool:
    """Whether OCM made a profile, and says of which cluster."""
    labels = labels_of(profile)
    return labels.get(MANAGER_LABEL) == MANAGER and labels.get(CLUSTER_NAME_LABEL) == name_of(profile)
