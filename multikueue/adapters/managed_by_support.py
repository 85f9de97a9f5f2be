"""From which version on the controller of a kind leaves a delegated job alone, and what people are told before that.

Read from the sources of the projects' releases; `docs/kinds.md` has the same as a table, held by a test.
"""

from __future__ import annotations

import attrs


@attrs.frozen(kw_only=True)
class ManagedBySupport:
    """What a project's versions make of the field that says who runs a job."""

    project: str
    """What people call it: `KubeRay`."""
    since: str
    """The first version that works, `v1.3.0`; empty: none up to `looked_at`."""
    field_since: str = ""
    """The first version that has the field, where that is an earlier one: its controller runs the job all the same."""
    looked_at: str = ""
    """The newest version that was looked at, where none works."""
    instead: str = ""
    """What to do then."""

    @property
    def of_missing(self) -> str:
        """What may be the reason that a job comes without the field, although somebody has set it."""
        dropped = f"{self.project} before {self.field_since or self.since} drops the field"
        if not self.since:
            return f"{dropped}, and no version up to {self.looked_at} heeds it"
        return f"{dropped}, and before {self.since} it does not work" if self.field_since else dropped

    @property
    def advice(self) -> str:
        """What helps against a controller that ignores the field."""
        if self.since:
            return f"{self.project} {self.since} is the first version that heeds the field: upgrade it on the manager"
        return f"no version of {self.project} up to {self.looked_at} heeds the field: {self.instead}"


KUBERNETES = ManagedBySupport(project="Kubernetes", since="v1.32")
"""From v1.30 on with the feature gate JobManagedBy; from v1.32 on without."""
JOBSET = ManagedBySupport(project="JobSet", since="v0.5.0")
KUBERAY = ManagedBySupport(project="KubeRay", since="v1.3.0")
RAY_SERVICE = ManagedBySupport(project="KubeRay", since="v1.6.0")
MPI = ManagedBySupport(project="MPI operator", since="v0.6.0")
TRAINING = ManagedBySupport(project="Training operator", since="v1.9.0")
JAX = ManagedBySupport(
    project="Training operator",
    since="",
    field_since="v1.9.0",
    looked_at="v1.9.3",
    instead="let it not run JAXJobs on the manager (its --enable-scheme flags name the kinds that it runs)",
)
TRAINER = ManagedBySupport(project="Trainer", since="v2.3.0", field_since="v2.0.0")
APPWRAPPER = ManagedBySupport(project="AppWrapper", since="v1.0.2", field_since="v0.27.0")
TEKTON = ManagedBySupport(project="Tekton", since="v1.5.0")
