"""Dispatchers: which workers a pending Workload is offered to.

What a dispatcher is asked and answers, and the two that need no state: `AllAtOnce`, and `External`, which leaves the
choice to another controller. `incremental.py` offers to a few workers at a time; `guarded.py` checks the answers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import cached_property
from typing import Final, Protocol

import attrs
from attrs.validators import instance_of

from multikueue.core.dispatchers.reasons import Reason
from multikueue.core.model.names import ClusterName, Json, ObjectKey, cluster_name

ALL_AT_ONCE: Final = "kueue.x-k8s.io/multikueue-dispatcher-all-at-once"
"""What Kueue's settings call `AllAtOnce`."""
SCORED: Final = "multikueue.dev/scored"
"""What the settings call the dispatcher of `scored`."""
SILENT_AFTER: Final = timedelta(seconds=90)
"""A watch that says nothing for longer, bookmarks included, is no source of figures."""
MAX_NOMINATIONS: Final = 20
"""The API's limit on `status.nominatedClusterNames`."""


class Known(StrEnum):
    """Whether a queue's figures can be used."""

    YES = "Known"
    FORBIDDEN = "Forbidden"
    """The worker does not let us read its ClusterQueues."""
    TOO_MANY = "TooMany"
    """More flavors than a status can list (64), or more figures on the worker than are looked at (`FIGURES`)."""
    ODD = "Odd"
    """Something about the worker's figures cannot be read, or is as we have never seen it; the log has it."""
    SILENT = "Silent"
    """The watch has said nothing for `SILENT_AFTER`."""
    AWAITED = "Awaited"
    """They are being read for the first time since the worker is connected: nothing is offered before."""


@attrs.frozen
class Candidate:
    """One worker of the Workload's MultiKueueConfig. Read-only, what its fields hold included."""

    name: ClusterName = attrs.field(converter=cluster_name)
    """Of its MultiKueueCluster."""
    labels: Mapping[str, str] = attrs.field(factory=dict)
    """Of its MultiKueueCluster."""
    annotations: Mapping[str, str] = attrs.field(factory=dict)
    """Of its MultiKueueCluster."""
    available: bool = True
    """Whether it can be offered the Workload now: it is connected, and serves the job's kind."""
    nominated: bool = False
    """Whether the Workload is offered to it already."""
    awaited: bool = False
    """Whether it may be available soon: it has not answered since the manager was started, a minute ago at most, or it
    is nominated and answered last a minute ago at most."""
    has_copy: bool = False
    """Whether a copy of this attempt is there, and stays as far as is known."""
    conditions: tuple[Json, ...] = ()
    """`status.conditions` of the Workload's copy there, of this attempt; empty if there is none."""
    gate_open: bool = False
    """Whether the copy's preemption gate is open."""
    obstacle: Reason | None = None
    """Why it cannot get the Workload, as far as the caches tell; None: nothing is known to be in the way."""
    facts: object = None
    """What the dispatcher itself knows of it for this Workload: see `Facts`."""


@attrs.frozen
class Candidates:
    """The workers of a Workload's config, and what was decided about them so far."""

    workers: tuple[Candidate, ...]
    """In the order of the config."""
    nominated: tuple[str, ...] = ()
    """`status.nominatedClusterNames` as it is: in the order of nomination, with names that are not in the config."""
    message: str = ""
    """What our check on the Workload says: the `Nomination.message` written last, unless somebody has reset it. What
    workers say stands behind it in the check, and is not in it."""
    facts: object = None
    """What the dispatcher itself knows of the Workload beside its object: see `Facts`."""

    @cached_property
    def configured(self) -> tuple[ClusterName, ...]:
        """All of them, in the order of the config."""
        return tuple(worker.name for worker in self.workers)

    @cached_property
    def available(self) -> tuple[ClusterName, ...]:
        """Those that can be offered the Workload now, in the same order."""
        return tuple(worker.name for worker in self.workers if worker.available)

    @cached_property
    def awaited(self) -> tuple[ClusterName, ...]:
        """Those that may be available soon, in the same order; see `Candidate.awaited`."""
        return tuple(worker.name for worker in self.workers if worker.awaited)

    @cached_property
    def kept(self) -> tuple[str, ...]:
        """Those it is offered to already, in the order of nomination.

        A worker out of reach stays nominated: a flapping link then rewrites no pending Workload, and a worker that
        admitted before it dropped can still win when it is back.
        """
        return tuple(name for name in self.nominated if name in self.configured)


@attrs.frozen
class NotTaken:
    """No worker took the Workload in time: its quota is given back, or our check becomes Rejected."""

    message: str = attrs.field(validator=instance_of(str))
    """Why, for its user."""
    deactivate: bool = attrs.field(default=False, validator=instance_of(bool))
    """Rejected, which deactivates the Workload; False: it is evicted, and comes behind what waits in its queue, four
    seconds later and a minute after it got its quota at the earliest."""


@attrs.frozen
class Nomination:
    """Whom to offer a Workload to now."""

    names: tuple[str, ...]
    look_again: float | None = None
    """Seconds until time alone would change the answer, at least one; None: only a change can."""
    message: str | None = None
    """What our check on the Workload should say; None: what it says already. It is written together with the names, so
    a dispatcher can keep here what it must remember. One that it does not know again is not written, see `Remembering`.
    Kueue replaces it with an eviction."""
    binding: bool = False
    """Whether another controller chooses the names: then only those workers may get the Workload, and we write none."""
    problem: str = ""
    """What is wrong with the dispatcher, for a warning on the Workload; empty: nothing."""
    claim: object = None
    """What the Workload waits for, for `Figures.planned`; None: nothing."""
    not_taken: NotTaken | None = None
    """That nobody has taken it in time; then the names say nothing."""
    reasons: Mapping[ClusterName, Reason] = attrs.field(factory=dict)
    """For `explain` and metrics: why each worker that is not nominated is not."""


@attrs.frozen
class Waiting:
    """A Workload that has quota and waits for a worker."""

    key: ObjectKey
    workload: Json
    check: str
    """The name of our AdmissionCheck."""
    config: Json
    """The MultiKueueConfig; empty if there is none."""
    jobs: Mapping[str, Json]
    """The manager's jobs by name."""
    queues: Mapping[ClusterName, ObjectKey]
    """By worker, the LocalQueue there that its copy is in."""


@attrs.frozen
class Facts:
    """What a dispatcher knows of a Workload that waits, beside the objects that it is shown."""

    workload: object = None
    """Of the Workload: `Candidates.facts`."""
    workers: Mapping[ClusterName, object] = attrs.field(factory=dict)
    """By worker: `Candidate.facts`. Of each one that is in here the dispatcher says itself why it is not offered it."""


class Figures(Protocol):
    """What a dispatcher that looks at figures knows while a manager runs. No method waits. What `placed` and `planned`
    raise is in the log, and holds up nothing."""

    def facts(self, waiting: Waiting) -> Facts:
        """What `nominate` shall know. Asked for each decision about a Workload that waits; whatever it raises is in the
        log, and the Workload is tried again later."""

    def placed(self, workload: Json, worker: ClusterName, queue: ObjectKey, pods: Sequence[Json]) -> None:
        """A Workload that has a worker has these pods there, in that LocalQueue: they may have no nodes. Called where
        pods are the copies themselves, for each decision."""

    def planned(self, key: ObjectKey, claim: object) -> None:
        """A Workload has been planned.

        Args:
            key: of the Workload.
            claim: of the `Nomination`; None: it waits for nothing.
        """


class Dispatcher(Protocol):
    """Chooses workers. Pure: whatever it must remember lies on the Workload."""

    def nominate(self, workload: Json, candidates: Candidates, now: datetime) -> Nomination:
        """The names that `status.nominatedClusterNames` should hold.

        No name is new that is not `available`. It is asked again whenever anything of the Workload or of a worker
        changes, and after `look_again`. What it raises, and an answer that cannot be used, is told as a warning on
        the Workload, which then stays offered to those it is offered to; see `guarded.py`.
        """


class Remembering(Protocol):
    """A dispatcher that keeps in `Nomination.message` what it must remember."""

    def remembers(self, message: str) -> bool:
        """Whether a message is one of its own. Another one may be replaced by what the Workload waits for."""


def message_time(moment: datetime) -> str:
    """A moment as it stands in a `Nomination.message`: UTC, with milliseconds. Only the dispatcher reads it again."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


@attrs.frozen
class AllAtOnce:
    """Offer to every worker that can be reached; the first to admit wins."""

    def nominate(self, workload: Json, candidates: Candidates, now: datetime) -> Nomination:
        """See `Dispatcher.nominate`."""
        del workload, now
        names = sorted({*candidates.kept, *candidates.available})
        return Nomination(tuple(names[:MAX_NOMINATIONS]))


@attrs.frozen
class External:
    """Offer to the workers another controller writes into `status.nominatedClusterNames`, and to none before that.

    Names that are unknown, out of reach or not in the config stay nominated and are passed over until that changes;
    a worker whose name is taken away loses its copy.
    """

    def nominate(self, workload: Json, candidates: Candidates, now: datetime) -> Nomination:
        """See `Dispatcher.nominate`."""
        del workload, now
        return Nomination(candidates.nominated, binding=True)
