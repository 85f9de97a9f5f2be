"""The scheduler: a pass over a ClusterQueue, or over those of a cohort, when who waits or what is free changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime

import anyio
import attrs

from multikueue.core.machinery.action import Action
from multikueue.core.model.conditions import condition, parse_timestamp
from multikueue.core.model.eviction import PREEMPTED, evicted
from multikueue.core.model.flavors import flavor_names
from multikueue.core.model.kinds import ADMISSION_CHECK
from multikueue.core.model.labels import JOB_UID_LABEL
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import labels_of, name_of, uid
from multikueue.core.model.workloads import cluster_queue, has_quota, is_admitted, is_evicted, is_finished, nominated
from multikueue.errors import ApiError
from multikueue.logs import get_logger
from multikueue.sandbox.kueue.applying import ADMISSION
from multikueue.sandbox.kueue.deciding_workloads import admission, admitted_note, seconds_since
from multikueue.sandbox.kueue.effects import ApplyStatus, Note, Step
from multikueue.sandbox.kueue.gates import blocked, unblocked
from multikueue.sandbox.kueue.performing import Performer
from multikueue.sandbox.kueue.scheduling.cohorts import cohort_name
from multikueue.sandbox.kueue.scheduling.cycle import Candidate, Holder, Neighbours, Pass, Rules, schedule, total
from multikueue.sandbox.kueue.scheduling.ledger import WAITS
from multikueue.sandbox.kueue.scheduling.queues import NAMESPACE_MISMATCH, check_rules, is_stopped
from multikueue.sandbox.kueue.scheduling.quota import Assignment, Quota
from multikueue.sandbox.kueue.scheduling.topologies import is_delayed_by, located
from multikueue.sandbox.kueue.slices import announced, placed, replaced_by, replaced_key, takes_place_of
from multikueue.sandbox.kueue.statuses import reserved, unreserved
from multikueue.sandbox.kueue.stores import Stores

log = get_logger(__name__)

_WRITES_AT_A_TIME = 16  # of one pass; they are independent of each other
_RETRY = 0.02  # seconds until the next pass when a write of this one failed


@attrs.define(eq=False)
class Scheduler:
    """Gives quota. At most one pass over a ClusterQueue runs at a time, so nothing is given twice."""

    stores: Stores
    performer: Performer
    clock: Callable[[], datetime]

    async def reconcile(self, name: str) -> Action:
        """One pass over the ClusterQueue of that name, and over all others of its cohort: who borrows most is last."""
        queues = self.stores.lenders(name)
        if len(queues) > 1:
            queues.sort(key=self._surplus)
        actions = [await self._reconcile(queue) for queue in queues]
        return Action.earliest(*(action.delay for action in actions))

    def _surplus(self, name: str) -> int:
        """How much more than its own it uses, of what it uses most of; negative where some of its own is left."""
        nominal = Quota.of(self.stores.cluster_queue(name) or {}).nominal()
        used = total(self.stores.ledger.holders(name))
        return max((used[place] - amount for place, amount in nominal.items()), default=0)

    async def _reconcile(self, name: str) -> Action:
        queue = self.stores.cluster_queue(name)
        if queue is None or self.stores.configuration.inactivity(queue) is not None:
            return Action.done()
        open_queues, shut = self._local_queues(queue)
        steps = [*self._refuse(shut)]
        if self.stores.ledger.waiting_count(open_queues):
            steps += self._steps(queue, open_queues, self._schedule(queue, open_queues))
        return await self._perform(steps)

    def _local_queues(self, queue: Json) -> tuple[list[ObjectKey], list[ObjectKey]]:
        """Its LocalQueues, and those whose namespace it does not take."""
        configuration = self.stores.configuration
        going = [entry for entry in self.stores.queues_of(queue["metadata"]["name"]) if not is_stopped(entry)]
        keys = [ObjectKey.of(entry) for entry in going]
        taken = [key for key in keys if configuration.takes_namespace(queue, key.namespace)]
        return taken, [key for key in keys if key not in taken]

    def _schedule(self, queue: Json, local_queues: list[ObjectKey]) -> Pass:
        ledger = self.stores.ledger
        flavors = self.stores.configuration.flavors_of(flavor_names(queue)).values()
        name, quota, neighbours = name_of(queue), Quota.of(queue, flavors), self._neighbours(queue)
        wanted = {check for check, flavors in check_rules(queue).items() if not flavors}
        if neighbours is not None:
            quota = quota.within({place: neighbours.cohorts.capacity(name, place) for place in quota.nominal()})
        return schedule(
            quota,
            Rules.of(queue),
            (candidate for candidate in ledger.waiting(local_queues) if wanted <= candidate.checks),
            ledger.holders(name),
            shapes=ledger.shapes(local_queues),
            neighbours=neighbours,
        )

    def _neighbours(self, queue: Json) -> Neighbours | None:
        """What is to be known of its cohort; None if it is in none."""
        if not cohort_name(queue):
            return None
        name, cohorts = name_of(queue), self.stores.cohorts()
        holders = {other: self.stores.ledger.holders(other) for other in cohorts.together_with(name)}
        return Neighbours(cohorts, name, holders)

    def _steps(self, queue: Json, local_queues: list[ObjectKey], outcome: Pass) -> Iterator[Step]:
        for candidate, assignment in outcome.admitted:
            yield from self._admit(queue["metadata"]["name"], candidate, assignment)
        for candidate, victims in outcome.preempted:
            for victim in victims:
                yield from self._preempt(queue["metadata"]["name"], candidate.key, victim)
        given = {candidate.key for candidate, _ in outcome.admitted}
        for candidate in outcome.blocked:
            yield from self._block(candidate.key)
        given |= {candidate.key for candidate in outcome.blocked}
        for candidate in self.stores.ledger.unexplained(local_queues):
            message = outcome.refusals.get(candidate.shape)
            if message is not None and candidate.key not in given:
                yield from self._wait(candidate.key, message)

    def _refuse(self, local_queues: list[ObjectKey]) -> Iterator[Step]:
        for candidate in self.stores.ledger.unexplained(local_queues):
            yield from self._wait(candidate.key, NAMESPACE_MISMATCH)

    def _admit(self, queue: str, candidate: Candidate, assignment: Assignment) -> Iterator[Step]:
        workload, now = self.stores.workload(candidate.key), self.clock()
        if workload is None or has_quota(workload):
            return
        replaced = self._replaced(workload)
        if replaced is not None and (first := announced(workload, replaced)) is not None:
            yield admission(first)
            return
        rules = check_rules(self.stores.cluster_queue(queue) or {})
        checks = (self.stores.objects[ADMISSION_CHECK].get(ObjectKey("", name)) for name in rules)
        pod_sets = located(workload, assignment.pod_sets, delayed=is_delayed_by(checks))
        result = reserved(unblocked(workload, now), queue, pod_sets, now)
        over = None
        if replaced is not None:
            result = placed(result, replaced)
            over = None if is_finished(replaced) else admission(replaced_by(replaced, workload, now))
        waited = _seconds_queued(workload, now)
        message = f"Quota reserved in ClusterQueue {queue}, wait time since queued was {waited:.0f}s"
        notes = [Note(ADMISSION, workload, "QuotaReserved", message)]
        if is_admitted(result):
            notes.append(admitted_note(ADMISSION, result, now))
        # Kueue's order: were the slice before it not finished first, it might keep its quota for ever.
        yield attrs.evolve(admission(result, *notes), first=over)

    def _replaced(self, workload: Json) -> Json | None:
        """The slice whose place it takes, if there is one."""
        key = replaced_key(workload)
        replaced = self.stores.workload(key) if key is not None else None
        return replaced if replaced is not None and takes_place_of(workload, replaced) else None

    def _preempt(self, queue: str, winner: ObjectKey, loser: Holder) -> Iterator[Step]:
        preemptor, victim = self.stores.workload(winner), self.stores.workload(loser.key)
        if preemptor is None or victim is None or is_evicted(victim):
            return
        job = labels_of(preemptor).get(JOB_UID_LABEL) or "UNKNOWN"
        other = cluster_queue(victim)
        own = other == queue
        why = "prioritization in the ClusterQueue" if own else "reclamation within the cohort"
        message = (
            f"Preempted to accommodate a workload (UID: {uid(preemptor)}, JobUID: {job}) due to {why}; "
            f"preemptor path: /{self._path(queue)}; preemptee path: /{self._path(other)}"
        )
        notes = [Note(ADMISSION, victim, reason, message) for reason in (f"EvictedDueTo{PREEMPTED}", PREEMPTED)]
        kind = "InClusterQueue" if own else "InCohortReclamation"
        yield admission(evicted(victim, PREEMPTED, message, self.clock(), preempted=kind), *notes)

    def _path(self, queue: str) -> str:
        cohort = cohort_name(self.stores.cluster_queue(queue) or {})
        return f"{cohort}/{queue}" if cohort else queue

    def _block(self, key: ObjectKey) -> Iterator[Step]:
        workload = self.stores.workload(key)
        if workload is None or has_quota(workload):
            return
        result = blocked(workload, self.clock())
        if result is not workload:
            yield admission(result)

    def _wait(self, key: ObjectKey, message: str) -> Iterator[Step]:
        workload = self.stores.workload(key)
        if workload is None or has_quota(workload):
            return
        note = Note(ADMISSION, workload, WAITS, message, "Warning")
        yield admission(unreserved(workload, WAITS, message, self.clock()), note)

    def _announces(self, step: Step) -> bool:
        """Whether it only prepares what the next pass gives."""
        request = step.request
        return isinstance(request, ApplyStatus) and not has_quota(request.object) and bool(nominated(request.object))

    async def _perform(self, steps: list[Step]) -> Action:
        limiter = anyio.CapacityLimiter(_WRITES_AT_A_TIME)
        failed: list[ApiError] = []

        async def write(step: Step) -> None:
            async with limiter:
                try:
                    await self.performer.perform(step)
                except ApiError as error:  # somebody else changed that one; the others are not concerned
                    log.debug("not written", error=str(error))
                    failed.append(error)

        async with anyio.create_task_group() as writes:
            for step in steps:
                writes.start_soon(write, step)
        more = failed or any(self._announces(step) for step in steps)
        return Action.after(_RETRY) if more else Action.done()


def _seconds_queued(workload: Json, now: datetime) -> float:
    """Since it was made, or since it was last put back into the queue."""
    again = condition(workload, "Requeued")
    if again is not None and again.get("status") == "True":
        return seconds_since(again, now)
    created = parse_timestamp(workload["metadata"].get("creationTimestamp"))
    return max(0.0, (now - created).total_seconds()) if created else 0.0
