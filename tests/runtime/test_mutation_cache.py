"""A cache that knows its own writes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

import anyio
import attrs
import pytest

from multikueue.core.model.kinds import JOB
from multikueue.core.model.names import Json, ObjectKey
from multikueue.errors import Expired, Unreachable
from multikueue.kube import Informer
from multikueue.protocols import ObjectList, UnreadableObject
from multikueue.runtime.caches.mutation_cache import DELETION_GRACE, REFUSALS_COUNT, REFUSED_FOR, MutationCache
from multikueue.testing import running
from tests.kube.fake_server import Broken, FakeServer, Step, Told, listed, obj, wait

pytestmark = pytest.mark.looptime

KEY = ObjectKey("n", "a")
OWNER = ObjectKey("n", "w")


def owners(job: Json) -> Iterable[str]:
    """The Workload an object of these tests belongs to, if it says so."""
    owner = job["metadata"].get("owner")
    return [owner] if owner else []


@asynccontextmanager
async def mutated(first: ObjectList, *steps: Step, relist: ObjectList | None = None) -> AsyncIterator[MutationCache]:
    """A cache of a server that lists `first` and then tells these steps."""
    server = FakeServer([first, relist or first], [[*steps, wait(1e6)], [wait(1e6)]])
    cache = MutationCache(Informer(server, JOB, indexes={"workload": owners}), owners)
    async with running(cache.informer.run):
        await cache.informer.wait_synced()
        yield cache


async def test_a_write_is_read_back_before_the_watch_tells_of_it() -> None:
    """Otherwise the next decision would ask for it again."""
    async with mutated(listed("5", obj("a", "4"))) as cache:
        cache.wrote(obj("a", "6"))
        assert cache.get(KEY) == obj("a", "6")
        cache.wrote(obj("b", "7"))
        assert cache.get(ObjectKey("n", "b")) == obj("b", "7")


async def test_the_cache_holds_again_once_it_has_caught_up() -> None:
    """Whether it shows the write, something newer, or that it was undone."""
    async with mutated(listed("5"), Told("ADDED", "6", after=1), Told("DELETED", "9", after=1)) as cache:
        cache.wrote(obj("a", "6", mine=True))
        assert cache.get(KEY) == obj("a", "6", mine=True)
        await anyio.sleep(1.5)
        assert cache.get(KEY) == obj("a", "6")
        cache.wrote(obj("a", "8"))
        await anyio.sleep(1)
        assert cache.get(KEY) is None


async def test_a_bookmark_beyond_a_write_settles_it() -> None:
    """The object is gone by then, or does not match the selector."""
    async with mutated(listed("5"), Told("BOOKMARK", "7", after=1)) as cache:
        cache.wrote(obj("a", "6"))
        await anyio.sleep(1.5)
        assert cache.get(KEY) is None


async def test_an_older_answer_does_not_replace_a_newer_one() -> None:
    """Answers of two writes may overtake each other."""
    async with mutated(listed("5")) as cache:
        cache.wrote(obj("a", "8"))
        cache.wrote(obj("a", "7"))
        assert cache.get(KEY) == obj("a", "8")


async def test_a_list_after_410_drops_what_was_written_before() -> None:
    """Also while it is under way: the cache still knows how far it was."""
    lost = Broken(Expired("gone"), after=1)
    async with mutated(listed("5"), Told("ADDED", "7"), lost, relist=listed("9")) as cache:
        await anyio.sleep(0.5)
        cache.wrote(obj("a", "6"))
        assert cache.get(KEY) == obj("a", "7"), "an answer that came late is no news"
        cache.wrote(obj("a", "8"))
        assert cache.get(KEY) == obj("a", "8")
        await anyio.sleep(1)
        assert cache.get(KEY) is None


async def test_a_handler_never_sees_an_older_write_than_the_object_it_is_told_of() -> None:
    """Handlers run in the middle of a list, before the cache has its resourceVersion."""
    server = FakeServer([listed("9", obj("a", "8"))], [[wait(1e6)]])
    seen: list[Json | None] = []
    cache = MutationCache(Informer(server, JOB, on_change=lambda key, _old, _new: seen.append(cache.get(key))))
    cache.wrote(obj("a", "6"))
    with anyio.move_on_after(1):
        await cache.informer.run()
    assert seen == [obj("a", "8")]


async def test_what_was_deleted_is_hidden_until_the_watch_confirms_it() -> None:
    async with mutated(listed("5", obj("a", "4", uid="u")), Told("DELETED", "6", after=3)) as cache:
        cache.removed(KEY, "u")
        assert cache.get(KEY) is None
        await anyio.sleep(4)
        assert (cache.get(KEY), KEY in cache.informer) == (None, False)


async def test_what_was_deleted_shows_again_if_the_watch_never_confirms_it() -> None:
    """So that it is deleted once more."""
    async with mutated(listed("5", obj("a", "4", uid="u"))) as cache:
        cache.removed(KEY, "u")
        await anyio.sleep(DELETION_GRACE - 1)
        assert cache.get(KEY) is None
        await anyio.sleep(1)
        assert cache.get(KEY) == obj("a", "4", uid="u")


async def test_what_a_server_does_not_serve_shows_as_soon_as_it_does_again() -> None:
    """A 404 for the kind is no deletion: an old job showed 5 s later than its kind, when a new copy had started it."""
    server = FakeServer([listed("5", obj("a", "4", uid="u"))], [[Broken(Unreachable("x"), after=1)], [wait(1e6)]])
    cache = MutationCache(Informer(server, JOB))
    async with running(cache.informer.run):
        await anyio.sleep(1.1)
        cache.removed(KEY, "u", is_certain=False)
        assert (cache.get(KEY), cache.informer.status.failures) == (None, 1)
        await anyio.sleep(4)
        assert cache.get(KEY) == obj("a", "4", uid="u")


async def test_another_object_of_the_same_name_is_not_hidden() -> None:
    async with mutated(listed("5", obj("a", "4", uid="new"))) as cache:
        cache.removed(KEY, "old")
        assert cache.get(KEY) == obj("a", "4", uid="new")
        cache.removed(KEY, "new")
        cache.wrote(obj("a", "6", uid="newest"))
        assert cache.get(KEY) == obj("a", "6", uid="newest")


async def test_what_is_held_by_a_finalizer_shows_as_being_deleted() -> None:
    """Somebody may have to take the finalizer away."""
    held = obj("a", "4", uid="u", deletionTimestamp="2026-01-01T00:00:00Z")
    async with mutated(listed("5", held)) as cache:
        cache.removed(KEY, "u")
        assert cache.get(KEY) == held


async def test_the_objects_of_a_workload_are_those_in_the_cache_and_those_just_written() -> None:
    """Without those just deleted, or just given away."""
    mine = [obj(name, "4", owner=str(OWNER), uid=name) for name in ("a", "b", "c")]
    async with mutated(listed("5", *mine, obj("x", "4"))) as cache:
        cache.wrote(obj("d", "6", owner=str(OWNER)))
        cache.wrote(obj("b", "7", owner="n/other"))
        cache.removed(ObjectKey("n", "c"), "c")
        assert [job["metadata"]["name"] for job in cache.of(OWNER)] == ["a", "d"]
        assert [job["metadata"]["name"] for job in cache.of(ObjectKey("n", "other"))] == ["b"]


async def test_managed_fields_of_answers_are_not_kept() -> None:
    """And the answer stays its owner's."""
    answer = obj("a", "6", managedFields=[{"manager": "m"}])
    async with mutated(listed("5")) as cache:
        cache.wrote(answer)
        assert cache.get(KEY) == obj("a", "6")
    assert "managedFields" in answer["metadata"]


async def test_versions_that_are_no_numbers_are_never_newer_than_the_cache() -> None:
    """The cache is right in the end; a guess might never be."""
    async with mutated(listed("5", obj("a", "4"))) as cache:
        cache.wrote(obj("a", "x²"))
        assert cache.get(KEY) == obj("a", "4")


async def test_nothing_is_remembered_for_ever() -> None:
    """Most of what is written or deleted is never asked for again."""
    async with mutated(listed("5"), Told("BOOKMARK", "1000", after=1)) as cache:
        for number in range(100):
            cache.wrote(obj(f"w{number}", str(number + 6)))
            cache.removed(ObjectKey("n", f"d{number}"), "u")
        await anyio.sleep(DELETION_GRACE + 1)
        cache.wrote(obj("last", "1001"))
        state = attrs.asdict(cache, recurse=False)
        assert (len(state["_written"]), len(state["_deleted"])) == (1, 0)


async def test_nothing_is_known_of_writes_to_a_server_that_was_restored_from_a_backup() -> None:
    """What was written would look alive until the new history has come as far; what was deleted is in the backup.

    A Workload's objects are looked for in a way of their own.
    """
    server = FakeServer(
        [listed("500", obj("b", "400", uid="u")), listed("77", obj("b", "40", uid="u"))],
        [[wait(3), Broken(Unreachable("down"))], [wait(1e6)]],
        "77",
    )
    cache = MutationCache(Informer(server, JOB, indexes={"workload": owners}), owners)
    written, deleted = KEY, ObjectKey("n", "b")
    async with running(cache.informer.run):
        await cache.informer.wait_synced()
        cache.wrote(obj("a", "501", owner="n/w"))
        cache.removed(deleted, "u")
        assert (cache.get(written) is not None, bool(cache.of(OWNER)), cache.get(deleted)) == (True, True, None)
        await anyio.sleep(4)
        assert (cache.get(written), cache.of(OWNER), cache.get(deleted) is not None) == (None, [], True)


async def test_handlers_are_told_of_what_was_written_and_went_before_it_was_shown() -> None:
    """The server forgot its history after the answers: nobody knew that job copies had been there, whose pods ended.
    What the list may be too old for is waited for, and what we have deleted is no surprise."""
    unreadable = UnreadableObject(obj("e", "8"), "it has no spec")
    second = ObjectList([obj("b", "7", uid="b")], "9", (unreadable,))
    server = FakeServer(
        [listed("5", obj("f", "4", uid="f")), second], [[wait(3), Broken(Expired("gone"))], [wait(1e6)]]
    )
    told: list[str] = []
    cache = MutationCache(
        Informer(
            server,
            JOB,
            keeps_unreadable=True,
            on_change=lambda key, _, new: told.append(f"{key.name}{' gone' if new is None else ''}"),
        )
    )
    async with running(cache.informer.run):
        await cache.informer.wait_synced()
        for name, version in (("a", "6"), ("b", "7"), ("c", "8"), ("d", "12"), ("e", "8"), ("f", "8")):
            cache.wrote(obj(name, version, uid=name))
        cache.removed(ObjectKey("n", "c"), "c")
        await anyio.sleep(8)
        assert told == ["f", "a gone", "b", "e", "f gone"]


async def test_what_an_earlier_cache_wrote_and_went_is_told_by_the_next() -> None:
    """Its answer came late, or no watch showed it before the worker got other credentials."""
    told: list[str] = []
    server = FakeServer([listed("9")], [[wait(1e6)]])
    async with mutated(listed("5")) as earlier:
        informer = Informer(server, JOB, predecessor=earlier.informer, on_change=lambda key, *_: told.append(key.name))
        earlier.wrote(obj("a", "6", uid="a"))
        cache = MutationCache(informer)
        cache.inherit(earlier)
        earlier.wrote(obj("b", "7", uid="b"))
        async with running(informer.run):
            await informer.wait_synced()
        assert told == ["a", "b"]


async def test_nothing_is_inherited_from_a_server_that_was_another_one() -> None:
    """Its address is the same, and its copies are not there."""
    async with mutated(listed("500", obj("a", "400"))) as earlier:
        server = FakeServer([listed("77")], [[wait(1e6)]])
        cache = MutationCache(Informer(server, JOB, predecessor=earlier.informer))
        async with running(cache.informer.run):
            await cache.informer.wait_synced()
            cache.inherit(earlier)
            assert cache.get(KEY) is None


async def test_writes_and_deletions_are_inherited_until_the_informer_has_caught_up() -> None:
    """New credentials, and a server that answered with the old ones: also what it answers to requests under way."""
    both = [obj("a", "4", uid="a"), obj("b", "4", uid="b"), obj("c", "4", uid="c")]
    async with (
        mutated(listed("5", *both)) as earlier,
        mutated(listed("5", *both), Told("ADDED", "9", after=1)) as cache,
    ):
        earlier.wrote(obj("a", "6", uid="a"))
        earlier.removed(ObjectKey("n", "b"), "b")
        cache.inherit(earlier)
        assert cache.get(KEY) == obj("a", "6", uid="a")
        assert cache.get(ObjectKey("n", "b")) is None
        earlier.wrote(obj("late", "7"))
        earlier.removed(ObjectKey("n", "c"), "c")
        assert cache.get(ObjectKey("n", "late")) == obj("late", "7")
        assert cache.get(ObjectKey("n", "c")) is None
        await anyio.sleep(1.5)
        assert cache.get(KEY) == obj("a", "9")


async def test_a_patch_that_changed_nothing_is_known_until_one_changes_something() -> None:
    """API servers answer 200 to a status of which they keep nothing."""
    patch: Json = {"metadata": {"resourceVersion": "4"}, "status": {"unknown": 1}}
    async with mutated(listed("5", obj("a", "4"))) as cache:
        assert cache.in_vain(KEY) is None
        cache.patched(patch, obj("a", "4"))
        assert cache.in_vain(KEY) == patch
        cache.patched(patch, obj("a", "6"))
        assert cache.in_vain(KEY) is None


async def test_a_patch_that_is_refused_for_long_is_in_vain_for_a_while_or_until_one_changes_something() -> None:
    """What refuses it, a policy say, may be gone at any time, and no event of the object tells."""
    patch: Json = {"metadata": {"resourceVersion": "4"}, "status": {"startTime": "other"}}
    async with mutated(listed("5", obj("a", "4"))) as cache:
        assert cache.in_vain_for(KEY) is None
        cache.refused(KEY, patch)
        assert cache.in_vain(KEY) is None
        await anyio.sleep(REFUSALS_COUNT)
        cache.refused(KEY, patch)
        assert cache.in_vain(KEY) == patch
        waits = [cache.in_vain_for(KEY)]
        while (seconds := waits[-1]) is not None and seconds < REFUSED_FOR:
            await anyio.sleep(seconds)
            assert cache.in_vain(KEY) is None
            cache.refused(KEY, patch)
            assert cache.in_vain(KEY) == patch
            waits.append(cache.in_vain_for(KEY))
        assert waits == [30, 60, 120, 240, REFUSED_FOR], "as long as it has been refused, and never longer than that"
        cache.refused(KEY, {**patch, "status": {}})
        assert cache.in_vain(KEY) is None
        cache.patched(patch, obj("a", "6"))
        assert cache.in_vain_for(KEY) is None


async def test_how_long_all_patches_of_an_object_were_refused_is_known_until_one_is_taken_or_none_is_sent() -> None:
    """What a right is missing for is never in vain: somebody may grant it."""
    async with mutated(listed("5", obj("a", "4"))) as cache:
        for second in range(2 * int(REFUSALS_COUNT)):
            cache.refused(KEY, {"metadata": {"resourceVersion": "4"}, "status": {"at": second}}, may_pass=True)
            assert (cache.refusing_for(KEY), cache.in_vain(KEY)) == (second, None)
            await anyio.sleep(1)
        await anyio.sleep(REFUSED_FOR)
        assert cache.refusing_for(KEY) == 0
        cache.refused(KEY, {"status": {}}, may_pass=True)
        assert cache.refusing_for(KEY) == 0
        await anyio.sleep(1)
        cache.refused(KEY, {"status": {}}, may_pass=True)
        assert cache.refusing_for(KEY) == 1
        cache.patched({"status": {}}, obj("a", "6"))
        assert cache.refusing_for(KEY) == 0


async def test_what_has_still_to_end_is_known_to_be_deleted_until_another_has_its_name() -> None:
    async with mutated(listed("5", obj("a", "4"))) as cache:
        left = obj("a", "6")
        assert not cache.is_leaving(left)
        cache.leaves(left)
        assert cache.get(KEY) == left
        assert cache.is_leaving(left)
        assert not cache.is_leaving({"metadata": {**left["metadata"], "uid": "another"}})


async def test_patches_in_vain_of_jobs_that_are_gone_do_not_pile_up_behind_one_that_runs_on() -> None:
    """10,001 were kept behind one long job."""
    async with mutated(listed("5", obj("a", "4"))) as cache:
        in_vain(cache, "a")
        for number in range(1000):
            in_vain(cache, f"short-{number}")
        assert cache.in_vain(KEY) is not None
        kept = [number for number in range(1000) if cache.in_vain(ObjectKey("n", f"short-{number}")) is not None]
        assert len(kept) < 4


def in_vain(cache: MutationCache, name: str) -> None:
    cache.patched({"metadata": {"resourceVersion": "4"}}, obj(name, "4"))
