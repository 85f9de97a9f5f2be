"""Waiting until nothing of ours may run on a worker any more: looked at there, and told while it takes."""

from __future__ import annotations

import contextlib
import time
from datetime import datetime, timedelta
from typing import Final

import anyio
import attrs

from multikueue.core.model.kinds import WORKLOAD
from multikueue.core.model.names import ObjectKey, Resource
from multikueue.errors import ApiError, KubeconfigError
from multikueue.kube import KubeClient
from multikueue.runtime.loop import utc_now
from multikueued.clusters import NoAccess, access_to
from multikueued.commands.tables import span
from multikueued.exits import CommandError
from multikueued.reports.ending_copies import EndingCopy
from multikueued.settings.kinds import chosen_kinds
from multikueued.workers.copy_reader import CopyReader
from multikueued.workers.jobs import known_kinds
from multikueued.workers.places import ManagerAccess

INTERVAL: Final = 2.0
"""Seconds between two looks at a worker, more where a look takes long."""
SHARE: Final = 4.0
"""How many times as long as a look took it is until the next one."""
PATIENCE: Final = 30.0
"""Seconds that a worker may not answer."""
TELL_AGAIN: Final = 60.0
"""Seconds after which what holds it up is told again."""
MOST_TOLD: Final = 20
"""Job copies that are named at once."""


class NotSeen(Exception):
    """A worker cannot be looked at; the message says why, in a clause."""

    def __init__(self, why: str, *, passes: bool = False) -> None:
        super().__init__(why)
        self.passes = passes
        """Whether the next look may succeed."""


@attrs.frozen
class StillThere:
    """What of ours may run on a worker."""

    copies: tuple[EndingCopy, ...]
    now: datetime
    workloads: frozenset[ObjectKey] = frozenset()
    """Those of the manager."""
    pods_unseen: tuple[Resource, ...] = ()
    """See `EndingCopies`."""

    @property
    def lines(self) -> list[str]:
        """What each waits for."""
        return [f"{copy}: {copy.why(self.now)}" for copy in self.copies]

    @property
    def being_deleted(self) -> StillThere:
        """Without what nobody has deleted."""
        return attrs.evolve(self, copies=tuple(copy for copy in self.copies if copy.deleted is not None))

    def ways_out(self, worker: str) -> list[str]:
        """What to do about those that should have ended."""
        overdue = (copy for copy in self.copies if copy.is_overdue(self.now))
        return list(dict.fromkeys(copy.way_out(worker, known=copy.workload in self.workloads) for copy in overdue))


async def still_there(manager: ManagerAccess, worker: str) -> StillThere:
    """Look at a worker, with the credentials that the manager holds now.

    Raises:
        NotSeen: it cannot be looked at.
        ApiError: the manager does not answer.
    """
    cluster = await manager.cluster(worker)
    workloads = (await manager.client.list(WORKLOAD)).items
    try:
        access = await access_to(manager.client, cluster, manager.namespace)
    except (NoAccess, KubeconfigError) as error:
        raise NotSeen(str(error)) from error
    kinds = known_kinds(manager.settings).values()
    try:
        async with KubeClient(access.config, name=worker) as client:
            seen = await CopyReader(client, kinds, str(manager.settings.origin)).look(now := utc_now())
    except KubeconfigError as error:
        raise NotSeen(str(error)) from error
    except ApiError as error:
        raise NotSeen(str(error), passes=True) from error
    # Of a kind that its credentials may not list the daemon has made no copies, unless its settings name the kind.
    named = {kind.resource for kind in chosen_kinds(manager.settings)}
    if unread := [str(resource) for resource in seen.not_read if resource in named]:
        raise NotSeen(f"the user of its kubeconfig may not list {', '.join(unread)} there")
    left = tuple(copy for copy in seen.copies if not copy.is_given_up(worker, cluster, workloads))
    return StillThere(left, now, frozenset(map(ObjectKey.of, workloads)), seen.pods_unseen)


@attrs.define
class EndingWait:
    """Looks at a worker again and again, and tells what keeps it."""

    manager: ManagerAccess
    worker: str
    left: StillThere | None = attrs.field(default=None, init=False)
    """What was seen last; None: nothing yet."""
    _began: float = attrs.field(factory=time.monotonic, init=False)
    _seen: float = attrs.field(factory=time.monotonic, init=False)
    """When it was seen last; before that, when this began."""
    _due: float = attrs.field(default=0.0, init=False)
    """When to look again."""
    _lines: list[str] = attrs.field(factory=list, init=False)
    _told: float = attrs.field(default=0.0, init=False)

    async def until_ended(self, deadline: float | None) -> None:
        """Wait until nothing of ours is there that may have pods.

        Args:
            deadline: on the monotonic clock; None: as long as it takes.

        Raises:
            CommandError: the time is over, or the worker cannot be looked at.
        """
        while True:
            over = deadline is not None and time.monotonic() > deadline
            try:
                left = await self._look()
            except NotSeen as error:
                if not error.passes or over or time.monotonic() - self._seen > PATIENCE:
                    known = f"the manager has no job on {self.worker}, but what runs there could not be looked at"
                    raise CommandError(f"{known}: {error}; it stays cordoned") from error
            else:
                if not left.copies:
                    self._tell_unseen(left)
                    return
                if over:
                    raise CommandError(self._over(left))
                self._tell(left)
            await anyio.sleep(max(0.0, self._due - time.monotonic()))

    async def tell_what_ends(self) -> None:
        """Look once in a while, and tell what of it is being deleted; one that cannot be seen is none to wait for."""
        if time.monotonic() < self._due:
            return
        with contextlib.suppress(NotSeen):
            self._tell((await self._look()).being_deleted)

    @property
    def what_ends(self) -> list[str]:
        """What was being deleted when it was seen last, and what to do about it."""
        left = self.left.being_deleted if self.left is not None else None
        return [*left.lines, *left.ways_out(self.worker)] if left is not None else []

    async def _look(self) -> StillThere:
        started = time.monotonic()
        try:
            self.left = await still_there(self.manager, self.worker)
            self._seen = time.monotonic()
            return self.left
        finally:
            now = time.monotonic()
            self._due = now + max(INTERVAL, SHARE * (now - started))

    def _tell(self, left: StillThere) -> None:
        """Say what is waited for, when that changes and once in a while."""
        lines, now = left.lines, time.monotonic()
        if not lines or (lines == self._lines and now - self._told < TELL_AGAIN):
            return
        self._lines, self._told = lines, now
        waited = span(timedelta(seconds=now - self._began))
        self.manager.say(f"{self.worker} is not empty yet, waited {waited} so far:")
        for line in (*lines[:MOST_TOLD], *([f"and {more} more"] if (more := len(lines) - MOST_TOLD) > 0 else [])):
            self.manager.say(f"  {line}")
        for way_out in left.ways_out(self.worker)[:MOST_TOLD]:
            self.manager.say(f"  {way_out}")

    def _tell_unseen(self, left: StillThere) -> None:
        if left.pods_unseen:
            named = ", ".join(map(str, left.pods_unseen))
            self.manager.say(
                f"not checked: pods of {named} may outlive their jobs, and pods may not be listed on {self.worker}"
            )

    def _over(self, left: StillThere) -> str:
        """That the time is over, what is there, and what to do."""
        waited = span(timedelta(seconds=time.monotonic() - self._began))
        summary = f"{self.worker} still has what may run, after {waited}; the time is over; it stays cordoned:"
        return "\n  ".join([summary, *left.lines, *left.ways_out(self.worker)])
