"""What the scored dispatcher promises: whom it offers a job to, and that it holds none for which a worker has room."""

from __future__ import annotations

from typing import Final

import anyio
import attrs

from multikueue.core.dispatchers.scored.profile import Hold
from multikueue.core.model.kinds import JOB, MULTIKUEUE_CONFIG, WORKLOAD
from multikueue.core.model.labels import SLICE_REPLACEMENT_ANNOTATION
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import annotations_of, dig, uid
from multikueue.core.model.quantities import MILLI
from multikueue.core.model.workloads import (
    CheckState,
    attempt,
    check_state,
    cluster_name,
    has_quota,
    is_evicted,
    is_finished,
    nominated,
)
from multikueue.sandbox.apiserver.kinds.resources import ResourceType
from multikueue.sandbox.setting_up import CHECK
from tests.simulation.choosing import Choosing
from tests.simulation.objects import find, has_ended, is_of_present_attempt, objects
from tests.simulation.promises import Promises
from tests.simulation.room import BEFORE, Rooms, cpu, job_of, rank
from tests.simulation.world import World

LOOK: Final = 2.0
"""Virtual seconds between two looks at who is held."""


@attrs.frozen
class Suspicion:
    """A worker was offered to one while another, ahead of it and no larger, was held."""

    at: float
    ahead: tuple[str, str]
    """By UID, and the worker."""
    text: str


@attrs.define(eq=False)
class Offering:
    """Watches nominations, and looks again and again at what is held."""

    world: World
    choosing: Choosing
    rooms: Rooms
    promises: Promises
    _companies: dict[str, set[str]] = attrs.field(factory=dict)
    """Where a Job has been."""
    _able: dict[tuple[str, str], float] = attrs.field(factory=dict)
    """Since when a Workload, by UID, is held and may go to a worker: who was kept away till now is not overtaken."""
    _with_room: dict[tuple[str, str], float] = attrs.field(factory=dict)
    """Since when a worker has room for a Workload that is held."""
    _suspicions: list[Suspicion] = attrs.field(factory=list)

    async def run(self) -> None:
        """Watch until cancelled."""
        self.rooms.listen()
        self.world.manager.registry.cluster.listeners.append(self._manager_changed)
        while True:
            await anyio.sleep(LOOK)
            if self.rooms.is_plain:
                self._look()

    def _manager_changed(self, row: ResourceType, old: Json | None, new: Json | None) -> None:
        job = job_of(new) if row.plural == WORKLOAD.plural and new is not None else ""
        if new is None or not job:
            return
        if (worker := cluster_name(new)) is not None:
            self._companies.setdefault(job, set()).add(worker)
            return
        if old is not None and check_state(old, CHECK) is CheckState.PENDING:
            self._taken_back(old, new)
        for name in sorted(self.world.workers.keys() & set(nominated(new)) - set(nominated(old or {}))):
            self.rooms.offered[uid(new), name] = anyio.current_time()
            self._offered(new, job, name)

    def _taken_back(self, old: Json, new: Json) -> None:
        """A worker that has given quota to a copy may still be waited for, as for a check of its own."""
        over = not has_quota(new) or is_evicted(new) or is_finished(new) or attempt(old) != attempt(new)
        config = find(self.world.manager, MULTIKUEUE_CONFIG, ObjectKey("", CHECK)) or {}
        listed = set(dig(config, "spec", "clusters") or ())
        for name in sorted(listed & set(nominated(old)) - set(nominated(new))) if not over else ():
            worker = self.world.workers[name]
            copy = find(worker, WORKLOAD, ObjectKey.of(new))
            if copy is None or is_evicted(copy) or is_finished(copy) or not self.rooms.is_steady(name):
                continue
            if self.rooms.has_quota_for(copy) > BEFORE / 2 and is_of_present_attempt(worker, copy, new):
                self.promises.broken.append(f"{ObjectKey.of(new)} is taken back from {name}, where it has quota")

    def _offered(self, workload: Json, job: str, name: str) -> None:
        """A worker is nominated that was not."""
        now, site = anyio.current_time(), self.choosing.site(name)
        wish, text = (
            self.choosing.wish_of(find(self.world.manager, JOB, ObjectKey(workload["metadata"]["namespace"], job))),
            f"{ObjectKey.of(workload)} is offered to {name}",
        )
        if not wish.allows(name, site):
            self.promises.broken.append(f"{text}, where it may not go")
        if wish.together and name not in self._companies.get(wish.together, ()):
            self.promises.broken.append(f"{text}, and {wish.together} is not there")
        if not self.rooms.is_steady(name) or self._has_it(name, workload, job) or self._follows(workload, name):
            return
        if now - self.choosing.shut.get(name, now) > BEFORE:
            self.promises.broken.append(f"{text}, whose queue is shut")
        if site.split and cpu(workload) > MILLI:
            self.promises.broken.append(f"{text}, where no flavor could ever hold it")
        if self.choosing.profile.hold is Hold.AUTO and self.rooms.is_plain and not site.checked:
            self._offered_with_room(workload, name, text)
            self._suspect(workload, name)

    def _has_it(self, name: str, workload: Json, job: str) -> bool:
        """Whether a worker has given it quota, or its job has ended there: somebody has erased the record.

        What has quota may run; what has ended, with a Workload copy or without one, takes no room.
        """
        worker, key = self.world.workers[name], ObjectKey.of(workload)
        copies = (
            (find(worker, WORKLOAD, key), has_quota),
            (find(worker, JOB, ObjectKey(key.namespace, job)), has_ended),
        )
        return any(
            copy is not None and counts(copy) and is_of_present_attempt(worker, copy, workload)
            for copy, counts in copies
        )

    def _follows(self, workload: Json, name: str) -> bool:
        """Whether it is a slice of an elastic job that is there: nobody chooses a worker for that."""
        before = annotations_of(workload).get(SLICE_REPLACEMENT_ANNOTATION)
        replaced = find(self.world.manager, WORKLOAD, ObjectKey.parsed(before)) if before is not None else None
        return replaced is not None and cluster_name(replaced) == name

    def _offered_with_room(self, workload: Json, name: str, text: str) -> None:
        """Hold it against the most that was free lately, net of our other copies."""
        lately = self.rooms.lately(name)
        if all(use.waiting for use in lately):
            self.promises.broken.append(f"{text}, where others wait")
        most = self.rooms.most_free(name, workload)
        if cpu(workload) > most:
            self.promises.broken.append(f"{text}, needs {cpu(workload)} and {most} are free there")

    def _suspect(self, workload: Json, name: str) -> None:
        now = anyio.current_time()
        for other in objects(self.world.manager, WORKLOAD):
            waits_long = now - self._able.get((uid(other), name), now) > 2 * BEFORE
            ahead = rank(other) < rank(workload) and cpu(other) <= cpu(workload)
            if waits_long and ahead and self.rooms.is_held(other) and self.rooms.can_go(other, name):
                text = f"{ObjectKey.of(workload)} is offered to {name}, and {ObjectKey.of(other)} waits for longer"
                self._suspicions.append(Suspicion(now, (uid(other), name), text))

    def _look(self) -> None:
        now = anyio.current_time()
        held = [workload for workload in objects(self.world.manager, WORKLOAD) if self.rooms.is_held(workload)]
        plain = [name for name in self.world.workers if self.rooms.is_plain_on(name)]
        able = [(workload, name) for workload in held for name in plain if self.rooms.can_go(workload, name)]
        self._able = {pair: self._able.get(pair, now) for pair in [(uid(workload), name) for workload, name in able]}
        for suspicion in [entry for entry in self._suspicions if now - entry.at > BEFORE / 2]:
            self._suspicions.remove(suspicion)
            if self._able.get(suspicion.ahead, now) < suspicion.at:
                self.promises.broken.append(suspicion.text)
        with_room = {
            (uid(workload), name): ObjectKey.of(workload)
            for workload, name in able
            if self.rooms.has_room(name, workload, held)
        }
        self._with_room = {pair: self._with_room.get(pair, now) for pair in with_room}
        patience = 2 * self.choosing.profile.retry.total_seconds()
        for (of, name), key in with_room.items():
            if now - self._with_room[of, name] > patience:
                self.promises.broken.append(f"{key} is held for {patience:.0f} s, and {name} has room")
