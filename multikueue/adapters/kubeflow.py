"""`kubeflow.org`: the training operator's kinds and MPIJob. They differ in their names only."""

from __future__ import annotations

from multikueue.adapters.kind import JobKind, counters_at_zero, finished_by_conditions
from multikueue.core.model.names import GVK, Resource

KINDS = tuple(
    JobKind(
        resource=Resource(GVK("kubeflow.org", version, kind), f"{kind.lower()}s"),
        framework=f"kubeflow.org/{kind.lower()}",
        managed_by=("spec", "runPolicy", "managedBy"),
        own_controller=f"kubeflow.org/{'mpi' if kind == 'MPIJob' else 'training'}-operator",
        suspend=("spec", "runPolicy", "suspend"),
        finished=finished_by_conditions(succeeded="Succeeded", failed="Failed"),
        stopped=counters_at_zero(("replicaStatuses", "*", "active")),
    )
    for version, kind in (
        ("v1", "JAXJob"),
        ("v1", "PaddleJob"),
        ("v1", "PyTorchJob"),
        ("v1", "TFJob"),
        ("v1", "XGBoostJob"),
        ("v2beta1", "MPIJob"),
    )
)
