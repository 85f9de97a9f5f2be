"""`SandboxKind`: one row per job kind, as the sandbox's Kueue and job runner see it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs

from multikueue.core.model.labels import CONTROLLER_NAME, ORIGIN_LABEL, QUEUE_LABEL, STOPPING_ANNOTATION
from multikueue.core.model.names import Json, Resource
from multikueue.core.model.objects import annotations_of, clone, dig, labels_of, with_value, without
from multikueue.sandbox.kinds.course import Course, Ending
from multikueue.sandbox.kinds.roles import InTemplates, PodSets, Roles
from multikueue.sandbox.kinds.stages import BY_CONDITIONS

DELEGATED = "multikueue"
"""What a label says of a delegated job."""
PLAIN = InTemplates((Roles(),))
"""One pod template at `spec.template`, and its number at `spec.replicas`."""


@attrs.frozen(kw_only=True, eq=False)
class SandboxKind:
    """One job kind. A kind that is nothing special needs its `resource` only. Each row is equal to itself only."""

    resource: Resource
    integration: str = attrs.field()
    """Kueue's name of the integration, as `batch/job`; the events of its controller carry it."""
    suspend: tuple[str, ...] = ("spec", "suspend")
    """Path of the field that suspends the job."""
    suspended_as: Any = True
    """That field's value in a suspended job."""
    running_as: Any = False
    """Its value in a job that may run; None: the field is not there."""
    managed_by: tuple[str, ...] | None = ("spec", "managedBy")
    """Path of the field that gives the job to another controller; None if there is none."""
    managed_by_label: str = ""
    """The label that does the same, for kinds without such a field."""
    delegated_as: str = DELEGATED
    """That label's value in a delegated job."""
    always_delegated: bool = False
    """Whether only copies run, whatever a job says."""
    operator: str = ""
    """What the kind's own controller is called in that field."""
    pods: PodSets = PLAIN
    course: Course = BY_CONDITIONS
    status_subresource: bool = True
    """Whether the API server serves `status` apart."""
    pod_labels: Callable[[Json, str, int], Mapping[str, str]] = lambda job, role, number: {}
    """What its controller labels a pod with, beside its template: of a job, a pod set, and the pod's number in that."""
    makes_jobs: bool = False
    """Whether its pods belong to Jobs that its controller makes, one for each pod set."""
    gated: bool = False
    """Whether its pods wait behind Kueue's scheduling gate, instead of a job being suspended."""
    reports: bool = True
    """Whether the manager's job shows what the copy does."""
    restored_once_idle: bool = False
    """Whether its API refuses to change what Kueue has put in while the status shows pods, though it is suspended."""
    on_hold: Callable[[Json], bool] = lambda job: False
    """Whether a job's status says that it is not run as it is: Kueue puts it on hold, without an eviction."""
    to_wait: Mapping[tuple[str, ...], Any] = attrs.field(factory=dict)
    """What a job must say, or its controller refuses it while it is suspended."""
    resets_start_time: bool = False
    """Whether the template may only be edited once `status.startTime` is gone."""
    spec: Mapping[str, Any] = attrs.field(factory=dict)
    """The spec of an example, without pod templates."""
    columns: tuple[tuple[str, str], ...] = ()
    """What `kubectl get` shows in the sandbox: a name and a JSON path each."""
    short_names: tuple[str, ...] = ()

    @integration.default
    def _integration(self) -> str:
        gvk = self.resource.gvk
        return f"{gvk.group}/{gvk.kind.lower()}"

    @property
    def name(self) -> str:
        """What people call it: `rayjob`."""
        return self.resource.gvk.kind.lower()

    @property
    def controller(self) -> str:
        """The name events of this kind's controller are reported under."""
        return f"{self.integration}-kueue-controller"

    def is_suspended(self, job: Json) -> bool:
        """Whether the job is suspended, and not just being stopped."""
        return self.is_held(job) and annotations_of(job).get(STOPPING_ANNOTATION) != "true"

    def is_held(self, job: Json) -> bool:
        """Whether the job's own controller may not run it."""
        return bool(dig(job, *self.suspend) == self.suspended_as)

    def with_suspend(self, job: Json, suspended: bool) -> Json:
        """A deep copy of the job, suspended or not."""
        value = self.suspended_as if suspended else self.running_as
        return without(job, [self.suspend]) if value is None else with_value(job, self.suspend, value)

    def is_delegated(self, job: Json) -> bool:
        """Whether another controller than the kind's own is to run the job."""
        if self.always_delegated:
            return ORIGIN_LABEL not in labels_of(job)
        if self.managed_by_label and labels_of(job).get(self.managed_by_label):
            return True
        return self.managed_by is not None and dig(job, *self.managed_by) not in (None, "", self.operator)

    def serves(self, job: Json) -> bool:
        """Whether the job runs until somebody deletes it."""
        del job
        return not self.course.ends

    def ending(self, job: Json) -> Ending | None:
        """How the job ended; None while it has not."""
        return self.course.ending(job)

    def example(self, name: str, template: Json, *, queue: str, delegated: bool = True) -> Json:
        """A job as a user of MultiKueue would create it.

        Args:
            name: of the job, in the namespace `default`.
            template: of all its pods.
            queue: the LocalQueue.
            delegated: whether MultiKueue is to run it.
        """
        gvk = self.resource.gvk
        job: Json = {
            "apiVersion": gvk.api_version,
            "kind": gvk.kind,
            "metadata": {"name": name, "namespace": "default", "labels": {QUEUE_LABEL: queue}},
            "spec": clone(dict(self.spec)),
        }
        self.pods.fill(job, template)
        return self.submitted(job) if delegated else self.with_suspend(job, True)

    def examples(self, name: str, template: Json, *, queue: str) -> list[Json]:
        """The objects of a delegated job; see `example`."""
        return [self.example(name, template, queue=queue)]

    def job_name(self, obj: Json) -> str:
        """The job an object belongs to."""
        return str(obj["metadata"]["name"])

    def submitted(self, job: Json) -> Json:
        """The job as webhooks make it of what a user creates: suspended, and delegated if nobody else has it."""
        if self.managed_by is not None and not dig(job, *self.managed_by):
            job = with_value(job, self.managed_by, CONTROLLER_NAME)
        if self.managed_by_label and self.managed_by_label not in labels_of(job):
            job = with_value(job, ("metadata", "labels", self.managed_by_label), self.delegated_as)
        return self.with_suspend(job, True)
