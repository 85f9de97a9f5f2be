"""All workers of a Workload's config at one moment: who is able, how surely, and why not."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import attrs

from multikueue.core.dispatchers.dispatcher import Candidate, Candidates
from multikueue.core.dispatchers.reasons import Reason
from multikueue.core.dispatchers.scored import copies, kueue_objects
from multikueue.core.dispatchers.scored.entries import Entry
from multikueue.core.dispatchers.scored.facts import job_of, room_of
from multikueue.core.dispatchers.scored.filters import FilteredWorkload, Tier, obstacle, tier
from multikueue.core.dispatchers.scored.job_annotations import PREFERENCE, Narrowing, read
from multikueue.core.dispatchers.scored.penalties import failed_on
from multikueue.core.dispatchers.scored.profile import Profile
from multikueue.core.dispatchers.scored.score import Taste, ordered
from multikueue.core.dispatchers.scored.state import State
from multikueue.core.model.names import ClusterName, Json, ObjectKey
from multikueue.core.model.objects import annotations_of, dig, uid
from multikueue.core.model.placements import placements
from multikueue.core.model.workloads import cluster_queue, reserved_at
from multikueue.errors import Cause


@attrs.frozen
class View:
    """What one decision looks at."""

    able: tuple[Candidate, ...]
    """By tier, and in each the best first: they are compared with no others."""
    tiers: Mapping[str, Tier]
    """Of those."""
    reasons: Mapping[ClusterName, Reason]
    """Why a worker is not able, or not surer."""
    narrowing: Narrowing
    avoided: Mapping[ClusterName, datetime]
    """Where the job failed, and until when it does not go back."""

    @property
    def best(self) -> Tier:
        """The best tier that there is."""
        return min(self.tiers.values(), default=Tier.NONE)

    def of(self, wanted: Tier) -> list[str]:
        """The workers of a tier, best first."""
        return [worker.name for worker in self.able if self.tiers[worker.name] is wanted]


def view(workload: Json, candidates: Candidates, profile: Profile, state: State, now: datetime) -> View:
    """Filter the workers, find their tiers, and put them in order."""
    late = state.offered if now >= state.since + profile.patience(state.round) else ()
    job, history = job_of(candidates), placements(workload)
    usual = {PREFERENCE: profile.preference} if profile.preference else {}
    narrowing = read({**usual, **job.annotations, **annotations_of(workload)})
    priority = int(dig(workload, "spec", "priority") or 0)
    wanted = FilteredWorkload(
        job.request,
        priority,
        narrowing,
        job.company,
        state.refused,
        kueue_objects.flavors(workload),
        frozenset(late),
    )
    obstacles = {worker.name: obstacle(worker, wanted, now) for worker in candidates.workers}
    failed = failed_on(history, (name for name, why in obstacles.items() if why is None), now)
    reasons = {name: why for name, why in obstacles.items() if why is not None}
    avoided = {name: failed[name] for name in obstacles if name in failed and name not in reasons}
    reasons |= {name: Reason(Cause.FAILED_BEFORE) for name in avoided}
    able = [worker for worker in candidates.workers if worker.name not in reasons]
    tiers = dict[str, Tier]()
    for worker in able:
        tiers[worker.name], why = tier(worker, wanted, now)
        if why is not None:
            reasons[worker.name] = why
    places = [str(placement.get("worker")) for placement in history]
    taste = Taste(job, narrowing, profile.weights, places, able[-1].name if able else "")
    ranked = [
        worker
        for wanted in sorted(set(tiers.values()))
        for worker in ordered([worker for worker in able if tiers[worker.name] is wanted], taste, now)
    ]
    return View(tuple(ranked), tiers, reasons, narrowing, avoided)


def claim(workload: Json, candidates: Candidates, seen: View, names: tuple[str, ...]) -> Entry | None:
    """What the ledger should know of a Workload; None: it has no quota, or nobody knows what it needs.

    Args:
        workload: the manager's.
        candidates: the workers; what is net of claims is not needed.
        seen: what the decision has seen of them.
        names: where it is, or is about to be, offered.
    """
    reserved, queued = reserved_at(workload), kueue_objects.queued_at(workload)
    request = job_of(candidates).request
    if reserved is None or request is None:
        return None
    tiers = {seen.tiers.get(name) for name in names}
    known = ((worker.name, room_of(worker).queue) for worker in candidates.workers)
    queues = {name: queue.name for name, queue in known if queue is not None}
    return Entry(
        key=ObjectKey.of(workload),
        uid=uid(workload),
        queue=cluster_queue(workload),
        priority=int(dig(workload, "spec", "priority") or 0),
        queued=queued or reserved,
        reserved=reserved,
        request=request,
        places=tuple((worker.name, queues[worker.name]) for worker in seen.able if worker.name in queues),
        offered=tuple((ClusterName(name), queues[name]) for name in map(ClusterName, names) if name in queues),
        unplaced=tuple((worker.name, queues[worker.name]) for worker in seen.able if copies.is_unplaced(worker)),
        doubtful=tiers == {Tier.DOUBT},
        without_room=bool(tiers) and tiers <= {Tier.PREEMPTION, Tier.PROBE, Tier.NONE},
    )
