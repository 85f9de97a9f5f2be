"""What a workload costs, in counts: on the virtual clock they are the same on every machine.

A change that makes these larger makes the controller slower. One that makes them smaller: write the new ones here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import anyio
import attrs
import orjson
import pytest

from multikueue.core.dispatchers.dispatcher import AllAtOnce, Dispatcher
from multikueue.core.dispatchers.scored.profile import Profile
from multikueue.core.model.kinds import WORKLOAD
from multikueue.core.model.names import Json, ObjectKey
from multikueue.errors import Conflict
from multikueue.runtime.reconcilers import workload as reconciling
from multikueue.runtime.reconcilers.snapshot_reader import SnapshotReader
from multikueue.runtime.scored.dispatcher import ScoredDispatcher
from multikueue.sandbox.apiserver import ApiServer, Delay, DirectClient, Match
from multikueue.sandbox.jobs import RunnerOptions
from tests.core.door import Plan, Snapshot, guarded_plan
from tests.runtime.fleet import Fleet, is_active, until
from tests.runtime.test_fair_shares import Counted

pytestmark = [pytest.mark.looptime, pytest.mark.timeout(300)]

JOBS = 100
ANSWER = 0.01
"""Seconds until a request is answered."""
INFORMERS = ("list", "watch")


class Refused(DirectClient):
    """Counts the patches of the manager's objects that met a newer object."""

    refused: Counter[str]

    async def merge_patch(self, resource: Any, key: Any, patch: Json, **rest: Any) -> Json:
        with self.counting(resource):
            return await super().merge_patch(resource, key, patch, **rest)

    async def apply(self, resource: Any, obj: Json, **rest: Any) -> Json:
        with self.counting(resource):
            return await super().apply(resource, obj, **rest)

    @contextmanager
    def counting(self, resource: Any) -> Iterator[None]:
        try:
            yield
        except Conflict:
            self.refused[f"patch {resource}"] += 1
            raise


class Weighed(DirectClient):
    """Counts the bytes of the objects and patches that are sent to the manager."""

    sent = 0

    async def create(self, resource: Any, obj: Json, **rest: Any) -> Json:
        Weighed.sent += len(orjson.dumps(obj))
        return await super().create(resource, obj, **rest)

    async def apply(self, resource: Any, obj: Json, **rest: Any) -> Json:
        Weighed.sent += len(orjson.dumps(obj))
        return await super().apply(resource, obj, **rest)

    async def merge_patch(self, resource: Any, key: Any, patch: Json, **rest: Any) -> Json:
        Weighed.sent += len(orjson.dumps(patch))
        return await super().merge_patch(resource, key, patch, **rest)


def requests(*servers: ApiServer) -> Counter[str]:
    """What we asked of clusters, without the lists and watches of informers and probes."""
    counts: Counter[str] = Counter()
    for server in servers:
        for (user, verb, resource), count in server.access.requests.items():
            if user.startswith("multikueue") and verb not in INFORMERS:
                counts[f"{verb} {resource}"] += count
    return counts


def _counting(monkeypatch: pytest.MonkeyPatch) -> tuple[Counter[str], list[ObjectKey]]:
    """Count plans by their rows, and note of which Workloads snapshots are read."""
    plans: Counter[str] = Counter()
    snapshots: list[ObjectKey] = []

    def counted_plan(*arguments: Any) -> Plan:
        decided = guarded_plan(*arguments)
        plans[f"{decided.row}{'' if decided.effects else ', nothing follows'}"] += 1
        return decided

    def counted_read(reader: Any, key: ObjectKey) -> Snapshot:
        snapshots.append(key)
        return read(reader, key)

    read = SnapshotReader.read
    monkeypatch.setattr(reconciling, "guarded_plan", counted_plan)
    monkeypatch.setattr(SnapshotReader, "read", counted_read)
    return plans, snapshots


@pytest.mark.gate
async def test_what_a_workload_costs_from_its_submission_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A burst of 100 jobs that run for 5 s, with 3 workers that all have room; requests are answered after 10 ms."""
    plans, snapshots = _counting(monkeypatch)
    fleet, counted = Fleet.of("worker1", "worker2", "worker3"), Counted()
    await fleet.connect(cpu=JOBS)
    for server in (fleet.manager, *fleet.workers.values()):
        server.faults.add(Delay(ANSWER), on=Match(user="multikueue"))
    manager = attrs.evolve(fleet.build(client=Weighed(fleet.manager, user="multikueue")), controller_hook=counted)
    async with fleet.kueues(RunnerOptions(minimum=5.0, maximum=5.0)), fleet.running(manager):
        for name in fleet.workers:
            await until(is_active(fleet, name))
        workers = [*fleet.workers.values()]
        at_start = requests(fleet.manager)
        for number in range(JOBS):
            await fleet.submit(f"job-{number}")
        await anyio.sleep(30.0)
        for worker in workers:
            assert not (await DirectClient(worker).list(WORKLOAD)).items, "all have ended"

    assert plans == {
        "not ours, nothing follows": 29,
        "no quota: released, nothing follows": 48,
        "pending: offer": 123,
        "pending: record: hand over": 100,
        "recorded: create": 100,
        "recorded: follow": 224,
        "recorded: follow, nothing follows": 100,
        "recorded: ends there: has ended: Kueue finishes it": 76,
        "finished: copies go": 104,
    }
    assert counted.reconciles == len(snapshots) == plans.total()
    assert requests(fleet.manager) - at_start == {
        "patch workloads.kueue.x-k8s.io": 323,  # offered, recorded, Ready; the rest met a newer Workload
        "patch jobs.batch": 276,  # that it waits, for some; the start and the end; the rest met a newer job
        "create events.events.k8s.io": 100,
    }
    assert requests(*workers) == {
        "create workloads.kueue.x-k8s.io": 3 * JOBS,
        "delete workloads.kueue.x-k8s.io": 3 * JOBS,
        "create jobs.batch": JOBS,
        "delete jobs.batch": JOBS,
        "get deployments.apps": 3,  # Kueue's version, once for each connection
        "get namespaces": 3,  # which cluster it is, likewise
    }
    assert Weighed.sent == pytest.approx(5_561 * JOBS, rel=0.01)


@pytest.mark.gate
@pytest.mark.parametrize(
    ("dispatcher", "copies"),
    [
        pytest.param(ScoredDispatcher({"default": Profile()}), 1, id="scored"),
        pytest.param(AllAtOnce(), 20, id="all at once"),
    ],
)
async def test_what_a_workload_costs_on_twenty_workers(dispatcher: Dispatcher, copies: int) -> None:
    """`scored` asks one worker, however many there are, and writes no more to the manager than AllAtOnce. Jobs come
    apart and run for seconds, so that they wait, their start and their end are a write each; short ones need less."""
    jobs, names = 40, [f"worker{number}" for number in range(20)]
    fleet = await Fleet.connected(*names, cpu=JOBS)
    for server in (fleet.manager, *fleet.workers.values()):
        server.faults.add(Delay(ANSWER), on=Match(user="multikueue"))
    client = Refused(fleet.manager, user="multikueue")
    client.refused = Counter()
    manager = attrs.evolve(fleet.build(client=client), dispatcher=dispatcher)
    async with fleet.kueues(RunnerOptions(minimum=5.0, maximum=5.0)), fleet.running(manager):
        for name in names:
            await until(is_active(fleet, name))
        await anyio.sleep(10.0)
        at_start, on_workers = requests(fleet.manager), requests(*fleet.workers.values())
        for number in range(jobs):
            await fleet.submit(f"job-{number}")
            await anyio.sleep(0.5)
        await anyio.sleep(20.0)
        on_return = requests(*fleet.workers.values()) - on_workers
        written = requests(fleet.manager) - at_start
    assert on_return == {
        "create workloads.kueue.x-k8s.io": copies * jobs,
        "delete workloads.kueue.x-k8s.io": copies * jobs,
        "create jobs.batch": jobs,
        "delete jobs.batch": jobs,
    }
    assert client.refused == {}
    assert written == {
        "patch workloads.kueue.x-k8s.io": 3 * jobs,  # offered, recorded, Ready
        "patch jobs.batch": 3 * jobs,  # that it waits, the start and the end
        "create events.events.k8s.io": jobs,
    }
