"""Rows whose functions raise for one object, beside a kind that works: all else goes on, and the fault is told."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio
import attrs
import pytest
import structlog

from multikueue.adapters import AdapterRegistry, JobKind
from multikueue.adapters.job import KINDS as JOBS
from multikueue.adapters.pod import KINDS as POD_KINDS
from multikueue.adapters.pod import PODS, group_name
from multikueue.adapters.rules import ALWAYS_DELEGATED, Membership
from multikueue.adapters.sets import LEADER_WORKER_SET, workload_names
from multikueue.core.model.conditions import is_true
from multikueue.core.model.kinds import EVENT, JOB, WORKLOAD
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import dig
from multikueue.core.model.workloads import cluster_name
from multikueue.runtime.manager import Manager, ManagerSettings
from multikueue.sandbox.apiserver import DirectClient
from multikueue.testing import job
from tests.runtime.fleet import now, until
from tests.runtime.test_pods import AT, GROUP, SETS, Bench, said

pytestmark = pytest.mark.looptime

ROW = LEADER_WORKER_SET
(POD,) = POD_KINDS
SECRET = "s3cret"


def odd(obj: Json) -> bool:
    return bool(obj["metadata"]["name"] == "odd")


def fail(*given: object) -> Any:
    """What another package's code does with an object that it does not expect."""
    raise KeyError(SECRET)


class Undelegated(JobKind):
    """A row that cannot tell who runs one job."""

    def not_delegated(self, job: Json, controller_name: str) -> str | None:
        return fail() if odd(job) else super().not_delegated(job, controller_name)


def undelegated(kind: JobKind) -> JobKind:
    return Undelegated(**{field.name: getattr(kind, field.name) for field in attrs.fields(JobKind)})


@asynccontextmanager
async def working(*rows: JobKind) -> AsyncIterator[Bench]:
    """A manager with these rows and the one for Jobs, which must work at the end, too."""
    bench = await Bench.of("worker1")
    client = DirectClient(bench.fleet.manager, user="multikueue")
    registry = AdapterRegistry([*rows, *JOBS])
    manager = Manager(client, registry, ManagerSettings(), bench.fleet.build().connect, clock=now)
    async with bench.fleet.dispatching(manager):
        await run_job(bench, "before")
        yield bench
        await run_job(bench, "after")


async def run_job(bench: Bench, name: str) -> None:
    """A batch Job from its creation to its end, as the manager shows it."""
    made = await bench.client().create(JOB, job(name))
    await bench.make_workload(f"job-{name}", [made], {})
    await bench.admit(f"job-{name}", "worker1")
    await bench.placed(f"job-{name}", "worker1")
    ended = {"conditions": said("SuccessCriteriaMet", "Complete"), "startTime": AT, "completionTime": AT}
    key = ObjectKey("default", name)
    await bench.client("worker1").merge_patch(JOB, key, {"spec": {"suspend": False}})
    await bench.client("worker1").merge_patch(JOB, key, {"status": {"startTime": AT}}, subresource="status")
    await bench.client("worker1").merge_patch(JOB, key, {"status": ended}, subresource="status")

    async def has_ended() -> bool:
        return is_true(await bench.get(JOB, name) or {}, "Complete")

    await until(has_ended)


async def make_set(bench: Bench, name: str, **spec: Any) -> Json:
    body: Json = {"apiVersion": SETS.gvk.api_version, "kind": SETS.gvk.kind, "spec": {"replicas": 1, **spec}}
    return await bench.client().create(SETS, {**body, "metadata": {"name": name, "namespace": "default"}})


async def place_set(bench: Bench, name: str, where: str = "worker1") -> str:
    """A set whose only Workload is admitted; returns that one's name."""
    made = await make_set(bench, name)
    (carrier, *_) = workload_names({**made, "metadata": {**made["metadata"], "annotations": _noted(made)}})
    await bench.make_workload(carrier, [made], {})
    await bench.admit(carrier, where)
    await bench.placed(carrier, where)
    return carrier


def _noted(made: Json) -> Json:
    return {"kueue.x-k8s.io/multikueue-origin-uid": made["metadata"]["uid"]}


async def warnings(bench: Bench, workload: str) -> list[str]:
    """The warnings on a Workload."""
    events = (await bench.client().list(EVENT)).items
    return [event["note"] for event in events if event["type"] == "Warning" and event["regarding"]["name"] == workload]


async def is_told(bench: Bench, workload: str, function: str) -> None:
    """Wait for the warning; it names the row, the function and the object, and nothing of what is in it."""

    async def holds() -> bool:
        return any(function in note for note in await warnings(bench, workload))

    await until(holds)
    notes = [note for note in await warnings(bench, workload) if function in note]
    assert len(notes) == len(set(notes))
    assert all("raises KeyError for" in note and SECRET not in note for note in notes)


@pytest.mark.parametrize("group", [lambda pod: fail() if pod["metadata"]["name"] == "b" else group_name(pod), fail])
async def test_a_group_is_copied_whole_though_a_member_cannot_say_which_it_belongs_to(group: Any) -> None:
    """Its Workload names its members. One that goes takes its copy along."""
    async with working(attrs.evolve(POD, membership=attrs.evolve(POD.membership, group=group))) as bench:
        await bench.make_group("a", "b")
        await bench.admit(GROUP, "worker1")
        await bench.placed(GROUP, "worker1")
        assert set(await bench.pods("worker1")) == {"a", "b"}
        await is_told(bench, GROUP, "group")

        await bench.set_phase("b", "worker1", "Running")
        await bench.shows({"a": "Pending", "b": "Running"})
        await bench.client().delete(PODS, ObjectKey("default", "b"))

        async def is_gone() -> bool:
            return set(await bench.pods("worker1")) == {"a"}

        await until(is_gone)


async def test_a_member_that_stops_saying_its_group_keeps_its_copy() -> None:
    """It would look like one that is gone, and what runs would be removed."""

    def group(pod: Json) -> str:
        return fail() if dig(pod, "status", "phase") == "Running" else group_name(pod)

    async with working(attrs.evolve(POD, membership=attrs.evolve(POD.membership, group=group))) as bench:
        await bench.make_group("a", "b")
        await bench.admit(GROUP, "worker1")
        await bench.placed(GROUP, "worker1")
        before = {name: await bench.get(PODS, name, "worker1") for name in ("a", "b")}
        await bench.set_phase("b", "worker1", "Running")
        await is_told(bench, GROUP, "group")
        await anyio.sleep(90)
        after = {name: await bench.get(PODS, name, "worker1") for name in ("a", "b")}
        assert [(job or {})["metadata"]["uid"] for job in after.values()] == [
            (job or {})["metadata"]["uid"] for job in before.values()
        ]


@pytest.mark.parametrize("names", [fail, lambda copy: fail() if odd(copy) else workload_names(copy)])
async def test_a_copy_that_cannot_say_whose_it_is_is_neither_lost_nor_made_again(names: Any) -> None:
    """It has the name of the manager's job; its Workload hears of it, and says what is wrong, once."""
    with structlog.testing.capture_logs() as lines:
        async with working(attrs.evolve(ROW, membership=Membership(carriers=names))) as bench:
            carrier = await place_set(bench, "odd")
            copy = await bench.get(SETS, "odd", "worker1") or {}
            await is_told(bench, carrier, "carriers")
            for number in range(3):
                status = {"status": {"readyReplicas": number}, "metadata": {"labels": {"seen": str(number)}}}
                await bench.client("worker1").merge_patch(SETS, ObjectKey("default", "odd"), status)
                await anyio.sleep(30)
            assert (await bench.get(SETS, "odd", "worker1") or {})["metadata"]["uid"] == copy["metadata"]["uid"]
            assert cluster_name(await bench.get(WORKLOAD, carrier) or {}) == "worker1"
    assert len([line for line in lines if line["event"] == "rule of a job kind failed"]) == 1


async def test_a_copy_that_stops_saying_whose_it_is_is_removed_with_its_workload() -> None:
    """What it said last counts."""

    def names(copy: Json) -> Sequence[str]:
        return fail() if dig(copy, "metadata", "labels", "seen") else workload_names(copy)

    async with working(attrs.evolve(ROW, membership=Membership(carriers=names))) as bench:
        carrier = await place_set(bench, "odd")
        patch = {"metadata": {"labels": {"seen": "yes"}}}
        await bench.client("worker1").merge_patch(SETS, ObjectKey("default", "odd"), patch)
        await is_told(bench, carrier, "carriers")
        await bench.client().delete(WORKLOAD, ObjectKey("default", carrier))

        async def is_gone() -> bool:
            return await bench.get(SETS, "odd", "worker1") is None

        await until(is_gone)


@pytest.mark.parametrize("answer", ["not-a-list", 7, [7], None])
async def test_carriers_that_are_no_names_are_none(answer: Any) -> None:
    """They end no watch either."""
    async with working(attrs.evolve(ROW, membership=Membership(carriers=lambda copy: answer))) as bench:
        carrier = await place_set(bench, "set")
        assert await bench.get(SETS, "set", "worker1") is not None

        async def holds() -> bool:
            return any("carriers raises TypeError" in note for note in await warnings(bench, carrier))

        await until(holds)


async def test_a_job_of_which_it_cannot_be_told_who_runs_it_waits_and_is_not_copied() -> None:
    """It could run twice otherwise; others of its kind go on."""
    async with working(undelegated(ROW)) as bench:
        made = await make_set(bench, "odd")
        await bench.make_workload("held", [made], {})
        await is_told(bench, "held", "delegation")
        await place_set(bench, "even")
        await anyio.sleep(30)
        assert await bench.get(SETS, "odd", "worker1") is None
        checks = dig(await bench.get(WORKLOAD, "held"), "status", "admissionChecks")
        assert checks[0]["state"] == "Pending"


async def test_what_is_not_read_of_a_copy_is_kept_if_the_row_cannot_say_what_it_is() -> None:
    """It costs memory only. Rows check their paths when they are made; this one was changed afterwards."""
    copies = attrs.evolve(ROW.copies)
    object.__setattr__(copies, "unread", ((),))
    with structlog.testing.capture_logs() as lines:
        async with working(attrs.evolve(ROW, copies=copies)) as bench:
            carrier = await place_set(bench, "odd")

            async def holds() -> bool:
                return any("unread raises IndexError" in note for note in await warnings(bench, carrier))

            await until(holds)
    (line,) = [line for line in lines if line["event"] == "rule of a job kind failed"]
    assert line["object"] == "default/odd"


async def test_a_job_whose_end_cannot_be_told_holds_up_no_other() -> None:
    """Its changes are acted on at once, and the decision says what is wrong."""
    rules = attrs.evolve(JOBS[0].status, finished=lambda job: fail() if odd(job) else None)
    row = attrs.evolve(JOBS[0], resource=ROW.resource, delegation=ALWAYS_DELEGATED, status=rules)
    async with working(row) as bench:
        made = await make_set(bench, "odd")
        await bench.make_workload("endless", [made], {})
        await bench.admit("endless", "worker1")
        await bench.placed("endless", "worker1")
        for number in (1, 2):
            status = {"status": {"readyReplicas": number}}
            key = ObjectKey("default", "odd")
            await bench.client("worker1").merge_patch(SETS, key, status, subresource="status")
            await anyio.sleep(5)
        await bench.say("endless", "worker1", conditions=said("QuotaReserved", "Admitted", "Finished"))
        await is_told(bench, "endless", "finished")
