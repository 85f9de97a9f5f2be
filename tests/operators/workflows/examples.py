"""Runs that need all their parts: the second task is given what the first one has found out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from multikueue.core.model.names import Json

_IMAGE: Final = "registry.k8s.io/pause:3.10"
_COMMAND: Final = ["work"]
"""Without a command, both controllers ask a registry what the image would run."""
RESULT: Final = "digest"


def pipeline(**more: Any) -> Json:
    """Two tasks of a PipelineRun.

    Args:
        more: fields of both.
    """
    given = [{"name": RESULT, "type": "string"}]
    build = {"results": given, "steps": [{"name": "build", "image": _IMAGE, "command": _COMMAND}]}
    ship = {
        "params": given,
        "steps": [{"name": "ship", "image": _IMAGE, "command": _COMMAND, "args": [f"$(params.{RESULT})"]}],
    }
    params = [{"name": RESULT, "value": f"$(tasks.build.results.{RESULT})"}]
    tasks = [{"name": "build", "taskSpec": build, **more}, {"name": "ship", "taskSpec": ship, "params": params, **more}]
    return {"tasks": tasks}


def _container(*arguments: str) -> Json:
    made: Json = {"image": _IMAGE, "command": _COMMAND}
    return {**made, "args": [*arguments]} if arguments else made


def _workflow() -> Json:
    parameter = {"name": RESULT, "value": f"{{{{tasks.build.outputs.parameters.{RESULT}}}}}"}
    tasks = [
        {"name": "build", "template": "build"},
        {"name": "ship", "template": "ship", "dependencies": ["build"], "arguments": {"parameters": [parameter]}},
    ]
    outputs = {"parameters": [{"name": RESULT, "valueFrom": {"path": f"/tmp/{RESULT}"}}]}
    asked = {"parameters": [{"name": RESULT}]}
    templates = [
        {"name": "main", "dag": {"tasks": tasks}},
        {"name": "build", "container": _container(), "outputs": outputs},
        {"name": "ship", "container": _container(f"{{{{inputs.parameters.{RESULT}}}}}"), "inputs": asked},
    ]
    return {"entrypoint": "main", "templates": templates}


EXAMPLES: Final[Mapping[str, Json]] = {"pipelinerun": {"pipelineSpec": pipeline()}, "workflow": _workflow()}
"""Specs by the names of kinds."""
