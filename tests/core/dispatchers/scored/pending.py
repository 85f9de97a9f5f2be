"""A Workload that waits for the scored dispatcher, and the queues of workers."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import attrs

from multikueue.core.dispatchers.dispatcher import Candidate, Candidates, Nomination
from multikueue.core.dispatchers.scored.facts import Group, JobFacts, PodSet, QueueFacts, ResourceRequest, Room, room_of
from multikueue.core.dispatchers.scored.profile import Profile
from multikueue.core.dispatchers.scored.scored import Scored
from multikueue.core.model.names import ClusterName, Json
from multikueue.errors import Cause
from tests.core.building import condition, workload
from tests.core.door import NOW

GPU = ("a100", "gpu")
GROUPS = (Group(frozenset({"gpu"}), ("a100",)),)


def queue(free: int = 8, **more: Any) -> QueueFacts:
    facts = QueueFacts("queue", GROUPS, free={GPU: free}, ceiling={GPU: 16}, nominal={GPU: 16}, generation="q.1")
    return attrs.evolve(facts, **more)


def copy(kind: str, reason: str, *, status: bool) -> tuple[Json, ...]:
    return (condition(kind, reason, status=status),)


@attrs.define
class Pending:
    """A Workload that waits: what the dispatcher answers is what it finds the next time."""

    workers: dict[str, Candidate]
    profile: Profile = attrs.field(factory=Profile)
    gpus: int = 4
    request: ResourceRequest | None = None
    """What it needs; None: `gpus`."""
    flavors: tuple[str, ...] = ()
    annotations: dict[str, str] = attrs.field(factory=dict)
    priority: int = 0
    names: tuple[str, ...] = ()
    message: str = ""
    writes: int = 0
    seconds: float = 0.0
    company: ClusterName | None = None
    overtaken_by: datetime | None = None

    def ask(self, seconds: float = 0.0) -> Nomination:
        self.seconds += seconds
        job = JobFacts(
            self.request or ResourceRequest((PodSet({"gpu": self.gpus}),)),
            company=self.company,
            overtaken_by=self.overtaken_by,
        )
        seen = [attrs.evolve(worker, nominated=worker.name in self.names) for worker in self.workers.values()]
        made = workload()
        made["spec"]["priority"] = self.priority
        given = [{"name": name, "flavors": {"gpu": name}, "resourceUsage": {"gpu": 1}} for name in self.flavors]
        made["status"]["admission"]["podSetAssignments"] = given
        made["metadata"].setdefault("annotations", {}).update(self.annotations)
        answer = Scored({"default": self.profile}).nominate(
            made, Candidates(tuple(seen), self.names, self.message, job), NOW + timedelta(seconds=self.seconds)
        )
        self.writes += (answer.names, answer.message or self.message) != (self.names, self.message)
        self.names, self.message = answer.names, answer.message or self.message
        return answer

    def change(self, name: str, **changes: Any) -> None:
        """`changes`: of the candidate, or of what is known of its queue."""
        worker, room = (
            self.workers[name],
            {name: changes.pop(name) for name in ("queue", "net", "leads") if name in changes},
        )
        self.workers[name] = attrs.evolve(worker, facts=attrs.evolve(room_of(worker), **room), **changes)


def pending(queues: Mapping[str, QueueFacts | None], **more: Any) -> Pending:
    return Pending({name: Candidate(ClusterName(name), facts=Room(facts)) for name, facts in queues.items()}, **more)


def why(answer: Nomination) -> dict[str, Cause]:
    return {name: reason.why for name, reason in answer.reasons.items()}
