"""Large objects are decoded as often as something in them is new, and one of them in a turn of the loop."""

from __future__ import annotations

import itertools
from functools import partial
from typing import Any
from unittest import mock

import anyio
import anyio.lowlevel
import orjson
import pytest

from multikueue.core.model.copies import SLIMMED, Slimmed
from multikueue.core.model.kinds import JOB, POD
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import dig
from multikueue.core.model.slimmed import is_slimmed, job_slimmer, known_spec, size_noted
from multikueue.errors import Unreachable
from multikueue.kube import ClusterConfig, Informer, KubeClient
from multikueue.kube.http.error_mapping import decoded
from multikueue.kube.http.large_json import QUIET, LargeJson
from multikueue.kube.http.response_limits import LARGE
from multikueue.kube.informers import known_specs, watch_line
from multikueue.kube.informers.known_specs import decoded_answer
from multikueue.kube.informers.lean_text import lean
from multikueue.kube.informers.watch_line import parsed
from multikueue.protocols import ObjectList, WatchEvent
from multikueue.runtime.caches.mutation_cache import MutationCache
from multikueue.sandbox.apiserver import ApiServer, DirectClient
from multikueue.testing.waiting import background
from tests.kube.fake_server import FakeServer
from tests.kube.scripted import event, eventually, says, streams, talking
from tests.sandbox.apiserver.objects import job

PARTS = {"template": {"spec": {"containers": [{"name": "c", "env": [{"name": f"A{n}"} for n in range(6_000)]}]}}}
KNOWN = {"spec": {"what": "was kept"}, SLIMMED: Slimmed(9)}


def line_of(obj: Json, kind: str = "MODIFIED") -> bytes:
    return orjson.dumps({"type": kind, "object": obj}) + b"\n"


def large(**fields: Any) -> Json:
    return {"metadata": {"name": "a", "namespace": "n"}, "spec": PARTS, **fields}


def test_of_a_change_of_the_status_the_rest_alone_is_decoded() -> None:
    sizes = list[int]()

    def counted(body: bytes) -> Json | None:
        sizes.append(len(body))
        return decoded(body)

    with mock.patch.object(known_specs, "decoded", counted), mock.patch.object(watch_line, "decoded", counted):
        event = parsed("w1", line := line_of(large(status={"active": 1})), lambda _: KNOWN)
    assert event.object == {**large(status={"active": 1}), **KNOWN}
    assert event.size == len(line)
    assert sizes[0] < 200
    assert len(sizes) == 1


async def test_answers_to_our_own_writes_show_no_more_of_a_known_spec_than_events() -> None:
    """Each patch of a large Workload's status took 18 ms of the loop for each MB, and told nothing new of its spec."""
    obj, known = {"apiVersion": "batch/v1", "kind": "Job", **large(status={"active": 1})}, lambda _: KNOWN
    answers = [says(200, obj)] * 4
    async with talking(says(200, obj), streams(event("ADDED", "6")), *answers) as (_, client):
        assert await client.merge_patch(JOB, KEY, {}) == obj, "nothing is known yet"
        await client.watch(JOB, lambda _: None, resource_version="5", known=known)
        assert await client.merge_patch(JOB, KEY, {}) == {**obj, **KNOWN}
        assert await client.apply(JOB, obj, field_manager="m") == {**obj, **KNOWN}
        assert await client.create(JOB, obj) == obj, "it is compared with what was sent, and may be watched already"
        assert await client.get(JOB, KEY) == obj, "who reads it wants all of it"


def test_of_an_answer_that_is_known_the_rest_alone_is_decoded() -> None:
    sizes, obj = list[int](), large(status={"active": 1})

    def counted(body: bytes) -> Json | None:
        sizes.append(len(body))
        return decoded(body)

    with mock.patch.object(known_specs, "decoded", counted):
        assert decoded_answer(lambda _: KNOWN, orjson.dumps(obj)) == {**obj, **KNOWN}
        assert max(sizes) < 200
        assert decoded_answer(lambda _: {}, orjson.dumps(obj)) == decoded_answer(None, orjson.dumps(obj)) == obj
        assert decoded_answer(lambda _: KNOWN, b"[]") is None


async def test_what_is_kept_of_such_an_answer_has_the_size_of_the_whole() -> None:
    """Else it would count as a small one that is kept whole."""
    cache = MutationCache(Informer(FakeServer([], []), JOB, slim=job_slimmer(), knows_specs=True))
    named = {"name": KEY.name, "namespace": KEY.namespace, "resourceVersion": "7", "uid": "u"}
    cache.wrote({"metadata": named, "spec": {"a": "b"}, SLIMMED: Slimmed(1_000_000)})
    assert size_noted(cache.get(KEY) or {}) == 1_000_000


def entry(by_name: bool, manager: str, names: Json, **last: str) -> Json:
    """An entry of `managedFields`, as API servers write it for kinds of their own, or for others."""
    fields: Json = {
        "manager": manager,
        "operation": "Update",
        "apiVersion": "v1",
        "time": "t",
        "fieldsType": "FieldsV1",
    }
    fields |= {"fieldsV1": names, **last}
    return dict(sorted(fields.items())) if by_name else fields


@pytest.mark.parametrize("by_name", [True, False])
@pytest.mark.parametrize("names", [{}, {f'k:{{"name":"A{n}"}}': {".": {}, "f:value": {}} for n in range(3_000)}])
@pytest.mark.parametrize("status_last", [True, False])
def test_of_managed_fields_the_names_of_fields_are_not_decoded(by_name: bool, names: Json, status_last: bool) -> None:
    """Of 40,000 variables they are more than the spec."""
    odd = {"f:spec": {}, 'k:{"name":"},\\"manager\\":\\""}': {"f:manager": {}, 'v:"}}"': {}}, "f:env": names}
    entries = [
        entry(by_name, "a", odd),
        entry(by_name, "b", {"f:text": {f"f:x{n}": {} for n in range(9_000)}}),
        entry(by_name, "c", odd, subresource="status"),
    ]
    metadata: Json = {"annotations": {"a": '"managedFields":[{"manager":"'}}
    metadata["managedFields"] = entries if status_last else entries[::-1]
    metadata = {**metadata, "name": "a"} if by_name else {"name": "a", **metadata}
    obj: Json = {"metadata": metadata, "spec": {"suspend": True}, "status": {"ready": 1}}
    text = orjson.dumps(obj)
    assert len(shorter := lean(text)) < len(text) - 100_000
    left = [{**written, "fieldsV1": None} for written in metadata["managedFields"]]
    assert orjson.loads(shorter) == {**obj, "metadata": {**metadata, "managedFields": left}}
    assert decoded_answer(lambda _: {}, text) == orjson.loads(shorter)
    assert parsed("w1", line_of(obj), lambda _: {}).object == orjson.loads(shorter)
    assert parsed("w1", line_of(obj), None).object == obj


@pytest.mark.parametrize("obj", [large(), large(status={}), {"status": {"a": "b"}, **large()}])
def test_it_is_known_wherever_the_status_is(obj: Json) -> None:
    assert parsed("w1", line_of(obj), lambda _: KNOWN).object == {**obj, **KNOWN}


def test_what_is_not_known_is_decoded() -> None:
    asked = list[Json]()

    def known(obj: Json) -> Json:
        asked.append(obj)
        return {}

    assert parsed("w1", line_of(large(status={})), known).object == large(status={})
    assert asked == [{"metadata": {"name": "a", "namespace": "n"}, "status": {}}]


def test_a_line_that_is_cut_off_tells_nothing() -> None:
    """What is left of it without a spec may be JSON."""
    line = line_of(large(status={"active": 1})).partition(b'},"status"')[0]
    assert line.endswith(b"}}")
    with pytest.raises(Unreachable, match="cut off"):
        parsed("w1", line, lambda _: KNOWN)


@pytest.mark.parametrize(
    "fields",
    [
        ("metadata", "spec"),
        ("apiVersion", "kind", "metadata", "spec", "status"),
        ("status", "metadata", "spec"),
        ("spec", "metadata", "status"),
        ("metadata", "spec", "zone"),
        ("metadata", "spec", "status", "zone"),
        ("metadata", "spec", "zone", "status"),
        ("inside", "metadata", "spec", "status"),
        ("metadata", "spec", "inside"),
        ("data", "metadata", "spec", "text"),
    ],
    ids="-".join,
)
def test_wherever_its_fields_are_all_else_is_as_it_was_sent(fields: tuple[str, ...]) -> None:
    """API servers write them by their names, or as the type has them."""
    quoted = 'a},"spec":null,"status":{}}'
    values: Json = {
        "metadata": {"name": "a", "uid": "u", "generation": 2, "annotations": {"quoted": quoted, "": ',"status":{'}},
        "spec": {"text": "x" * LARGE, "status": {"a": 1}, "inner": {"a": 1, "spec": {}, "status": {"b": 2}}},
        "status": {"a": 1, "spec": {"b": 2}, "status": {"c": 3}, "conditions": [{"type": "A", "status": "True"}]},
        "inside": {"a": 1, "spec": {"text": "y" * LARGE}, "status": {}},
    }
    obj = {field: values.get(field, quoted) for field in fields}
    event = parsed("w1", line_of(obj), lambda given: known_spec(given, {**obj, **KNOWN}))
    assert event.object in (obj, {**obj, **KNOWN})


@pytest.mark.parametrize("status", ["text", 5, ["item"], None])
@pytest.mark.parametrize("behind", [{}, {"zone": "a"}])
def test_a_status_that_is_no_object_is_not_taken_for_a_part_of_the_spec(status: Any, behind: Json) -> None:
    obj = {**large(), "status": status, **behind}
    assert parsed("w1", line_of(obj), lambda _: KNOWN).object == obj


@pytest.mark.parametrize("kept", [None, "text", ["item"]])
def test_what_is_known_is_a_spec(kept: Any) -> None:
    obj = {"status": {"a": "b"}, "metadata": {"name": "a"}, "spec": None, "zone": "x" * 2 * LARGE}
    assert parsed("w1", line_of(obj), lambda _: {"spec": kept}).object == obj


KEY = ObjectKey("default", "large")


def versioned(resource_version: str, **fields: Any) -> Json:
    metadata = {"name": "large", "namespace": "default", "uid": "u", "generation": 1}
    return large(metadata={**metadata, "resourceVersion": resource_version}, **fields)


@pytest.mark.parametrize("field", ["text", 5, ["item"], None, {"digests": 1}, {"size": "x"}, {}])
@pytest.mark.parametrize("known", [False, True])
async def test_no_server_says_that_an_object_is_slimmed(field: Any, known: bool) -> None:
    """One TaskRun with a field of this name ended the process, or was kept whole, whatever its size."""
    informer = Informer(FakeServer([], []), JOB, slim=job_slimmer(), knows_specs=known)
    for version in ("1", "2"):
        given = versioned(version, **{SLIMMED: field})
        informer._apply(WatchEvent("MODIFIED", given, 4 * LARGE))
        for kept in (informer.get(KEY), informer._received(versioned("3", **{SLIMMED: field}), 4 * LARGE)):
            assert kept is not None
            assert kept[SLIMMED] == Slimmed(4 * LARGE)
            assert len(orjson.dumps(kept)) < LARGE
        assert not is_slimmed(given), "a body that is read is whole"


async def test_a_list_has_the_spec_that_it_was_sent_with() -> None:
    """After a restore from a backup an object has the UID and generation of another version."""
    informer = Informer(FakeServer([], []), JOB, slim=job_slimmer(), knows_specs=True)
    informer._apply(WatchEvent("ADDED", versioned("9", spec={**PARTS, "parallelism": 1}), 4 * LARGE))
    restored = versioned("5", spec={**PARTS, "parallelism": 7})
    assert informer._received(restored, 4 * LARGE)["spec"]["parallelism"] == 7
    await informer._replace(ObjectList([versioned("6", spec={**PARTS, "parallelism": 8})], "7"), backwards=True)
    assert (informer.get(KEY) or {})["spec"]["parallelism"] == 8


async def test_a_pod_that_gets_a_node_shows_it() -> None:
    """Its binding changes the spec and not the generation: nobody but who knows the kind can say what is the same."""
    informer = Informer(FakeServer([], []), POD, slim=job_slimmer())
    informer._apply(WatchEvent("ADDED", versioned("1"), 4 * LARGE))
    informer._apply(WatchEvent("MODIFIED", versioned("2", spec={**PARTS, "nodeName": "n1"}), 4 * LARGE))
    assert (informer.get(KEY) or {})["spec"]["nodeName"] == "n1"


@pytest.mark.parametrize("known", [False, True])
async def test_a_client_is_told_what_is_known_where_that_is_asked_for(known: bool) -> None:
    """A client of somebody else's may not have the argument; and a transform gets each spec as it was sent."""
    options, specs = list[Json](), list[Json]()

    class Theirs(FakeServer):
        async def watch(self, *_: Any, **given: Any) -> None:
            options.append(given)
            await anyio.sleep_forever()

    def counted(obj: Json) -> Json:
        specs.append(obj["spec"])
        return {**obj, "spec": {"count": len(obj["spec"])}}

    listed = ObjectList([versioned("1")], "1")
    informer = Informer(Theirs([listed], []), JOB, transform=counted, knows_specs=known)
    async with background() as tasks:
        tasks.start_soon(informer.run)
        await eventually(lambda: len(options) == 1)
        for version in ("2", "3"):
            asked = options[0].get("known")
            informer._apply(parsed("w1", line_of(versioned(version, status={"active": 1})), asked))
    assert ("known" in options[0]) is known
    assert specs == [PARTS, *[{"count": 1} if known else PARTS] * 2]


def shows(informer: Informer, failed: int) -> bool:
    return bool(dig(informer.get(KEY), "status", "failed") == failed)


async def test_many_changes_of_a_status_have_its_body_looked_at_once() -> None:
    made, slimmer, changes = job("large"), job_slimmer(), 5
    made["spec"]["template"]["spec"]["containers"][0]["env"] = [{"name": f"A{number}"} for number in range(6_000)]
    looked, spec_of = list[int](), slimmer.spec_of

    def counted(spec: Json, left: int) -> Json:
        looked.append(left)
        return spec_of(spec, left)

    slimmer.spec_of = counted
    async with ApiServer(tls=False) as server, KubeClient(ClusterConfig(server.url), name="m") as client:
        informer, writer = Informer(client, JOB, slim=slimmer, knows_specs=True), DirectClient(server.registry)
        async with background() as tasks:
            tasks.start_soon(informer.run)
            await informer.wait_synced()
            await writer.create(JOB, made)
            for number in range(1, changes + 1):
                await writer.merge_patch(JOB, KEY, {"status": {"failed": number}}, subresource="status")
                await eventually(partial(shows, informer, number), within=20)
                assert is_slimmed(informer.get(KEY) or {})
        assert len(looked) == 1
        assert informer.size_of(KEY) > LARGE


async def test_one_of_many_large_ones_is_looked_at_in_a_turn_of_the_loop() -> None:
    turns, looked, large_json = [0], list[int](), LargeJson()

    async def count() -> None:
        while True:
            turns[0] += 1
            await anyio.lowlevel.checkpoint()

    async def look(size: int) -> None:
        async with large_json.turn(size):
            looked.append(turns[0])

    async with anyio.create_task_group() as counting:
        counting.start_soon(count)
        async with anyio.create_task_group() as tasks:
            for _ in range(12):
                tasks.start_soon(look, LARGE + 1)
        assert len(set(looked)) == len(looked) == 12
        looked.clear()
        async with anyio.create_task_group() as tasks:
            for _ in range(12):
                tasks.start_soon(look, LARGE)
        assert len(set(looked)) == 1, "small ones wait for nothing"
        counting.cancel_scope.cancel()


@pytest.mark.parametrize(("busy", "between"), [(1.0, range(10, 12)), (0.0, range(QUIET + 2))])
async def test_between_two_large_ones_others_have_as_much_time_unless_they_do_nothing(
    busy: float, between: range
) -> None:
    """Of objects with 40,000 parts that come all the time each held up a step of every other tenant's job."""
    now, turns, ends = [0.0], [0], list[int]()
    large_json = LargeJson(lambda: now[0])

    async def others() -> None:
        while True:
            turns[0] += 1
            now[0] += busy
            await anyio.lowlevel.checkpoint()

    async def look() -> None:
        async with large_json.turn(LARGE + 1):
            ends.append(turns[0])
            now[0] += 10.0

    async with anyio.create_task_group() as others_run:
        others_run.start_soon(others)
        async with anyio.create_task_group() as tasks:
            for _ in range(5):
                tasks.start_soon(look)
        others_run.cancel_scope.cancel()
    assert {after - before in between for before, after in itertools.pairwise(ends)} == {True}


async def test_a_large_answer_waits_for_its_turn_and_small_ones_do_not() -> None:
    big, small = (says(200, {"metadata": {"name": "a", "text": "x" * size}}) for size in (LARGE, 1))
    seen = list[int]()

    async def get(client: KubeClient) -> None:
        answer = await client.get(JOB, ObjectKey("default", "a"))
        seen.append(len(answer["metadata"]["text"]))

    async with talking(big, small) as (server, client), anyio.create_task_group() as tasks:
        async with client.large_json.turn(LARGE + 1):
            tasks.start_soon(get, client)
            await eventually(lambda: len(server.asked) == 1)
            for _ in range(3):
                await get(client)
        assert seen == [1, 1, 1]
    assert seen == [1, 1, 1, LARGE]


async def test_a_large_event_waits_for_its_turn() -> None:
    lines = event("ADDED", "6", text="x" * LARGE), event("ADDED", "7")
    seen = list[str]()

    def note(event: WatchEvent) -> None:
        seen.append(event.object["metadata"]["resourceVersion"])

    async with talking(streams(*lines)) as (server, client), anyio.create_task_group() as tasks:
        async with client.large_json.turn(LARGE + 1):
            tasks.start_soon(partial(client.watch, JOB, note, resource_version="5"))
            await eventually(lambda: len(server.asked) == 1 and not server.open_streams)
            for _ in range(9):
                await anyio.lowlevel.checkpoint()
        assert not seen
    assert seen == ["6", "7"]
