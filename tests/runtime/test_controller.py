"""The controller: keys in, reconciles out, time asserted."""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from typing import Any, cast

import anyio
import anyio.lowlevel
import attrs
import pytest
from structlog.testing import capture_logs

from multikueue.core.machinery.action import Action
from multikueue.core.machinery.backoff import Backoff
from multikueue.errors import Conflict, Forbidden, TooManyRequests
from multikueue.runtime.controller import IN_ONE_TURN, Controller, KeyQueue
from multikueue.runtime.loop import UnaskedCancellation

pytestmark = pytest.mark.looptime


@attrs.define(eq=False)
class Recorder:
    """A reconciler that notes when it is called and does what the test says."""

    act: Callable[[str, int], Action | None] = lambda _key, _call: Action.done()
    takes: float = 0.0
    calls: list[tuple[str, float]] = attrs.field(factory=list)
    running: set[str] = attrs.field(factory=set)
    most_at_once: int = 0

    async def reconcile(self, key: str) -> Action | None:
        assert key not in self.running, "one key was reconciled twice at once"
        self.running.add(key)
        self.most_at_once = max(self.most_at_once, len(self.running))
        self.calls.append((key, anyio.current_time()))
        try:
            await anyio.sleep(self.takes)
            return self.act(key, sum(called == key for called, _ in self.calls))
        finally:
            self.running.discard(key)


async def run_for(seconds: float, controller: Controller[str]) -> None:
    """Let the controller run for that long."""
    with anyio.move_on_after(seconds):
        await controller.run()


async def test_many_requests_for_one_key_are_one_reconcile() -> None:
    """A burst of events costs one look."""
    recorder = Recorder()
    controller = Controller("test", recorder)
    for _ in range(100):
        controller.enqueue("a")
    await run_for(10, controller)

    assert recorder.calls == [("a", 0)]


async def test_none_means_done() -> None:
    """A reconcile that returns nothing ended the whole controller."""
    recorder = Recorder(lambda _key, _call: None)
    controller = Controller("test", recorder)
    controller.enqueue("a")
    controller.enqueue("b", 5)
    await run_for(100, controller)

    assert recorder.calls == [("a", 0), ("b", 5)]


async def test_a_change_during_a_reconcile_is_looked_at_again() -> None:
    """What the reconcile read may be out of date by the time it ends."""
    recorder = Recorder(takes=5)
    controller = Controller("test", recorder)
    controller.enqueue("a")
    controller.enqueue("a", after=2)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run_for, 100, controller)
        await anyio.sleep(3)
        controller.enqueue("a")

    assert recorder.calls == [("a", 0), ("a", 5)]


async def test_asking_to_be_called_again_is_honoured_to_the_second() -> None:
    """`Action.after(300)` means 300 s, unless a change comes first."""
    recorder = Recorder(lambda _key, _call: Action.after(300))
    controller = Controller("test", recorder)
    controller.enqueue("a")
    await run_for(1000, controller)

    assert recorder.calls == [("a", 0), ("a", 300), ("a", 600), ("a", 900)]


async def test_at_most_so_many_at_a_time_and_no_key_twice() -> None:
    """The bound on calls in flight holds, and the rest follows as places become free."""
    recorder = Recorder(takes=1)
    controller = Controller("test", recorder, concurrency=3)
    for number in range(10):
        controller.enqueue(str(number))
    await run_for(10, controller)

    assert recorder.most_at_once == 3
    assert [at for _, at in recorder.calls] == [0, 0, 0, 1, 1, 1, 2, 2, 2, 3]


async def test_few_reconciles_begin_before_events_are_read_again() -> None:
    """One tenant created and deleted five Jobs again and again: 28 reconciles were in each turn of the loop, as a watch
    was read ten events at a time, and another tenant's event came to the queue 5 s late."""
    turns, begun_in = 0, list[int]()

    def begin(_key: str, _call: int) -> Action:
        begun_in.append(turns)
        return Action.done()

    controller = Controller("test", Recorder(begin), concurrency=32)
    for number in range(28):
        controller.enqueue(str(number))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(controller.run)
        while len(begun_in) < 28:
            turns += 1  # as a watch does after each few events
            await anyio.lowlevel.checkpoint()
        tasks.cancel_scope.cancel()

    assert max(Counter(begun_in).values()) <= IN_ONE_TURN


async def test_a_key_that_fails_backs_off_alone_and_forgets_after_success() -> None:
    """One broken object must not slow the others."""

    def act(key: str, call: int) -> Action:
        if key == "bad" and call <= 3:
            raise RuntimeError("broken")
        return Action.done()

    recorder = Recorder(act)
    controller = Controller("test", recorder, backoff=Backoff(base=1, cap=60))
    controller.enqueue("bad")
    controller.enqueue("good", after=2)
    controller.enqueue("bad", after=100)
    await run_for(200, controller)

    assert recorder.calls == [("bad", 0), ("bad", 1), ("good", 2), ("bad", 3), ("bad", 7)]


async def test_a_server_that_asks_for_time_gets_it() -> None:
    """Retry-After beats a shorter back-off."""

    def act(_key: str, call: int) -> Action:
        if call == 1:
            raise TooManyRequests("slow down", status=429, retry_after=17)
        return Action.done()

    recorder = Recorder(act)
    controller = Controller("test", recorder)
    controller.enqueue("a")
    await run_for(100, controller)

    assert recorder.calls == [("a", 0), ("a", 17)]


def _conflict_at_first(_key: str, call: int) -> Action:
    if call == 1:
        raise Conflict("changed", status=409)
    return Action.done()


async def test_a_conflict_is_retried_when_the_change_that_caused_it_is_heard_of() -> None:
    """Before that the same write would be refused again."""
    recorder = Recorder(_conflict_at_first)
    controller = Controller("test", recorder)
    controller.enqueue("a")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run_for, 10, controller)
        await anyio.sleep(0.02)
        controller.enqueue("a")

    assert [round(at, 3) for _, at in recorder.calls] == [0, 0.02]


async def test_a_conflict_nobody_tells_of_is_retried_a_second_later() -> None:
    """The change may be one that nothing is done about."""
    recorder = Recorder(_conflict_at_first)
    controller = Controller("test", recorder)
    controller.enqueue("a")
    await run_for(10, controller)

    assert [round(at, 3) for _, at in recorder.calls] == [0, 1]


async def test_draining_lets_what_runs_end_and_starts_nothing() -> None:
    """A rolling update breaks no request off."""
    recorder = Recorder(takes=5)
    controller = Controller("test", recorder, concurrency=1)
    controller.enqueue("a")
    controller.enqueue("b")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(controller.run)
        await anyio.sleep(1)
        controller.drain()

    assert recorder.calls == [("a", 0)]
    assert anyio.current_time() == 5
    assert not recorder.running


async def test_a_queue_can_be_there_before_its_controller() -> None:
    """Event handlers and other controllers enqueue into it; what came before is not lost."""
    queue: KeyQueue[str] = KeyQueue()
    queue.enqueue("a")
    queue.enqueue("b", 5)
    assert not queue.idle
    recorder = Recorder()
    controller = Controller("test", recorder, queue=queue)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run_for, 10, controller)
        await anyio.sleep(1)
        assert queue.idle
        assert controller.idle
        queue.enqueue("c", 2)

    assert recorder.calls == [("a", 0), ("c", 3), ("b", 5)]


async def test_what_is_refused_again_and_again_is_told_once() -> None:
    """A right was gone: the same refusal stood in the log each minute, for each object."""

    def refuse(_key: str, call: int) -> Action:
        if call == 5:
            return Action.after(1000.0)
        raise Forbidden("may not patch" if call < 4 else "may not update", status=403)

    with capture_logs() as logs:
        controller = Controller("test", Recorder(refuse))
        controller.enqueue("a")
        await run_for(600, controller)
    entries = [entry for entry in logs if entry["event"] == "retry" and entry["log_level"] == "info"]
    assert [entry["error"] for entry in entries] == ["may not patch", "may not update"]


@pytest.mark.parametrize(
    "answer",
    [
        lambda: 5,
        lambda: 0,
        lambda: Action,
        lambda: Action.done,
        lambda: Action(cast("float", "5")),
        lambda: Action.after(math.nan),
        lambda: Action.after(cast("float", timedelta(seconds=5))),
    ],
)
async def test_a_reconciler_that_answers_something_else_costs_its_key_alone(answer: Callable[[], Any]) -> None:
    """A number for the seconds, as other libraries take it, ended the whole controller; so did the class itself."""
    recorder = Recorder(lambda key, call: answer() if (key, call) == ("a", 1) else Action.done())
    controller = Controller("test", recorder)
    controller.enqueue("a")
    controller.enqueue("b", 1)
    with capture_logs() as logs:
        await run_for(10, controller)
    assert [key for key, _ in recorder.calls][-1] == "b"
    assert sorted({key for key, _ in recorder.calls}) == ["a", "b"]
    (entry,) = [entry for entry in logs if entry["log_level"] == "error"]
    assert entry["event"] == "reconcile failed"
    assert isinstance(entry["exc_info"], TypeError | ValueError)


async def test_a_time_beyond_all_numbers_waits_for_a_change() -> None:
    recorder = Recorder(lambda _key, _call: Action.after(10**400))
    controller = Controller("test", recorder)
    controller.enqueue("a")
    await run_for(10, controller)
    assert recorder.calls == [("a", 0)]


@pytest.mark.parametrize("after", [math.nan, "5", None, timedelta(seconds=5)])
async def test_a_key_is_not_enqueued_for_what_is_no_time(after: Any) -> None:
    """Nan stood in the heap, and others were not found behind it."""
    with pytest.raises((TypeError, ValueError), match="a time to wait is a number of seconds"):
        Controller("test", Recorder()).queue.enqueue("a", after)


def test_a_controller_that_would_never_do_anything_is_refused() -> None:
    with pytest.raises(ValueError, match="concurrency"):
        Controller("test", Recorder(), concurrency=0)


@pytest.mark.parametrize(
    "given", [Recorder, lambda key: None, "mirror", None], ids=["class", "function", "text", "None"]
)
def test_a_reconciler_that_is_none_is_refused(given: Any) -> None:
    """Each key failed, with a word about an argument."""
    with pytest.raises(TypeError, match=r"reconciler: an object with `async def reconcile\(self, key\)`, not "):
        Controller("test", given)


class WithoutAsync:
    def reconcile(self, key: str) -> Action | None:
        raise NotImplementedError


class WithoutKey:
    async def reconcile(self) -> Action | None:
        raise NotImplementedError


@pytest.mark.parametrize(
    ("given", "why"), [(WithoutAsync(), "is not async"), (WithoutKey(), "does not take a key")], ids=["async", "key"]
)
def test_a_reconcile_that_cannot_be_awaited_with_a_key_is_told_when_the_controller_is_made(
    given: Any, why: str
) -> None:
    """Each key failed, as `object NoneType can't be used in 'await' expression`."""
    with pytest.raises(TypeError, match=rf"`async def reconcile\(self, key\)`, not .*, whose reconcile {why}"):
        Controller("test", given)


async def test_a_cancellation_that_nobody_asked_for_is_a_failure_of_its_key_alone() -> None:
    """As of a future that the reconciler waits for. The controller ended, without a word."""

    def act(key: str, call: int) -> Action | None:
        if (key, call) == ("a", 1):
            raise asyncio.CancelledError
        return None

    recorder = Recorder(act)
    controller = Controller("test", recorder, backoff=Backoff(5.0, 60.0))
    controller.enqueue("a")
    controller.enqueue("b", after=1.0)
    with capture_logs() as logs:
        await run_for(10, controller)
    assert recorder.calls == [("a", 0), ("b", 1), ("a", 5)]
    assert [(line["event"], type(line["exc_info"])) for line in logs] == [("reconcile failed", UnaskedCancellation)]


class FailingHook:
    def reconciled(self, controller: str, seconds: float, error: Exception | None) -> None:
        raise ZeroDivisionError(controller, seconds, error)


class CancelledHook:
    def reconciled(self, *_: object) -> None:
        """As the result of a task that was cancelled raises it."""
        raise asyncio.CancelledError


class WaitingHook:
    async def reconciled(self, *_: object) -> None:
        """As somebody without a type checker would write it."""


@pytest.mark.parametrize(
    ("hook", "error"),
    [
        (FailingHook(), ZeroDivisionError),
        (CancelledHook(), asyncio.CancelledError),
        (WaitingHook(), TypeError),
        (object(), AttributeError),
    ],
)
async def test_a_hook_that_fails_holds_up_nothing_and_is_told_once(hook: Any, error: type[BaseException]) -> None:
    """It ended the controller, and with it the manager."""
    recorder = Recorder()
    controller = Controller("test", recorder, hook=hook)
    for key in ("a", "b"):
        controller.enqueue(key)
    with capture_logs() as logs:
        await run_for(10, controller)
    assert recorder.calls == [("a", 0), ("b", 0)]
    assert [(line["event"], type(line["exc_info"])) for line in logs] == [("a hook fails, told once", error)]
