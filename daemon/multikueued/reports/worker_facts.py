"""What is seen of one worker: values that readers fill in. None stands for "could not be seen"."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from datetime import datetime
from typing import Final

import attrs

from multikueue.core.machinery.shares import UsedUp
from multikueue.core.model.copies import prebuilt_workload
from multikueue.core.model.labels import MANAGED_LABEL
from multikueue.core.model.names import GVK, Json, ObjectKey
from multikueue.core.model.objects import dig, finalizers_of, is_terminating, namespace_of
from multikueue.core.model.worker_kueue import WorkerKueue
from multikueued.reports.ending_copies import EndingCopy
from multikueued.reports.worker_queues import QueuesOnWorker
from multikueued.tokens.bound import Bound


@attrs.frozen
class NotChecked:
    """Something that may not be seen, or could not be. It says nothing about whether it is right."""

    what: str
    why: str
    who: str
    """Who could check it, or what to grant."""
    worker: str = ""
    """The worker of which nothing could be seen; empty: it is about less than that."""


@attrs.frozen
class Permission:
    """A verb of a resource, and whether an identity has it."""

    verb: str
    resource: str
    """With a subresource: `workloads/status`."""
    group: str
    namespace: str
    """Empty: in the whole cluster."""
    name: str
    """Of the one object; empty: of all."""
    allowed: bool

    def __str__(self) -> str:
        resource = f"{self.resource}.{self.group}" if self.group else self.resource
        named = f' "{self.name}"' if self.name else ""
        return f"{self.verb} {resource}{named}{f' in namespace {self.namespace}' if self.namespace else ''}"


@attrs.frozen
class ClockBound:
    """How far a server's clock is ahead of this machine's, in seconds: between `low` and `high`.

    The header Date has whole seconds, and when it was written is known to the length of the request.
    """

    low: float
    high: float

    @classmethod
    def of(cls, date: float, sent: float, received: float) -> ClockBound:
        """From the header Date of an answer, and when the request was sent and answered, in seconds of epoch."""
        return cls(date - received, date + 1 - sent)

    def ahead_of(self, other: ClockBound) -> ClockBound:
        """How far ahead of another server's clock."""
        return ClockBound(self.low - other.high, self.high - other.low)

    def narrowed(self, other: ClockBound) -> ClockBound:
        """What two measurements of one clock tell together."""
        return ClockBound(max(self.low, other.low), min(self.high, other.high))

    @property
    def at_least(self) -> float:
        """By how much it differs at least; negative: it is behind."""
        return self.low if self.low > 0 else min(self.high, 0.0)


_STRANDED: Final = ("namespace", "name", "uid", "deletionTimestamp")
"""What is kept of a pod, and published: never what it runs."""


def stranded_pods(pods: Iterable[Json], workloads: Container[ObjectKey]) -> Iterator[Json]:
    """Pods of groups that have ended and are deleted, and that Kueue's finalizer holds though their Workload is gone.

    Kueue up to 0.19.2 lets go of them only while it sees their Workload being deleted.

    Args:
        pods: copies of ours.
        workloads: those that are there.
    """
    for pod in pods:
        key = ObjectKey(namespace_of(pod), prebuilt_workload(pod))
        ended = dig(pod, "status", "phase") in ("Succeeded", "Failed")
        if ended and is_terminating(pod) and MANAGED_LABEL in finalizers_of(pod) and key.name and key not in workloads:
            yield {"metadata": {field: pod["metadata"].get(field) for field in _STRANDED}}


@attrs.frozen
class Need:
    """An object that pods of a job name, on its worker."""

    kind: str
    key: ObjectKey
    """On the worker."""
    job: str
    """One that names it."""

    def __str__(self) -> str:
        return f"{self.kind} {self.key}"


@attrs.frozen
class ShownPods:
    """Pods of runs, as the manager shows them."""

    shown: int = 0
    refused: int = 0
    """Those that are not shown, or not as they are now: an event on the job says why."""


@attrs.frozen
class WorkerFacts:
    """What a worker answered, asked with the credentials that the manager holds."""

    name: str
    error: str = ""
    """Why it answered nothing else; empty: it did."""
    cause: str = ""
    """The same as a `Cause`; empty: its words alone tell."""
    latency: float | None = None
    clock: ClockBound | None = None
    user: str = ""
    """Whom it takes the credentials for, as it names them; empty: it was not asked, as their token says it."""
    permissions: tuple[Permission, ...] = ()
    lacking: frozenset[GVK] = frozenset()
    """Kinds that it does not serve."""
    namespaces: frozenset[str] | None = None
    terminating: frozenset[str] = frozenset()
    """The namespaces that are being deleted."""
    queues: QueuesOnWorker | None = None
    queues_unseen: str = ""
    """Why they are not known, if that was told."""
    kueue: WorkerKueue | None = None
    takes_anybody: bool | None = None
    """Whether no policy there asks its namespaces whose copies they take."""
    stranded: tuple[Json, ...] = ()
    """Pods of groups, copies of ours, that nobody lets go of; see `stranded_pods`."""
    overdue: tuple[EndingCopy, ...] | None = None
    """Job copies that were deleted and should have ended; None: nobody has looked."""
    lacks: tuple[Need, ...] = ()
    """What jobs that run there name, and what is not there, as far as it may be looked for."""
    used_up: UsedUp | None = None
    """Which namespace of the manager has most there, while jobs wait for a share; the daemon alone knows."""
    mirrors: ShownPods | None = None
    """The pods of runs there; None: they are not shown. The daemon alone knows which were refused."""


@attrs.frozen
class KubeconfigFacts:
    """What a worker's kubeconfig tells, without any secret."""

    secret: str
    """Name of the Secret."""
    digest: str = ""
    """As the condition CredentialsInUse names it."""
    token_expires: datetime | None = None
    """The claim `exp` of a token that has one."""
    certificate_expires: datetime | None = None
    bound: Bound | None = None
    """What the Secret says of a token that the daemon renews."""
    problem: str = ""
    """Why it cannot be used, in the daemon's words."""
    renewed: bool = False
    """Whether who manages the clusters renews it: it is that of a ClusterProfile, or made for a ManagedCluster."""
    outside: bool = False
    """Whether its server is on the machine that the daemon runs on."""
    account: str = ""
    """NAMESPACE/NAME of the service account whose token it has, as the token says; empty: it has no such token."""


def secret_name(worker: str) -> str:
    """The Secret on the manager with a worker's kubeconfig, where `worker add` has made it."""
    return f"{worker}-kubeconfig"
