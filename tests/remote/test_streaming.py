"""Logs as they come: streams that break, pods that are made again, jobs that end."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import attrs
import pytest

from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.errors import ApiError, DeadlineExceeded, Forbidden, Invalid, NotFound, Unreachable
from multikueue.kube.http.requests import LogQuery
from multikueue.kube.log_stream import LogLine, split_time
from multikueue.protocols import ObjectList
from multikueued.exits import CommandError
from multikueued.reading.log_output import POLL, LogSelection, LogShower, Position
from multikueued.reading.pod_lookup import WorkerPods
from tests.remote.objects import SOUGHT, job_copy, pod

pytestmark = pytest.mark.looptime

COPY = job_copy()


@attrs.define
class Worker:
    """A worker with one job copy: each stream of a pod plays the next of its scripts; the last one repeats."""

    scripts: dict[str, list[list[str | ApiError]]]
    pods: list[Json] = attrs.field(factory=list)
    asked: list[LogQuery] = attrs.field(factory=list)
    before_open: Callable[[], object] = lambda: None

    async def list(self, resource: Resource, **_: Any) -> ObjectList:
        return ObjectList(list(self.pods) if resource.plural == "pods" else [COPY], "1")

    async def pod_log(
        self,
        key: ObjectKey,
        query: LogQuery,
        on_line: Callable[[LogLine], None],
        *,
        on_open: Callable[[], Awaitable[None]],
        pause: Callable[[], Awaitable[None]],
    ) -> None:
        self.asked.append(query)
        await anyio.sleep(0.1)
        self.before_open()
        script = self.scripts[key.name]
        lines = script.pop(0) if len(script) > 1 else script[0]
        if lines and isinstance(lines[0], Invalid | NotFound | Forbidden):
            raise lines[0]
        await on_open()
        for line in lines:
            if isinstance(line, ApiError):
                raise line
            on_line(split_time(f"2026-01-01T00:00:{line}"))


@attrs.define
class Screen:
    lines: list[str] = attrs.field(factory=list)
    notes: list[str] = attrs.field(factory=list)

    def wanted(self, **options: Any) -> LogSelection:
        return LogSelection(show=self.show, tell=self.notes.append, **options)

    def show(self, line: str) -> None:
        assert line.endswith("\n"), "as each line of these logs does"
        self.lines.append(line.removesuffix("\n"))


def shower(worker: Any, screen: Screen, over: Callable[[], bool] = lambda: False, **options: Any) -> LogShower:
    return LogShower(WorkerPods(worker, SOUGHT), screen.wanted(**options), is_over=over)


async def followed(worker: Worker, *, seconds: float = 20, **options: Any) -> Screen:
    """Follow a job that is over after some seconds."""
    screen, began = Screen(), anyio.current_time()
    await shower(worker, screen, lambda: anyio.current_time() > began + seconds, **options).follow()
    return screen


ONE: list[list[str | ApiError]] = [["00Z started", "01Z step 1"]]


async def test_one_pod_is_shown_unless_all_are_wanted() -> None:
    worker = Worker({"a": ONE, "b": ONE}, [pod("a", COPY), pod("b", COPY, at=1)])
    of_one_pod, all_of_them = Screen(), Screen()
    await shower(worker, of_one_pod).show()
    await shower(worker, all_of_them, all_pods=True).show()
    assert of_one_pod.lines == ["started", "step 1"]
    assert of_one_pod.notes == ["2 pods; this is the log of a (--all-pods shows all)"]
    assert all_of_them.lines == [
        "[worker1/a] started",
        "[worker1/a] step 1",
        "[worker1/b] started",
        "[worker1/b] step 1",
    ]


async def test_a_pod_that_took_the_name_meanwhile_is_not_shown() -> None:
    """A request for a log names a pod and no UID: nothing is shown before the pod has been seen once more."""
    worker = Worker({"a": ONE}, [pod("a", COPY)])

    def replace() -> None:
        worker.pods = [pod("a", uid="another")]

    worker.before_open = replace
    screen = Screen()
    await shower(worker, screen).show()
    assert (screen.lines, screen.notes) == ([], ["pod a is gone"])


async def test_a_stream_that_breaks_goes_on_from_its_last_line() -> None:
    """Also where several lines have one time; the time of a query has whole seconds."""
    worker = Worker(
        {
            "a": [
                ["00.1Z a", "02.25Z b", "02.25Z c", Unreachable("reset")],
                ["02.25Z b", "02.25Z c", "02.25Z d", "02.5Z e", DeadlineExceeded("silent")],
                ["02.25Z b", "02.25Z c", "02.25Z d", "02.5Z e", "03Z f"],
            ]
        },
        [pod("a", COPY)],
    )
    screen = await followed(worker, tail=10)
    assert screen.lines == ["a", "b", "c", "d", "e", "f"]
    assert [query.since for query in worker.asked[:3]] == ["", "2026-01-01T00:00:02Z", "2026-01-01T00:00:02Z"]
    assert [query.tail for query in worker.asked[:2]] == [10, None]
    (note,) = screen.notes  # that a stream was silent is no news
    assert note.startswith('worker cluster "worker1" cannot be reached from this machine (reset)')


async def test_a_container_that_has_not_started_is_waited_for() -> None:
    worker = Worker({"a": [[Invalid("waiting to start")], ["00Z started"]]}, [pod("a", COPY, phase="Pending")])
    assert (await followed(worker)).lines == ["started"]
    with pytest.raises(CommandError, match="there is no log yet: waiting to start"):
        await shower(Worker({"a": [[Invalid("waiting to start")]]}, worker.pods), Screen()).show()


def held_up(name: str, *, waits: bool) -> Json:
    """A pod whose init container does not end well; one that waits is started again and again."""
    ended = {"exitCode": 3, "reason": "Error"}
    state = {"waiting": {"reason": "CrashLoopBackOff"}} if waits else {"terminated": ended}
    made = pod(name, COPY, phase="Pending" if waits else "Failed")
    made["spec"]["initContainers"] = [{"name": "fetch"}, {"name": "setup"}]
    done = {"name": "fetch", "state": {"terminated": {"exitCode": 0, "reason": "Completed"}}}
    made["status"]["initContainerStatuses"] = [
        done,
        {"name": "setup", "state": state, "lastState": {"terminated": ended}},
    ]
    made["status"]["containerStatuses"] = [{"name": "main", "state": {"waiting": {"reason": "PodInitializing"}}}]
    return made


@pytest.mark.parametrize("waits", [False, True])
async def test_a_container_that_never_starts_names_the_init_container_to_ask_for(waits: bool) -> None:
    said = "CrashLoopBackOff, exit code 3" if waits else "Error, exit code 3"
    words = f"main starts after init container setup, which says {said}; -c setup shows its log"
    stuck = held_up("a", waits=waits)
    with pytest.raises(CommandError, match=f"there is no log yet: {words}"):
        await shower(Worker({"a": [[Invalid("waiting to start")]]}, [stuck]), Screen()).show()

    screen = Screen()
    await shower(Worker({"a": [[Invalid("waiting to start")]]}, [stuck]), screen, all_pods=True).show()
    assert screen.notes == [words]
    asked = Worker({"a": [["00Z words of setup"]]}, [stuck])
    await shower(asked, screen, container="setup").show()
    assert screen.lines == ["words of setup"]


async def test_one_that_follows_is_told_once_what_it_waits_for() -> None:
    again: list[str | ApiError] = [Invalid("waiting to start")]
    worker = Worker({"a": [again, again, again, ["00Z started"]]}, [held_up("a", waits=True)])

    screen = await followed(worker)
    assert screen.lines == ["started"]
    assert [note.startswith("pod a: main starts after init container setup") for note in screen.notes] == [True]


async def test_what_is_told_of_pods_without_a_log_waits_for_a_slow_reader_too() -> None:
    """A worker may have ten thousand of them."""
    names = ("a", "b", "c")
    worker = Worker({name: [[Invalid("waiting to start")]] for name in names}, [pod(name, COPY) for name in names])
    screen, counts = Screen(), list[int]()

    async def pause() -> None:
        counts.append(len(screen.notes))

    await shower(worker, screen, all_pods=True, pause=pause).show()
    assert counts == [0, 1, 2]


async def test_pods_that_come_later_are_shown_too() -> None:
    worker = Worker({"a": [["00Z one"]], "b": [["00Z two"]]}, [pod("a", COPY, phase="Failed")])
    screen, over = Screen(), False
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(shower(worker, screen, lambda: over, all_pods=True).follow)
        await anyio.sleep(10)
        worker.pods.append(pod("b", COPY, phase="Succeeded", at=5))
        await anyio.sleep(10)
        over = True
    assert screen.lines == ["[worker1/a] one", "[worker1/b] two"]


async def test_a_missing_permission_ends_it() -> None:
    worker = Worker({"a": [[Forbidden("worker1: get pods: no")]]}, [pod("a", COPY)])
    with pytest.raises(ExceptionGroup) as raised:
        await followed(worker)
    assert raised.group_contains(CommandError, match="multikueue rbac worker --logs", depth=None)


async def test_a_job_without_pods_says_so() -> None:
    with pytest.raises(CommandError, match='job/train has no pods on worker cluster "worker1" yet'):
        await shower(Worker({}), Screen()).show()


def test_lines_without_a_time_are_shown() -> None:
    position = Position()
    assert position.is_new(LogLine("unable to read"))
    assert position.is_new(LogLine("a", "2026-01-01T00:00:02.5+02:00"))
    assert not position.is_new(LogLine("b", "2026-01-01T00:00:02.25+02:00"))
    assert position.query(LogSelection(), "main", follow=True).since == "2026-01-01T00:00:02+02:00"


async def test_a_gap_in_a_log_is_told() -> None:
    """The node rotates its files: what was written while nobody read may be gone, with the last line that was shown."""
    broken = Unreachable("worker1: the connection broke")
    before: list[list[str | ApiError]] = [["01Z one", "02Z two", broken], ["02Z two", "03Z three", broken]]
    scripts: list[list[str | ApiError]] = [*before, ["09Z nine", "10Z ten"], []]
    screen = await followed(Worker({"a": scripts}, [pod("a", COPY)]))
    assert screen.lines == ["one", "two", "three", "nine", "ten"]
    gaps = [note for note in screen.notes if "lines may be missing" in note]
    first, last = "2026-01-01T00:00:03Z", "2026-01-01T00:00:09Z"
    assert gaps == [f"pod a: lines may be missing between {first} and {last}: the log was not kept for long enough"]


async def test_one_pod_of_a_job_is_chosen_by_its_name_and_a_container_before_its_restart() -> None:
    worker, screen = Worker({"a": [["01Z one"]], "b": [["01Z other"]]}, [pod("a", COPY), pod("b", COPY)]), Screen()
    await shower(worker, screen, pod="b", previous=True, timestamps=True).show()
    assert (screen.lines, screen.notes) == (["2026-01-01T00:00:01Z other"], [])
    assert [query.previous for query in worker.asked] == [True]
    with pytest.raises(CommandError, match='the job has no pod "c" on worker cluster "worker1"'):
        await shower(worker, screen, pod="c").show()
    assert (await followed(worker, pod="b")).lines == ["other"]


async def test_a_job_that_has_ended_is_not_waited_for() -> None:
    """Its pod has ended, too: what there is of its log is shown, and that is all."""
    worker, began = Worker({"a": ONE}, [pod("a", COPY, phase="Succeeded")]), anyio.current_time()
    screen = Screen()
    await shower(worker, screen, lambda: True).follow()
    assert screen.lines == ["started", "step 1"]
    assert anyio.current_time() - began < POLL / 2


async def test_a_last_line_without_a_newline_gets_one_only_where_more_may_follow() -> None:
    class Unfinished(Worker):
        async def pod_log(
            self, key: ObjectKey, query: LogQuery, on_line: Callable[[LogLine], None], **rest: Any
        ) -> None:
            await rest["on_open"]()
            on_line(LogLine("100 %", "2026-01-01T00:00:00Z", is_whole=False))

    worker: Any = Unfinished({}, [pod("a", COPY, phase="Succeeded")])
    shown: list[str] = []
    for all_pods in (False, True):
        await LogShower(WorkerPods(worker, SOUGHT), LogSelection(all_pods, show=shown.append)).show()
    assert shown == ["100 %", "[worker1/a] 100 %\n"]


async def test_what_is_written_before_a_silent_log_is_asked_for_again_is_shown() -> None:
    """Of no line that there is, and of what is not older than a minute: asked for again it counts from its opening."""
    silent: list[list[str | ApiError]] = [[DeadlineExceeded("silent")], ["05Z one"]]
    worker = Worker({"a": [*silent]}, [pod("a", COPY)])
    assert (await followed(worker, tail=0)).lines == ["one"]
    assert [(query.tail, query.since_seconds > 2) for query in worker.asked[:2]] == [(0, False), (None, True)]
    worker = Worker({"a": [*silent]}, [pod("a", COPY)])
    await followed(worker, since_seconds=60, tail=5)
    assert [(query.tail, query.since_seconds > 62) for query in worker.asked[:2]] == [(5, False), (None, True)]


async def test_of_what_begins_while_it_is_followed_all_is_shown() -> None:
    """A container that starts later, a pod that is made later, and one on a worker to which the job moves."""
    worker = Worker({"a": [[Invalid("waiting to start")], ["00Z one"]]}, [pod("a", COPY, phase="Pending")])
    await followed(worker, tail=1, since_seconds=5)
    assert [(query.tail, query.since_seconds) for query in worker.asked[:2]] == [(1, 5), (None, 0)]

    worker, screen, over = Worker({"a": ONE, "b": ONE}, [pod("a", COPY, phase="Failed")]), Screen(), False
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(shower(worker, screen, lambda: over, tail=1).follow)
        await anyio.sleep(10)
        worker.pods.append(pod("b", COPY, phase="Succeeded", at=5))
        await anyio.sleep(10)
        over = True
    assert [query.tail for query in worker.asked] == [1, None]

    worker = Worker({"a": ONE}, [pod("a", COPY, phase="Succeeded")])
    moved = shower(worker, Screen(), lambda: True, tail=1)
    moved.is_late = True
    await moved.follow()
    assert [query.tail for query in worker.asked] == [None]


def restarted(times: int) -> Json:
    made = pod("a", COPY)
    made["status"]["containerStatuses"] = [{"name": "main", "restartCount": times}]
    return made


@pytest.mark.parametrize("broke", [False, True])
async def test_the_first_line_of_a_container_that_was_started_again_ends_no_gap(broke: bool) -> None:
    """Unless the former one's log could not be read to its end."""
    ends: list[str | ApiError] = [Unreachable("worker1: the connection broke")] if broke else []
    worker = Worker({"a": [["00Z one", *ends], ["09Z two"], []]}, [restarted(0)])

    def restart() -> None:
        worker.pods = [restarted(len(worker.asked) - 1)]

    worker.before_open = restart
    screen = await followed(worker)
    assert screen.lines == ["one", "two"]
    assert any("lines may be missing" in note for note in screen.notes) is broke


async def test_logs_that_wait_for_others_to_end_are_told() -> None:
    worker = Worker(dict.fromkeys("abc", ONE), [pod(name, COPY) for name in "abc"])
    screen = await followed(worker, all_pods=True, max_streams=2)
    assert screen.notes == ["2 logs are followed at a time; 1 more wait until others end"]
