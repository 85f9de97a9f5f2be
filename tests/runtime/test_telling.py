"""The manager says why: what a user reads in `kubectl describe workload`, without any worker's credentials."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import cast

import anyio
import attrs
import pytest
import structlog
from structlog.testing import capture_logs

from multikueue.core.machinery.message_rate import BETWEEN
from multikueue.core.model.conditions import condition, timestamp
from multikueue.core.model.kinds import JOB, MULTIKUEUE_CLUSTER, WORKLOAD
from multikueue.core.model.labels import PLACEMENTS_ANNOTATION, RETRY_ANNOTATION
from multikueue.core.model.names import ClusterName, Json, ObjectKey, Resource
from multikueue.core.model.objects import annotations_of
from multikueue.core.model.workloads import check
from multikueue.protocols import ManagerHook
from multikueue.sandbox.apiserver.faults import Match, Refuse, Reset
from multikueue.sandbox.apiserver.kinds.resources import ResourceType
from multikueue.sandbox.setting_up import CHECK, LOCAL_QUEUE_NAME
from tests.runtime.fleet import Fleet as Servers
from tests.runtime.fleet import is_active, until
from tests.scenarios.fleet import Fleet
from tests.scenarios.in_memory import MemoryPlane, in_memory
from tests.simulation.daemon import SETTINGS

pytestmark = pytest.mark.looptime

LOCAL = ObjectKey("default", LOCAL_QUEUE_NAME)


def plane(fleet: Fleet, number: int = 0) -> MemoryPlane:
    """A cluster in memory."""
    server = fleet.worker(number) if number else fleet.manager
    assert isinstance(server, MemoryPlane)
    return server


def writes(fleet: Fleet) -> list[str]:
    """What the check says after each of our writes of a status from now on."""
    writes_of_words: list[str] = []

    def changed(row: ResourceType, old: Json | None, new: Json | None) -> None:
        if row.plural == WORKLOAD.plural and old is not None and new is not None:
            before, after = check(old, CHECK) or {}, check(new, CHECK) or {}
            if before.get("message") != after.get("message"):
                writes_of_words.append(str(after.get("message")))

    plane(fleet).cluster.registry.cluster.listeners.append(changed)
    return writes_of_words


async def test_words_that_change_all_the_time_are_written_every_ten_seconds_at_most() -> None:
    """A queue that moves changes the numbers in the worker's words a hundred times a minute."""
    async with in_memory(1) as fleet:
        await fleet.submit()
        await fleet.until(lambda: fleet.copy(1) is not None)
        writes_before = writes(fleet)
        for number in range(120):
            await fleet.say(1, "!QuotaReserved", reason="Pending", message=f"no room: {number} before it")
            await fleet.rest(0.5)
        assert 4 <= len(writes_before) <= 60 / BETWEEN + 1
        await fleet.rest(BETWEEN)
        assert writes_before[-1] == "Offered to worker1 — worker1: no room: 119 before it"
        before = len(writes_before)
        await fleet.rest(600)
        assert len(writes_before) == before


async def test_a_job_on_a_lost_worker_says_when_it_moves_and_where_it_has_been() -> None:
    """By the time in which a leader watched; then it runs elsewhere, and the Workload remembers."""
    timeout = timedelta(minutes=5)
    settings = attrs.evolve(SETTINGS, plan=attrs.evolve(SETTINGS.plan, worker_lost_timeout=timeout))
    async with in_memory(2, settings=settings) as fleet:
        await fleet.submit()
        await fleet.assign(1)
        plane(fleet, 1).link.change(down=True)
        await fleet.until(lambda: fleet.active(1)[0] == "False")
        lost = condition(fleet.manager.find(MULTIKUEUE_CLUSTER, ObjectKey("", "worker1")) or {}, "Active") or {}
        await fleet.until(lambda: "moves at" in fleet.check[1], seconds=90)
        words = fleet.check[1].partition(" — ")[2]
        assert words.startswith(f"worker1: unreachable since {lost['lastTransitionTime']}; moves at ")
        await fleet.until(lambda: ("Warning", words.replace(": ", " ", 1)) in fleet.events())
        await fleet.until(lambda: fleet.copy(2) is not None, seconds=400)
        assert words.rpartition(" ")[2] <= timestamp(fleet.now())
        await fleet.assign(2)
        (before,) = json.loads(annotations_of(fleet.workload or {})[PLACEMENTS_ANNOTATION])
        assert before["worker"] == "worker1"
        assert before["since"] < before["until"]
        assert "Admitting remote lost" in before["why"]
        copy = fleet.copy(2) or {}
        assert PLACEMENTS_ANNOTATION not in annotations_of(copy)


async def test_what_refused_is_asked_again_once_another_job_was_taken_there() -> None:
    """What was in the way of all is gone, and none of them waits for the end of its back-off."""
    async with in_memory(1) as fleet:
        faults = plane(fleet, 1).link.client.faults
        refusal = faults.add(Refuse(422), on=Match(verbs=("create",)))
        for number in range(3):
            await fleet.submit(f"job{number}", small)
        await fleet.rest(90)
        assert not list(fleet.worker(1).all(WORKLOAD))
        faults.remove(refusal)
        await fleet.rest(60)
        assert not list(fleet.worker(1).all(WORKLOAD))
        await fleet.submit("last", small)
        await fleet.until(lambda: len(list(fleet.worker(1).all(WORKLOAD))) == 4, seconds=5)


async def test_a_worker_that_goes_on_refusing_is_told_of_all_along() -> None:
    """After its back-off it is asked once, and refuses: the check does not say "Offered" for another minute."""
    async with in_memory(1) as fleet:
        plane(fleet, 1).link.client.faults.add(Refuse(500), on=Match(verbs=("create",)))
        await fleet.submit()
        await fleet.rest(410)
        assert "worker1: refuses it, is asked again at" in fleet.check[1]


async def test_what_refused_is_asked_again_on_request() -> None:
    """Once for each value of the annotation; one that is no time asks for nothing."""
    async with in_memory(1) as fleet:
        faults = plane(fleet, 1).link.client.faults
        refusal = faults.add(Refuse(422), on=Match(verbs=("create",)))
        with capture_logs() as logged:
            await fleet.submit()
            await fleet.until(lambda: "worker1: refuses it, is asked again at" in fleet.check[1])
        refused = [entry for entry in logged if entry["event"] == "refused"]
        assert [(entry["log_level"], entry["asked_again_in"]) for entry in refused] == [("warning", 300)]
        asked = fleet.writes(1, "create")

        async def request(value: str, resource: Resource = WORKLOAD) -> None:
            patch = {"metadata": {"annotations": {RETRY_ANNOTATION: value}}}
            key = fleet.key if resource == WORKLOAD else ObjectKey("default", "job")
            await fleet.manager.api.merge_patch(resource, key, patch)
            await fleet.rest(20)

        await request("now")
        assert fleet.writes(1, "create") == asked
        await request(timestamp(fleet.now()))
        assert fleet.writes(1, "create") == asked + 1
        await request(timestamp(fleet.now()), JOB)
        assert fleet.writes(1, "create") == asked + 2
        faults.remove(refusal)
        await request(timestamp(fleet.now()), JOB)
        assert fleet.copy(1) is not None
        assert RETRY_ANNOTATION not in annotations_of(fleet.copy(1) or {})


async def test_any_wrapper_of_structlog_will_do() -> None:
    """The program chooses it: not each says what it would log, those of structlog 24 do not."""
    before = structlog.get_config()
    structlog.configure(wrapper_class=structlog.BoundLogger, logger_factory=structlog.ReturnLoggerFactory())
    try:
        async with in_memory(1) as fleet:
            await fleet.submit()
            await fleet.assign(1)
    finally:
        structlog.configure(**before)


async def test_the_life_of_a_job_is_two_lines_and_a_move_is_one() -> None:
    async with in_memory(2) as fleet:
        with capture_logs() as logged:
            await fleet.submit()
            await fleet.assign(1)
            await fleet.say(1, "Evicted", reason="Preempted", message="Preempted there")
            await fleet.until(lambda: fleet.assigned is None, seconds=60)
            await fleet.until(lambda: fleet.copy(2) is not None, seconds=60)
            await fleet.assign(2)
            await fleet.set_job_status(2, {"active": 1, "startTime": timestamp(fleet.now())})
            await fleet.say(2, "Finished", reason="Succeeded")
            await fleet.until(lambda: fleet.says("Finished"), seconds=150)
            await fleet.rest(1)
        lines = [entry for entry in logged if entry["event"] in ("placed", "moved", "ended")]
        assert [(line["event"], line["worker"], line["log_level"]) for line in lines] == [
            ("placed", "worker1", "info"),
            ("moved", "worker2", "info"),
            ("ended", "worker2", "info"),
        ]
        assert lines[1]["moved_from"] == "worker1"
        assert all(line["job"] == "Job default/job" and line["seconds"] >= 0 for line in lines)


async def test_a_check_that_cannot_be_used_and_a_lost_worker_are_warnings() -> None:
    """Once for each reason."""
    async with in_memory(1) as fleet:
        await fleet.rest(1)
        with capture_logs() as logged:
            plane(fleet, 1).link.change(down=True)
            await fleet.until(lambda: fleet.check_active()[1] == "NoUsableClusters")
            await fleet.rest(300)
            plane(fleet, 1).link.change(down=False)
            await fleet.rest(80)  # the longest back-off, and until a watch counts
            await fleet.connected()
        events = [(entry["event"], entry["log_level"]) for entry in logged if "check" in entry["event"]]
        assert events == [("admission check inactive", "warning"), ("admission check active", "info")]
        lost = [entry for entry in logged if entry["event"] == "lost"]
        assert {entry["log_level"] for entry in lost} == {"warning"}
        assert len(lost) == len({entry["error"] for entry in lost})


@attrs.define(eq=False)
class Counts:
    """A hook that only notes."""

    noted: list[tuple[str, str]] = attrs.field(factory=list)
    lags: list[float] = attrs.field(factory=list)

    def dispatched(self, cluster_queue: str, cluster: ClusterName) -> None:
        self.noted.append(("dispatched", cluster))

    def admitted(self, cluster_queue: str, cluster: ClusterName) -> None:
        self.noted.append(("admitted", cluster))

    def rejected(self, cluster: ClusterName, reason: str) -> None:
        self.noted.append((f"rejected: {reason}", cluster))

    def round_begun(self, cluster_queue: str) -> None:
        self.noted.append(("round", cluster_queue))

    def placed(self, cluster: ClusterName, seconds: float) -> None:
        assert seconds >= 0
        self.noted.append(("placed", cluster))

    def status_synced(self, cluster: ClusterName, seconds: float) -> None:
        self.noted.append(("synced", cluster))
        self.lags.append(seconds)

    def refused(self, cluster: ClusterName, reason: str) -> None:
        self.noted.append((reason, cluster))

    def cluster_connected(self, cluster: ClusterName, connected: bool) -> None:
        self.noted.append(("connected" if connected else "lost", cluster))

    def cluster_removed(self, cluster: ClusterName) -> None:
        self.noted.append(("removed", cluster))


async def test_the_hook_hears_of_rounds_placements_lags_and_refusals() -> None:
    fleet = Servers.of("worker1", "worker2")
    fleet.workers["worker2"].faults.add(Refuse(422), on=Match(verbs=("create",), user="multikueue"))
    hook = Counts()
    async with fleet.kueues(), fleet.running(attrs.evolve(fleet.build(), hook=hook)) as manager:
        await fleet.connect()
        for name in fleet.workers:
            await until(is_active(fleet, name))
        await fleet.submit()
        await anyio.sleep(60)
        assert list(manager.cluster.counts()) == [("worker1", 1, 0), ("worker2", 0, 0)]
    assert [note for note in hook.noted if note[0] in ("round", "placed")] == [
        ("round", "cluster-queue"),
        ("placed", "worker1"),
    ]
    assert ("Invalid", "worker2") in hook.noted
    assert ("synced", "worker1") in hook.noted
    assert all(0 <= lag < 5 for lag in hook.lags)


async def test_a_hook_that_fails_holds_up_no_job() -> None:
    """Nothing was dispatched any more."""
    fleet, odd = Servers.of("worker1"), cast(ManagerHook, object())
    async with fleet.kueues(), fleet.running(attrs.evolve(fleet.build(), hook=odd)):
        await fleet.connect()
        await fleet.submit()
        await until(fleet.running_on)


async def test_the_hook_hears_of_workers_that_come_and_go() -> None:
    fleet, hook = Servers.of("worker1"), Counts()
    async with fleet.running(attrs.evolve(fleet.build(), hook=hook)):
        await fleet.connect()
        await until(is_active(fleet))
        assert hook.noted[-1] == ("connected", "worker1")
        fleet.workers["worker1"].faults.add(Reset(), on=Match(user="multikueue"))
        fleet.workers["worker1"].faults.connections.drop()
        await until(is_active(fleet, status="False"), within=300)
        assert hook.noted[-1] == ("lost", "worker1")
        await fleet.admin.delete(MULTIKUEUE_CLUSTER, ObjectKey("", "worker1"))
        await anyio.sleep(5)
        assert hook.noted[-1] == ("removed", "worker1")


def small(job: Json) -> None:
    """Ask for little, so that many have quota on the manager."""
    job["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"] = {"cpu": "1m", "memory": "1Mi"}
