"""A worker that has more of our copies than may be read of it: what was deleted on the manager goes there all the same.

A list that is too long, or too large, shows what there is until its reading is broken off. Of the copies that it has
named, those are read by name whose Workload the manager does not have any more, a few at a time, and planned with as
those of any other worker. Once they have gone, the worker is listed again.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from operator import attrgetter
from typing import Final, Unpack

import anyio
import attrs

from multikueue.adapters import AdapterRegistry, SafeAdapter
from multikueue.core.machinery.fair_keys import in_turns
from multikueue.core.model.kinds import WORKLOAD
from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.core.model.objects import namespace_of
from multikueue.core.model.shape import workload_flaw
from multikueue.core.model.worker_names import origin_key, origin_namespace
from multikueue.core.model.workloads import Owner, has_members, owner, owner_names
from multikueue.core.workload.seen.snapshot import JobCopy
from multikueue.errors import ApiError, NotFound, Unreadable
from multikueue.logs import get_logger
from multikueue.protocols import ListOptions, ObjectList, WatchEvent, WatchOptions
from multikueue.runtime.loop import loop_time
from multikueue.runtime.workers.children import adopter
from multikueue.runtime.workers.copies import without_templates
from multikueue.runtime.workers.returning import ReturningWorker

LOOK_EVERY: Final = 5.0
"""Seconds from one look at what was noted to the next: a run is stopped, deleted and waited for in steps."""
AT_ONCE: Final = 4
"""Copies that are read at a time. A copy has 1.5 MB at most."""
AT_MOST: Final = 256
"""Copies that are looked at in one go, by turns of their namespaces: those of one may not go."""

log = get_logger(__name__)


@attrs.frozen
class NamedCopies:
    """What of a Workload is on a worker, read by name."""

    workload: Json
    jobs: tuple[JobCopy, ...]
    """Those that name it."""
    shared: tuple[JobCopy, ...]
    """Its owner's, where they name another Workload."""
    owner: Owner | None
    is_known: bool
    """Whether jobs of the owner's kind can be read at all: if not, one may run that does not show."""

    @property
    def namespace(self) -> str:
        """Where it is."""
        return namespace_of(self.workload)


@attrs.define(eq=False)
class FullWorker:
    """Lists and watches a worker's Workloads: implements `ListerWatcher`, and `Informer.sleep`."""

    worker: ReturningWorker
    adapters: AdapterRegistry
    belongs: Callable[[Json], bool]
    """Whether an object says that it is a copy of ours."""
    is_gone: Callable[[ObjectKey], bool]
    """Whether the manager is known to have no Workload of that name."""
    tell: Callable[[ObjectKey, float], None]
    """Has a Workload planned."""
    copies: dict[ObjectKey, NamedCopies] = attrs.field(factory=dict, init=False)
    """By Workload of the manager, what was read by name; empty while the worker can be listed."""
    _there: dict[ObjectKey, ObjectKey] = attrs.field(factory=dict, init=False)
    """By Workload of the manager, the name of its copy, of those that the last list showed before it was broken off."""

    def __repr__(self) -> str:
        return f"<FullWorker: {len(self._there)} names known, {len(self.copies)} read by name>"

    async def list(self, resource: Resource, **options: Unpack[ListOptions]) -> ObjectList:
        """See `Lister`."""
        there: dict[ObjectKey, ObjectKey] = {}
        each = options.get("each")

        def noted(obj: Json, size: int) -> Json:
            if self.belongs(obj) and not workload_flaw(obj):
                there[origin_key(obj)] = ObjectKey.of(obj)
            return obj if each is None else each(obj, size)

        self._there, options["each"] = {}, noted
        try:
            listed = await self.worker.list(resource, **options)
        except Unreadable:
            self._there = there
            raise
        self._there = there  # whoever has asked may find it too much
        return listed

    async def watch(
        self, resource: Resource, on_event: Callable[[WatchEvent], None], **options: Unpack[WatchOptions]
    ) -> None:
        """See `Watcher`. What was listed is in the caches then."""
        self._there, self.copies = {}, {}
        await self.worker.watch(resource, on_event, **options)

    async def sleep(self, seconds: float) -> None:
        """Wait out a back-off, or until the worker has answered, or what was deleted on the manager has gone."""
        until, names = loop_time() + seconds, len(self._there)
        while (rest := until - loop_time()) > 0:
            await self._look()
            if len(self._there) < names and not self.copies:
                return
            woken_at = loop_time() + (min(LOOK_EVERY, rest) if self._there else rest)
            await self.worker.sleep(woken_at - loop_time())
            if loop_time() < woken_at:
                return

    async def _look(self) -> None:
        """Read what is left of Workloads that are gone, and have them planned."""
        turns = in_turns(filter(self.is_gone, self._there), attrgetter("namespace"))
        gone = [*itertools.islice(turns, AT_MOST)]
        self.copies = {key: copies for key, copies in self.copies.items() if key in gone}
        places = anyio.Semaphore(AT_ONCE)

        async def look(key: ObjectKey) -> None:
            async with places:
                await self._read(key)

        async with anyio.create_task_group() as tasks:
            for key in gone:
                tasks.start_soon(look, key)

    async def _read(self, key: ObjectKey) -> None:
        self.copies.pop(key, None)
        try:
            copy = await self.worker.client.get(WORKLOAD, self._there[key])
            if not self.belongs(copy) or workload_flaw(copy) or origin_key(copy) != key:
                return
            by, jobs, shared = owner(copy), list[JobCopy](), list[JobCopy]()
            for row, name in self._jobs(copy, by):
                job = await self._job(row, ObjectKey(namespace_of(copy), name))
                if job is not None and origin_namespace(job) == key.namespace:
                    names = str(key) in (row.copy_entries(job) or ())
                    (jobs if names else shared).append(JobCopy(row.resource, job, adopter(job)))
        except NotFound:
            del self._there[key]
            return
        except ApiError as error:
            log.debug("not read by name", copy=str(self._there[key]), error=str(error))
            return
        self.copies[key] = NamedCopies(without_templates(copy), tuple(jobs), tuple(shared), by, self._is_known(by))
        self.tell(key, 0.0)

    def _is_known(self, by: Owner | None) -> bool:
        return by is None or self.adapters.get(by.gvk) is not None

    def _jobs(self, copy: Json, by: Owner | None) -> Iterator[tuple[SafeAdapter, str]]:
        """The jobs that a Workload copy names: its worker's Kueue notes who has it."""
        row = self.adapters.get(by.gvk) if by is not None else None
        if by is None or row is None or row.traits.workload_only:
            return
        names: Iterable[str] = owner_names(copy, by.gvk) if has_members(copy) else (by.name,)
        yield from ((row, name) for name in names)

    async def _job(self, row: SafeAdapter, there: ObjectKey) -> Json | None:
        """A job there, if it is a copy of ours.

        Raises:
            ApiError: it could not be read.
        """
        try:
            job = await self.worker.client.get(row.resource, there)
        except NotFound:
            return None
        return job if self.belongs(job) and not row.flaw(job) else None
