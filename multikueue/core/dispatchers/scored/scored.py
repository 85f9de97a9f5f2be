"""The dispatcher that offers a Workload where it has room, to the best worker first, and holds it where nobody has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

import attrs

from multikueue.core.dispatchers.dispatcher import MAX_NOMINATIONS, Candidate, Candidates, Nomination
from multikueue.core.dispatchers.reasons import Reason, summary
from multikueue.core.dispatchers.scored import copies
from multikueue.core.dispatchers.scored.facts import job_of, room_of
from multikueue.core.dispatchers.scored.filters import REFUSED_FOR, Tier
from multikueue.core.dispatchers.scored.not_taken import not_taken_in_time, remaining
from multikueue.core.dispatchers.scored.profile import Hold, Profile
from multikueue.core.dispatchers.scored.starts import STARVING, looked_at_again, starves
from multikueue.core.dispatchers.scored.state import QueueRefusal, State
from multikueue.core.dispatchers.scored.view import View, claim, view
from multikueue.core.model.names import ClusterName, Json
from multikueue.core.model.workloads import reserved_at
from multikueue.errors import Cause

_SKEW: Final = timedelta(seconds=2)
"""Kueue's times are in whole seconds, of its clock."""


@attrs.frozen
class Choice:
    """Whom to offer it to beside those that keep it."""

    names: Sequence[str] = ()
    asked: tuple[str, ...] = ()
    round: int = 0
    look_again: float | None = None


@attrs.frozen
class Scored:
    """Offer to the best workers that have room; hold while nobody has; race where quota says nothing.

    Its state is the message of our check. `AllAtOnce` offers everywhere; this one asks one worker, so a worker's queue
    holds nothing that will run elsewhere, and it says where. What a worker cannot take is never asked of it.
    """

    profiles: Mapping[str, Profile] = attrs.field(factory=lambda: {"default": Profile()})
    preemption_timeout: timedelta = timedelta(minutes=5)
    """An offer to a worker that preempts for it, or could, is not taken back before."""

    def remembers(self, message: str) -> bool:
        """See `Remembering`."""
        return State.parse(message) is not None

    def nominate(self, workload: Json, candidates: Candidates, now: datetime) -> Nomination:
        """See `Dispatcher.nominate`."""
        job = job_of(candidates)
        profile = self.profiles.get(job.profile)
        if profile is None:
            return Nomination(candidates.kept, problem=f'There is no profile "{job.profile[:100]}"')
        not_taken = not_taken_in_time(workload, candidates, profile, now)
        if not_taken is not None:
            return Nomination(candidates.kept, not_taken=not_taken)
        now = max(now, reserved_at(workload) or now)  # Kueue's clock may be ahead: no attempt begins in the future
        said = State.parse(candidates.message)
        candidates = _begun(workload, candidates, profile, said, now)
        state = _state(workload, candidates, said, now)
        state = attrs.evolve(state, refused=_refused(candidates, state, now))
        seen = view(workload, candidates, profile, state, now)
        firm, expired = self._sorted_out(candidates, seen, profile, state, now)
        choice = self._choose(seen, profile, state, firm, expired, now)
        names = (*firm, *choice.names)[:MAX_NOMINATIONS]
        after = self._after(state, names, choice, now)
        why = {name: reason for name, reason in _reasons(seen, choice, candidates).items() if name not in names}
        early = not names and _is_too_early(candidates, why)
        times = (choice.look_again, self._expiry(candidates, names, profile, after, now), *_lapses(state, seen, now))
        times = (*times, remaining(workload, profile, now))
        again = [max(1.0, seconds) for seconds in times if seconds is not None]
        reserved, problems = reserved_at(workload) or now, list[str]()
        if not names and profile.hold is Hold.AUTO:
            again.append(looked_at_again(reserved, now))
            if starves(reserved, job.overtaken_by, now):
                problems.append(
                    f"It is {STARVING}: raise its priority, or have giveUp of its profile give its quota back"
                )
        if seen.narrowing.ignored:
            problems.append(f"Ignored, as it cannot be read: {', '.join(seen.narrowing.ignored)}")
        return Nomination(
            names,
            look_again=min(again, default=None),
            message=candidates.message if after == said or (said is None and early) else _message(after, names, why),
            problem="; ".join(problems),
            claim=claim(workload, candidates, seen, names),
            reasons=why,
        )

    def _sorted_out(
        self, candidates: Candidates, seen: View, profile: Profile, state: State, now: datetime
    ) -> tuple[list[str], list[str]]:
        """Of the workers it is offered to: those that keep it, and those whose time is over. One without room has it no
        longer as soon as another has room."""
        firm, expired = list[str](), list[str]()
        for worker in candidates.workers:
            if worker.name not in candidates.kept:
                continue
            if copies.has_quota(worker) or worker.awaited:
                firm.append(worker.name)
            elif worker.name in seen.tiers:
                late = now >= state.since + self._patience(worker, profile, state)
                if late or not _is_in_vain(worker, seen):
                    (expired if late else firm).append(worker.name)
        order = candidates.kept.index
        return sorted(firm, key=order), sorted(expired, key=order)

    def _patience(self, worker: Candidate, profile: Profile, state: State) -> timedelta:
        patience = profile.patience(state.round)
        return max(patience, self.preemption_timeout) if copies.preempts(worker) else patience

    def _expiry(
        self, candidates: Candidates, names: tuple[str, ...], profile: Profile, state: State, now: datetime
    ) -> float | None:
        """Seconds until the first of the offers may be taken back."""
        ends = [
            state.since + self._patience(worker, profile, state)
            for worker in candidates.workers
            if worker.name in names and not copies.has_quota(worker)
        ]
        return min(((end - now).total_seconds() for end in ends if end > now), default=None)

    def _choose(
        self, seen: View, profile: Profile, state: State, firm: Sequence[str], expired: Sequence[str], now: datetime
    ) -> Choice:
        best, usual = seen.best, Choice(asked=state.asked, round=state.round)
        if firm:
            return usual
        group, count = seen.of(best), profile.most if best is Tier.RACE else profile.candidates
        if best is Tier.NONE and profile.hold is Hold.AUTO:
            return attrs.evolve(usual, asked=(*state.asked, *expired), round=state.round + bool(expired))
        if best in (Tier.PREEMPTION, Tier.PROBE) and profile.hold is Hold.AUTO:
            return _try_preemption(group, profile, state, expired, now)
        asked = (*state.asked, *expired)
        unread = {name for name, reason in seen.reasons.items() if reason.why is Cause.FIGURES_AWAITED}
        group = [name for name in group if name not in unread or name in expired]  # in a moment more is known
        fresh = [name for name in group if name not in asked]
        if fresh:
            return Choice(fresh[:count], asked, state.round)
        others = [name for name in group if name not in expired]
        if others:  # all were asked: they are asked again, each for longer
            return Choice(others[:count], tuple(expired), state.round + bool(expired))
        return attrs.evolve(usual, names=group[:count], look_again=profile.retry.total_seconds())

    def _after(self, state: State, names: tuple[str, ...], choice: Choice, now: datetime) -> State:
        since = state.since if names == state.offered else now
        asked = tuple(dict.fromkeys(name for name in choice.asked if name not in names))
        return State(since, names, min(choice.round, 9999), asked, state.refused)


def _is_in_vain(worker: Candidate, seen: View) -> bool:
    is_surer = seen.tiers[worker.name] in (Tier.ROOM, Tier.RACE)
    return seen.best is Tier.ROOM and not is_surer and copies.waits(worker)


def _try_preemption(
    group: Sequence[str], profile: Profile, state: State, expired: Sequence[str], now: datetime
) -> Choice:
    """Offer it to one that may preempt; after one that did not, wait for longer each time."""
    wait = profile.patience(state.round - 1)
    asked = (*state.asked, *expired)
    if expired:  # the wait begins now
        return Choice((), asked, state.round + 1, wait.total_seconds())
    if state.round and now < state.since + wait:
        return Choice((), asked, state.round, (state.since + wait - now).total_seconds())
    fresh = [name for name in group if name not in asked]
    return Choice((fresh or group)[:1], asked if fresh else (), state.round)


def _message(after: State, names: tuple[str, ...], why: Mapping[ClusterName, Reason]) -> str:
    return after.describe("" if names else summary(why))


def _is_too_early(candidates: Candidates, why: Mapping[ClusterName, Reason]) -> bool:
    """Whether more is known in a moment: what is said of a hold stays as long as it lasts."""
    unread = any(reason.why is Cause.FIGURES_AWAITED for reason in why.values())
    return unread or any(worker.awaited and not worker.available for worker in candidates.workers)


def _begun(workload: Json, candidates: Candidates, profile: Profile, said: State | None, now: datetime) -> Candidates:
    """With the offers that were begun and could not be written: their copies are there. Else another worker might be
    chosen, and what the first one has admitted would be in vain. A copy where the Workload cannot go is none."""
    with_copies = [worker.name for worker in candidates.workers if worker.has_copy and worker.available]
    if candidates.nominated or not with_copies:
        return candidates
    state = said or State(now)
    able = view(workload, candidates, profile, state, now).tiers
    begun = [name for name in with_copies if name in able and name not in state.asked]
    if not begun:
        return candidates
    workers = tuple(attrs.evolve(worker, nominated=worker.name in begun) for worker in candidates.workers)
    return attrs.evolve(candidates, workers=workers, nominated=tuple(begun))


def _state(workload: Json, candidates: Candidates, said: State | None, now: datetime) -> State:
    """How the asking stands: of this attempt, and of what is offered."""
    reserved = reserved_at(workload)
    if said is None:
        return State(now, candidates.kept)
    if (reserved is not None and said.since + _SKEW < reserved) or (said.offered and not candidates.nominated):
        return State(now, candidates.kept, refused=said.refused)
    if said.since > now or said.offered != candidates.kept:
        return attrs.evolve(said, since=now, offered=candidates.kept)
    return said


def _refused(candidates: Candidates, state: State, now: datetime) -> tuple[QueueRefusal, ...]:
    """The refusals that count, with those that the copies tell now."""
    queues = ((worker.name, room_of(worker).queue) for worker in candidates.workers)
    here = {name: queue.generation for name, queue in queues if queue is not None}
    known = [
        refusal
        for refusal in state.refused
        if here.get(ClusterName(refusal.worker)) in (None, refusal.generation) and now - refusal.at < REFUSED_FOR
    ]
    refusing = {refusal.worker for refusal in known}
    new = [
        QueueRefusal(worker.name, here[worker.name], now)
        for worker in candidates.workers
        if worker.name in here and worker.name not in refusing and copies.refuses(worker)
    ]
    return (*known, *new)


def _lapses(state: State, seen: View, now: datetime) -> list[float]:
    """Seconds until a refusal, or a failure of the job, keeps it from a worker no longer."""
    ends = (*(refusal.at + REFUSED_FOR for refusal in state.refused), *seen.avoided.values())
    return [(end - now).total_seconds() for end in ends]


def _reasons(seen: View, choice: Choice, candidates: Candidates) -> dict[ClusterName, Reason]:
    reasons: dict[ClusterName, Reason] = {}
    for worker in candidates.workers:
        asked = worker.name in choice.asked
        usual = Reason(Cause.ASKED_BEFORE if asked else Cause.NOT_BEST)
        reasons[worker.name] = seen.reasons.get(worker.name, usual)
    return reasons
