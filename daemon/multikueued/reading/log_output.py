"""Shows the logs of a job's pods on one worker: one after the other, or all as they come.

A stream that breaks, or is silent for long, is asked for again from its last line. A pod's log is shown only if the
pod has been seen with the same UID after the stream was opened: a request for a log names a pod, and no UID.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from typing import Final

import anyio
import anyio.abc
import attrs

from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import name_of, uid
from multikueue.errors import ApiError, DeadlineExceeded, Invalid, NotFound
from multikueue.kube.http.requests import LogQuery
from multikueue.kube.log_stream import LogLine, at_once
from multikueued.exits import NOT_FOUND, NOT_REACHABLE, CommandError
from multikueued.reading.pod_lookup import WorkerPods, why_no_pods
from multikueued.reading.pods import container_of, has_ended, held_up_by, in_order, next_shown, restarts_of
from multikueued.reading.worker_access import told_of

POLL: Final = 2.0
"""See `Wanted.every`."""
NEWLINE: Final = "\n"
MAX_STREAMS: Final = 64
"""Logs that are followed at a time."""


class ReplacedError(Exception):
    """The pod is gone, or another has its name."""


@attrs.frozen
class LogSelection:
    """Which logs are shown, and how."""

    all_pods: bool = False
    container: str = ""
    since_seconds: int = 0
    tail: int | None = None
    show: Callable[[str], None] = print
    """Shows a line of a log, which has its newline, if it has one."""
    tell: Callable[[str], None] = print
    """Shows a line of our own."""
    pause: Callable[[], Awaitable[None]] = at_once
    """Awaited before more of a log is read: whoever is shown it may be slow."""
    timestamps: bool = False
    """Whether each line of a log begins with its time."""
    pod: str = ""
    """The only pod of the job whose log is shown; empty: see `all_pods`."""
    previous: bool = False
    """Whether it is the log of containers before their last restart."""
    max_streams: int = MAX_STREAMS
    every: float = POLL
    """Seconds between two looks at the pods of a job that is followed, and at the manager's Workload."""
    words: Callable[[str, ApiError], str] = told_of
    """Words for what a worker answers, by its name."""


@attrs.define
class Position:
    """How far a pod's log has been shown."""

    time: str = ""
    """Of the last line, as the server wrote it."""
    is_whole: bool = attrs.field(default=False, init=False)
    """Whether all of it is shown, however many lines were asked for: it began while the job was followed."""
    misses_lines: bool = attrs.field(default=False, init=False)
    """Whether the last line shown was not there any more when the log was asked for again: those after it may not be
    there either."""
    _resumes: bool = attrs.field(default=False, init=False)
    """Whether no line has come yet since it was asked for again."""
    _same: int = attrs.field(default=0, init=False)
    """How many lines of that time have been shown."""
    _skip: int = attrs.field(default=0, init=False)
    _opened: float | None = attrs.field(default=None, init=False)
    """When it could be read first, by the loop's clock; None: it could not yet."""
    _restarts: int = attrs.field(default=0, init=False)
    """How often its container had been started again when it was opened last."""
    _is_cut: bool = attrs.field(default=False, init=False)
    """Whether it was opened, and has not been read to its end."""

    def query(self, wanted: LogSelection, container: str, *, follow: bool) -> LogQuery:
        """What to ask for."""
        self._skip, self._resumes = self._same, bool(self.time)
        if self.time:
            return LogQuery(container, follow, since=f"{self.time[:19]}{_zone(self.time)}")
        if self.is_whole:
            return LogQuery(container, follow, previous=wanted.previous)
        if self._opened is None:
            return LogQuery(container, follow, wanted.since_seconds, tail=wanted.tail, previous=wanted.previous)
        # There was nothing that was wanted then: all that has come since is.
        passed = math.ceil(anyio.current_time() - self._opened) + 1
        since = wanted.since_seconds + passed if wanted.since_seconds or wanted.tail == 0 else 0
        return LogQuery(container, follow, since, previous=wanted.previous)

    def opened(self, restarts: int) -> None:
        """It can be read, of a container that has been started again so often: a new one's first line ends no gap."""
        self._opened = anyio.current_time() if self._opened is None else self._opened
        self._resumes = self._resumes and (restarts == self._restarts or self._is_cut)
        self._restarts, self._is_cut = restarts, True

    def ended(self) -> None:
        """It was read to its end, as it is now."""
        self._is_cut = False

    def is_new(self, line: LogLine) -> bool:
        """Whether a line has not been shown yet; it counts as shown from now on."""
        if not line.time:
            return True
        self.misses_lines = self._resumes and _sortable(line.time) > _sortable(self.time)
        self._resumes = False
        if _sortable(line.time) < _sortable(self.time):
            return False
        if line.time == self.time:
            if self._skip:
                self._skip -= 1
                return False
            self._same += 1
            return True
        self.time, self._same, self._skip = line.time, 1, 0
        return True


def _zone(time: str) -> str:
    """`Z` or the offset: what follows the seconds and their fraction."""
    return time[19:].lstrip(".0123456789") or "Z"


def _sortable(time: str) -> tuple[str, str]:
    """Times of one node compare as texts: they have one offset."""
    fraction = time[19:].removesuffix(_zone(time)).lstrip(".")
    return time[:19], fraction.ljust(9, "0")


@attrs.define(eq=False)
class LogShower:
    """Shows the logs of one job on one worker."""

    pods: WorkerPods
    wanted: LogSelection
    positions: dict[str, Position] = attrs.field(factory=dict)
    """By the pod's UID."""
    is_over: Callable[[], bool] = lambda: False
    """Whether the job goes on nowhere: what is there is shown, and then it ends."""
    is_late: bool = False
    """Whether the job came to this worker while it was followed."""
    _shown: list[Json] = attrs.field(factory=list, init=False)
    _open: set[str] = attrs.field(factory=set, init=False)
    """UIDs of the pods whose logs are being shown."""
    _told: set[str] = attrs.field(factory=set, init=False)
    """UIDs of the pods of which it was told that an init container holds them up."""
    _quiet: anyio.Event = attrs.field(factory=anyio.Event, init=False)
    """Set once none of them is shown any more."""
    _away: bool = attrs.field(default=False, init=False)
    """Whether it was told that the worker does not answer, since it last did."""
    _full: bool = attrs.field(default=False, init=False)
    """Whether it was told that some logs wait for others to end."""

    async def show(self) -> None:
        """Show what there is, pod by pod.

        Raises:
            CommandError: there are no pods, or the one pod has no log yet.
            ApiError: the worker cannot be read.
        """
        pods = in_order(self._chosen((await self.pods.now()).pods))
        if not pods:
            raise CommandError(self._why_nothing(), NOT_FOUND)
        if len(pods) > 1 and not self.wanted.all_pods:
            self.wanted.tell(f"{len(pods)} pods; this is the log of {name_of(pods[0])} (--all-pods shows all)")
        for pod in pods if self.wanted.all_pods else pods[:1]:
            await self.wanted.pause()  # each may be worth a line of our own, without a log
            try:
                await self._read(pod, follow=False)
            except Invalid as error:
                why = self._held_up(pod) or str(error)
                if not self.wanted.all_pods:
                    no_log = why if self.wanted.previous else f"there is no log yet: {why}"
                    raise CommandError(no_log, NOT_FOUND) from error
                self.wanted.tell(why)
            except (NotFound, ReplacedError):
                self.wanted.tell(f"pod {name_of(pod)} is gone")

    async def follow(self) -> None:
        """Show logs as they come, of pods that are still to be made, too, until the job is over.

        Raises:
            CommandError: the worker refuses, or nothing was there when the job was over.
        """
        async with anyio.create_task_group() as tasks:
            while True:
                over = self.is_over()
                try:
                    pods = self._chosen((await self.pods.now()).pods)
                except ApiError as error:
                    self._tell(error)
                    if over:
                        return
                else:
                    self._away = False
                    self._start(pods, tasks)
                    self.is_late = True  # what comes now was not there when this began
                    if over and not self._open:
                        if not self.positions:
                            raise CommandError(self._why_nothing(), NOT_FOUND)
                        return
                with anyio.move_on_after(self.wanted.every):
                    await (self._quiet.wait() if over else anyio.sleep_forever())

    def _chosen(self, pods: tuple[Json, ...]) -> tuple[Json, ...]:
        return tuple(pod for pod in pods if self.wanted.pod in ("", name_of(pod)))

    def _why_nothing(self) -> str:
        if self.wanted.pod:
            return f'the job has no pod "{self.wanted.pod}" on worker cluster "{self.pods.sought.worker}"'
        return why_no_pods(self.pods)

    def _start(self, pods: tuple[Json, ...], tasks: anyio.abc.TaskGroup) -> None:
        room = self.wanted.max_streams - len(self._open)
        if self._open and not self.wanted.all_pods:
            return
        wanted = next_shown(pods, self._shown, all_pods=self.wanted.all_pods)
        if len(wanted) > room and not self._full:
            self._full = True
            most = f"{self.wanted.max_streams} logs are followed at a time"
            self.wanted.tell(f"{most}; {len(wanted) - room} more wait until others end")
        for pod in wanted[:room]:
            self._shown.append(pod)
            if self.is_late:
                self._position(pod).is_whole = True
            self._open.add(uid(pod))
            self._quiet = anyio.Event()
            tasks.start_soon(self._follow, pod)

    async def _follow(self, pod: Json) -> None:
        try:
            while True:
                ended = has_ended(pod) or self.is_over()
                try:
                    await self._read(pod, follow=not ended)
                    if ended:
                        return
                except (NotFound, ReplacedError):
                    return
                except Invalid as error:  # it has not started yet
                    self._position(pod).is_whole = True
                    held_up = self._held_up(pod)
                    if ended:
                        self.wanted.tell(held_up or str(error))
                        return
                    if held_up and uid(pod) not in self._told:
                        self._told.add(uid(pod))
                        self.wanted.tell(f"pod {name_of(pod)}: {held_up}")
                except ApiError as error:
                    if not isinstance(error, DeadlineExceeded):  # which only had nothing to say for long
                        self._tell(error)
                    if ended:
                        return
                await anyio.sleep(self.wanted.every)
                pod = next((newer for newer in self.pods.latest.pods if uid(newer) == uid(pod)), pod)
        finally:
            self._open.discard(uid(pod))
            if not self._open:
                self._quiet.set()

    def _held_up(self, pod: Json) -> str:
        return held_up_by(pod, container_of(pod, self.wanted.container))

    def _tell(self, error: ApiError) -> None:
        """Tell what goes wrong, once; go on only if it may pass.

        Raises:
            CommandError: it does not pass by itself.
        """
        worker = self.pods.sought.worker
        if not error.retryable:
            raise CommandError(self.wanted.words(worker, error), NOT_REACHABLE) from error
        if not self._away:
            self._away = True
            self.wanted.tell(f"{self.wanted.words(worker, error)}; trying again")

    async def _read(self, pod: Json, *, follow: bool) -> None:
        """Show one log from where it was left.

        Raises:
            ReplacedError: the pod is not there any more.
            ApiError: the stream broke.
        """
        position = self._position(pod)
        container = container_of(pod, self.wanted.container)
        prefix = f"[{self.pods.sought.worker}/{name_of(pod)}] " if self.wanted.all_pods else ""

        async def check() -> None:
            if not await self.pods.is_still_there(pod):
                raise ReplacedError
            seen = next((newer for newer in self.pods.latest.pods if uid(newer) == uid(pod)), pod)
            position.opened(restarts_of(seen, container))

        def show(line: LogLine) -> None:
            before = position.time
            if position.is_new(line):
                if position.misses_lines:
                    gap = f"lines may be missing between {before} and {line.time}: the log was not kept for long enough"
                    self.wanted.tell(f"pod {name_of(pod)}: {gap}")
                time = f"{line.time} " if self.wanted.timestamps else ""
                last = not (line.is_whole or follow or self.wanted.all_pods)  # what comes next would be a part of it
                self.wanted.show(f"{time}{prefix}{line.text}{'' if last else NEWLINE}")

        query = position.query(self.wanted, container, follow=follow)
        await self.pods.client.pod_log(ObjectKey.of(pod), query, show, on_open=check, pause=self.wanted.pause)
        position.ended()

    def _position(self, pod: Json) -> Position:
        return self.positions.setdefault(uid(pod), Position())
