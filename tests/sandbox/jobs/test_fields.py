"""Which fields of Jobs and pods are played here: what docs/sandbox.md says of each, held against what is seen."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final

import anyio
import pytest

from multikueue.core.model.kinds import JOB, POD
from multikueue.core.model.names import Json, Resource
from multikueue.core.model.objects import clone, dig, is_terminating
from multikueue.sandbox.jobs import DURATION_ANNOTATION, OUTCOME_ANNOTATION, RunnerOptions
from tests.examples import shared
from tests.sandbox.kueue.objects import job
from tests.sandbox.kueue.world import World, world

pytestmark = pytest.mark.looptime

ROOT: Final = Path(__file__).parents[3]
ROWS: Final = {
    f"{kind} {field}": played == "yes"
    for kind, field, played in re.findall(
        r"^\| (Job|Pod) `spec\.([\w.]+)` \| (yes|no) \|", (ROOT / "docs" / "sandbox.md").read_text(), re.MULTILINE
    )
}
"""Each row of the page's table: the kind with the path below its spec, and whether it is played."""
LABELS: Final = {"app": "a"}
EXIT_1: Final = [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [1]}}]
INIT: Final = [{"name": "before", "image": "i"}]
CASES: Final[dict[str, tuple[Json, Json]]] = {
    "Job activeDeadlineSeconds": ({"activeDeadlineSeconds": 3}, {}),
    "Job backoffLimit": ({"backoffLimit": 1}, {}),
    "Job backoffLimitPerIndex": ({"backoffLimitPerIndex": 1}, {}),
    "Job completionMode": ({"completionMode": "NonIndexed"}, {}),
    "Job completions": ({"completions": 4}, {}),
    "Job managedBy": ({"managedBy": "example.com/other"}, {}),
    "Job manualSelector": ({"manualSelector": True, "selector": {"matchLabels": LABELS}}, {}),
    "Job maxFailedIndexes": ({"backoffLimitPerIndex": 1, "maxFailedIndexes": 0}, {"backoffLimitPerIndex": 1}),
    "Job parallelism": ({"parallelism": 1}, {}),
    "Job podFailurePolicy": ({"podFailurePolicy": {"rules": EXIT_1}}, {"podReplacementPolicy": "Failed"}),
    "Job podReplacementPolicy": ({"podReplacementPolicy": "Failed"}, {}),
    "Job selector": ({"manualSelector": True, "selector": {"matchLabels": LABELS}}, {}),
    "Job successPolicy": ({"successPolicy": {"rules": [{"succeededCount": 1}]}}, {}),
    "Job suspend": ({"suspend": True}, {}),
    "Job ttlSecondsAfterFinished": ({"ttlSecondsAfterFinished": 2}, {}),
    "Job template.spec.activeDeadlineSeconds": ({"template": {"spec": {"activeDeadlineSeconds": 3}}}, {}),
    "Job template.spec.initContainers": ({"template": {"spec": {"initContainers": INIT}}}, {}),
    "Job template.spec.restartPolicy": ({"template": {"spec": {"restartPolicy": "OnFailure"}}}, {}),
    "Job template.spec.terminationGracePeriodSeconds": (
        {"template": {"spec": {"terminationGracePeriodSeconds": 1}}},
        {},
    ),
    "Pod activeDeadlineSeconds": ({"activeDeadlineSeconds": 3}, {}),
    "Pod initContainers": ({"initContainers": INIT}, {}),
    "Pod restartPolicy": ({"restartPolicy": "Always"}, {}),
}
"""For each row a spec with the field and one without; both are walked."""


def merged(obj: Any, change: Any) -> Any:
    if not isinstance(obj, dict) or not isinstance(change, dict):
        return change
    return {**obj, **{key: merged(obj.get(key), value) for key, value in change.items()}}


def made(kind: str, outcome: str, change: Json) -> Json:
    """A Job in several rounds, or a pod, of ten seconds a round."""
    noted = {DURATION_ANNOTATION: "10s", OUTCOME_ANNOTATION: outcome}
    whole = job(queue=None, annotations=noted, parallelism=2, completions=3, completionMode="Indexed")
    template = {"metadata": {"labels": LABELS}, "spec": {**whole["spec"]["template"]["spec"]}}
    if kind == "Job":
        return {**whole, "spec": merged({**whole["spec"], "template": template}, change)}
    spec = merged(clone(template["spec"]), change)
    return {**whole, "apiVersion": "v1", "kind": "Pod", "spec": spec}


def shown(obj: Json | None) -> Any:
    """What its status says, but for the times."""
    status = dict((obj or {}).get("status") or {})
    listed = [(entry["type"], entry["status"], entry.get("reason")) for entry in status.pop("conditions", ())]
    counted = {key: value for key, value in status.items() if isinstance(value, int | str) and "Time" not in key}
    return obj is None, listed, counted


async def seen(cluster: World, resource: Resource) -> Any:
    """What a user sees of it and of its pods now."""
    pods = [(dig(pod, "status", "phase"), is_terminating(pod)) for pod in (await cluster.client.list(POD)).items]
    return shown(await cluster.get(resource, "j1")), sorted(pods, key=str)


async def walk(kind: str, outcome: str, change: Json) -> list[Any]:
    """Forty seconds of it, each; a Job is suspended meanwhile for a second, and its pods take three to end."""
    resource = JOB if kind == "Job" else POD
    async with world(queues=False, options=RunnerOptions(trap=3)) as cluster:
        await cluster.create(made(kind, outcome, change))
        history = []
        for second in range(40):
            if kind == "Job" and second in (4, 5):
                await cluster.patch(JOB, "j1", {"spec": {"suspend": second == 4}})
            await anyio.sleep(1)
            history.append(await seen(cluster, resource))
        return history


def test_the_table_has_each_field_of_a_jobs_spec() -> None:
    document = json.loads((ROOT / "multikueue/sandbox/apiserver/kinds/builtin_schemas.json").read_text())
    fields = document["definitions"]["io.k8s.api.batch.v1.JobSpec"]["properties"].keys() - {"template"}
    assert ROWS.keys() == CASES.keys()
    assert {f"Job {field}" for field in fields} <= ROWS.keys()


@pytest.mark.parametrize("row", shared(CASES))
async def test_a_field_is_played_if_the_page_says_so(row: str) -> None:
    kind = row.partition(" ")[0]
    wanted, without = CASES[row]
    differs = False
    for outcome in ("complete", "fail"):
        differs = differs or await walk(kind, outcome, wanted) != await walk(kind, outcome, without)
    assert differs is ROWS[row]
