"""Places in queues, and when a job starts."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import anyio
import attrs
import pytest

from multikueue.core.dispatchers.scored.job_annotations import NAMES
from multikueue.core.dispatchers.scored.starts import LEAST, Interval
from multikueue.core.dispatchers.scored.state import State
from multikueue.core.model.conditions import new_condition, timestamp
from multikueue.core.model.kinds import WORKLOAD
from multikueue.core.model.names import Json, ObjectKey
from multikueue.errors import ApiError, Forbidden, NotFound, ServerFault
from multikueue.protocols import ObjectList
from multikueued.commands.report_text import explanation_lines, jobs_table
from multikueued.diagnosis.fleet import status_report
from multikueued.reading.queue_places import DEADLINE, QUEUE, read_waiting, with_other_jobs
from multikueued.reports.explanation import explain
from multikueued.reports.jobs import job_report
from multikueued.reports.places import Waiting, places_told, waiting
from multikueued.reports.seen import Seen
from tests.reports.objects import CHECK, NOW, fleet, job, saying, stored, workload

MINUTE = timedelta(minutes=1)


def waits(
    name: str, *, minutes: int = 0, priority: int = 0, queue: str = "", says: Mapping[str, str] | None = None
) -> Json:
    """A held Workload: it has had quota for so many minutes."""
    made = saying(workload(stored(job(name))), State(NOW).describe())
    made["metadata"]["annotations"] = dict(says or {})
    made["spec"]["priority"] = priority
    made["metadata"]["creationTimestamp"] = timestamp(NOW - minutes * MINUTE)
    for condition in made["status"]["conditions"]:
        condition["lastTransitionTime"] = timestamp(NOW - minutes * MINUTE)
    (placed,) = made["status"]["admission"]["podSetAssignments"]
    placed |= {"flavors": {"cpu": "default"}, "resourceUsage": {"cpu": "3"}}
    if queue:
        made["status"]["admission"]["clusterQueue"] = queue
    return made


def ended(number: int) -> Json:
    """One of its size that began after so many minutes, when no other waited."""
    made = workload(stored(job(f"ended-{number}")), checks={CHECK: "Ready"}, cluster="worker1", finished="Succeeded")
    made["status"]["admission"] = waits("x")["status"]["admission"]
    times = {"QuotaReserved": NOW - timedelta(hours=1 + number), "Finished": NOW}
    times["Admitted"] = times["QuotaReserved"] + number * MINUTE
    kept = [condition for condition in made["status"]["conditions"] if condition["type"] not in times]
    added = [new_condition(kind, True, "Test", "", now=at) for kind, at in times.items()]
    made["status"]["conditions"] = [*kept, *added]
    return made


def places(*held: Json) -> list[int | None]:
    return [waiting_job.place for waiting_job in waiting(held, fleet(*held), {}, NOW).values()]


def test_in_a_queue_by_priority_and_between_queues_by_who_has_had_quota_longest() -> None:
    first = waits("first", minutes=5, priority=1)
    assert places(waits("a", minutes=9), first) == [2, 1]
    others = [waits(name, minutes=minutes, queue="other") for name, minutes in (("x", 7), ("y", 1))]
    assert places(waits("a", minutes=9), first, *others) == [3, 2, 1, 4]


def late(minutes: int) -> Json:
    """A Workload that got its quota so many minutes ago and has started."""
    made = ended(minutes)
    for condition in made["status"]["conditions"]:
        if condition["type"] in ("QuotaReserved", "Admitted"):
            condition["lastTransitionTime"] = timestamp(NOW - minutes * MINUTE)
    return made


@pytest.mark.parametrize(
    ("held", "other", "is_starving"), [(90, 20, True), (59, 20, False), (90, 100, False), (90, None, False)]
)
def test_a_job_that_later_ones_have_passed_for_an_hour_needs_somebody(
    held: int, other: int | None, is_starving: bool
) -> None:
    """Gangs starved without a word: what is free was always given to what fits."""
    gang = waits("gang", minutes=held)
    objects = fleet(gang, *([late(other)] if other is not None else []))
    (seen,) = [status_report(objects, NOW)]
    findings = [finding for finding in seen.findings if finding.id == "starving"]

    assert [(finding.where.endswith("gang"), finding.blocking) for finding in findings] == (
        [(True, True)] if is_starving else []
    )
    assert all("giveUp" in finding.remedy for finding in findings)
    assert [finding.id for finding in explain(Seen(gang, None, objects, (), NOW)).findings if finding in findings] == [
        "starving"
    ] * is_starving


def test_only_those_count_that_share_a_worker() -> None:
    pinned = [waits(f"j{number}", minutes=9 - number, says={NAMES: f"worker{number % 2 + 1}"}) for number in range(4)]
    assert places(*pinned, waits("free", minutes=1)) == [1, 1, 2, 2, 5]


def test_who_is_not_held_has_no_place_among_them() -> None:
    offered = saying(workload(stored(job("o")), nominated=("worker1",)), State(NOW, ("worker1",)).describe())
    other = saying(workload(stored(job("p"))), "Offered to no worker cluster")
    assert places(offered, other, waits("held")) == [None, None, 1]


def test_without_quota_the_place_is_kueues() -> None:
    made = workload(stored(job("train")), quota=False)
    key = ObjectKey.of(made)
    summary = {"items": [{"metadata": {"namespace": key.namespace, "name": key.name}, "positionInClusterQueue": 2}]}
    assert waiting([made], fleet(made), places_told(summary), NOW)[key] == Waiting(3)
    assert places_told({}) == places_told({"items": [{"metadata": {}}]}) == {}


def test_when_four_of_five_started_that_had_waited_as_long() -> None:
    held, such = waits("train", minutes=10), [ended(10 + number) for number in range(1, LEAST + 1)]
    shorter = [ended(number) for number in range(9)]
    (known,) = waiting([held], fleet(held, *such, *shorter), {}, NOW).values()
    assert known.start == Interval(11 * 60, 30 * 60)
    (unknown,) = waiting([held], fleet(held, *such[1:], *shorter), {}, NOW).values()
    assert unknown.start is None


def test_as_text() -> None:
    held = waits("train", minutes=10)
    known = Waiting(2, Interval(13 * 60, 28 * 60))
    line = known.on(job_report(fleet(held).chain(held)), NOW - 10 * MINUTE)
    header, row = jobs_table([line], NOW, None, wide=True, everywhere=False, users=False)
    assert dict(zip(header.split(), row.split(), strict=False)).items() >= {"PLACE": "2", "START": "3m-18m"}.items()

    seen = Seen(held, None, fleet(held), (), NOW, waiting=known)
    text = explanation_lines(explain(seen), NOW, 160)
    assert "Place 2 of those held that share a worker with it." in text
    assert "Four of five such jobs that had waited so long started 3m-18m from now." in text
    without = explanation_lines(explain(attrs.evolve(seen, waiting=Waiting())), NOW, 160)
    assert [line for line in text if line not in without] == [
        line for line in text if line.startswith(("Place", "Four"))
    ]


@attrs.define
class Asked:
    """A manager that answers about the queue, and lists Workloads, or does not."""

    pending: Json | ApiError | None = None
    """None: it never answers."""
    workloads: tuple[Json, ...] | ApiError = ()
    asked: list[str] = attrs.field(factory=list)

    async def part(self, resource: object, key: ObjectKey, name: str) -> Json:
        """See `KubeClient.part`."""
        assert (resource, name) == (QUEUE, "pendingworkloads")
        self.asked.append(f"pending {key}")
        if self.pending is None:
            await anyio.sleep(3600)
        if isinstance(self.pending, ApiError):
            raise self.pending
        return self.pending or {}

    async def list(self, resource: object) -> ObjectList:
        """See `Reader.list`."""
        assert resource == WORKLOAD
        self.asked.append("list")
        if isinstance(self.workloads, ApiError):
            raise self.workloads
        return ObjectList(list(self.workloads), "1")


async def place(asked: Any, made: Json, *, others: bool = False) -> int | None:
    objects, namespace = fleet(made), "default"
    if others:
        objects, namespace = await with_other_jobs(asked, objects, namespace)
    (job,) = (await read_waiting(asked, (made,), objects, namespace, NOW)).values()
    return job.place


async def test_the_place_of_one_that_is_held_is_known_by_the_workloads_of_all_namespaces() -> None:
    held, ahead = waits("train", minutes=1), waits("ahead", minutes=9)
    asked = Asked(workloads=(held, ahead))
    assert await place(asked, held, others=True) == 2
    assert asked.asked == ["list"]
    assert await place(Asked(workloads=Forbidden("no", status=403)), held, others=True) is None
    assert await place(asked, held) is None


@pytest.mark.parametrize("error", [NotFound("x", status=404), Forbidden("x", status=403), ServerFault("x", status=503)])
async def test_where_kueue_tells_no_places_none_is_told(error: ApiError) -> None:
    asked = Asked(error)
    assert await place(asked, workload(stored(job("train")), quota=False)) is None
    assert asked.asked == ["pending default/user-queue"]


@pytest.mark.looptime
async def test_a_report_does_not_wait_for_places() -> None:
    begun = anyio.current_time()
    assert await place(Asked(None), workload(stored(job("train")), quota=False)) is None
    assert anyio.current_time() - begun == DEADLINE


async def test_a_job_that_runs_asks_for_nothing() -> None:
    asked = Asked()
    assert await place(asked, workload(stored(job("train")), cluster="worker1", checks={CHECK: "Ready"})) is None
    assert asked.asked == []
