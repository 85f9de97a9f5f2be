"""Probes one worker while nothing is heard of it. `core.machinery.liveness` decides when, and when it is lost."""

from __future__ import annotations

import contextlib
import math
from typing import Final

import anyio
import attrs

from multikueue.core.machinery.liveness import PROBE_DEADLINE, PROBE_EVERY, Due, Heard, Liveness, Lose, Probe
from multikueue.core.model.kinds import WORKLOAD
from multikueue.errors import ApiError, DeadlineExceeded
from multikueue.kube.informers.informer import Informer
from multikueue.protocols import ApiClient, Reader
from multikueue.runtime.loop import loop_time

ONE: Final = 1
"""Objects in the answer to a probe. Without a label selector the storage reads no more than that, either."""

MANY: Final = 16
"""Workers; more than that are probed in rounds."""
ROUND: Final = PROBE_EVERY / 2
"""Seconds from one round to the next. A part of `PROBE_EVERY`: only the first look at a silent worker is late."""


@attrs.define(eq=False)
class ProbeRounds:
    """When workers are looked at. Many are in rounds: to wake an idle process costs more than several probes."""

    workers: int = attrs.field(default=0, init=False)
    """Those that are probed."""

    def at(self, due_at: float) -> float:
        """When to look at one that is due then."""
        return math.ceil(due_at / ROUND) * ROUND if self.workers > MANY else due_at


@attrs.define(eq=False)
class WorkerProbe:
    """How one connection to a worker does, from what is heard through it."""

    client: ApiClient
    """Of the worker."""
    rounds: ProbeRounds
    _state: Liveness = attrs.field(factory=lambda: Liveness.beginning(loop_time()), init=False)

    def heard_at(self) -> float:
        """When it was heard last, on the loop's clock."""
        return max(self._state.heard_at, self.client.last_activity)

    async def run(self, informer: Informer) -> None:
        """Probe until cancelled.

        Args:
            informer: of its Workloads. When the worker is lost, its request is abandoned, and repeated with back-off.
        """
        self.rounds.workers += 1
        try:
            await self._run(informer)
        finally:
            self.rounds.workers -= 1

    async def _run(self, informer: Informer) -> None:
        async with anyio.create_task_group() as tasks:
            while True:
                at = self.rounds.at(self._state.due_at)
                await anyio.sleep(max(0.0, at - loop_time()))
                if (heard_at := self.client.last_activity) > self._state.heard_at:
                    self._state, _ = self._state.step(Heard(), heard_at)
                match self._step(Due(following=informer.status.synced and not informer.status.failures), at):
                    case Probe():
                        tasks.start_soon(_probe, self.client)
                    case Lose(silent_for):
                        text = f"{informer.resource}: no answer to anything for {silent_for:.0f} s"
                        informer.abandon(DeadlineExceeded(text))

    def _step(self, event: Due, at: float) -> Probe | Lose | None:
        """Look. A loop wakes a little late: reckoned from then, the next look would be a round later."""
        now = loop_time()
        self._state, command = self._state.step(event, at if now - at < ROUND else now)
        return command


async def _probe(client: Reader) -> None:
    with anyio.move_on_after(PROBE_DEADLINE), contextlib.suppress(ApiError):  # the client notes what it hears
        await client.list(WORKLOAD, limit=ONE)
