"""The credential syncer: tokens of managed service accounts are copied to where the ClusterProfiles are."""

from __future__ import annotations

import attrs

from multikueue.core.machinery.action import Action
from multikueue.core.model.kinds import SECRET
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import dig, labels_of, name_of
from multikueue.protocols import ApiClient
from multikueue.sandbox.ocm.kinds import (
    ACCOUNT,
    CLUSTER_NAME_LABEL,
    MANAGER,
    MANAGER_LABEL,
    PROFILE,
    SYNC_LABEL,
    SYNCED_LABEL,
    built,
    owned_by,
)
from multikueue.sandbox.ocm.writing import ensure, found, is_owned_by, remove


@attrs.define(eq=False)
class SyncReconciler:
    """Copies tokens. Keys are those of ClusterProfiles."""

    client: ApiClient

    async def reconcile(self, key: ObjectKey) -> Action:
        """Copy the tokens of a profile's cluster, and delete the copies of accounts that are gone."""
        profile = await found(self.client, PROFILE, key)
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
        secret = await found(self.client, SECRET, ObjectKey(cluster, source)) if source else None
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
