"""Each rule of the scored dispatcher taken away, one at a time; see `mutations`. A unit test sees each of them, too."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final
from unittest import mock

from multikueue.core.dispatchers.dispatcher import Candidate
from multikueue.core.dispatchers.reasons import Reason
from multikueue.core.dispatchers.scored import copies, filters, room, score, view
from multikueue.core.dispatchers.scored import ledger as ledgers
from multikueue.core.dispatchers.scored.entries import Entry, Rank
from multikueue.core.dispatchers.scored.facts import (
    FlavorAmounts,
    Flavored,
    Group,
    Place,
    QueueFacts,
    ResourceRequest,
    room_of,
)
from multikueue.core.dispatchers.scored.filters import FilteredWorkload
from multikueue.core.dispatchers.scored.job_annotations import Narrowing
from multikueue.core.dispatchers.scored.ledger import Ledger
from multikueue.errors import Cause
from multikueue.runtime.scored import queue_room
from tests.simulation.decision_mutations import all_of, not_taken_keeps_its_quota, what_waits_goes_round_at_once

Mutation = Callable[[], AbstractContextManager[Any]]


def _ignoring(*ignored: Cause) -> AbstractContextManager[Any]:
    """A worker may be asked although it cannot get the Workload for one of these reasons."""
    original = filters.obstacle

    def obstacle(worker: Candidate, wanted: FilteredWorkload, now: datetime) -> Reason | None:
        reason = original(worker, wanted, now)
        return None if reason is not None and reason.why in ignored else reason

    return mock.patch.object(view, "obstacle", obstacle)


def workers_out_of_reach_are_asked() -> AbstractContextManager[Any]:
    """Filter: a worker that cannot be reached, or does not serve the kind, is one to choose."""
    return _ignoring(Cause.OUT_OF_REACH, Cause.NOT_SERVED, Cause.JOBS_UNREAD, Cause.FIELD_MISSING)


def queues_that_are_not_there_are_asked() -> AbstractContextManager[Any]:
    """Filter: a worker without a LocalQueue, or whose ClusterQueue is not Active, is one to choose."""
    return _ignoring(Cause.NO_LOCAL_QUEUE, Cause.NAMESPACE_UNNAMED, Cause.QUEUE_INACTIVE)


def names_are_ignored() -> AbstractContextManager[Any]:
    """Filter: a worker that the job does not name is one to choose."""
    return _ignoring(Cause.NOT_NAMED)


def selectors_are_ignored() -> AbstractContextManager[Any]:
    """Filter: a worker that the job does not select is one to choose."""
    return _ignoring(Cause.NOT_SELECTED)


def taints_are_ignored() -> AbstractContextManager[Any]:
    """Filter: a worker that the job does not tolerate is one to choose."""
    return _ignoring(Cause.NOT_TOLERATED)


def company_is_ignored() -> AbstractContextManager[Any]:
    """Filter: a job need not go where the one is that it belongs to."""
    return _ignoring(Cause.NOT_TOGETHER)


def flavors_of_the_manager_are_ignored() -> AbstractContextManager[Any]:
    """Filter: a worker that stands for other flavors is one to choose."""
    return _ignoring(Cause.OTHER_FLAVOR)


def what_never_fits_is_asked() -> AbstractContextManager[Any]:
    """Filter: a worker of which no flavor could ever hold the job is one to choose."""
    return _ignoring(Cause.NEVER_FITS)


def refusals_are_forgotten() -> AbstractContextManager[Any]:
    """Filter: a worker whose Kueue has refused the job is one to choose."""
    return _ignoring(Cause.REFUSED)


def faults_are_forgotten() -> AbstractContextManager[Any]:
    """Filter, penalty: a job goes back to the worker that has failed it."""
    return mock.patch.object(view, "failed_on", return_value={})


def what_cannot_be_read_is_ignored() -> AbstractContextManager[Any]:
    """Per job: an annotation that narrows and cannot be read does not hold the job."""
    return _ignoring(Cause.UNREADABLE)


def narrowing_annotations_are_ignored() -> AbstractContextManager[Any]:
    """Per job: nobody reads what it asks for."""
    return mock.patch.object(view, "read", return_value=Narrowing())


def offers_take_no_room() -> AbstractContextManager[Any]:
    """Room: our copies that have no quota yet are not taken off."""

    def base(self: Ledger, place: Place, now: datetime) -> FlavorAmounts:
        facts = self._queues[place]
        return facts.free if facts.has_room_to_give(now) else {}

    return mock.patch.object(Ledger, "_base", base)


def flavors_are_summed() -> AbstractContextManager[Any]:
    """Room: what is free in several flavors counts together."""
    original = room.placed

    def placed(
        request: ResourceRequest, groups: Iterable[Group], free: FlavorAmounts, now: FlavorAmounts | None = None
    ) -> dict[Flavored, int] | None:
        listed = list(groups)
        summed = {
            (group.flavors[0], name): sum(free.get((flavor, name), 0) for flavor in group.flavors)
            for group in listed
            for name in group.resources
        }
        return original(request, listed, summed, now)

    return all_of(mock.patch.object(filters, "placed", placed), mock.patch.object(ledgers, "placed", placed))


def jobs_of_others_are_ignored() -> AbstractContextManager[Any]:
    """Room: what is free is ours although jobs of others wait there."""
    return mock.patch.object(QueueFacts, "others_wait", return_value=False)


def copies_with_quota_are_taken_back() -> AbstractContextManager[Any]:
    """Offer: after a while the next worker is asked, though this one has given quota."""
    return mock.patch.object(copies, "has_quota", return_value=False)


def raced_copies_are_taken_back() -> AbstractContextManager[Any]:
    """Offer: a worker that has given quota and asks its own check is not waited for."""
    original = copies.has_quota

    def has_quota(worker: Candidate) -> bool:
        queue = room_of(worker).queue
        return original(worker) and not (queue is not None and queue.has_checks)

    return mock.patch.object(copies, "has_quota", has_quota)


def offers_on_evidence_are_taken_back() -> AbstractContextManager[Any]:
    """Offer: a worker that preempts for the job gets no more time than others."""
    return mock.patch.object(copies, "preempts", return_value=False)


def offers_without_room_stay() -> AbstractContextManager[Any]:
    """Offer: where there is no room a job waits for `retry`, whoever else has room."""
    return mock.patch.object(copies, "waits", return_value=False)


def figures_are_believed_before_a_kueue() -> AbstractContextManager[Any]:
    """Room: a worker whose Kueue says that the copy waits there has room if older figures say so."""
    return mock.patch.object(filters, "copies", _Said())


class _Said:
    """`copies`, of which nothing waits."""

    def __getattr__(self, name: str) -> Any:
        return (lambda _: False) if name == "waits" else getattr(copies, name)


def what_has_no_nodes_is_forgotten() -> AbstractContextManager[Any]:
    """Room: where nodes had no place for a job, the next of its shape is offered as if they had."""
    return mock.patch.object(QueueFacts, "places", return_value=True)


def ended_jobs_keep_their_room() -> AbstractContextManager[Any]:
    """Room: what a job got stays claimed after its end, until figures must have shown it."""
    return mock.patch.object(queue_room, "is_finished", return_value=False)


def workers_of_others_are_as_good() -> AbstractContextManager[Any]:
    """Score: of equal workers one that others use comes before one that nobody else does."""
    return mock.patch.object(QueueFacts, "is_shared", return_value=False)


def room_that_has_grown_wakes_nobody() -> AbstractContextManager[Any]:
    """Hold: who is held is not looked at when room has come."""
    return mock.patch.object(Ledger, "woken", return_value=())


def later_ones_overtake() -> AbstractContextManager[Any]:
    """Order: who came last is first."""

    def rank(self: Entry) -> Rank:
        return Rank(-self.priority, self.queued + 2 * (_LATE - self.queued), self.uid, self.key)

    return mock.patch.object(Entry, "rank", property(rank))


_LATE: Final = datetime.fromisoformat("2030-01-01T00:00:00+00:00")


def penalties_are_ignored() -> AbstractContextManager[Any]:
    """Penalty: a worker with one does not rank last."""
    return mock.patch.object(score, "_penalized", return_value=False)


def trials_are_ignored() -> AbstractContextManager[Any]:
    """Penalty: a worker with one gets more than one job at a time."""
    return mock.patch.object(QueueFacts, "on_trial", return_value=False)


RULES: Final[Mapping[str, Mutation]] = MappingProxyType(
    {
        mutation.__name__: mutation
        for mutation in (
            workers_out_of_reach_are_asked,
            queues_that_are_not_there_are_asked,
            names_are_ignored,
            selectors_are_ignored,
            taints_are_ignored,
            company_is_ignored,
            flavors_of_the_manager_are_ignored,
            what_never_fits_is_asked,
            refusals_are_forgotten,
            faults_are_forgotten,
            what_cannot_be_read_is_ignored,
            narrowing_annotations_are_ignored,
            offers_take_no_room,
            flavors_are_summed,
            jobs_of_others_are_ignored,
            copies_with_quota_are_taken_back,
            raced_copies_are_taken_back,
            offers_on_evidence_are_taken_back,
            offers_without_room_stay,
            figures_are_believed_before_a_kueue,
            what_has_no_nodes_is_forgotten,
            ended_jobs_keep_their_room,
            workers_of_others_are_as_good,
            room_that_has_grown_wakes_nobody,
            later_ones_overtake,
            not_taken_keeps_its_quota,
            what_waits_goes_round_at_once,
            penalties_are_ignored,
            trials_are_ignored,
        )
    }
)
"""In the order of the rules."""
UNSEEN: Final = frozenset(
    {
        "workers_out_of_reach_are_asked",
        "what_never_fits_is_asked",
        "refusals_are_forgotten",
        "faults_are_forgotten",
        "jobs_of_others_are_ignored",
        "raced_copies_are_taken_back",
        "offers_on_evidence_are_taken_back",
        "offers_without_room_stay",
        "figures_are_believed_before_a_kueue",
        "what_has_no_nodes_is_forgotten",
        "ended_jobs_keep_their_room",
        "workers_of_others_are_as_good",
        "not_taken_keeps_its_quota",
        "penalties_are_ignored",
        "trials_are_ignored",
        "an_accepted_deletion_is_a_removal",
    }
)
"""Which the simulation is not known to see: only a unit test does."""
