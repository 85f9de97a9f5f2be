"""`multikueue worker drain`: cordon a worker, and wait until what it has is gone, or move it elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Final

import anyio
import attrs

from multikueue.core.model import workloads
from multikueue.core.model.kinds import WORKLOAD
from multikueue.core.model.name_lists import listed
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import uid
from multikueue.protocols import read
from multikueued.exits import CommandError
from multikueued.reports.typenames import title
from multikueued.workers.ending_wait import EndingWait
from multikueued.workers.jobs import (
    ask_to_leave,
    cordon,
    known_kinds,
    never_ends,
    obstacle,
    own_checks,
    pods_of,
    running_on,
    why_not_moved,
)
from multikueued.workers.move_targets import MoveTargets
from multikueued.workers.places import ManagerAccess

INTERVAL: Final = 1.0
"""Seconds between two looks."""
STANDS: Final = 5.0
"""Seconds for which what a moved job waits for has to be the same before it is told."""
ACTS: Final = 15.0
"""Seconds that the daemon may take to send a job back before it is told that it has not."""


@attrs.frozen
class UnmovedJob:
    """A job that is not moved, and why."""

    workload: Json
    why: str
    ends: bool = True
    """Whether it ends by itself, so that waiting helps."""

    def __str__(self) -> str:
        return f"{title(self.workload)}: {self.why}"


async def drain(
    manager: ManagerAccess, worker: str, timeout: float | None, *, reason: str, move: Callable[[str], bool] | None
) -> None:
    """Cordon a worker and return once it has no job of ours.

    Args:
        manager: the manager cluster.
        worker: the worker's name.
        timeout: seconds for all of it; None: as long as it takes.
        reason: of the cordon.
        move: asked before jobs are moved; None: they are left to end.

    Raises:
        CommandError: jobs are left, each with why; or what runs there could not be looked at.
    """
    deadline = time.monotonic() + timeout if timeout is not None else None
    await cordon(manager, worker, reason)
    movable, stay = await sort(manager, worker, can_move=move is not None)
    for unmoved in stay:
        if not unmoved.ends or move is not None:
            manager.say(f"stays: {unmoved}")
    if move is not None and movable:
        await _move_all(manager, worker, movable, move, deadline)
    await _until_empty(manager, worker, deadline)
    await EndingWait(manager, worker).until_ended(deadline)
    manager.say(f"{worker} is drained: it has no job of ours.")


async def sort(manager: ManagerAccess, worker: str, *, can_move: bool) -> tuple[list[Json], list[UnmovedJob]]:
    """Tell what of a worker can be moved; and of the rest, why it cannot."""
    kinds, ours = known_kinds(manager.settings), await own_checks(manager)
    movable: list[Json] = []
    stay: list[UnmovedJob] = []
    async with AsyncExitStack() as stack:
        elsewhere = MoveTargets(manager, stack, ours.our_checks)
        for workload in await running_on(manager, worker):
            owner = workloads.owner(workload)
            kind = kinds.get(owner.gvk) if owner is not None else None
            endless = never_ends(workload, kind, await pods_of(manager, workload))
            chain = ours.chain(workload)
            why = endless or (why_not_moved(workload, kind, chain.check) if can_move else "it runs")
            if not why and kind is not None and owner is not None:
                others = [name for name in chain.workers if name != worker]
                key = ObjectKey(ObjectKey.of(workload).namespace, owner.name)
                job = await read(manager.client, kind.resource, key)
                why = _nowhere([(name, await elsewhere.why_not(name, workload, job, kind)) for name in others])
            if why:
                stay.append(UnmovedJob(workload, why, ends=not endless))
            else:
                movable.append(workload)
    return movable, stay


def _nowhere(asked: list[tuple[str, str]]) -> str:
    """Why no other worker takes a job; empty if one does."""
    if any(not why for _, why in asked):
        return ""
    return "no other worker can take it: " + ("; ".join(f"{name}: {why}" for name, why in asked) or "there is none")


async def _move_all(
    manager: ManagerAccess, worker: str, movable: list[Json], move: Callable[[str], bool], deadline: float | None
) -> None:
    names = "\n".join(f"  {title(workload)}" for workload in movable)
    question = f"These jobs are evicted, one at a time, and begin anew on another worker:\n{names}\nMove them?"
    if not move(question):
        raise CommandError(f"nothing was moved; {worker} stays cordoned: multikueue worker uncordon {worker} ends that")
    for workload in movable:
        try:
            await _move(manager, worker, workload, deadline)
        except CommandError:
            raise
        except BaseException:  # Ctrl-C as well
            undo = f"multikueue worker uncordon {worker} ends cordon and move"
            manager.say(f"{title(workload)} is still asked to leave {worker}: {undo}")
            raise


@attrs.define
class _Waiting:
    """Tells what a job that is moved waits for, when that has been so for a while and again when it changes."""

    manager: ManagerAccess
    worker: str
    _why: str = attrs.field(default="", init=False)
    _since: float = attrs.field(factory=time.monotonic, init=False)
    _told: bool = attrs.field(default=False, init=False)

    def tell(self, workload: Json) -> None:
        """Look at its Workload as it is now."""
        here = workloads.cluster_name(workload) == self.worker
        unheard = f"is still on {self.worker}: does the daemon run? Its Workload's events say why else"
        why = unheard if here else f"waits for another worker: {obstacle(workload) or 'nothing says for what'}"
        if why != self._why:
            self._why, self._since, self._told = why, time.monotonic(), False
        if not self._told and time.monotonic() - self._since >= (ACTS if here else STANDS):
            self._told = True
            self.manager.say(f"{title(workload)} {why}")


async def _move(manager: ManagerAccess, worker: str, workload: Json, deadline: float | None) -> None:
    """Move one job, and wait until another worker has it, or it has ended."""
    key = ObjectKey.of(workload)
    await ask_to_leave(manager, workload, worker)
    manager.say(f"moving {title(workload)}")
    ending, waiting = EndingWait(manager, worker), _Waiting(manager, worker)
    while True:
        now = await read(manager.client, WORKLOAD, key)
        if now is None or uid(now) != uid(workload) or workloads.is_finished(now):
            resized = now is not None and workloads.is_replaced(now)
            manager.say(f"{title(workload)} has {'got another size, and is moved no further' if resized else 'ended'}")
            return
        place = workloads.cluster_name(now)
        if place is not None and place != worker:
            manager.say(f"{title(workload)} is on {place}")
            return
        if deadline is not None and time.monotonic() > deadline:
            raise CommandError("\n  ".join([await _unmoved(manager, worker, now), *ending.what_ends]))
        waiting.tell(now)
        await ending.tell_what_ends()
        await anyio.sleep(INTERVAL)


async def _unmoved(manager: ManagerAccess, worker: str, workload: Json) -> str:
    """What to tell of a job that no other worker has in time. One that is still here is not moved any more."""
    if workloads.cluster_name(workload) == worker:
        await ask_to_leave(manager, workload, None)
        return f"{title(workload)} did not leave {worker} in time, and stays: its Workload's events say why"
    undo = f"multikueue worker uncordon {worker} lets it go back there"
    return f"{title(workload)} has left {worker} and waits for another worker; the rest was not moved; {undo}"


async def _until_empty(manager: ManagerAccess, worker: str, deadline: float | None) -> None:
    """Wait for what ends by itself.

    Raises:
        CommandError: the time is over, or what is left does not end.
    """
    last_count = -1
    while left := await running_on(manager, worker):
        over = deadline is not None and time.monotonic() > deadline
        if len(left) != last_count:
            named = listed([*map(title, left)])
            manager.say(f"{worker} has {len(left)} job{'' if len(left) == 1 else 's'} left: {named}")
            last_count = len(left)
            _, stay = await sort(manager, worker, can_move=False)
            if stay and not any(unmoved.ends for unmoved in stay):
                raise CommandError(
                    _left(worker, [str(unmoved) for unmoved in stay], "these do not end: delete them, or stop them")
                )
        if over:
            raise CommandError(_left(worker, [title(workload) for workload in left], "the time is over"))
        await anyio.sleep(INTERVAL)


def _left(worker: str, lines: list[str], why: str) -> str:
    listed = "\n".join(f"  {line}" for line in lines)
    return f"{worker} still has jobs; {why}; it stays cordoned:\n{listed}"
