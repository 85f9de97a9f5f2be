"""The controllers: a row each. What is built from which module, and which kinds it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import attrs

from multikueue.core.model.names import GVK, Resource
from tests.controlplane.binaries import cache_folder
from tests.controlplane.building import Module
from tests.controlplane.errors import BinariesMissing

_GO: Final = Path(__file__).with_name("go")
_TRAINED: Final = ("jaxjob", "paddlejob", "pytorchjob", "tfjob", "xgboostjob")


@attrs.frozen(kw_only=True)
class Operator:
    """One project's controller."""

    name: str
    """Of its folder below `go`, and of its program."""
    version: str
    """What the folder's `go.mod` pins."""
    module: str
    package: str
    """Of the program."""
    manifests: tuple[str, ...]
    """Paths in the module: its CustomResourceDefinitions, and the configurations of its webhooks."""
    kinds: tuple[str, ...]
    """Names of the sandbox's kinds that it runs."""
    children: tuple[Resource, ...] = ()
    """What it makes of a job, beside Jobs, Services and pods."""
    needs: tuple[Operator, ...] = ()
    """What must run beside it."""
    minutes: int
    """How long the build takes on two cores, the first time."""
    programs: tuple[str, ...] = ()
    """What they are called, if not as it is: of the package `tool`, if it has several, what runs its kinds first."""
    older: bool = False
    """Whether it is an old version of another one: its tests put its CustomResourceDefinitions where it is to run."""

    @property
    def folder(self) -> Path:
        """Where it is kept once it is built."""
        return cache_folder().with_name(f"operator-{self.name}-{self.version}")

    @property
    def source(self) -> Module:
        """How it is built."""
        return Module(
            self.name,
            self.programs or (self.name,),
            self.package,
            f"{self.name} {self.version} (about {self.minutes} minutes on 2 cores, the first time)",
            root=_GO,
            manifests=tuple((self.module, path) for path in self.manifests),
        )

    def program(self) -> Path:
        """The program.

        Raises:
            BinariesMissing: it is not built.
        """
        program = self.folder / (self.programs or (self.name,))[0]
        if not program.exists():
            raise BinariesMissing(f"No {program}. Run `python -m tests.operators build` once, with Go.")
        return program

    def require(self) -> None:
        """See that it and what it needs are built.

        Raises:
            BinariesMissing: one of them is not.
        """
        for operator in (*self.needs, self):
            operator.program()


JOBSET: Final = Operator(
    name="jobset",
    version="v0.12.0",
    module="sigs.k8s.io/jobset",
    package="sigs.k8s.io/jobset",
    manifests=(
        "config/components/crd/bases/jobset.x-k8s.io_jobsets.yaml",
        "config/components/webhook/manifests.yaml",
        "config/components/webhook/patches/mutating-patch.yaml",
        "config/components/webhook/patches/validating-patch.yaml",
    ),
    kinds=("jobset",),
    minutes=4,
)
KUBERAY: Final = Operator(
    name="kuberay",
    version="v1.6.2",
    module="github.com/ray-project/kuberay/ray-operator",
    package="github.com/ray-project/kuberay/ray-operator",
    manifests=tuple(f"config/crd/bases/ray.io_{kind}.yaml" for kind in ("rayclusters", "rayjobs", "rayservices")),
    kinds=("rayjob", "raycluster", "rayservice"),
    children=(Resource(GVK("ray.io", "v1", "RayCluster"), "rayclusters"),),
    minutes=2,
)
OLD_KUBERAY: Final = attrs.evolve(
    KUBERAY,
    name="kuberay-1.2",
    version="v1.2.2",
    programs=("manager",),  # as in the project's image: it is what it signs its writes with
    older=True,
)
"""The last minor version before `managedBy`: neither its API nor its controller knows the field."""
MPI: Final = Operator(
    name="mpi",
    version="v0.8.0",
    module="github.com/kubeflow/mpi-operator",
    package="github.com/kubeflow/mpi-operator/cmd/mpi-operator",
    manifests=("manifests/base/kubeflow.org_mpijobs.yaml",),
    kinds=("mpijob",),
    minutes=2,
)
APPWRAPPER: Final = Operator(
    name="appwrapper",
    version="v1.2.0",
    module="github.com/project-codeflare/appwrapper",
    package="github.com/project-codeflare/appwrapper/cmd",
    manifests=("config/crd/bases/workload.codeflare.dev_appwrappers.yaml",),
    kinds=("appwrapper",),
    minutes=2,
)
LWS: Final = Operator(
    name="lws",
    version="v0.9.0",
    module="sigs.k8s.io/lws",
    package="sigs.k8s.io/lws/cmd",
    manifests=(
        "config/crd/bases/leaderworkerset.x-k8s.io_leaderworkersets.yaml",
        "config/crd/bases/disaggregatedset.x-k8s.io_disaggregatedsets.yaml",
        "config/webhook/manifests.yaml",
        "config/webhook/mutating-patch.yaml",
        "config/webhook/validating-patch.yaml",
    ),
    kinds=("leaderworkerset",),
    children=(
        Resource(GVK("apps", "v1", "StatefulSet"), "statefulsets"),
        Resource(GVK("apps", "v1", "ControllerRevision"), "controllerrevisions"),
    ),
    minutes=3,
)
TRAINING: Final = Operator(
    name="training",
    version="v1.9.3",
    module="github.com/kubeflow/training-operator",
    package="github.com/kubeflow/training-operator/cmd/training-operator.v1",
    manifests=(
        *(f"manifests/base/crds/kubeflow.org_{kind}s.yaml" for kind in _TRAINED),
        "manifests/base/webhook/manifests.yaml",
    ),
    kinds=_TRAINED,
    minutes=3,
)
TRAINER: Final = Operator(
    name="trainer",
    version="v2.3.0",
    module="github.com/kubeflow/trainer/v2",
    package="github.com/kubeflow/trainer/v2/cmd/trainer-controller-manager",
    manifests=(
        *(
            f"manifests/base/crds/trainer.kubeflow.org_{kinds}.yaml"
            for kinds in ("trainjobs", "trainingruntimes", "clustertrainingruntimes")
        ),
        "manifests/base/webhook/manifests.yaml",
        "manifests/base/runtimes/torch_distributed.yaml",
    ),
    kinds=("trainjob",),
    children=(Resource(GVK("jobset.x-k8s.io", "v1alpha2", "JobSet"), "jobsets"),),
    needs=(JOBSET,),
    minutes=3,
)
TEKTON: Final = Operator(
    name="tekton",
    version="v1.6.0",
    module="github.com/tektoncd/pipeline",
    package="tool",
    programs=("controller", "webhook"),
    manifests=(
        *(f"config/300-crds/300-{kind}.yaml" for kind in ("pipeline", "pipelinerun", "task", "taskrun", "customrun")),
        *(f"config/300-crds/300-{kind}.yaml" for kind in ("resolutionrequest", "stepaction", "verificationpolicy")),
        *(f"config/config-{name}.yaml" for name in ("defaults", "events", "feature-flags", "logging", "observability")),
        *(f"config/config-{name}.yaml" for name in ("leader-election-controller", "registry-cert", "spire", "tracing")),
        *("config/config-leader-election-webhook.yaml", "config/config-wait-exponential-backoff.yaml"),
        "config/500-webhooks.yaml",
    ),
    kinds=("pipelinerun",),
    children=(Resource(GVK("tekton.dev", "v1", "TaskRun"), "taskruns"),),
    minutes=6,
)
ARGO: Final = Operator(
    name="argo",
    version="v3.7.3",
    module="github.com/argoproj/argo-workflows/v3",
    package="github.com/argoproj/argo-workflows/v3/cmd/workflow-controller",
    manifests=tuple(
        f"manifests/base/crds/minimal/argoproj.io_{kinds}.yaml"
        for kinds in (
            *("workflows", "workflowtemplates", "clusterworkflowtemplates", "cronworkflows"),
            *("workflowtasksets", "workflowtaskresults", "workflowartifactgctasks"),
        )
    ),
    kinds=("workflow",),
    children=(Resource(GVK("argoproj.io", "v1alpha1", "WorkflowTaskResult"), "workflowtaskresults"),),
    minutes=6,
)
DEFAULT: Final = (JOBSET, KUBERAY, MPI, APPWRAPPER)
"""What `nox -s operators` builds and runs."""
EXTRA: Final = (LWS, TRAINING, TRAINER, TEKTON, ARGO, OLD_KUBERAY)
"""What `nox -s operators -- --all` builds and runs as well."""
