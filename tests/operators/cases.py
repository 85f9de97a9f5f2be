"""The kinds that real controllers run: each with its rows, and an example that does not wait for retries."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import attrs

from multikueue.core.model.names import Json
from tests.controlplane.crds import read
from tests.kinds.cases import Case, cases
from tests.operators.table import APPWRAPPER, ARGO, JOBSET, KUBERAY, LWS, MPI, TEKTON, TRAINER, TRAINING, Operator
from tests.operators.workflows.examples import EXAMPLES


def _jobs(**counts: int) -> list[Json]:
    """Replicated jobs of a JobSet, each pod of which has one try."""
    return [
        {
            "name": name,
            "replicas": 1,
            "template": {"spec": {"parallelism": count, "completions": count, "backoffLimit": 0}},
        }
        for name, count in counts.items()
    ]


def _replicas(*roles: str) -> dict[str, dict[str, Any]]:
    """Roles of a training job, each with a pod that has one try."""
    return {role: {"replicas": 1, "restartPolicy": "Never"} for role in roles}


_ONE_TRY: Final[dict[str, dict[str, Any]]] = {
    "jaxjob": {"jaxReplicaSpecs": _replicas("Worker")},
    "paddlejob": {"paddleReplicaSpecs": _replicas("Master", "Worker")},
    "pytorchjob": {"pytorchReplicaSpecs": _replicas("Master", "Worker")},
    "tfjob": {"tfReplicaSpecs": _replicas("Chief", "Worker")},
    "xgboostjob": {"xgbReplicaSpecs": _replicas("Master", "Worker")},
    "jobset": {"replicatedJobs": _jobs(leader=1, workers=2)},
    "mpijob": {"runPolicy": {"backoffLimit": 0}},
    "rayservice": {"serveConfigV2": "applications:\n- name: first\n  import_path: first.app\n"},
}
"""What the examples of the sandbox lack: a failed pod would be made again and again, each time after a longer while."""


def operators_cases(operator: Operator) -> list[Case]:
    """The kinds of a controller."""
    return [_with_one_try(case) for case in cases() if case.name in operator.kinds]


def _with_one_try(case: Case) -> Case:
    if case.name in EXAMPLES:
        return Case(case.adapter, attrs.evolve(case.kind, spec=EXAMPLES[case.name]))
    spec = _ONE_TRY.get(case.name)
    return case if spec is None else Case(case.adapter, attrs.evolve(case.kind, spec={**case.kind.spec, **spec}))


def definitions(operators: Iterable[Operator]) -> list[Json]:
    """The CustomResourceDefinitions of these controllers and of what they need, from their modules.

    None of a controller that is not built: its test says so.
    """
    wanted = dict.fromkeys(needed for operator in operators for needed in (*operator.needs, operator))
    return [_stored(_terse(crd)) for needed in wanted if needed.folder.exists() for crd in read(needed.folder)]


def _stored(crd: Json) -> Json:
    """With the stored version only: the older ones are served for older clients, and there are none here."""
    versions = [version for version in crd["spec"]["versions"] if version["storage"]]
    return {**crd, "spec": {**crd["spec"], "versions": versions}}


def _terse(value: Any) -> Any:
    """Without the descriptions of fields: they are most of a definition, and take the API server seconds."""
    if isinstance(value, dict):
        return {key: _terse(part) for key, part in value.items() if key != "description" or not isinstance(part, str)}
    return [_terse(part) for part in value] if isinstance(value, list) else value


__all__ = [
    "APPWRAPPER",
    "ARGO",
    "JOBSET",
    "KUBERAY",
    "LWS",
    "MPI",
    "TEKTON",
    "TRAINER",
    "TRAINING",
    "definitions",
    "operators_cases",
]
