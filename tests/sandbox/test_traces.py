"""The small Kueue's objects beside those of a real one, step by step (tests/data/traces).

A script plays the part of MultiKueue, as it did when the traces were taken. Compared are all fields but uids, times,
resourceVersions and the hash in names: metadata, spec, status, who owns which field of the status, and events.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import attrs
import pytest

from multikueue.core.model.conditions import timestamp
from multikueue.core.model.kinds import ADMISSION_CHECK, CLUSTER_QUEUE, EVENT, JOB, WORKLOAD
from multikueue.core.model.names import Json, ObjectKey
from multikueue.sandbox.jobs import RunnerOptions
from multikueue.sandbox.kueue.applying import admission_body
from tests.data.files import TRACES
from tests.sandbox.kueue.objects import admission_check, cluster_queue, flavor, is_true, job, local_queue
from tests.sandbox.kueue.world import World, wall_clock, world

STEPS = [path.stem for path in sorted(TRACES.glob("*.json"))]
OTHER_RUN = ("07", "08")
"""These were taken in a run of their own, in which pods ran; in the others they stayed Pending."""
MULTIKUEUE = "kueue.x-k8s.io/multikueue"

_NOT_SET_BY_THE_JOB_CONTROLLER = ("SuccessfulCreate",)
"""Events of pods, which the sandbox does not make."""


@attrs.define
class Script:
    """MultiKueue's part, done by hand."""

    manager: World
    worker: World

    async def start(self, duration: str) -> None:
        """A Job, delegated to MultiKueue, gets its quota."""
        await self.manager.create(job(managedBy=MULTIKUEUE, suspend=True, annotations=_runs(duration)))
        await self.manager.workload_when(lambda workload: _check(workload) == "Pending" and _has_admitted(workload))
        await self.manager.settle()

    async def nominate(self) -> None:
        """Offer the Workload to w1."""
        await self._apply(nominatedClusterNames=["w1"], resourceRequests=[])

    async def copy_workload(self) -> None:
        """Make the copy on the worker, which admits it."""
        local = await self.manager.workload()
        await self.worker.create(
            {
                "apiVersion": local["apiVersion"],
                "kind": "Workload",
                "metadata": {
                    "name": local["metadata"]["name"],
                    "namespace": "default",
                    "labels": {"kueue.x-k8s.io/multikueue-origin": "multikueue"},
                },
                "spec": local["spec"],
            }
        )
        await self.worker.workload_when(lambda workload: is_true(workload, "Admitted"))

    async def copy_job(self) -> None:
        """Make the job copy, which the worker's Kueue starts."""
        local = copy.deepcopy(await self.manager.job())
        name = (await self.manager.workload())["metadata"]["name"]
        for field in ("selector", "managedBy"):
            local["spec"].pop(field)
        for label in ("controller-uid", "job-name", "batch.kubernetes.io/controller-uid"):
            local["spec"]["template"]["metadata"]["labels"].pop(label)
        marks = {"kueue.x-k8s.io/prebuilt-workload-name": name}
        labels = {**local["metadata"]["labels"], **marks, "kueue.x-k8s.io/multikueue-origin": "multikueue"}
        noted = {**local["metadata"].get("annotations", {}), **marks}
        metadata = {"name": "j1", "namespace": "default", "labels": labels, "annotations": noted}
        await self.worker.create({"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": local["spec"]})
        await self.worker.job_when(lambda job: job["status"].get("active") == 1)

    async def admit(self) -> None:
        """Say that w1 has it."""
        local = await self.manager.workload()
        entry = {"name": "mk", "state": "Ready", "message": 'The workload was admitted on "w1"'}
        check = {**entry, "lastTransitionTime": timestamp(wall_clock())}
        if "retryCount" in local["status"]["admissionChecks"][0]:
            check["retryCount"] = local["status"]["admissionChecks"][0]["retryCount"]
        await self._apply(clusterName="w1", nominatedClusterNames=None, admissionChecks=[check], resourceRequests=[])
        await self.manager.job_when(lambda job: not job["spec"]["suspend"])

    async def retry(self) -> None:
        """Send it back."""
        local = await self.manager.workload()
        message = 'Admitting remote lost, Previously: "Ready"'
        entry = {"name": "mk", "state": "Retry", "message": message, "lastTransitionTime": timestamp(wall_clock())}
        identity = {field: local["metadata"][field] for field in ("name", "namespace", "uid", "resourceVersion")}
        body = {
            "apiVersion": local["apiVersion"],
            "kind": "Workload",
            "metadata": identity,
            "status": {"admissionChecks": [entry]},
        }
        await self.manager.client.apply(WORKLOAD, body, field_manager=MULTIKUEUE, subresource="status")
        await self.manager.workload_when(
            lambda workload: bool(workload["status"].get("schedulingStats")) and is_true(workload, "QuotaReserved")
        )

    async def deactivate(self) -> None:
        """Have a user switch it off."""
        name = (await self.manager.workload())["metadata"]["name"]
        await self.manager.patch(WORKLOAD, name, {"spec": {"active": False}})
        await self.manager.workload_when(lambda workload: "admission" not in workload["status"])

    async def finish_worker(self) -> None:
        """Wait until the copy has run."""
        await self.worker.workload_when(lambda workload: is_true(workload, "Finished"))

    async def copy_status(self) -> None:
        """Bring the copy's status home."""
        remote, local = await self.worker.job(), await self.manager.job()
        await self.manager.client.replace(JOB, {**local, "status": remote["status"]}, subresource="status")
        await self.manager.workload_when(lambda workload: is_true(workload, "Finished"))

    async def _apply(self, **changes: Any) -> None:
        local = await self.manager.workload()
        status = {**admission_body(local)["status"], **changes}
        body = {
            **admission_body(local),
            "status": {field: value for field, value in status.items() if value is not None},
        }
        await self.manager.client.apply(WORKLOAD, body, field_manager="kueue-admission", subresource="status")


@asynccontextmanager
async def clusters(startup: float) -> AsyncIterator[Script]:
    """A manager with MultiKueue's check, active, and a worker with as much quota, whose pods need so long to start."""
    queues = [flavor(), cluster_queue(checks=("mk",), cpu="10"), local_queue(), admission_check()]
    async with (
        world(*queues, queues=False, runner=True) as manager,
        world(cpu="10", options=RunnerOptions(startup=startup)) as worker,
    ):
        check = await manager.get(ADMISSION_CHECK, "mk") or {}
        active = {"type": "Active", "status": "True", "reason": "Active", "message": "The admission check is active"}
        condition = {**active, "lastTransitionTime": timestamp(wall_clock())}
        await manager.client.replace(
            ADMISSION_CHECK, {**check, "status": {"conditions": [condition]}}, subresource="status"
        )
        await manager.when(CLUSTER_QUEUE, lambda queue: is_true(queue, "Active"))
        yield Script(manager, worker)


async def play(script: Script, until: str) -> None:
    """Go through the steps of a trace, up to and with the one named."""
    other_run = until[:2] in OTHER_RUN
    steps: dict[str, list[Callable[[], Awaitable[None]]]] = {
        "01": [lambda: script.start("5s" if other_run else "1h")],
        "02": [script.nominate, script.copy_workload],
        "03": [script.copy_job],
        "04": [script.admit],
        "05": [script.retry],
        "06": [script.nominate, script.admit, script.deactivate],
        "07": [script.finish_worker],
        "08": [script.copy_status],
    }
    left_out = ("05", "06") if other_run else ()
    for number, actions in steps.items():
        if number not in left_out:
            for action in actions:
                await action()
                await script.manager.settle()
        if number == until[:2]:
            break


def recorded(step: str) -> Json:
    """One trace."""
    trace: Json = json.loads((TRACES / f"{step}.json").read_text())
    return trace


async def played(step: str) -> dict[str, dict[str, list[Json]]]:
    """What the small Kueue has made of it."""
    no_kubelet = step[:2] not in OTHER_RUN
    async with clusters(startup=1_000.0 if no_kubelet else 1.0) as script:
        await play(script, step)
        return {
            name: {
                "workloads": (await cluster.client.list(WORKLOAD)).items,
                "jobs": (await cluster.client.list(JOB)).items,
                "events": (await cluster.client.list(EVENT)).items,
            }
            for name, cluster in (("manager", script.manager), ("worker", script.worker))
        }


@pytest.mark.looptime
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("cluster", ["manager", "worker"])
async def test_workloads_are_those_of_a_real_kueue(step: str, cluster: str) -> None:
    """Whatever reads a Workload of the sandbox finds what a real Kueue would have written, in the same places."""
    real = [workload for workload in recorded(step)[cluster]["workloads"] if _is_of_j1(workload)]
    ours = (await played(step))[cluster]["workloads"]
    assert [_normal(workload) for workload in ours] == [_normal(workload) for workload in real]


@pytest.mark.looptime
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("cluster", ["manager", "worker"])
async def test_fields_have_the_owners_a_real_kueue_gives_them(step: str, cluster: str) -> None:
    """Server-side apply removes what its manager no longer names, so who owns a field decides how it can go away."""
    real = [workload for workload in recorded(step)[cluster]["workloads"] if _is_of_j1(workload)]
    ours = (await played(step))[cluster]["workloads"]
    assert [_owners(workload) for workload in ours] == [_owners(workload) for workload in real]


@pytest.mark.looptime
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("cluster", ["manager", "worker"])
async def test_jobs_are_those_of_a_real_cluster(step: str, cluster: str) -> None:
    """Start, stop and end of a Job look as kube-controller-manager and a real Kueue make them look."""
    ours = (await played(step))[cluster]["jobs"]
    assert [_normal(job) for job in ours] == [_normal(job) for job in recorded(step)[cluster]["jobs"]]


@pytest.mark.looptime
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("cluster", ["manager", "worker"])
async def test_events_are_those_of_a_real_cluster(step: str, cluster: str) -> None:
    """Users see the same story in `kubectl describe`."""
    ours = _story((await played(step))[cluster]["events"])
    assert ours == _story(recorded(step)[cluster]["events"])


@pytest.mark.looptime
@pytest.mark.parametrize("step", STEPS[:1])
async def test_a_workload_that_lost_its_job_ends_as_with_a_real_kueue(step: str) -> None:
    """Its quota is free again, and it says why."""
    real = next(workload for workload in recorded(step)["manager"]["workloads"] if not _is_of_j1(workload))
    async with world(cpu="10", collect=False) as cluster:
        await cluster.create(job("j2", annotations=_runs("1h")))
        await cluster.workload_when(lambda workload: is_true(workload, "QuotaReserved"), "j2")
        await cluster.client.delete(JOB, ObjectKey("default", "j2"), propagation="Background")
        await cluster.workload_when(lambda workload: "finalizers" not in workload["metadata"], "j2")
        ours = _normal(await cluster.workload("j2"))
    ours["status"]["conditions"].pop("Admitted")  # there were admission checks in the trace
    assert ours == _normal(real)


def _runs(duration: str) -> Json:
    return {"sandbox.multikueue.dev/duration": duration}


def _check(workload: Json) -> str:
    entries = (workload.get("status") or {}).get("admissionChecks") or [{}]
    return str(entries[0].get("state"))


def _has_admitted(workload: Json) -> bool:
    return any(entry["type"] == "Admitted" for entry in workload["status"].get("conditions") or [])


def _is_of_j1(workload: Json) -> bool:
    return str(workload["metadata"]["name"]).startswith("job-j1-")


def _normal(obj: Json) -> Json:
    """The object without what differs between any two runs; conditions by type."""
    text = json.dumps({field: value for field, value in obj.items() if field not in ("apiVersion", "kind")})
    text = re.sub(r"job-(j\d)-[0-9a-f]{5}", r"job-\1-x", text)
    text = re.sub(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "uid", text)
    text = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "time", text)
    result: Json = json.loads(text)
    for field in ("managedFields", "resourceVersion"):
        result["metadata"].pop(field, None)
    notes = result["metadata"].get("annotations") or {}
    notes.pop("sandbox.multikueue.dev/duration", None)
    if not notes:
        result["metadata"].pop("annotations", None)
    status = result.get("status") or {}
    status["conditions"] = {entry["type"]: entry for entry in status.get("conditions") or []}
    if "accumulatedPastExecutionTimeSeconds" in status:
        status["accumulatedPastExecutionTimeSeconds"] = "some"
    return result


def _owners(workload: Json) -> Json:
    """The fields outside pod sets that each manager owns; owner references count as a whole.

    Managers of plain writes are called as in the traces.
    """
    result: dict[str, set[str]] = {}
    names = {"tester": "Python-urllib"}
    for entry in workload["metadata"]["managedFields"]:
        manager = names.get(entry["manager"], entry["manager"])
        leaves = (re.sub(r"(/ownerReferences/k:[^/]*)/.*", r"\1", leaf) for leaf in _leaves(entry["fieldsV1"]))
        owned = (leaf for leaf in leaves if not leaf.startswith("/spec/podSets"))
        part = entry.get("subresource") or "main"
        result.setdefault(f"{manager} {entry['operation']} {part}", set()).update(owned)
    return {manager: sorted(fields) for manager, fields in result.items()}


def _leaves(fields: Json, path: str = "") -> list[str]:
    inner = {name: value for name, value in fields.items() if name != "."}
    if not inner:
        return [path]
    named = {re.sub(r'"uid":"[^"]*"', '"uid":"uid"', name).removeprefix("f:"): value for name, value in inner.items()}
    return [leaf for name, value in named.items() for leaf in _leaves(value, f"{path}/{name}")]


def _story(events: list[Json]) -> list[tuple[str, ...]]:
    story = set()
    for entry in events:
        about = entry["regarding"]
        if about["name"] not in ("j1",) and not about["name"].startswith("job-j1-"):
            continue
        if entry["reason"] in _NOT_SET_BY_THE_JOB_CONTROLLER:
            continue
        note = re.sub(r"job-(j\d)-[0-9a-f]{5}", r"job-\1-x", re.sub(r"\d+s$", "0s", entry["note"]))
        story.add((entry["type"], entry["reason"], note, entry["reportingController"], about["kind"]))
    return sorted(story)
