"""Reads one spoke from the caches. The token is the only thing that is asked for: nobody has to let us list Secrets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import attrs

from multikueue.core.model.kinds import MULTIKUEUE_CLUSTER, SECRET
from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.core.model.objects import dig
from multikueue.core.spokes.names import (
    BASE_NAME,
    CLUSTER_PERMISSION,
    MANAGED_SERVICE_ACCOUNT,
    kubeconfig_secret,
    older_secret,
    synced_secret,
)
from multikueue.core.spokes.ownership import spokes_of
from multikueue.core.spokes.settings import Source, SpokeSettings
from multikueue.core.spokes.spoke import Spoke, Worker
from multikueue.errors import Forbidden, NotFound
from multikueue.runtime.manager_cluster import ManagerCluster
from multikueue.runtime.mutation_cache import MutationCache
from multikueue.runtime.spokes.informers import SpokeInformers
from multikueue.runtime.spokes.selection import Selection
from multikueue.runtime.worker_pool import WorkerPool, workloads_on


@attrs.define(eq=False)
class SpokeReader:
    """Makes the value that a decision looks at."""

    manager: ManagerCluster
    workers: WorkerPool
    informers: SpokeInformers
    selection: Selection
    settings: SpokeSettings
    caches: Mapping[Resource, MutationCache] = attrs.field(init=False)
    """What we write, as it will be in a moment."""

    @caches.default
    def _written(self) -> Mapping[Resource, MutationCache]:
        return {
            MULTIKUEUE_CLUSTER: MutationCache(self.manager.clusters),
            SECRET: MutationCache(self.manager.secrets),
            MANAGED_SERVICE_ACCOUNT: MutationCache(self.informers.accounts),
            CLUSTER_PERMISSION: MutationCache(self.informers.permissions),
        }

    @property
    def known(self) -> bool:
        """Whether what does not show does not exist."""
        return self.informers.known and self.selection.known

    async def read(self, name: str) -> Spoke:
        """The spoke of this name.

        Raises:
            ApiError: the token could not be read.
        """
        own, settings = ObjectKey(name, BASE_NAME), self.settings
        spoke = Spoke(
            name,
            selected=self.selection.selects(name),
            managed=self.informers.clusters.get(ObjectKey("", name)),
            account=self.caches[MANAGED_SERVICE_ACCOUNT].get(own),
            permission=self.caches[CLUSTER_PERMISSION].get(own),
            profile=self.informers.profiles.get(ObjectKey(settings.namespace, name)),
            synced=self._secret(synced_secret(name)) is not None,
            workers=tuple(self._workers(name)),
            secret=self._secret(kubeconfig_secret(name)),
            older_secret=self._secret(older_secret(name)),
            unserved=self.informers.unserved(),
        )
        if settings.source is not Source.KUBECONFIG or not (spoke.wanted or spoke.workers):
            return spoke
        token, why_not = await self._token(own, spoke.account)
        return attrs.evolve(spoke, token=token, token_unread=why_not)

    def _secret(self, name: str) -> Json | None:
        return self.caches[SECRET].get(ObjectKey(self.settings.namespace, name))

    def _workers(self, name: str) -> Iterator[Worker]:
        cache = self.caches[MULTIKUEUE_CLUSTER]
        keys = {ObjectKey.of(one) for one in self.manager.clusters.values() if name in spokes_of(one)}
        for key in sorted({*keys, ObjectKey("", name)}):
            found = cache.get(key)
            if found is not None and name in spokes_of(found):
                yield Worker(found, in_use=self._in_use(key.name))

    def _in_use(self, worker: str) -> bool:
        if self.manager.placed_on(worker) or any(True for _ in self.manager.configs_listing(worker)):
            return True
        connected = self.workers.get(worker)
        # An eviction erases the name at once: what is still there is stopped and removed first.
        return connected is not None and connected.connection.connected and any(True for _ in workloads_on(connected))

    async def _token(self, key: ObjectKey, account: Json | None) -> tuple[Json | None, str]:
        if dig(account, "status", "tokenSecretRef", "name") != key.name:
            return None, ""
        try:
            return await self.manager.client.get(SECRET, key), ""
        except NotFound:
            return None, ""
        except Forbidden as error:
            return None, str(error)
