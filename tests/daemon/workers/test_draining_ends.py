"""`worker drain` with the real daemon: drained is a worker on which nothing of ours may run, and the wait is told."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from multikueue.core.model.kinds import JOB, MULTIKUEUE_CLUSTER, POD, WORKLOAD
from multikueue.core.model.labels import GIVE_UP_ANNOTATION, GIVE_UP_BEFORE_ANNOTATION
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import is_terminating, uid
from multikueue.sandbox.apiserver.faults import Match, Refuse
from multikueue.sandbox.jobs import TRAP_ANNOTATION
from multikueued.workers import drain, ending_wait
from tests.daemon.workers.ground import Ground, ground, until

pytestmark = pytest.mark.timeout(120)

KEY = ObjectKey("default", "long")
SLOW = "example.com/slow"


async def runs_on_worker1(here: Ground, *, held: bool = True) -> Json:
    """The copy of a job that runs, with a foreign finalizer."""
    await here.submit("long")
    await until(here.runs_on, lambda places: places == {"long": ["worker1"]})
    copy = await here.worker("worker1").get(JOB, KEY)
    return await finalizers(here, [SLOW]) if held else copy


async def finalizers(here: Ground, wanted: list[str]) -> Json:
    copy = await here.worker("worker1").get(JOB, KEY)
    kept = [finalizer for finalizer in copy["metadata"].get("finalizers") or [] if finalizer != SLOW]
    return await here.worker("worker1").merge_patch(JOB, KEY, {"metadata": {"finalizers": [*kept, *wanted]}})


async def deleted(here: Ground) -> None:
    """On the manager; and on the worker it is being deleted."""
    await here.manager.delete(JOB, KEY, propagation="Background")

    async def ends() -> bool:
        return is_terminating(await here.worker("worker1").get(JOB, KEY))

    await until(ends)


def in_an_hour(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was deleted is an hour old."""
    monkeypatch.setattr(ending_wait, "utc_now", lambda: datetime.now(UTC) + timedelta(hours=1))


async def test_a_job_copy_that_ends_is_waited_for_and_told(tmp_path: Path) -> None:
    """It said "drained" over a job that ran, as nothing stands for it on the manager any more."""
    async with ground(tmp_path, workers=1, joined=["worker1"]) as here:
        copy = await runs_on_worker1(here)
        await deleted(here)
        result = await here.run("worker", "drain", "worker1", "--timeout", "1s")
        assert result.exit_code == 1, result.output
        assert "drained" not in result.stderr
        assert "is not empty yet, waited 0s so far" in result.stderr
        assert f"Job default/long (UID {uid(copy)}): deleted at 20" in result.stderr
        assert "the time is over; it stays cordoned" in result.stderr
        await finalizers(here, [])
        assert "worker1 is drained" in await here.done("worker", "drain", "worker1", "--timeout", "30s")


@pytest.mark.gate
async def test_after_the_grace_period_what_holds_it_is_named_with_the_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A person's word ends the wait; by that time of creation, as no Workload is there to say it on."""
    async with ground(tmp_path, workers=1, joined=["worker1"]) as here:
        copy = await runs_on_worker1(here)
        await deleted(here)
        in_an_hour(monkeypatch)
        error = await here.refused("worker", "drain", "worker1", "--timeout", "1s")
        assert f"held by the finalizer {SLOW}" in error
        made = datetime.fromisoformat(copy["metadata"]["creationTimestamp"])
        before = f"{made + timedelta(seconds=1):%Y-%m-%dT%H:%M:%SZ}"
        command = f"kubectl annotate multikueuecluster worker1 {GIVE_UP_BEFORE_ANNOTATION}={before} --overwrite"
        assert command in error
        patch = {"metadata": {"annotations": {GIVE_UP_BEFORE_ANNOTATION: before}}}
        await here.manager.merge_patch(MULTIKUEUE_CLUSTER, ObjectKey("", "worker1"), patch)
        assert "worker1 is drained" in await here.done("worker", "drain", "worker1", "--timeout", "30s")


async def test_a_pod_that_does_not_end_is_named_with_its_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kubelet of its node is gone. Its pods may be read there only with the right for it."""
    async with ground(tmp_path, workers=1, joined=["worker1"]) as here:
        copy = await runs_on_worker1(here)
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "long", "uid": uid(copy), "controller": True}
        metadata = {"name": "long-x", "namespace": "default", "annotations": {TRAP_ANNOTATION: "10m"}}
        spec = {"nodeName": "n1", "terminationGracePeriodSeconds": 600, "containers": [{"name": "main", "image": "x"}]}
        pod: Any = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {**metadata, "ownerReferences": [owner]},
            "spec": spec,
        }
        there = here.worker("worker1")
        await there.create(POD, pod)
        await there.delete(POD, ObjectKey("default", "long-x"))
        await deleted(here)
        in_an_hour(monkeypatch)
        error = await here.refused("worker", "drain", "worker1", "--timeout", "1s")
        assert "its pods are not known" in error
        assert "worker add --logs" in error
        await here.done("worker", "add", "worker1", "--worker-context", "worker1", "--outside", "--logs")
        error = await here.refused("worker", "drain", "worker1", "--timeout", "1s")
        assert "pod long-x on node n1 should have ended at 20" in error
        assert "the node may be down" in error


@pytest.mark.gate
async def test_a_move_tells_what_it_waits_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with ground(tmp_path, joined=["worker1"]) as here:
        copy = await runs_on_worker1(here)
        await here.join("worker2")
        in_an_hour(monkeypatch)
        result = await here.run("worker", "drain", "worker1", "--move", "--yes", "--timeout", "5s")
        assert result.exit_code == 1, result.output
        assert "default/job/long has left worker1 and waits for another worker" in result.stderr
        (workload,) = (await here.manager.list(WORKLOAD)).items
        named = f"annotate workload {workload['metadata']['name']} {GIVE_UP_ANNOTATION}=worker1/{uid(copy)}"
        assert named in result.stderr
        await finalizers(here, [])
        assert "worker1 is drained" in await here.done("worker", "drain", "worker1", "--timeout", "30s")
        await until(here.runs_on, lambda places: places == {"long": ["worker2"]})


@pytest.mark.parametrize("away", [False, True])
@pytest.mark.gate
async def test_a_worker_that_cannot_be_looked_at_is_not_drained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, away: bool
) -> None:
    """Out of reach, or without the right to list jobs there."""
    monkeypatch.setattr(ending_wait, "PATIENCE", 1.0)
    async with ground(tmp_path, workers=1, joined=["worker1"]) as here:
        faults = here.sandbox.workers["worker1"].server.faults
        if away:
            faults.add(Refuse(503))
        else:
            faults.add(Refuse(403), on=Match(verbs=("list",), resource="jobs"))
        error = await here.refused("worker", "drain", "worker1")
        assert "the manager has no job on worker1, but what runs there could not be looked at" in error
        assert "it stays cordoned" in error
        assert away or "may not list jobs" in error


async def test_a_moved_job_that_no_worker_takes_is_told_with_what_it_waits_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other worker could take it, and is full: it waited without end and without a word."""
    monkeypatch.setattr(drain, "STANDS", 0.2)
    async with ground(tmp_path, joined=["worker1"]) as here:
        await here.submit("long", cpu="4")
        await until(here.runs_on, lambda places: places == {"long": ["worker1"]})
        await here.join("worker2")
        await here.submit("other", cpu="4")
        await until(here.runs_on, lambda places: places.get("other") == ["worker2"])
        result = await here.run("worker", "drain", "worker1", "--move", "--yes", "--timeout", "4s")
        assert result.exit_code == 1, result.output
        assert "default/job/long waits for another worker: Offered to worker2" in result.stderr


@pytest.mark.gate
async def test_a_job_that_nobody_moves_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where no daemon runs."""
    monkeypatch.setattr(drain, "ACTS", 0.2)
    async with ground(tmp_path, joined=["worker1"]) as here:
        await runs_on_worker1(here, held=False)
        await here.join("worker2")
        refused = Match(user="multikueue", verbs=("patch",), resource="workloads")
        here.sandbox.manager.server.faults.add(Refuse(503), on=refused)
        result = await here.run("worker", "drain", "worker1", "--move", "--yes", "--timeout", "2s")
        assert result.exit_code == 1, result.output
        assert "default/job/long is still on worker1: does the daemon run?" in result.stderr
        assert "default/job/long did not leave worker1 in time" in result.stderr


async def test_what_is_left_is_named(tmp_path: Path) -> None:
    async with ground(tmp_path, workers=1, joined=["worker1"]) as here:
        await here.submit("one", "two")
        await until(here.runs_on, lambda places: len(places) == 2)
        result = await here.run("worker", "drain", "worker1", "--timeout", "1s")
    assert "worker1 has 2 jobs left: default/job/one, default/job/two" in result.stderr
