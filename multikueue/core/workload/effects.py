"""What a decision asks to be done. Effects of different clusters are independent; those of one go in order."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Literal

import attrs

from multikueue.core.model.dependencies import Dependency, DependencyMark
from multikueue.core.model.labels import ToldFinding
from multikueue.core.model.names import ClusterName, Json, ObjectKey, Resource

MANAGER = ClusterName("")
"""Where effects on the manager itself happen."""


@attrs.frozen
class Effect:
    """Something that is to be done on one cluster."""

    cluster: ClusterName


@attrs.frozen
class ManagerEffect(Effect):
    """Something that is to be done on the manager."""

    cluster: ClusterName = attrs.field(default=MANAGER, init=False)


@attrs.frozen
class ApplyStatus(Effect):
    """Server-side apply of a Workload's status; the object carries its resourceVersion as precondition."""

    object: Json
    field_manager: str
    optional: bool = False
    """Whether the effects after it are carried out although this one fails."""
    takes_away: bool = attrs.field(default=False, kw_only=True)
    """Whether this takes the manager's Workload off its worker: it is sent back, rejected or finished."""


@attrs.frozen
class PatchJobStatus(ManagerEffect):
    """Merge patch of the manager's job's status; the patch carries the resourceVersion it was made from."""

    resource: Resource
    key: ObjectKey
    patch: Json
    subresource: bool = True
    """Whether the kind has its status behind `/status`; otherwise it is a part of the main object."""


@attrs.frozen
class AnnounceWorkload(ManagerEffect):
    """An event on the manager's Workload, for the user."""

    type: str
    """`Normal` or `Warning`."""
    note: str
    on_job: bool = False
    """Whether it is an event on the job as well."""
    about: Json | None = None
    """The job that gets the event, where its Workload is gone."""
    finding: ToldFinding | None = None
    """For programs: the finding that the event tells of."""


@attrs.frozen
class CountAdmitted(ManagerEffect):
    """A workload was admitted on a worker, for the metric."""

    cluster_queue: str
    worker: ClusterName


@attrs.frozen
class CountRejections(ManagerEffect):
    """The dispatcher has said anew why workers are not offered a Workload, for the metric."""

    reasons: tuple[tuple[ClusterName, str], ...]
    """Each worker, and a machine reason."""


@attrs.frozen
class CreateWorkload(Effect):
    """Create the Workload copy."""

    object: Json


@attrs.frozen
class PatchWorkload(Effect):
    """Merge patch of the Workload copy; the patch carries the UID it is meant for."""

    key: ObjectKey
    patch: Json
    optional: bool = False
    """Whether the effects after it are carried out although this one fails."""


@attrs.frozen
class DeleteWorkload(Effect):
    """Delete exactly this version of the Workload copy."""

    key: ObjectKey
    uid: str
    version: str = ""
    """The resourceVersion that was looked at: a job that has come since must not lose it."""


@attrs.frozen
class CreateJob(Effect):
    """Create the job copy."""

    resource: Resource
    object: Json


@attrs.frozen
class PatchJob(Effect):
    """Merge patch of the job copy; the patch carries the UID it is meant for."""

    resource: Resource
    key: ObjectKey
    patch: Json


@attrs.frozen
class DeleteJob(Effect):
    """Delete the job copy of exactly this UID; or, on the manager, a job of which nothing is left but itself."""

    resource: Resource
    key: ObjectKey
    uid: str
    propagation: Literal["Foreground", "Background"] = "Foreground"
    """Foreground: the copy stays until what it owns is gone, so that it shows whether its pods run."""
    unless_stopped: bool = False
    """Whether it is sent only if the request before it was refused, which was to stop the job first."""
    version: str = ""
    """The resourceVersion that was looked at, where a change may mean that it is to stay."""
    note: str = ""
    """What is told on the Workload and its job once this deletion is accepted; empty: nothing."""


@attrs.frozen
class DependencyEffect(Effect):
    """Something is done about dependencies of a job, in its namespace on a worker."""

    namespace: str
    """Of the job there."""
    dependencies: tuple[Dependency, ...]
    mark: DependencyMark


@attrs.frozen
class CheckDependencies(DependencyEffect):
    """Before a worker is offered a job: find out whether what the job needs can be had there."""


@attrs.frozen
class CreateDependencies(DependencyEffect):
    """Create the job's dependencies there, or share those of other jobs. They are deleted with the Workload copy."""

    workload: str
    """The name of the copy there, which owns them."""
    origin: str
    """The value of our label."""


@attrs.frozen
class OwnDependencies(DependencyEffect):
    """Make the job copy an owner of the dependencies that were made for it, as well."""

    owner: Json
    """The reference to the job copy."""


@attrs.frozen
class LookForPods(Effect):
    """Find the pods that an earlier attempt's job has left on a worker: only a label shows them."""

    namespace: str
    """Of the job there."""
    selector: str
    attempt: str
    """The attempt that waits for their end."""


@attrs.frozen
class Plan:
    """The outcome of one decision."""

    effects: tuple[Effect, ...] = attrs.field(default=(), converter=tuple[Effect, ...])
    look_again: float | None = None
    """Seconds after which time alone may change the decision; None: only a change can."""
    row: str = ""
    """Which row of the table decided, and which way of it: for logs and tests."""
    telling: tuple[Effect, ...] = ()
    """Effects that change nothing but words, and may wait: see `runtime.plan_pace`; with an event among them they may
    not. None of `effects` writes the same object."""
    claim: object = None
    """What it waits for: see `Nomination.claim`."""
    problems: tuple[str, ...] = ()
    """What failed for this Workload: rules of the job kind, the dispatcher. The user is told in `effects`."""
    left_out: Mapping[ClusterName, Exception] = attrs.field(factory=dict)
    """Workers without which it was decided, each with what it made the plan raise."""

    def also(self, *effects: Effect) -> Plan:
        """The plan, and what is done after it."""
        return attrs.evolve(self, effects=(*self.effects, *effects)) if effects else self

    def within(self, *spans: timedelta | float | None) -> Plan:
        """The plan, to be looked at again after the shortest of these and its own; None: time alone changes nothing."""
        seconds = [span.total_seconds() if isinstance(span, timedelta) else span for span in (self.look_again, *spans)]
        again = min((left for left in seconds if left is not None), default=None)
        return self if again == self.look_again else attrs.evolve(self, look_again=again)
