"""What the doctor's checks look at: values that readers have filled in. None stands for "could not be seen"."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime

import attrs

from multikueue import JobKind
from multikueue.core.model.names import GVK, Json, ObjectKey
from multikueued.config import Settings
from multikueued.reports.objects import ManagerObjects
from multikueued.tokens.bound import Bound
from multikueued.workers.fitting import Queues


@attrs.frozen
class NotChecked:
    """Something that may not be seen, or could not be. It says nothing about whether it is right."""

    what: str
    why: str
    who: str
    """Who could check it, or what to grant."""


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
    def of(cls, told: float, sent: float, received: float) -> ClockBound:
        """From the time that a server told, and when the request was sent and answered, in seconds of epoch."""
        return cls(told - received, told + 1 - sent)

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


@attrs.frozen
class Credentials:
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


@attrs.frozen
class WorkerFacts:
    """What a worker answered, asked with the credentials that the manager holds."""

    name: str
    error: str = ""
    """Why it answered nothing else; empty: it did."""
    latency: float | None = None
    clock: ClockBound | None = None
    permissions: tuple[Permission, ...] = ()
    lacking: frozenset[GVK] = frozenset()
    """Kinds that it does not serve."""
    namespaces: frozenset[str] | None = None
    queues: Queues | None = None


@attrs.frozen
class KueueFacts:
    """Kueue's own controller on the manager."""

    image: str = ""
    """Empty: not seen."""
    arguments: tuple[str, ...] | None = None
    configuration: Json | None = None


@attrs.frozen
class StatusWriter:
    """Somebody who writes the status of MultiKueueClusters."""

    manager: str
    """The field manager: `kueue`, `multikueue`."""
    at: datetime


@attrs.frozen
class WebhookFacts:
    """Who is asked about new objects, in the order in which they are."""

    configurations: Mapping[str, Json]
    services: Mapping[ObjectKey, bool] = attrs.field(factory=dict)
    """Whether the Services that they name exist, of those that could be asked for."""


@attrs.frozen(slots=False)
class Facts:
    """All that was read."""

    now: datetime
    objects: ManagerObjects
    daemon_namespace: str
    settings: Settings
    """The daemon's, or the defaults."""
    settings_known: bool = False
    """Whether they are the daemon's."""
    kinds: tuple[JobKind, ...] = ()
    """Those that the settings enable."""
    lacking: frozenset[GVK] = frozenset()
    """Kinds that the manager does not serve."""
    jobs: Mapping[ObjectKey, Json] = attrs.field(factory=dict)
    """The jobs behind some of the Workloads that were rejected, by the Workload."""
    definitions: Mapping[GVK, Json] = attrs.field(factory=dict)
    """The CustomResourceDefinitions of kinds, as far as they could be read."""
    kueue: KueueFacts = attrs.field(factory=KueueFacts)
    status_writers: Mapping[str, tuple[StatusWriter, ...]] = attrs.field(factory=dict)
    """By MultiKueueCluster."""
    webhooks: WebhookFacts | None = None
    account: str = ""
    """Whose permissions were asked for."""
    permissions: tuple[Permission, ...] = ()
    """The daemon's on the manager."""
    credentials: Mapping[str, Credentials] = attrs.field(factory=dict)
    """By worker: of those whose Secret could be read."""
    workers: Mapping[str, WorkerFacts] = attrs.field(factory=dict)
    """Those that answered."""
    clock: ClockBound | None = None
    """The manager's."""
    not_checked: tuple[NotChecked, ...] = ()

    def queues_with_check(self) -> Iterator[tuple[ObjectKey, str]]:
        """The LocalQueues that lead to workers, and the check that each leads to."""
        for key, local in sorted(self.objects.local_queues_by_key.items()):
            queue = self.objects.queues_by_name.get(str((local.get("spec") or {}).get("clusterQueue") or ""))
            if (check := self.objects.check_of_queue(queue or {})) is not None:
                yield key, check
