"""One worker cluster: how it is reached, and what is known of it."""

from __future__ import annotations

from collections.abc import Iterator

import anyio
import attrs

from multikueue.core.machinery.connection import Connection
from multikueue.core.model.names import GVK, ClusterName, ObjectKey
from multikueue.kube.config import ClusterConfig
from multikueue.kube.informer_status import InformerStatus
from multikueue.runtime.session import Session


@attrs.define(eq=False)
class Line:
    """One configuration in use, or being tried."""

    config: ClusterConfig = attrs.field(repr=False)
    session: Session | None = None
    seen: InformerStatus | None = None
    """The last state of its Workload watch that was looked at."""
    told: tuple[object, ...] = ()
    """What its caches' state looked like when others were told about it."""
    scope: anyio.CancelScope = attrs.field(factory=anyio.CancelScope, repr=False)
    watching: anyio.CancelScope = attrs.field(factory=anyio.CancelScope, repr=False)

    def stop(self) -> None:
        """Break off everything."""
        self.scope.cancel()

    def retire(self) -> None:
        """Follow nothing any more, but let calls under way end."""
        self.watching.cancel()


@attrs.define(eq=False)
class RemoteCluster:
    """One worker.

    What is known of it (`session`) and how it is reached (`line`) are two things. With a new configuration for the same
    server the earlier session stays what is known until the new one is complete; so nothing ever looks gone that was
    only not read again yet.
    """

    name: ClusterName
    connection: Connection = attrs.field(factory=Connection)
    session: Session | None = None
    config: ClusterConfig | None = attrs.field(default=None, repr=False)
    """The configuration that is wanted; None if there is none that can be used."""
    server: str = ""
    """Which server `session` knows."""
    line: Line | None = attrs.field(default=None, repr=False)
    """The configuration whose word decides whether the worker is connected."""
    trial: Line | None = attrs.field(default=None, repr=False)
    """A newer one that is being tried while `line` works."""

    @property
    def reachable(self) -> bool:
        """Whether what its caches show is what is there."""
        return self.connection.connected and self.usable is not None and self.usable.state.synced

    def awaited(self, gvk: GVK | None) -> bool:
        """Whether the first answer is still to come: that Workloads and a kind's jobs are followed, or why not."""
        if self.session is None or not self.connection.connected:
            return self.connection.unheard
        cache = self.session.cache_of(gvk) if gvk is not None else None
        return cache is not None and not cache.informer.status.synced and not cache.informer.status.failures

    @property
    def usable(self) -> Session | None:
        """The session if requests can be sent through it."""
        return self.session if self.line is not None and self.line.session is self.session else None

    def knows(self, gvk: GVK | None) -> bool:
        """Whether this process has ever seen which Workloads, and which jobs of a kind, lie there."""
        if self.session is None or not self.session.state.synced:
            return False
        cache = self.session.cache_of(gvk) if gvk is not None else None
        return cache is None or cache.informer.status.synced

    @property
    def unusable(self) -> dict[str, str]:
        """The kinds it does not give us, and why."""
        return self.usable.unusable if self.usable is not None else {}

    def keys(self) -> Iterator[ObjectKey]:
        """The Workloads of which something lies there."""
        return self.session.keys() if self.session is not None else iter(())
