"""What is free on the workers, and who may go there: looked up in the clusters' stores, past every API.

Only Jobs are looked at, where nobody preempts and none changes its size: then all room is there to see.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Sequence
from typing import Final

import anyio
import attrs

from multikueue.core.machinery.backoff import REFUSED_BACKOFF
from multikueue.core.model.kinds import JOB, MULTIKUEUE_CLUSTER, MULTIKUEUE_CONFIG, WORKLOAD
from multikueue.core.model.labels import CORDON_ANNOTATION
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import annotations_of, dig, is_terminating, labels_of, uid
from multikueue.core.model.placements import placements
from multikueue.core.model.quantities import MILLI
from multikueue.core.model.workloads import (
    CheckState,
    check_state,
    cluster_name,
    has_quota,
    is_evicted,
    is_finished,
    nominated,
    owner,
    reserved_at,
)
from multikueue.sandbox.apiserver.kinds.resources import ResourceType
from multikueue.sandbox.kueue.scheduling.quota import used_by
from multikueue.sandbox.setting_up import CHECK, LOCAL_QUEUE_NAME
from tests.simulation.choosing import Choosing
from tests.simulation.daemon import Daemon
from tests.simulation.holding import SETTLED
from tests.simulation.needing import needs_others
from tests.simulation.objects import IMPOSTOR_LABEL, find, is_ours, objects
from tests.simulation.reach import Reach
from tests.simulation.remapping import READ
from tests.simulation.renaming import THERE
from tests.simulation.world import SimCluster, World

BEFORE: Final = 20.0
"""Seconds for which something must have been so for the daemon to have seen it, and what it did then to be over."""
REMEMBERED: Final = 600.0
"""Seconds for which a worker may be remembered to have refused a job whose name was taken there."""
ASKED_AGAIN: Final = REFUSED_BACKOFF.cap * (1 + REFUSED_BACKOFF.jitter) + BEFORE
"""Seconds after which a kind that a worker did not serve is listed again: somebody has to install it first."""


@attrs.frozen
class Use:
    """What others than us have of a worker."""

    at: float
    cpu: Counter[str] = attrs.field(factory=Counter)
    """By flavor, in thousandths."""
    waiting: bool = False
    """Whether one of their jobs waits."""


@attrs.define(eq=False)
class Rooms:
    """What is free, and for whom."""

    world: World
    choosing: Choosing
    reach: Reach
    daemon: Daemon
    offered: dict[tuple[str, str], float] = attrs.field(factory=dict)
    """When a Workload, by UID, was offered to a worker last."""
    _uses: dict[str, deque[Use]] = attrs.field(factory=dict)
    _copies: dict[str, float] = attrs.field(factory=dict)
    """Since when copies of ours have quota, by UID."""
    _taken: dict[tuple[ObjectKey, str], float] = attrs.field(factory=dict)
    """When the name of a Workload was taken on a worker last, or what its job needs was somebody else's there."""
    _without_jobs: dict[str, float] = attrs.field(factory=dict)
    """When a worker served no Jobs last."""

    def listen(self) -> None:
        """Begin to watch the workers."""
        for worker in self.world.workers.values():
            self._uses[worker.name] = deque([Use(0.0)])

            def changed(row: ResourceType, old: Json | None, new: Json | None, worker: SimCluster = worker) -> None:
                if row.plural != WORKLOAD.plural:
                    return
                if (copy := new or old) is not None and IMPOSTOR_LABEL in labels_of(copy):
                    self._taken[ObjectKey.of(copy), worker.name] = anyio.current_time()
                self._note(worker, new)

            worker.registry.cluster.listeners.append(changed)

    @property
    def is_plain(self) -> bool:
        """Whether all room is there to see."""
        population = self.world.population
        return not (population.preempting or population.elastic or self.world.orchestrated)

    def is_plain_on(self, name: str) -> bool:
        """Whether one flavor is all that a worker gives, and quota is all that it asks for."""
        site = self.choosing.site(name)
        return not (site.split or site.checked)

    def lately(self, name: str) -> Sequence[Use]:
        """What others had of a worker in the last seconds."""
        uses, since = self._uses[name], anyio.current_time() - BEFORE
        while len(uses) > 1 and uses[1].at < since:
            uses.popleft()
        return uses

    def has_quota_for(self, copy: Json) -> float:
        """For how many seconds a copy of ours has had quota."""
        return anyio.current_time() - self._copies.get(uid(copy), float("inf"))

    def ours(self, name: str) -> Iterator[Json]:
        """The manager's Workloads that are offered to a worker, or have it, and have not ended there."""
        for workload in objects(self.world.manager, WORKLOAD):
            chosen = cluster_name(workload)
            there = chosen == name if chosen is not None else name in nominated(workload)
            if there and has_quota(workload) and not is_finished(workload) and not is_evicted(workload):
                copy = find(self.world.workers[name], WORKLOAD, ObjectKey.of(workload))
                if copy is None or not (is_finished(copy) or is_evicted(copy)):
                    yield workload

    def has_room(self, name: str, workload: Json, held: list[Json]) -> bool:
        """Whether a worker has room for a Workload that is held, when all that may be ahead have got theirs."""
        worker = self.world.workers[name]
        taken = sum(cpu(copy) for copy in objects(worker, WORKLOAD) if _holds(copy))
        pending = (other for other in self.ours(name) if not _holds(find(worker, WORKLOAD, ObjectKey.of(other)) or {}))
        ahead = (other for other in held if other is not workload and _may_be_ahead(other, workload))
        claims = sum(map(cpu, pending)) + sum(map(cpu, ahead))
        return not self._uses[name][-1].waiting and taken + claims + cpu(workload) <= self.world.quota * MILLI

    def most_free(self, name: str, workload: Json) -> int:
        """The most that a worker had free of one flavor for a Workload lately, net of our other copies.

        Which flavor those without quota will get is not known: they leave what is left of all flavors. One that is not
        taken for as long as a worker has for that takes no room from others.
        """
        late = anyio.current_time() - self.choosing.profile.retry.total_seconds()
        worker, lately, pending = self.world.workers[name], self.lately(name), 0
        free = self.choosing.quota(name, self.world.quota)
        for flavor in free:
            free[flavor] -= min(use.cpu[flavor] for use in lately)
        for other in self.ours(name):
            copy = find(worker, WORKLOAD, ObjectKey.of(other)) or {}
            if uid(other) != uid(workload) and has_quota(copy):
                free.subtract(by_flavor(copy))
            elif uid(other) != uid(workload) and self.offered.get((uid(other), name), late) >= late:
                pending += cpu(other)
        return min(max(free.values()), free.total() - pending)

    def can_go(self, workload: Json, name: str) -> bool:
        """Whether nothing is known that keeps it from a worker, room apart."""
        key, worker = ObjectKey.of(workload), self.world.workers[name]
        job = ObjectKey(key.namespace, job_of(workload))
        local, now = find(self.world.manager, JOB, job), anyio.current_time()
        wish = self.choosing.wish_of(local)
        taken = any(find(worker, kind, named) for kind, named in ((WORKLOAD, key), (JOB, job)))
        if taken or needs_others(self.world, worker, local):
            self._taken[key, name] = now
        if JOB in worker.link.weather.hidden or not worker.serves(JOB):
            self._without_jobs[name] = now
        cluster = find(self.world.manager, MULTIKUEUE_CLUSTER, ObjectKey("", name))
        config = find(self.world.manager, MULTIKUEUE_CONFIG, ObjectKey("", CHECK)) or {}
        return (
            cluster is not None
            and CORDON_ANNOTATION not in annotations_of(cluster)
            and name in (dig(config, "spec", "clusters") or ())
            and wish.allows(name, self.choosing.site(name))
            and not wish.together
            and name not in self.world.unfit
            and name not in self.choosing.shut
            and self._is_called_as_its_queue(name)
            and now - self._taken.get((key, name), -REMEMBERED) >= REMEMBERED
            and now - self._without_jobs.get(name, -ASKED_AGAIN) >= ASKED_AGAIN
            and all(placement.get("worker") != name for placement in placements(workload))
            and self.is_steady(name)
        )

    def _is_called_as_its_queue(self, name: str) -> bool:
        """Whether new jobs go to the namespace of its LocalQueue, and did so when the daemon looked last."""
        image, since = self.world.images.get(name, (THERE, -READ))
        return image == THERE and anyio.current_time() - since >= READ

    def is_held(self, workload: Json) -> bool:
        """Whether it waits, and is offered to nobody; not while a job of an earlier attempt is seen."""
        over = is_evicted(workload) or is_finished(workload) or is_terminating(workload)
        offered = bool(nominated(workload)) or cluster_name(workload) is not None
        key = ObjectKey(workload["metadata"]["namespace"], job_of(workload))
        job = find(self.world.manager, JOB, key)
        ending = any(find(worker, JOB, key) for worker in self.world.workers.values())
        waits = has_quota(workload) and check_state(workload, CHECK) is CheckState.PENDING
        is_there = job is not None and not is_terminating(job) and dig(workload, "spec", "active") is not False
        return waits and is_there and not over and not offered and not ending

    def is_steady(self, name: str) -> bool:
        """Whether nothing has disturbed the daemon for a while, nor what it sees of a worker."""
        now, manager = anyio.current_time(), self.world.manager.name
        begun = max(self.daemon.alive_since, *(self.reach.calm_since(place) for place in (name, manager)))
        serves = any(row.resource == JOB for row in self.daemon.adapters)
        steady = self.reach.longer_than(name, SETTLED) and not any(self.world.steps.values())
        return serves and steady and now - begun > SETTLED and name not in self.world.gone

    def _note(self, worker: SimCluster, copy: Json | None) -> None:
        """Note what others have there now, and since when a copy of ours has quota."""
        now, others = (
            anyio.current_time(),
            [workload for workload in objects(worker, WORKLOAD) if not is_ours(workload)],
        )
        if copy is not None and has_quota(copy):
            self._copies.setdefault(uid(copy), now)
        elif copy is not None:
            self._copies.pop(uid(copy), None)
        used = sum((by_flavor(workload) for workload in others if _holds(workload)), Counter[str]())
        self._uses[worker.name].append(Use(now, used, any(map(_waits, others))))
        self.lately(worker.name)


def rank(workload: Json) -> tuple[str, str]:
    """Who comes first, of one priority, while none was evicted."""
    return workload["metadata"]["creationTimestamp"], uid(workload)


def job_of(workload: Json) -> str:
    """The name of the Job that it is of; empty: it is of something else."""
    its_owner = owner(workload)
    return its_owner.name if its_owner is not None and its_owner.gvk == JOB.gvk else ""


def cpu(workload: Json) -> int:
    """What it has reserved, in thousandths."""
    return by_flavor(workload).total()


def by_flavor(workload: Json) -> Counter[str]:
    """What it has reserved of each flavor."""
    return Counter({flavor: amount for (flavor, resource), amount in used_by(workload).items() if resource == "cpu"})


def _may_be_ahead(other: Json, workload: Json) -> bool:
    """Whether its claim may come first: it is older, or has its quota for as long."""
    mine, theirs = reserved_at(workload), reserved_at(other)
    return rank(other) < rank(workload) or mine is None or theirs is None or theirs <= mine


def _holds(copy: Json) -> bool:
    return has_quota(copy) and not is_finished(copy)


def _waits(copy: Json) -> bool:
    is_queued = dig(copy, "spec", "queueName") == LOCAL_QUEUE_NAME and dig(copy, "spec", "active") is not False
    return is_queued and not has_quota(copy) and not is_finished(copy)
