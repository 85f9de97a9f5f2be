"""A snapshot, with the facts derived from it that several rows of the plan ask about."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import cached_property, partial, wraps
from typing import Any, TypeVar

import attrs

from multikueue.core.dispatchers.dispatcher import Dispatcher
from multikueue.core.model import workloads
from multikueue.core.model.adapter import JobAdapter, KindTraits, Stamp
from multikueue.core.model.check_message import Message
from multikueue.core.model.conditions import parse_timestamp
from multikueue.core.model.copies import is_copy_of, must_be_replaced, with_worker_names, workload_copy
from multikueue.core.model.labels import ATTEMPT_ANNOTATION
from multikueue.core.model.marks import Marks, Proof, Whose, mark_of
from multikueue.core.model.names import ClusterName, Json
from multikueue.core.model.objects import annotations_of, dig, is_terminating
from multikueue.core.model.workload_facts import WORKLOADS, WorkloadFacts
from multikueue.core.workload.seen.snapshot import JobCopy, PlanSettings, Snapshot, Worker
from multikueue.errors import RuleError

Answer = TypeVar("Answer")

_UNREGISTERED = KindTraits(ends=False, workload_only=True)


@attrs.frozen(eq=False)
class Situation:
    """One Workload as the plan sees it. Read-only; the derived facts are computed once."""

    snapshot: Snapshot
    settings: PlanSettings
    dispatcher: Dispatcher
    now: datetime
    answers: dict[Callable[[Situation], Any], Any] = attrs.field(factory=dict, init=False, repr=False)
    """Answers of questions that other modules ask `once`."""
    _whose: dict[tuple[str, int], Whose] = attrs.field(factory=dict, init=False, repr=False)

    @cached_property
    def workload(self) -> Json:
        """The manager's Workload. Only rows that know it exists may ask."""
        return certain(self.snapshot.workload, "a row for live workloads was asked about a deleted one")

    @cached_property
    def facts(self) -> WorkloadFacts:
        """What the manager's Workload says."""
        return WORKLOADS.of(self.workload)

    @property
    def check(self) -> str:
        """The name of our check on it."""
        return certain(self.snapshot.check, "a row for our workloads was asked about somebody else's")

    @property
    def adapter(self) -> JobAdapter:
        """How to handle the job's kind."""
        return certain(self.snapshot.adapter, "a row for known kinds was asked about an unknown one")

    @property
    def traits(self) -> KindTraits:
        """What holds for jobs of the kind. Of one that is not registered only the Workload copies can be followed."""
        return self.snapshot.adapter.traits if self.snapshot.adapter is not None else _UNREGISTERED

    @cached_property
    def workers(self) -> Sequence[Worker]:
        """All known workers."""
        return self.snapshot.workers

    @cached_property
    def configured(self) -> Sequence[Worker]:
        """Those of the config: only they are offered it."""
        return [worker for worker in self.workers if worker.configured]

    def with_workers(self, change: Callable[[Situation, Worker], Worker]) -> Situation:
        """With each worker as `change` makes it of what is known so far; itself if that changes none."""
        snapshot = self.snapshot.with_workers(partial(change, self))
        return self if snapshot is self.snapshot else attrs.evolve(self, snapshot=snapshot)

    @cached_property
    def state(self) -> workloads.CheckState:
        """State of our check."""
        return workloads.check_state(self.workload, self.check)

    @cached_property
    def message(self) -> str:
        """Message of our check."""
        return str((workloads.check(self.workload, self.check) or {}).get("message") or "")

    @cached_property
    def head(self) -> str:
        """The head of that message: a dispatcher's text, or ours."""
        return Message.read(self.message).head

    @cached_property
    def marks(self) -> Marks:
        """Makes the marks of copies, and reads them."""
        return Marks(self.settings.mark_key)

    def copy_for(self, worker: Worker) -> Json:
        """The Workload copy to create on a worker. Read only: all workers' copies share everything but the mark."""
        name_mark = self.marks.of_name(self.snapshot.key, worker.name)
        made, stamp = self._new_copy, attrs.evolve(self.stamp_on(worker), copy_of=name_mark)
        marked = {**annotations_of(made), ATTEMPT_ANNOTATION: stamp.attempt}
        return with_worker_names({**made, "metadata": {**made["metadata"], "annotations": marked}}, stamp)

    @cached_property
    def _new_copy(self) -> Json:
        return workload_copy(self.workload, self._stamp)

    def must_be_replaced(self, copy: Json) -> bool:
        """Whether a copy differs in something that cannot be patched."""
        return must_be_replaced(self.workload, copy)

    @cached_property
    def job(self) -> Json | None:
        """The manager's job, any of several; None: none can be seen, or its kind is not registered."""
        jobs = self.snapshot.jobs
        if self.facts.owner is None or self.snapshot.adapter is None:
            return None
        named = jobs.get(self.facts.owner.name)
        return next(iter(jobs.values()), None) if named is None and self.facts.has_members else named

    @cached_property
    def not_delegated(self) -> str | RuleError | None:
        """Why the manager's own controllers would run the job; None: they leave it to us, or it cannot be seen.

        The error of the kind's rule, where that fails: then neither answer is safe.
        """
        if self.job is None:
            return None
        try:
            return self.adapter.not_delegated(self.job, self.settings.controller_name)
        except RuleError as error:
            return error

    @cached_property
    def free_here(self) -> str:
        """Why the manager would run the job, too, once its Kueue starts it, in words for its user; empty: it would not.

        Most kinds' controllers leave a delegated job alone; pods are held by our scheduling gate. A pod of a group that
        cannot be seen may lack the gate.
        """
        if not self.traits.keeps_check_pending:
            return ""
        if why := next(filter(None, self._whys_free), ""):
            return why
        wanted = sum(workloads.pod_counts(self.workload).values()) if self.facts.has_members else 1
        seen = len(self.snapshot.jobs)
        return "" if seen >= wanted else f"{seen} of {wanted} pods can be seen"

    @property
    def may_be_held_here(self) -> bool:
        """Whether nothing of it would run on the manager, where pods that cannot be seen count as held by our gate."""
        return not self.free_here or (self.settings.pods_ready and not any(self._whys_free))

    @cached_property
    def _whys_free(self) -> list[str]:
        """Of each job that has not ended and is not being deleted: why nothing holds it here; empty: something does."""
        jobs = [job for _, job in sorted(self.snapshot.jobs.items()) if not is_terminating(job)]
        return [self.adapter.why_free(job) for job in jobs if self.adapter.outcome(job) is None]

    @property
    def held_here(self) -> bool:
        """Whether our scheduling gate holds a job of it on the manager, whatever its Kueue does."""
        return self.traits.keeps_check_pending and "" in self._whys_free

    @property
    def check_stays_pending(self) -> bool:
        """Whether the check never becomes Ready: that would start the job here as well, or the settings forbid it."""
        return self.traits.keeps_check_pending and (not self.settings.pods_ready or bool(self.free_here))

    def job_copy_for(self, worker: Worker, job: Json) -> Json:
        """The copy of one of the manager's jobs to create on a worker."""
        copy_of = self.marks.of_copy(job, worker.name)
        return self.adapter.copy(job, attrs.evolve(self.stamp_on(worker), copy_of=copy_of))

    def stamp_on(self, worker: Worker) -> Stamp:
        """What a copy made now on a worker is marked with."""
        mark = self.marks.of(self.workload, self.facts.attempt, worker.name)
        there, queues = self.snapshot.namespace_for(worker), worker.names.queues
        job_mark = self.marks.of_job(self.workload, worker.name)
        return attrs.evolve(self._stamp, attempt=mark, job_mark=job_mark, namespace=there, queues=queues)

    @cached_property
    def _stamp(self) -> Stamp:
        counts = workloads.pod_counts(self.workload) if self.facts.is_elastic else {}
        pod_sets = tuple(dig(self.workload, "spec", "podSets") or ())
        return Stamp(self.settings.origin, self.snapshot.key.name, "", counts, pod_sets)

    @cached_property
    def recorded_on(self) -> ClusterName | None:
        """The name of the recorded worker; it may not be known any more."""
        return self.facts.cluster_name if self.snapshot.workload is not None else None

    @cached_property
    def last_worker(self) -> ClusterName | None:
        """The worker that is recorded, or was recorded last."""
        return self.recorded_on or self.snapshot.last_worker or workloads.noted_worker(self.snapshot.workload or {})

    @cached_property
    def recorded_or_none(self) -> Worker | None:
        """The recorded worker; None if none is recorded, or it is not known any more."""
        name = self.recorded_on
        return self.snapshot.worker(name) if name else None

    @property
    def recorded(self) -> Worker:
        """The recorded worker. Only ways that know that it is there may ask."""
        return certain(self.recorded_or_none, "a way for recorded Workloads was asked where the worker is not known")

    @property
    def recorded_copy(self) -> Json:
        """The Workload copy on it. Only ways that know that it is seen may ask."""
        return certain(self.recorded.copy, "a way for what its worker shows was asked where it shows nothing")

    @property
    def recorded_jobs(self) -> list[Json]:
        """The job copies on it."""
        return self.jobs_on(self.recorded)

    @cached_property
    def group(self) -> tuple[Json, ...]:
        """The other Workloads of its job, if the job has one per replica."""
        if self.facts.component_index is None:
            return ()
        mine = workloads.owner_uids(self.workload)
        present = (sibling for sibling in self.snapshot.siblings if not is_terminating(sibling))
        return tuple(sibling for sibling in present if mine & workloads.owner_uids(sibling))

    @property
    def is_shared(self) -> bool:
        """Whether another unfinished Workload is of the same job: then what the job shows is that one's."""
        return any(not workloads.is_finished(other) and not is_terminating(other) for other in self.snapshot.siblings)

    @cached_property
    def group_workers(self) -> tuple[str, ...]:
        """The names of the workers that have others of its group."""
        return tuple(sorted({name for part in self.group if (name := workloads.cluster_name(part)) is not None}))

    def job_of(self, copy: Json) -> Json | None:
        """The manager's job that a copy was made of; None if it cannot be seen, or is another by now."""
        job = self.snapshot.jobs.get(copy["metadata"]["name"])
        return job if job is not None and is_copy_of(copy, job) else None

    def jobs_on(self, worker: Worker) -> list[Json]:
        """The job copies of this Workload on that worker: one for most kinds. The Workloads of a group share one."""
        if self.snapshot.adapter is not None and self.facts.has_members:
            return [copy.object for copy in worker.jobs if copy.resource == self.adapter.resource]
        shares = self.facts.component_index is not None
        return self._copies((*worker.jobs, *worker.shared) if shares else worker.jobs)

    def any_job_on(self, worker: Worker) -> Json | None:
        """The copy of the job on that worker, any of several, whichever of its Workloads it belongs to."""
        return next(iter(self.jobs_on(worker)), None) or self.shared_job_on(worker)

    def shared_job_on(self, worker: Worker) -> Json | None:
        """The copy of the job on that worker, where it belongs to another Workload."""
        return next(iter(self._copies(worker.shared)), None)

    def _copies(self, listed: Sequence[JobCopy]) -> list[Json]:
        """Those of the owner's name and kind: one at most, as names are unique."""
        if self.facts.owner is None or self.snapshot.adapter is None:
            return []
        name, resource = self.facts.owner.name, self.adapter.resource
        return [copy.object for copy in listed if copy.resource == resource and copy.object["metadata"]["name"] == name]

    def proof(self, worker: Worker, copy: Json) -> Proof:
        """What the mark of a copy on a worker says of this attempt."""
        return self.marks.proof(copy, self.workload, worker.name)

    def whose(self, worker: Worker, copy: Json) -> Whose:
        """Whose a copy on a worker is: the only classification that rows use."""
        asked = worker.name, id(copy)  # of the snapshot, so it lives on; rows ask about the same few several times
        if asked not in self._whose:
            self._whose[asked] = self._by_mark(worker, copy)
        return self._whose[asked]

    def is_this(self, worker: Worker, copy: Json) -> bool:
        """Whether it is this attempt's."""
        return self.whose(worker, copy) is Whose.THIS

    def _by_mark(self, worker: Worker, copy: Json) -> Whose:
        if self.facts.gives_quota_back:
            return self._of_evicted(worker, copy)
        proof, is_recorded = self.proof(worker, copy), worker.name == self.recorded_on
        if proof is Proof.EXACT or (proof is Proof.NONE and is_recorded):
            return Whose.THIS
        # A recorded part of a group has joined the job that is there: nobody is recorded beside an earlier run.
        joined = is_recorded and self.facts.component_index is not None
        shares = joined and any(copy is job for job in self.jobs_on(worker))
        if shares or (copy is self.shared_job_on(worker) and self._is_siblings(worker, copy)):
            return Whose.SIBLINGS
        if proof is Proof.NONE:
            return Whose.UNPROVEN
        return Whose.ELSEWHERE if mark_of(copy) in self._marks_of_attempt else Whose.EARLIER

    def _of_evicted(self, worker: Worker, copy: Json) -> Whose:
        """The same during an eviction, which erases `clusterName`: a mark for any name of the cluster counts."""
        names, siblings = self.names_of(worker), self.snapshot.siblings
        proofs = {self.marks.proof(copy, self.workload, name) for name in names}
        is_believed = Proof.EXACT in proofs or (Proof.NONE in proofs and self.last_worker in names)
        if is_believed and self._ran_on in (None, *names):
            return Whose.THIS
        if any(self.marks.proof(copy, other, name) is Proof.EXACT for other in siblings for name in names):
            return Whose.SIBLINGS
        if Proof.NONE in proofs:
            return Whose.UNPROVEN
        return Whose.ELSEWHERE if Proof.EXACT in proofs else Whose.EARLIER

    @cached_property
    def _ran_on(self) -> ClusterName | None:
        """The worker that was recorded for the attempt that is evicted; None: this process has not seen that."""
        last, began = self.snapshot.placement, self.facts.reserved_at
        since = parse_timestamp(last.since) if last is not None else None
        return last.worker if last is not None and since is not None and began is not None and since >= began else None

    def names_of(self, worker: Worker) -> set[ClusterName]:
        """The names of all workers that lead to this one's cluster: each shows what was made through the others."""
        return {worker.name, *(other.name for other in self.workers if other.is_one_with(worker))}

    @cached_property
    def _marks_of_attempt(self) -> frozenset[str]:
        """What copies of this attempt are marked with, on any worker."""
        return frozenset(self.marks.of(self.workload, self.facts.attempt, worker.name) for worker in self.workers)

    def this_copy(self, worker: Worker) -> Json | None:
        """The Workload copy on that worker, if it counts as this attempt's."""
        copy = worker.copy
        return copy if copy is not None and self.whose(worker, copy) is Whose.THIS else None

    def _is_siblings(self, worker: Worker, job: Json) -> bool:
        """Whether another slice or part of the group has the job there: by its record, or by the mark."""
        siblings = self.snapshot.siblings
        is_recorded = worker.name in map(workloads.cluster_name, siblings)
        return is_recorded or any(self.marks.proof(job, other, worker.name) is Proof.EXACT for other in siblings)

    def has_job(self, worker: Worker) -> bool:
        """Whether this attempt's job is on that worker, or one that a sibling shares with it."""
        return any(self.whose(worker, job).runs_for_it for job in self.jobs_on(worker))

    def stale_jobs_on(self, worker: Worker) -> list[JobCopy]:
        """The job copies there that are not this attempt's. The shared job of a group is never stale."""
        if self.facts.component_index is not None:
            return []
        # The job is made after its Workload copy: beside a proven copy, one without proof was there before.
        proven = worker.copy is not None and self.proof(worker, worker.copy) is Proof.EXACT
        return [
            job
            for job in worker.jobs
            if not self.is_this(worker, job.object) or (proven and self.proof(worker, job.object) is Proof.NONE)
        ]


def certain(value: Answer | None, why: str) -> Answer:
    """What is there wherever this is asked; `why` says what is wrong with the asking row where it is not."""
    assert value is not None, why
    return value


def once(ask: Callable[[Situation], Answer]) -> Callable[[Situation], Answer]:
    """Keep the answer of a question about a situation for as long as that decision takes."""

    @wraps(ask)
    def asked(situation: Situation) -> Answer:
        if ask not in situation.answers:
            situation.answers[ask] = ask(situation)
        answer: Answer = situation.answers[ask]
        return answer

    return asked
