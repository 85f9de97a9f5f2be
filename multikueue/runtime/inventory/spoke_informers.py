"""The caches of OCM's kinds. A kind that is not served, or forbidden, is asked for again with back-off."""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

import anyio
import attrs

from multikueue.core.inventory.names import BASE_NAME, CLUSTER_PERMISSION, MANAGED_CLUSTER, MANAGED_SERVICE_ACCOUNT
from multikueue.core.inventory.ocm_workers.readiness import kinds
from multikueue.core.inventory.settings import SpokeSettings
from multikueue.core.model.kinds import CLUSTER_PROFILE
from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.core.model.objects import dig, labels_of, uid
from multikueue.core.model.writers import drop_managed_fields
from multikueue.kube.informers.informer import Informer
from multikueue.protocols import ApiClient
from multikueue.runtime.inventory.caches import when_readable


@attrs.define(eq=False)
class SpokeInformers:
    """What the hub knows of its spokes. Nothing is known before `run`."""

    clusters: Informer
    """ManagedClusters."""
    accounts: Informer
    permissions: Informer
    profiles: Informer
    """ClusterProfiles of Kueue's namespace."""
    needed: frozenset[Resource]
    """Which of them are followed."""

    @classmethod
    def build(
        cls,
        client: ApiClient,
        settings: SpokeSettings,
        on_spoke: Callable[[str], None],
        on_status: Callable[[], None],
        *,
        fraction: Callable[[], float] = lambda: 0.0,
    ) -> Self:
        """Build the caches; `run` fills them.

        Args:
            client: the manager's API server.
            settings: of the workers that are made: only what they need is followed.
            on_spoke: called with the name of each spoke of which something changed.
            on_status: called when a kind can be read, or cannot any more.
            fraction: the source of jitter.
        """

        def informer(resource: Resource, spoke_of: Callable[[ObjectKey], str], within: str = "") -> Informer:
            def changed(key: ObjectKey, old: Json | None, new: Json | None) -> None:
                if (name := spoke_of(key)) and (old is None or new is None or _relevant(old) != _relevant(new)):
                    on_spoke(name)

            return Informer(
                client,
                resource,
                namespace=within,
                transform=slim,
                on_change=changed,
                on_status=when_readable(on_status),
                fraction=fraction,
            )

        def own_namespace(key: ObjectKey) -> str:
            return key.namespace if key.name == BASE_NAME else ""

        return cls(
            informer(MANAGED_CLUSTER, lambda key: key.name),
            informer(MANAGED_SERVICE_ACCOUNT, own_namespace),
            informer(CLUSTER_PERMISSION, own_namespace),
            informer(CLUSTER_PROFILE, lambda key: key.name, settings.namespace),
            frozenset((MANAGED_CLUSTER, CLUSTER_PERMISSION, *kinds(settings))),
        )

    async def run(self) -> None:
        """Keep the caches until cancelled."""
        async with anyio.create_task_group() as tasks:
            for informer in self._all:
                tasks.start_soon(informer.run)

    @property
    def _all(self) -> tuple[Informer, ...]:
        built = (self.clusters, self.accounts, self.permissions, self.profiles)
        return tuple(informer for informer in built if informer.resource in self.needed)

    @property
    def known(self) -> bool:
        """Whether a ManagedCluster that does not show does not exist, and every other kind has been asked for."""
        asked = all(informer.status.synced or informer.status.failures for informer in self._all)
        return asked and self.clusters.status.synced

    def unserved(self) -> dict[Resource, str]:
        """The kinds that have not been read, and why not."""
        unread = (informer for informer in self._all if not informer.status.synced)
        return {informer.resource: informer.status.last_error or "it has not been read yet" for informer in unread}


def slim(obj: Json) -> Json:
    """An object as it is kept. Agents write the status of a ManagedCluster all the time, and it is not read here."""
    kept = drop_managed_fields(obj)
    if obj.get("kind") == MANAGED_CLUSTER.gvk.kind:
        kept.pop("status", None)
    return kept


def _relevant(obj: Json) -> object:
    """What of an object a decision may go by: not when its conditions were seen last."""
    metadata = (uid(obj), dig(obj, "metadata", "deletionTimestamp"), labels_of(obj))
    marked = dig(obj, "metadata", "annotations"), dig(obj, "metadata", "ownerReferences")
    status = obj.get("status")
    if obj.get("kind") == CLUSTER_PROFILE.gvk.kind:
        status = [dig(status, field) for field in ("accessProviders", "credentialProviders")]
    return metadata, marked, obj.get("spec"), status
