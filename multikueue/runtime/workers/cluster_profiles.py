"""The ClusterProfiles of the manager's namespace, and how the workers are reached that they describe."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import anyio.abc
import attrs

from multikueue.core.config.access_providers import ProfileSettings
from multikueue.core.config.cluster_profiles import chosen_access, enabled, profile_reference, refuse
from multikueue.core.config.profile_secrets import secret_name, token_in
from multikueue.core.machinery.backoff import Backoff
from multikueue.core.model.kinds import CLUSTER_PROFILE
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import dig, uid
from multikueue.errors import Cause
from multikueue.kube import ClusterConfig, Informer
from multikueue.kube.informers.informer_status import InformerStatus
from multikueue.kube.kubeconfigs.profile_config import profile_config
from multikueue.logs import get_logger
from multikueue.protocols import ApiClient
from multikueue.runtime.caches.manager_cluster import ManagerCluster

REFUSED: Final = Backoff(base=0.5, cap=30.0, jitter=0.2)
"""While the manager does not serve ClusterProfiles, or forbids them: their definition may be installed at any time."""

log = get_logger(__name__)


@attrs.define(eq=False, repr=False)
class ClusterProfiles:
    """Follows the ClusterProfiles; nothing is followed without settings."""

    manager: ManagerCluster
    settings: ProfileSettings | None
    namespace: str
    enqueue: Callable[[ObjectKey], object]
    """Has a MultiKueueCluster reconciled."""
    client: ApiClient
    fraction: Callable[[], float]
    """The source of jitter."""
    informer: Informer = attrs.field(init=False)
    _unread: object = attrs.field(default=None, init=False)
    """Whether they have not been read yet, and why, as the clusters tell it."""

    @informer.default
    def _followed(self) -> Informer:
        return Informer(
            self.client,
            CLUSTER_PROFILE,
            namespace=self.namespace,
            keeps_unreadable=True,
            on_change=self.changed,
            on_status=self._health_changed,
            refused_backoff=REFUSED,
            fraction=self.fraction,
        )

    def __repr__(self) -> str:
        return f"<ClusterProfiles {'not used' if self.settings is None else self.informer}>"

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Follow the profiles; ready once they have been read, or cannot be: their kind may not be installed."""
        if self.settings is None:
            task_status.started()
            return
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self.informer.run)
            await self.informer.wait_settled()
            task_status.started()

    def config(self, name: str) -> ClusterConfig | None:
        """How the worker is reached that a profile describes; None: they are being read, and the MultiKueueCluster is
        enqueued after that.

        Raises:
            ClusterProfileError: it cannot be; with Kueue's reason and message.
        """
        key = ObjectKey(self.namespace, name)
        settings = enabled(self.settings)
        if not self._are_read(key):
            return None
        profile = self.informer.get(key)
        access = chosen_access(profile, name, settings)
        if profile is None or access.provider.builtin is None:
            return profile_config(access, settings)
        secret = ObjectKey(self.namespace, secret_name(access))
        token = token_in(self.manager.secrets.get(secret), str(secret), profile, access.provider)
        return profile_config(access, settings, token)

    def _are_read(self, key: ObjectKey) -> bool:
        """Whether it is known which profiles there are.

        Raises:
            ClusterProfileError: the server does not give them, or this one cannot be read.
        """
        status = self.informer.status
        if status.refused and not status.synced:
            refuse(f"{CLUSTER_PROFILE.qualified} cannot be read: {status.last_error}", Cause.PROFILES_UNREAD)
        if unreadable := self.informer.unreadable.why(key):
            refuse(f'{CLUSTER_PROFILE.gvk.kind} "{key.name}" cannot be read: {unreadable}', Cause.PROFILE_UNREADABLE)
        return status.synced

    def changed(self, key: ObjectKey, old: Json | None, new: Json | None) -> None:
        """A ClusterProfile came, went or changed."""
        if _has_old_field(new) and not _has_old_field(old):
            log.warning("status.credentialProviders is deprecated: use accessProviders", profile=key.name)
        if _relevant(old) != _relevant(new):
            self._enqueue_those_by(key.name)

    def _health_changed(self, status: InformerStatus) -> None:
        """Before they have been read once, the clusters tell why not."""
        why = None if status.synced else (status.refused, status.last_error)
        if why != self._unread:
            self._unread = why
            self._enqueue_those_by(None)

    def _enqueue_those_by(self, name: str | None) -> None:
        """Enqueue the MultiKueueClusters that name this profile; None: any."""
        for cluster in self.manager.clusters.values():
            reference = profile_reference(cluster)
            if reference is not None and name in (None, reference):
                self.enqueue(ObjectKey.of(cluster))


def _has_old_field(profile: Json | None) -> bool:
    return bool(dig(profile, "status", "credentialProviders"))


def _relevant(profile: Json | None) -> object:
    """What of a profile may change how its cluster is reached: not its conditions, nor when they were seen."""
    if profile is None:
        return None
    providers = (dig(profile, "status", field) for field in ("accessProviders", "credentialProviders"))
    return (uid(profile), "spec" in profile, *providers)  # one that cannot be read has no spec here
