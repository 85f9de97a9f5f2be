"""Plays what runs inside pods and reports to their controllers: Tekton's entrypoint, and Argo's executor.

Tekton's entrypoint is the command of each container. It leaves a termination message with the results that its
arguments name. Argo's executor runs beside the container, as `wait`. It writes a WorkflowTaskResult with what the
template says it puts out.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any, Final

from multikueue.core.model.names import GVK, Json, ObjectKey, Resource
from multikueue.core.model.objects import controller_of, labels_of
from multikueue.errors import AlreadyExists
from multikueue.kube import KubeClient

TASK_RESULT: Final = Resource(GVK("argoproj.io", "v1alpha1", "WorkflowTaskResult"), "workflowtaskresults")
TEKTONS_LABEL: Final = "tekton.dev/taskRun"
ARGOS_LABEL: Final = "workflows.argoproj.io/workflow"
_REPORTED: Final = "workflows.argoproj.io/report-outputs-completed"
_EXECUTOR: Final = "wait"
_TEMPLATED: Final = "init"
"""The container that hands the template to the others."""
_SIGNAL: Final = 128
"""What is killed exits with more than this."""
_RESULT, _INTERNAL = 1, 3
"""Sorts of entries of Tekton's messages."""


def exit_code(pod: Json, container: Json, code: int) -> int:
    """What a container of a pod exits with: Argo's executor ends well beside a program that fails or is killed."""
    beside = ARGOS_LABEL in labels_of(pod) and container["name"] == _EXECUTOR
    return 0 if beside else code


def message(pod: Json, container: Json, code: int, time: str) -> str:
    """What a container leaves as its termination message; nothing if it is killed."""
    if TEKTONS_LABEL not in labels_of(pod) or code > _SIGNAL:
        return ""
    entries = [{"key": "StartedAt", "value": time, "type": _INTERNAL}]
    names = _after("-results", container.get("args") or []) if code == 0 else ""
    entries += [{"key": name, "value": _value(name), "type": _RESULT} for name in names.split(",") if name]
    return json.dumps(entries)


async def begins(client: KubeClient, pod: Json) -> None:
    """Report that a pod runs.

    Raises:
        ApiError: the report was not taken.
    """
    variables = _variables(pod)
    if not variables:
        return
    owner = controller_of(pod)
    assert owner is not None
    reference = {name: owner[name] for name in ("apiVersion", "kind", "name", "uid")}
    metadata = {
        "name": variables["ARGO_NODE_ID"],
        "namespace": pod["metadata"]["namespace"],
        "labels": {ARGOS_LABEL: owner["name"], _REPORTED: "false"},
        "ownerReferences": [reference],
    }
    result = {"apiVersion": TASK_RESULT.gvk.api_version, "kind": TASK_RESULT.gvk.kind, "metadata": metadata}
    with suppress(AlreadyExists):
        await client.create(TASK_RESULT, result)


async def ends(client: KubeClient, pod: Json, code: int) -> None:
    """Report what a pod has put out, if its program ended well.

    Raises:
        ApiError: the report was not taken.
    """
    variables = _variables(pod)
    if not variables:
        return
    template: Json = json.loads(variables["ARGO_TEMPLATE"])
    parameters = [
        {**parameter, "value": _value(parameter["name"])}
        for parameter in template.get("outputs", {}).get("parameters") or ()
    ]
    report: Json = {"metadata": {"labels": {_REPORTED: "true"}}}
    if parameters and code == 0:
        report["outputs"] = {"parameters": parameters}
    await client.merge_patch(TASK_RESULT, ObjectKey(pod["metadata"]["namespace"], variables["ARGO_NODE_ID"]), report)


def _value(name: str) -> str:
    """What a program found out."""
    return f"{name}-of-a-run"


def _variables(pod: Json) -> dict[str, Any]:
    """What Argo's executor is told by its environment; nothing if there is none."""
    if ARGOS_LABEL not in labels_of(pod):
        return {}
    containers = [*(pod["spec"].get("initContainers") or ()), *pod["spec"]["containers"]]
    variable_lists = [
        container.get("env") or () for container in containers if container["name"] in (_TEMPLATED, _EXECUTOR)
    ]
    return {variable["name"]: variable.get("value") for variables in variable_lists for variable in variables}


def _after(flag: str, arguments: list[str]) -> str:
    return arguments[arguments.index(flag) + 1] if flag in arguments else ""
