"""A worker that returns: what must not run there any more is stopped first, before its caches are read.

While a worker is lost, and such copies may be there, it is asked for one of them every second. As soon as it answers,
all of them are read by name, and what is of an attempt that is over is stopped. Nothing waits long for that, and what
is left goes the usual way.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Awaitable, Callable
from enum import Enum
from functools import partial
from typing import Final, Unpack

import anyio
import attrs

from multikueue.core.effect_words import describe
from multikueue.core.model.kinds import WORKLOAD
from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.core.workload.effects import ApplyStatus, DeleteJob
from multikueue.errors import ApiError, Forbidden, Unauthorized
from multikueue.logs import get_logger
from multikueue.protocols import ApiClient, ListOptions, ObjectList, WatchEvent, WatchOptions, read
from multikueue.runtime.loop import loop_time
from multikueue.runtime.workers.moved_away import Suspect, Suspects

ASK_EVERY: Final = 1.0
"""Seconds from one question to the next, while a lost worker may run what has moved away. It is a small request for one
object, and there is one at a time: where it is not answered, the next comes after its deadline."""
ASK_DEADLINE: Final = 2.0
"""Seconds for its answer, the handshakes before it included: a worker that is half a second away is heard."""
AT_ONCE: Final = 8
"""Workloads that are looked at on one worker at a time: a quarter of its client's connections."""
AT_MOST: Final = 256
"""Workloads that are looked at in one loss, before the worker is read; the plan finds the others."""
HOLD_UP: Final = 5.0
"""Seconds for which reading the worker waits for that, at most."""

log = get_logger(__name__)


class _Heard(Enum):
    NOTHING = "nothing"
    REFUSAL = "refusal"
    ANSWER = "answer"


@attrs.define(eq=False)
class ReturningWorker:
    """Lists and watches a worker's Workloads: implements `ListerWatcher`, and `Informer.sleep`."""

    client: ApiClient
    """Of the worker."""
    suspects: Callable[[], Suspects | None]
    """What may be there; None: the worker is not lost."""
    _broken: Suspects | None = attrs.field(default=None, init=False)
    """With which something unexpected has happened."""
    _asked: float = attrs.field(default=-math.inf, init=False)
    """When it was asked last, or would have been, on the loop's clock."""

    async def sleep(self, seconds: float) -> None:
        """Wait out a back-off, or until the worker has answered."""
        until = loop_time() + seconds
        while (left := until - loop_time()) > 0:
            pause = self._pause()
            await anyio.sleep(min(pause, left))
            if pause >= left:
                return  # not by the clock, which may stand a rounding before the end
            match await self._look():
                case _Heard.ANSWER:
                    return
                case _Heard.REFUSAL:
                    await anyio.sleep_until(until)  # who is not let in is not let in a second later
                    return

    async def list(self, resource: Resource, **options: Unpack[ListOptions]) -> ObjectList:
        """See `Lister`. While the worker is lost, one that has no answer is sent again once the worker has answered."""
        if self.suspects() is None:
            return await self.client.list(resource, **options)
        send = partial(self.client.list, resource, **options)
        await self._look()
        answer = await self._sent(send)
        if answer is None:  # it hung, and the worker answers: sent again once, however many leave it meanwhile
            answer = await send()
        await self._look()  # it may have waited until there was something to look for
        return answer

    async def watch(
        self, resource: Resource, on_event: Callable[[WatchEvent], None], **options: Unpack[WatchOptions]
    ) -> None:
        """See `Watcher`."""
        await self._look()
        await self.client.watch(resource, on_event, **options)

    async def _sent(self, send: Callable[[], Awaitable[ObjectList]]) -> ObjectList | None:
        """The answer to a request; None: the worker has answered another one before."""
        answers = list[ObjectList | ApiError]()

        async def ask() -> None:
            while not answers:
                with anyio.move_on_after(self._pause()):
                    await answered.wait()
                if not answers and await self._look() is _Heard.ANSWER:
                    request.cancel()
                    return

        answered = anyio.Event()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            with anyio.CancelScope() as request:
                try:
                    answers.append(await send())
                except ApiError as error:  # not raised here: a task group would wrap it
                    answers.append(error)
            answered.set()
        answer = answers[0] if answers else None
        if isinstance(answer, ApiError):
            raise answer
        return answer

    def _pause(self) -> float:
        """Seconds until the next question."""
        return max(0.0, self._asked + ASK_EVERY - loop_time())

    async def _look(self) -> _Heard:
        """Ask for what may be there, if anything may, and stop what must not run. What fails is left to the plan."""
        self._asked, suspects = loop_time(), self.suspects()
        if suspects is None or suspects is self._broken:
            return _Heard.NOTHING
        try:
            return await self._look_for(suspects)
        except Exception as error:  # a defect: it costs no more than this
            self._broken = suspects
            log.error("unexpected exception", cluster=suspects.loss.worker, exc_info=error)
            return _Heard.NOTHING

    async def _look_for(self, suspects: Suspects) -> _Heard:
        remaining = iter(suspects)
        if (first := next(remaining, None)) is None:
            return _Heard.NOTHING
        heard, copy = await self._ask(first)
        if heard is not _Heard.ANSWER:
            return heard
        places = anyio.Semaphore(AT_ONCE)

        async def look(suspect: Suspect) -> None:
            async with places:
                await self._stop(suspects, suspect, await _read(self.client, WORKLOAD, suspect.copy))

        with anyio.move_on_after(HOLD_UP):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._stop, suspects, first, copy)
                for suspect in itertools.islice(remaining, AT_MOST - 1):
                    tasks.start_soon(look, suspect)
        suspects.look_away()
        return heard

    async def _ask(self, suspect: Suspect) -> tuple[_Heard, Json | None]:
        with anyio.move_on_after(ASK_DEADLINE):
            try:
                return _Heard.ANSWER, await read(self.client, WORKLOAD, suspect.copy)
            except (Forbidden, Unauthorized):
                return _Heard.REFUSAL, None
            except ApiError:
                pass
        return _Heard.NOTHING, None

    async def _stop(self, suspects: Suspects, suspect: Suspect, copy: Json | None) -> None:
        jobs = [(resource, await _read(self.client, resource, key)) for resource, key in suspect.jobs]
        seen = [(resource, job) for resource, job in jobs if job is not None]
        for effect in suspects.stop(suspect, copy, seen):
            about = {"cluster": effect.cluster, "key": str(suspect.key), "effect": describe(effect)}
            try:
                await self._send(effect)
            except ApiError as error:
                log.info("not stopped on return", **about, error=str(error))
            else:
                log.info("stopped on return", **about)

    async def _send(self, effect: ApplyStatus | DeleteJob) -> None:
        match effect:
            case ApplyStatus(object=body, field_manager=manager):
                await self.client.apply(WORKLOAD, body, field_manager=manager, subresource="status")
            case DeleteJob(resource=resource, key=key, uid=uid, propagation=propagation):
                await self.client.delete(resource, key, uid=uid, propagation=propagation)


async def _read(client: ApiClient, resource: Resource, key: ObjectKey) -> Json | None:
    """An object; None if there is none, or it cannot be read."""
    try:
        return await client.get(resource, key)
    except ApiError:
        return None
