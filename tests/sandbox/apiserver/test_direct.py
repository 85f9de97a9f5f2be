"""The client in memory."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import anyio
import pytest

from multikueue.core.model.kinds import JOB, NAMESPACE, WORKLOAD
from multikueue.core.model.names import Json, ObjectKey
from multikueue.errors import (
    AlreadyExists,
    ApiError,
    Conflict,
    DeadlineExceeded,
    Expired,
    Invalid,
    NotFound,
    ServerFault,
    TooManyRequests,
    Unauthorized,
    Unreachable,
)
from multikueue.protocols import ApiClient, WatchEvent
from multikueue.sandbox.apiserver import (
    ApiServer,
    CutWatch,
    Delay,
    DirectClient,
    ExpireWatch,
    Hang,
    Match,
    Refuse,
    Registry,
    Reset,
    SilenceWatch,
)
from multikueue.testing import running
from tests.sandbox.apiserver.objects import job, key, turn_until


class Recorder:
    """Notes what a watch says."""

    def __init__(self) -> None:
        self.events: list[WatchEvent] = []

    def __call__(self, event: WatchEvent) -> None:
        self.events.append(event)

    @property
    def types(self) -> list[str]:
        return [event.type for event in self.events]


async def test_it_is_a_client_like_any_other() -> None:
    """It reads, writes, and hands out objects that are the caller's own."""
    client: ApiClient = DirectClient(ApiServer("a"))
    created = await client.create(JOB, job())
    assert created["spec"]["parallelism"] == 1
    created["metadata"]["annotations"] = {"mine": "only"}
    stored_job = await client.get(JOB, key())
    assert "annotations" not in stored_job["metadata"]
    stored_job["spec"]["parallelism"] = 2
    replaced = await client.replace(JOB, stored_job)
    assert replaced["metadata"]["generation"] == 2
    patched = await client.merge_patch(JOB, key(), {"status": {"active": 1}}, subresource="status")
    assert patched["status"] == {"active": 1}
    await client.merge_patch(JOB, key(), {"metadata": {"labels": {"x": "1"}}})
    listed = await client.list(JOB, label_selector="x=1")
    assert [item["metadata"]["name"] for item in listed.items] == ["j"]
    await client.delete(JOB, key(), uid=stored_job["metadata"]["uid"], propagation="Background")
    assert (await client.list(JOB)).items == []


async def test_bodies_stay_the_callers() -> None:
    """What was sent is not changed by being stored."""
    client, body = DirectClient(Registry()), job()
    await client.create(JOB, body)
    assert body == job()


async def test_apply_creates_and_owns() -> None:
    """Two managers can own parts of one object."""
    client = DirectClient(Registry())
    head: Json = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}}
    await client.apply(NAMESPACE, {**head, "metadata": {"name": "n", "labels": {"a": "1"}}}, field_manager="m")
    labels = {"name": "n", "labels": {"b": "1"}}
    namespace = await client.apply(NAMESPACE, {**head, "metadata": labels}, field_manager="o")
    assert namespace["metadata"]["labels"] == {"a": "1", "b": "1", "kubernetes.io/metadata.name": "n"}


async def test_refusals_are_the_librarys_errors() -> None:
    """The same types the HTTP client raises."""
    client = DirectClient(Registry())
    created = await client.create(JOB, job())
    with pytest.raises(AlreadyExists):
        await client.create(JOB, job())
    with pytest.raises(NotFound):
        await client.get(JOB, key("none"))
    with pytest.raises(NotFound):
        await client.list(WORKLOAD)
    with pytest.raises(Invalid):
        await client.create(JOB, job("Bad_Name"))
    with pytest.raises(Conflict):
        await client.replace(JOB, created | {"metadata": created["metadata"] | {"resourceVersion": "1"}})
    with pytest.raises(Conflict):
        await client.delete(JOB, key(), uid="another")


@pytest.mark.parametrize(
    ("code", "kind"), [(409, Conflict), (429, TooManyRequests), (500, ServerFault), (503, ServerFault)]
)
async def test_injected_refusals_keep_their_retry_after(code: int, kind: type[ApiError]) -> None:
    """In seconds, as the server asked."""
    server = ApiServer("a")
    server.faults.add(Refuse(code, retry_after=3))
    with pytest.raises(kind) as caught:
        await DirectClient(server).get(JOB, key())
    assert (caught.value.status, caught.value.retry_after) == (code, 3.0)


async def test_lost_replies_leave_the_write_behind() -> None:
    """The caller sees `Unreachable` in both cases and has to find out."""
    server = ApiServer("a")
    client = DirectClient(server)
    server.faults.add(Reset(), on=Match(verbs=("create",)), at="request", times=1)
    with pytest.raises(Unreachable):
        await client.create(JOB, job("lost-request"))
    server.faults.add(Reset(), on=Match(verbs=("create",)), at="reply", times=1)
    with pytest.raises(Unreachable):
        await client.create(JOB, job("lost-reply"))
    assert [item["metadata"]["name"] for item in (await client.list(JOB)).items] == ["lost-reply"]


async def test_users_are_told_apart() -> None:
    """A revoked token is refused, and requests are counted by user."""
    server = ApiServer("a", tokens={"t1": "manager", "t2": "other"})
    client = DirectClient(server, user="manager")
    await client.list(JOB)
    assert server.requests["manager", "list", "jobs.batch"] == 1
    assert server.tokens is not None
    del server.tokens["t1"]
    with pytest.raises(Unauthorized):
        await client.list(JOB)
    await DirectClient(server, user="other").list(JOB)


async def test_writes_are_recorded_under_who_wrote() -> None:
    """As a real server names the manager after the program: so one can see whose each field is."""
    server = ApiServer("a")
    await DirectClient(server, user="alice").create(JOB, job())
    await DirectClient(server, user="bob").merge_patch(JOB, key(), {"metadata": {"labels": {"by": "bob"}}})
    stored = await DirectClient(server).get(JOB, key())
    assert {entry["manager"] for entry in stored["metadata"]["managedFields"]} == {"alice", "bob"}


async def test_a_watch_follows_changes_and_resumes() -> None:
    """From a revision it sees everything after it, and nothing twice."""
    client, seen = DirectClient(Registry()), Recorder()
    start = (await client.list(JOB)).resource_version
    await client.create(JOB, job("a"))
    async with running(lambda: client.watch(JOB, seen, resource_version=start)):
        await turn_until(lambda: len(seen.events) == 1)
        await client.merge_patch(JOB, key("a"), {"metadata": {"labels": {"x": "1"}}})
        await client.delete(JOB, key("a"), propagation="Background")
        await turn_until(lambda: len(seen.events) == 3)
    assert seen.types == ["ADDED", "MODIFIED", "DELETED"]
    resumed = Recorder()
    last = seen.events[0].object["metadata"]["resourceVersion"]
    async with running(lambda: client.watch(JOB, resumed, resource_version=last)):
        await turn_until(lambda: len(resumed.events) == 2)
    assert resumed.types == ["MODIFIED", "DELETED"]


async def test_a_watch_with_a_selector_sees_objects_come_and_go() -> None:
    """Leaving the selector looks like a deletion."""
    client, seen = DirectClient(Registry()), Recorder()
    await client.create(JOB, job("a"))
    start = (await client.list(JOB)).resource_version
    async with running(lambda: client.watch(JOB, seen, resource_version=start, label_selector="x=1")):
        for value in ("1", "2"):
            await client.merge_patch(JOB, key("a"), {"metadata": {"labels": {"x": value}}})
        await turn_until(lambda: len(seen.events) == 2)
    assert seen.types == ["ADDED", "DELETED"]


async def test_an_old_revision_has_expired() -> None:
    """At the start, and when a fault says so in mid-stream."""
    server = ApiServer("a")
    client = DirectClient(server)
    await client.create(JOB, job("a"))
    server.compact()
    with pytest.raises(Expired):
        await client.watch(JOB, Recorder(), resource_version="1")
    start, seen = (await client.list(JOB)).resource_version, Recorder()
    await client.create(JOB, job("b"))
    server.faults.add(ExpireWatch(1))
    with pytest.raises(Expired):
        await client.watch(JOB, seen, resource_version=start)
    assert seen.types == ["ADDED"]


async def test_a_cut_watch_is_unreachable() -> None:
    """As a reset connection is, whether by a rule or by dropping everything."""
    server = ApiServer("a")
    client = DirectClient(server)
    start = (await client.list(JOB)).resource_version
    server.faults.add(CutWatch(), times=1)
    with pytest.raises(Unreachable):
        await client.watch(JOB, Recorder(), resource_version=start)
    async with anyio.create_task_group() as group:

        async def follow() -> None:
            with pytest.raises(Unreachable):
                await client.watch(JOB, seen, resource_version=start)

        seen = Recorder()
        group.start_soon(follow)
        await client.create(JOB, job("a"))
        await turn_until(lambda: bool(seen.events))
        server.drop_connections()


@pytest.mark.looptime
async def test_a_hanging_call_takes_its_deadline() -> None:
    """On the loop's clock, so no test has to wait for it."""
    server = ApiServer("a")
    server.faults.add(Hang())
    with pytest.raises(DeadlineExceeded):
        await DirectClient(server, deadline=30).get(JOB, key())
    assert anyio.current_time() == pytest.approx(30)


@pytest.mark.looptime
async def test_latency_takes_loop_time() -> None:
    """A slow server is simulated without waiting."""
    server = ApiServer("a")
    server.faults.add(Delay(5))
    await DirectClient(server).list(JOB)
    assert anyio.current_time() == pytest.approx(5)


@pytest.mark.looptime
async def test_a_silent_watch_is_dead_after_its_idle_time() -> None:
    """Silence is a failure: bookmarks were asked for."""
    server = ApiServer("a")
    client = DirectClient(server)
    start = (await client.list(JOB)).resource_version
    server.faults.add(SilenceWatch())
    with pytest.raises(DeadlineExceeded):
        await client.watch(JOB, Recorder(), resource_version=start, idle=90)
    assert anyio.current_time() == pytest.approx(90)


@pytest.mark.looptime
async def test_a_quiet_watch_lives_on_bookmarks() -> None:
    """It ends after 30 to 60 minutes, by the server, without an error."""
    client, seen = DirectClient(Registry(bookmark_interval=60)), Recorder()
    start = (await client.list(JOB)).resource_version
    await client.watch(JOB, seen, resource_version=start, idle=90)
    assert set(seen.types) == {"BOOKMARK"}
    assert 1800 <= anyio.current_time() <= 3600
    assert len(seen.events) == pytest.approx(anyio.current_time() / 60, abs=2)


@pytest.mark.looptime
async def test_a_partition_kills_calls_and_watches_alike() -> None:
    """A watch hears nothing while it lasts, and is dead when it heals."""
    server = ApiServer("a")
    client, seen = DirectClient(server, deadline=10), Recorder()
    start = (await client.list(JOB)).resource_version
    server.faults.partition("hang")
    with pytest.raises(DeadlineExceeded):
        await client.list(JOB)
    async with anyio.create_task_group() as group:

        async def follow() -> None:
            with pytest.raises(Unreachable):
                await client.watch(JOB, seen, resource_version=start)

        group.start_soon(follow)
        server.registry.create_object(job("a"))
        await anyio.sleep(20)
        assert seen.types == []
        server.faults.heal()
    assert len((await client.list(JOB)).items) == 1


def history(seed: int) -> list[str]:
    """What happens in a small run: uids, generated names and times."""
    now = datetime(2026, 1, 1, tzinfo=UTC)

    def clock() -> datetime:
        nonlocal now
        now += timedelta(seconds=1)
        return now

    registry = Registry("r", clock=clock, seed=seed)
    for _ in range(3):
        body = job()
        body["metadata"] = {"generateName": "g-", "namespace": "default"}
        registry.create_object(body)
    jobs = registry.type_of(JOB)
    page = registry.cluster.store.snapshot(jobs.group_resource, registry.cluster.store.revision)
    return [entry.raw.decode() for entry in page[1].values()]


def test_runs_repeat_from_their_seed() -> None:
    """Byte for byte; another seed gives other names."""
    assert history(1) == history(1)
    assert history(1) != history(2)


def test_clusters_do_not_share_uids() -> None:
    """A copy on a worker must never look like the original."""
    uids = {Registry(name).create_object(job())["metadata"]["uid"] for name in ("manager", "w1", "w2")}
    assert len(uids) == 3


async def test_keys_of_cluster_scoped_objects_have_no_namespace() -> None:
    """An empty namespace means none."""
    client = DirectClient(Registry())
    namespace = await client.get(NAMESPACE, ObjectKey("", "default"))
    assert namespace["status"]["phase"] == "Active"
