"""The seams of the library: what it needs of an API server, and what its users implement.

`multikueue.kube.KubeClient` implements `ApiClient` over HTTP, `multikueue.testing.InMemoryCluster` has one in memory. A
`Reconciler` is run by a `Controller`, `Caches` are kept by a `ClusterPool`, and hooks are for metrics.
`multikueue.Dispatcher`, which chooses workers, is with the decisions it belongs to.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Set
from typing import Literal, Protocol, Required, TypedDict, TypeVar

import attrs

from multikueue.core.effects import ConfigStatistics
from multikueue.core.machinery.action import Action
from multikueue.core.machinery.connection import Health
from multikueue.core.model.names import GVK, ClusterName, Json, ObjectKey, Resource
from multikueue.errors import NotFound

K_contra = TypeVar("K_contra", bound=Hashable, contravariant=True)

Subresource = Literal["", "status"]
Propagation = Literal["Background", "Foreground", "Orphan"]


@attrs.frozen
class UnreadableObject:
    """An object that is there and cannot be read."""

    object: Json
    """Its metadata, as far as that can be told: its name and namespace at least."""
    why: str


@attrs.frozen
class ObjectList:
    """One consistent list: the items and the resourceVersion from which a watch continues."""

    items: list[Json]
    resource_version: str
    unreadable: tuple[UnreadableObject, ...] = ()
    """Items that could not be decoded."""


@attrs.frozen
class WatchEvent:
    """One line of a watch stream. `type`: ADDED, MODIFIED, DELETED, BOOKMARK or ERROR (then `object` is a Status)."""

    type: str
    object: Json
    size: int = 0
    """Bytes of the line; 0: not known."""
    unreadable: str = ""
    """Why the object could not be decoded: then `object` is what can be told of its metadata. Empty: it could be."""


Received = Callable[[Json, int], Json]
"""Gets an object of a list as soon as it is read, and its bytes as they were sent; returns what is kept of it."""


Known = Callable[[Json], Json]
"""Gets an object without its spec; returns the fields that stand for that, if it is the spec of a version that was read
before, as UID and generation say. Empty: that is not known; of Pods it never is, as theirs changes without."""


class ListOptions(TypedDict, total=False):
    """Those of `Lister.list`, for who passes them on."""

    namespace: str
    label_selector: str
    limit: int
    each: Received | None


class WatchOptions(TypedDict, total=False):
    """Those of `Watcher.watch`, for who passes them on."""

    resource_version: Required[str]
    namespace: str
    label_selector: str
    idle: float
    on_open: Callable[[], None] | None
    known: Known | None


class Lister(Protocol):
    """Lists the objects of one API server. Every call has a deadline and raises nothing but
    `multikueue.errors.ApiError`."""

    async def list(
        self,
        resource: Resource,
        *,
        namespace: str = "",
        label_selector: str = "",
        limit: int = 0,
        each: Received | None = None,
    ) -> ObjectList:
        """Return all matching objects, read page by page; an empty namespace means all of them.

        They may lack their `managedFields`. With a limit, return at most so many of them in one page. With `each`, what
        that returns stands for them: so a list need never be in memory whole.
        """


class Reader(Lister, Protocol):
    """Reads from one API server, as `Lister`."""

    async def get(self, resource: Resource, key: ObjectKey) -> Json:
        """Return the object.

        Raises:
            NotFound: there is none.
        """


async def read(client: Reader, resource: Resource, key: ObjectKey) -> Json | None:
    """An object; None if there is none."""
    try:
        return await client.get(resource, key)
    except NotFound:
        return None


class Describer(Protocol):
    """Tells what one API server knows of its kinds."""

    async def schema(self, gvk: GVK) -> Json | None:
        """Return the OpenAPI schema of a kind, as a CustomResourceDefinition has it; None: it is not published.

        Raises:
            ApiError: the server did not answer, or with too much.
        """

    async def served(self) -> Set[GVK] | None:
        """Return the kinds of all groups but the core; None: it does not tell them all at once.

        Raises:
            ApiError: the server did not answer, or with too much.
        """


class Watcher(Protocol):
    """Follows changes on one API server."""

    async def watch(
        self,
        resource: Resource,
        on_event: Callable[[WatchEvent], None],
        *,
        resource_version: str,
        namespace: str = "",
        label_selector: str = "",
        idle: float = 90.0,
        on_open: Callable[[], None] | None = None,
        known: Known | None = None,
    ) -> None:
        """Call `on_event` for each event until the server ends the stream (then return).

        What the callbacks raise is passed on as it is.

        Args:
            on_event: told of each event; ERROR events are raised instead.
            resource_version: where to continue, from a list or an earlier event.
            idle: seconds without a byte (bookmarks are asked for) after which the stream counts as dead.
            on_open: called once the server has accepted the watch, before any event.
            known: what is known of specs: of a large event the rest alone need be decoded then. Informers give it only
                where `Informer.knows_specs` is on.

        Raises:
            Expired: the resourceVersion is too old (HTTP 410 or an ERROR event of code 410): list again.
            ApiError: anything else that ended the stream, silence included.
        """


class Writer(Protocol):
    """Writes to one API server."""

    async def create(self, resource: Resource, obj: Json) -> Json:
        """POST; the namespace is the object's own.

        Raises:
            AlreadyExists: an object of that name is there.
        """

    async def replace(self, resource: Resource, obj: Json, *, subresource: Subresource = "") -> Json:
        """PUT the whole object; its `metadata.resourceVersion` is the precondition.

        Raises:
            Conflict: the object changed since it was read.
        """

    async def merge_patch(
        self, resource: Resource, key: ObjectKey, patch: Json, *, subresource: Subresource = ""
    ) -> Json:
        """JSON merge patch; put `metadata.resourceVersion` or `metadata.uid` into the patch for a precondition."""

    async def apply(
        self, resource: Resource, obj: Json, *, field_manager: str, force: bool = True, subresource: Subresource = ""
    ) -> Json:
        """Server-side apply; a `metadata.resourceVersion` in the object is a precondition."""

    async def delete(
        self,
        resource: Resource,
        key: ObjectKey,
        *,
        uid: str | None = None,
        resource_version: str | None = None,
        propagation: Propagation | None = None,
        grace: int | None = None,
    ) -> Json | None:
        """DELETE with preconditions; of a pod that has stopped a kubelet says `grace=0`: it has no more seconds.

        Returns:
            The object as it stands now, with its deletionTimestamp, where it has still to end; None: it is gone.

        Raises:
            NotFound: it is already gone.
            Conflict: a precondition does not hold.
        """


class ApiClient(Reader, Describer, Watcher, Writer, Protocol):
    """Everything one API server can be asked."""

    @property
    def last_activity(self) -> float:
        """When the server answered last, a refusal included, or sent an event; on the loop's clock. -inf: never."""

    async def exists(self, resource: Resource, key: ObjectKey) -> bool:
        """Return whether there is an object, of which nothing else is asked for."""


class Reconciler(Protocol[K_contra]):
    """Brings the world closer to what the object named by a key asks for.

    Level-based: it looks at what is, not at what happened, and may be called at any time, any number of times.
    It is never called for one key twice at once.
    """

    async def reconcile(self, key: K_contra) -> Action | None:
        """Do what is needed now and say when to look again; None: only on a change. A raised error is retried with
        back-off."""


class Caches(Protocol):
    """What is read through one connection. It can still be read after `run` has ended: it shows what was there."""

    @property
    def health(self) -> Health:
        """How it does; `runtime.cluster_pool.health_of` makes one of informers."""

    async def run(self) -> None:
        """Keep the caches until cancelled."""


class RequestHook(Protocol):
    """Observes every request, for metrics. Called in the loop, as all hooks are: it must not wait. What it raises is in
    the log, the first time, and holds up nothing."""

    def observe(self, cluster: str, verb: str, resource: str, status: int, seconds: float) -> None:
        """A request has ended; a watch counts as answered once it is accepted.

        Args:
            cluster: the client's name.
            verb: as audit logs name it.
            resource: plural and group.
            status: the HTTP status; 0 if there was no answer, or the answer broke off or was too large.
            seconds: from the request to the end of the answer; of a watch to its headers.
        """


class ControllerHook(Protocol):
    """Observes every reconcile, for metrics; see `RequestHook`."""

    def reconciled(self, controller: str, seconds: float, error: Exception | None) -> None:
        """A reconcile has ended, after `seconds`."""


class ManagerHook(Protocol):
    """Observes what happens to Workloads and workers, for metrics; see `RequestHook`."""

    def dispatched(self, cluster_queue: str, cluster: ClusterName) -> None:
        """A Workload of this ClusterQueue was offered to a worker."""

    def admitted(self, cluster_queue: str, cluster: ClusterName) -> None:
        """A Workload of this ClusterQueue was given to the worker that admitted it."""

    def rejected(self, cluster: ClusterName, reason: str) -> None:
        """A dispatcher has said anew why it does not offer a Workload to a worker; one of few machine reasons."""

    def round_begun(self, cluster_queue: str) -> None:
        """A dispatcher has chosen workers for a Workload of this ClusterQueue, beyond those it had chosen before."""

    def placed(self, cluster: ClusterName, seconds: float) -> None:
        """A worker was recorded for a Workload, so many seconds after it got its quota."""

    def status_synced(self, cluster: ClusterName, seconds: float) -> None:
        """The status of a job was written to the manager, so many seconds after it had changed on the worker."""

    def refused(self, cluster: ClusterName, reason: str) -> None:
        """A worker refused to create an object; the reason is the API's word, as `Forbidden`."""

    def cluster_connected(self, cluster: ClusterName, connected: bool) -> None:
        """A worker's connection came or went; also called without a change."""

    def cluster_removed(self, cluster: ClusterName) -> None:
        """The manager does not know a worker any more."""


class PlacementHook(Protocol):
    """Observes configs that are filled from an inventory, for metrics; see `RequestHook`."""

    def filled(self, config: str, figures: ConfigStatistics) -> None:
        """A MultiKueueConfig was looked at."""

    def put_off(self, config: str) -> None:
        """A better order of a config was not written, because it is too little better, or too early."""

    def released(self, config: str) -> None:
        """A MultiKueueConfig is not filled any more."""


class ReviewHook(Protocol):
    """Observes every answer of the webhook, for metrics; see `RequestHook`."""

    def reviewed(self, outcome: str) -> None:
        """A review was answered: `delegated`, `warned`, `untouched`, `malformed` or `unavailable`."""
