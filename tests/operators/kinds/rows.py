"""The kinds that go all ways with their own controllers: what those make of one run of the example."""

from __future__ import annotations

from typing import Any, Final

from multikueue.core.model.names import Json
from tests.kinds.ground import TEMPLATE
from tests.operators.cases import APPWRAPPER, JOBSET, KUBERAY, LWS, MPI, TRAINER, TRAINING, operators_cases
from tests.operators.journeys import Row
from tests.operators.kinds import lws_journeys, ray_journeys
from tests.operators.starts.trainer import AGAIN
from tests.operators.table import Operator

USUAL: Final = (APPWRAPPER, JOBSET, KUBERAY, MPI)
"""The others run with `--all`."""


def _row(operator: Operator, kind: str, **more: Any) -> tuple[Operator, Row]:
    (case,) = (case for case in operators_cases(operator) if case.name == kind)
    return operator, Row(case=case, **more)


def _ray(kind: str, **more: Any) -> tuple[Operator, Row]:
    """A head and a worker, which KubeRay fills in much of."""
    counted = {"counted": "ray.io/node-type", "pods": 2, **more}
    return _row(KUBERAY, kind, robust={}, victim={"ray.io/node-type": "worker"}, defaulted=True, **counted)


def _trained(kind: str, pods: int) -> tuple[Operator, Row]:
    _, row = _row(TRAINING, kind, pods=pods)
    victim = {"training.kubeflow.org/replica-type": "worker"}
    return _row(TRAINING, kind, pods=pods, robust=_restarting(row), victim=victim, survives="30s", writes_on=True)


def _restarting(row: Row) -> Json:
    """Its pods, of which one that was killed is made anew."""
    example = row.case.kind.example("any", TEMPLATE, queue="any")
    (field,) = row.case.kind.spec
    return {field: {role: {**pods, "restartPolicy": "ExitCode"} for role, pods in example["spec"][field].items()}}


ROWS: Final = (
    # One Job of one pod inside.
    _row(APPWRAPPER, "appwrapper", pods=1),
    # Two replicated jobs. JobSet says that it has failed, then deletes the Jobs that still run, and counts the rest.
    _row(JOBSET, "jobset", pods=3, robust={"failurePolicy": {"maxRestarts": 1}}, writes_on=True),
    # Beside its cluster's pods one that submits it. KubeRay may make pods for a cluster that was just deleted, so what
    # is counted is the submitters, and what a RayCluster had while it was there.
    _ray(
        "rayjob",
        pods=3,
        counted="batch.kubernetes.io/job-name",
        starts=1,
        made_of=ray_journeys.CLUSTERS,
        more=(ray_journeys.has_a_cluster_that_is_no_copy,),
    ),
    _ray("raycluster", more=(ray_journeys.grows_and_shrinks,)),
    # While its cluster is suspended, KubeRay writes no status of a RayService ("found 0 head"): it may stay Ready.
    _ray("rayservice", more=(ray_journeys.serves_another_application,), tells_of_stops=False),
    # A launcher and a worker. The operator serves its health at port 8080, whatever it is told: one at a time.
    _row(MPI, "mpijob", pods=2, two_workers=False),
    # Two groups, each a leader and a worker with a Workload of its own. There is no `managedBy`: the manager's own
    # controllers make pods as well, which wait at Kueue's gate and must never have got a node.
    _row(LWS, "leaderworkerset", pods=4, robust={}, more=(lws_journeys.grows_and_shrinks,)),
    # Two nodes; the JobSet that the trainer makes of it is never a copy of its own.
    _row(TRAINER, "trainjob", pods=2, robust={"runtimeRef": {"name": AGAIN}}),
    _trained("jaxjob", 1),
    *(_trained(kind, 2) for kind in ("paddlejob", "pytorchjob", "tfjob", "xgboostjob")),
)
