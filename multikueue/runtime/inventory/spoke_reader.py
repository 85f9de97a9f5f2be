"""Reads one spoke from the caches. The token is the only thing that is asked for: nobody has to let us list Secrets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import attrs

from multikueue.core.config.admission_check import clusters
from multikueue.core.inventory.names import (
    BASE_NAME,
    CLUSTER_PERMISSION,
    MANAGED_SERVICE_ACCOUNT,
    kubeconfig_secret,
    older_secret,
    synced_secret,
)
from multikueue.core.inventory.ocm_workers.spoke import Spoke, SpokeWorker, spokes_of
from multikueue.core.inventory.settings import ConnectionSource, SpokeSettings
from multikueue.core.model.kinds import MULTIKUEUE_CLUSTER, SECRET
from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.core.model.objects import dig, resource_version
from multikueue.errors import Forbidden, NotFound
from multikueue.kube.informers.informer import Informer
from multikueue.protocols import Reader
from multikueue.runtime.caches.mutation_cache import MutationCache
from multikueue.runtime.inventory.caches import HubCaches
from multikueue.runtime.inventory.selection import PlacementSelector
from multikueue.runtime.inventory.spoke_informers import SpokeInformers
from multikueue.runtime.loop import loop_time

LINGER: Final = 300.0
"""Seconds for which a spoke is kept that is neither selected nor in use any more. A Placement by score may choose it
again within a minute; its account and role would be made anew each time."""
REREAD: Final = 300.0
"""Seconds after which the Secret with a token is read again. A renewed token shows in the ManagedServiceAccount at
once; this finds a Secret that somebody has changed by hand."""


@attrs.define(eq=False)
class SpokeReader:
    """Makes the value that a decision looks at."""

    client: Reader
    hub: HubCaches
    secrets: Informer
    """Of Kueue's namespace."""
    informers: SpokeInformers
    selection: PlacementSelector
    settings: SpokeSettings
    _used_at: dict[str, float] = attrs.field(factory=dict, init=False)
    """By spoke, when it was selected or in use last."""
    _tokens: dict[str, tuple[str, float, Json]] = attrs.field(factory=dict, init=False, repr=False)
    """By spoke, the account's resourceVersion when its token was read, when that was, and the Secret."""
    caches: Mapping[Resource, MutationCache] = attrs.field(init=False)
    """What we write, as it will be in a moment."""

    @caches.default
    def _written(self) -> Mapping[Resource, MutationCache]:
        return {
            MULTIKUEUE_CLUSTER: MutationCache(self.hub.clusters),
            SECRET: MutationCache(self.secrets),
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
        own, settings, selected = ObjectKey(name, BASE_NAME), self.settings, self.selection.selects(name)
        spoke = Spoke(
            name,
            selected=selected,
            managed=self.informers.clusters.get(ObjectKey("", name)),
            account=self.caches[MANAGED_SERVICE_ACCOUNT].get(own),
            permission=self.caches[CLUSTER_PERMISSION].get(own),
            profile=self.informers.profiles.get(ObjectKey(settings.namespace, name)),
            synced=self._secret(synced_secret(name)) is not None,
            workers=tuple(self._workers(name, selected=selected)),
            secret=self._secret(kubeconfig_secret(name)),
            older_secret=self._secret(older_secret(name)),
            unserved=self.informers.unserved(),
        )
        if settings.source is not ConnectionSource.KUBECONFIG or not (spoke.wanted or spoke.workers):
            return spoke
        token, why_not = await self._token(own, spoke.account)
        return attrs.evolve(spoke, token=token, token_unread=why_not)

    def _secret(self, name: str) -> Json | None:
        return self.caches[SECRET].get(ObjectKey(self.settings.namespace, name))

    def _workers(self, name: str, *, selected: bool) -> Iterator[SpokeWorker]:
        cache = self.caches[MULTIKUEUE_CLUSTER]
        keys = {ObjectKey.of(worker) for worker in self.hub.clusters.values() if name in spokes_of(worker)}
        lingers = self._lingers(name, used=selected or any(self._in_use(key.name) for key in keys))
        for key in sorted({*keys, ObjectKey("", name)}):
            worker = cache.get(key)
            if worker is not None and name in spokes_of(worker):
                yield SpokeWorker(worker, in_use=lingers or self._in_use(key.name))

    def _in_use(self, worker: str) -> bool:
        return self.hub.occupied(worker) or any(worker in clusters(config) for config in self.hub.configs.values())

    def _lingers(self, name: str, *, used: bool) -> bool:
        """Whether a spoke that is not used was a moment ago: a Placement by score may choose it again."""
        if used:
            self._used_at[name] = loop_time()
            return False
        # A process that has not seen it in use does not know when that was: the span is never shorter for a restart.
        return loop_time() - self._used_at.setdefault(name, loop_time()) < LINGER

    async def _token(self, key: ObjectKey, account: Json | None) -> tuple[Json | None, str]:
        if dig(account, "status", "tokenSecretRef", "name") != key.name:
            self._tokens.pop(key.namespace, None)
            return None, ""
        version = resource_version(account or {})
        known = self._tokens.get(key.namespace)
        if known is not None and known[0] == version and loop_time() - known[1] < REREAD:
            return known[2], ""
        try:
            secret = await self.client.get(SECRET, key)
        except NotFound:
            return None, ""
        except Forbidden as error:
            return None, str(error)
        self._tokens[key.namespace] = version, loop_time(), secret
        return secret, ""
