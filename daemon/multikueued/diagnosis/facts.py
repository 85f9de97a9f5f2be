"""What checks look at: values that readers have filled in. None stands for "could not be seen"."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from enum import Enum
from functools import cached_property
from pathlib import Path
from typing import Final

import attrs

from multikueue import JobKind
from multikueue.core.model.names import GVK, Json, ObjectKey
from multikueued.reports.chain import check_findings
from multikueued.reports.events import EventReport
from multikueued.reports.jobs import WAITING_STATES, state_of
from multikueued.reports.objects import Chain, ManagerObjects
from multikueued.reports.published import Published
from multikueued.reports.remedies.remedy import Finding
from multikueued.reports.remedies.trouble import about_worker
from multikueued.reports.worker_facts import ClockBound, KubeconfigFacts, NotChecked, Permission, WorkerFacts
from multikueued.reports.worker_queues import QueuesOnWorker, leads_to
from multikueued.reports.workers import WorkerReport, worker_reports
from multikueued.settings.config import Settings

SETTINGS_FIELD: Final = "settings.yaml"
"""Of the chart's ConfigMap."""


@attrs.frozen
class KueueFacts:
    """Kueue's own controller on the manager."""

    image: str = ""
    """Empty: not seen."""
    arguments: tuple[str, ...] | None = None
    configuration: Json | None = None


@attrs.frozen
class Installation:
    """A Deployment of the chart that has replicas."""

    key: ObjectKey
    replicas: int
    settings: Settings
    """With its namespace."""


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


@attrs.frozen
class MirrorWay:
    """How the manager's API server reached who answers for mirrors."""

    node: str
    """The Node that was asked for."""
    said: str = ""
    """What went wrong, in the API server's words; empty: nothing did."""
    is_missing: bool = False
    """Whether there is no such Node."""


@attrs.frozen
class MirrorFacts:
    """Mirrors are on."""

    is_bounded: bool | None = None
    """Whether their policy and its binding exist."""
    way: MirrorWay | None = None


class Unread(Enum):
    """Where the daemon's settings are, for whoever has not read them."""

    NAMED_BY_READER = "FILE"
    """Who types a command names the file: this stands for it."""


@attrs.frozen(slots=False)
class Facts:
    """All that was read."""

    now: datetime
    objects: ManagerObjects
    settings: Settings
    """The daemon's, or the defaults."""
    settings_known: bool = False
    """Whether they are the daemon's."""
    settings_source: Path | ObjectKey | Unread | None = None
    """Their file or ConfigMap; None: the defaults are assumed, for whatever is asked."""
    installations: tuple[Installation, ...] = ()
    """Those of the chart whose settings could be read."""
    kubectl: str = "kubectl"
    """How a shell calls it for the manager."""
    noted_origin: str = ""
    """That of whoever has led, if nobody leads now and it can be read."""
    kinds: tuple[JobKind, ...] = ()
    """Those that the settings enable."""
    lacking: frozenset[GVK] = frozenset()
    """Kinds that the manager does not serve."""
    jobs: Mapping[ObjectKey, Json] = attrs.field(factory=dict)
    """The jobs behind some of the Workloads that were rejected, or of which events tell, by the Workload."""
    events: Mapping[ObjectKey, tuple[EventReport, ...]] = attrs.field(factory=dict)
    """The events that tell of findings, by the Workload; these jobs are in `jobs`."""
    definitions: Mapping[GVK, Json] = attrs.field(factory=dict)
    """The CustomResourceDefinitions of kinds, as far as they could be read."""
    kueue: KueueFacts = attrs.field(factory=KueueFacts)
    status_writers: Mapping[str, tuple[StatusWriter, ...]] = attrs.field(factory=dict)
    """By MultiKueueCluster."""
    webhooks: WebhookFacts | None = None
    mirrors: MirrorFacts | None = None
    """None: they are off, or it is not known."""
    account: str = ""
    """Whose permissions were asked for."""
    permissions: tuple[Permission, ...] = ()
    """The daemon's on the manager."""
    credentials: Mapping[str, KubeconfigFacts] = attrs.field(factory=dict)
    """By worker: of those whose Secret could be read."""
    workers: Mapping[str, WorkerFacts] = attrs.field(factory=dict)
    """Those that answered, and those that only the daemon has seen."""
    seen_at: Mapping[str, datetime] = attrs.field(factory=dict)
    """When the daemon saw the latter."""
    queues_at: Mapping[str, datetime] = attrs.field(factory=dict)
    """When it read their queues, which it does more often."""
    clock: ClockBound | None = None
    """The manager's."""
    not_checked: tuple[NotChecked, ...] = ()

    @classmethod
    def on_manager(cls, objects: ManagerObjects, now: datetime) -> Facts:
        """What stands on the manager, with what the daemon has published there; the manager's clock is taken for right.

        Args:
            objects: of the manager.
            now: the wall clock.
        """
        unread, clock = Unread.NAMED_BY_READER, ClockBound(0.0, 0.0)  # what is published is so by settings of its own
        facts = cls(now, objects, Settings(), settings_source=unread, clock=clock)
        return facts.with_published(objects.published)

    def with_published(self, known: Mapping[str, Published]) -> Facts:
        """The same with the workers that were not asked from here, as the daemon saw them."""
        names = self.objects.clusters_by_name.keys() & known.keys() - self.workers.keys()
        taken = {name: known[name] for name in sorted(names) if known[name].at is not None}
        asked = {
            name: attrs.evolve(worker, used_up=known[name].facts.used_up) if name in known else worker
            for name, worker in self.workers.items()
        }
        workers = asked | {name: report.on_this_machine(self.clock) for name, report in taken.items()}
        held = {name: report.credentials for name, report in taken.items() if report.credentials is not None}
        return attrs.evolve(
            self,
            workers=dict(sorted(workers.items())),
            credentials={**held, **self.credentials},
            seen_at={name: report.at for name, report in taken.items() if report.at is not None},
            queues_at={name: report.quota_at for name, report in taken.items() if report.quota_at is not None},
        )

    @property
    def outside(self) -> str:
        """The option that `worker add` wants where the daemon runs on one machine with workers; else empty."""
        return " --outside" if any(credentials.outside for credentials in self.credentials.values()) else ""

    @cached_property
    def worker_reports(self) -> tuple[WorkerReport, ...]:
        """A line about each worker, without counts of jobs: no check asks for them, and they cost a look at each."""
        return worker_reports(self.objects, ())

    @cached_property
    def waiting(self) -> tuple[Chain, ...]:
        """The Workloads of jobs that wait."""
        return tuple(chain for chain in self.objects.chains if state_of(chain) in WAITING_STATES)

    @cached_property
    def of_checks(self) -> tuple[Finding, ...]:
        """What is wrong with our AdmissionChecks and their configs: five checks tell a part of it each."""
        return tuple(check_findings(self.objects))

    def about_worker(self, worker: str, error: str, cause: str, *, connected: bool) -> Finding:
        """Why a worker is not connected, or not usable for a kind, to somebody who asks about no job."""
        secrets, source = self.objects.daemon_namespace, self.objects.said_of(worker).source
        context = {"secrets": secrets, "job": "JOB", "namespace": "NAMESPACE", **source}
        return about_worker(worker, error, context, connected=connected, cause=cause)

    def queues_on(self, worker: str) -> QueuesOnWorker | None:
        """The queues of a worker, if they could be read."""
        facts = self.workers.get(worker)
        return facts.queues if facts is not None else None

    @property
    def managers_now(self) -> datetime:
        """The manager's clock, by which its Lease is written: the earliest that it may show now."""
        return self.now + timedelta(seconds=self.clock.low if self.clock is not None else 0.0)

    def queues_with_check(self) -> Iterator[tuple[ObjectKey, str]]:
        """The LocalQueues that lead to workers, and the check that each leads to."""
        for key, local in sorted(self.objects.local_queues_by_key.items()):
            queue = self.objects.queues_by_name.get(leads_to(local))
            if (check := self.objects.check_of_queue(queue or {})) is not None:
                yield key, check
