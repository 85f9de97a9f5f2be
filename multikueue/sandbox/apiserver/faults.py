"""
Faults, injected on both sides of the store: a request that never arrives, or a reply that never comes back although
the write took effect. Plus what goes wrong with watches, partitions, and dropped connections.

A fault is an effect and a match::

    server.faults.add(Reset(), on=Match(verbs=("create",)), at="reply", times=1)

The first effects that match are applied in the order they were added; what is random comes from a seed.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Literal, TypeAlias

import anyio
import attrs

from multikueue.sandbox.apiserver.status_errors import REASONS, StatusError

Side: TypeAlias = Literal["request", "reply"]
PartitionMode: TypeAlias = Literal["hang", "reset"]


class ConnectionLostError(Exception):
    """The connection is gone: the client gets no answer."""


@attrs.frozen
class Delay:
    """Wait this many seconds."""

    seconds: float


@attrs.frozen
class Refuse:
    """Answer with an error; `retry_after` is in seconds."""

    code: int
    retry_after: int | None = None


@attrs.frozen
class Reset:
    """Reset the connection."""


@attrs.frozen
class Hang:
    """Never answer."""


@attrs.frozen
class CutWatch:
    """Reset a watch once it has sent this many events."""

    after: int = 0


@attrs.frozen
class ExpireWatch:
    """End a watch with 410 once it has sent this many events."""

    after: int = 0


@attrs.frozen
class SilenceWatch:
    """Accept a watch and say nothing more, bookmarks included, once it has sent this many events."""

    after: int = 0


WatchEffect: TypeAlias = CutWatch | ExpireWatch | SilenceWatch
Effect: TypeAlias = Delay | Refuse | Reset | Hang | WatchEffect


@attrs.frozen
class Call:
    """What is known about a request before it is served; `resource` is `jobs.batch`, `verb` as RBAC names it."""

    user: str
    verb: str
    resource: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""


@attrs.frozen
class Match:
    """Which calls; empty means any. `resource` is the plural, with or without its group."""

    verbs: tuple[str, ...] = ()
    resource: str = ""
    namespace: str = ""
    name: str = ""
    user: str = ""
    subresource: str = ""

    def fits(self, call: Call) -> bool:
        """Whether a call is meant."""
        return (
            (not self.verbs or call.verb in self.verbs)
            and self.resource in ("", call.resource, call.resource.partition(".")[0])
            and self.namespace in ("", call.namespace)
            and self.name in ("", call.name)
            and self.user in ("", call.user)
            and self.subresource in ("", call.subresource)
        )


@attrs.define(eq=False)
class Fault:
    """A rule. `hits` counts how often it was applied."""

    effect: Effect
    on: Match = Match()
    at: Side = "request"
    times: int | None = None
    probability: float = 1.0
    hits: int = 0


class Connections:
    """The connections that are open, each by how to cut it."""

    def __init__(self) -> None:
        self._open: dict[Callable[[], None], None] = {}

    def opened(self, cut: Callable[[], None]) -> None:
        """Remember a connection."""
        self._open[cut] = None

    def closed(self, cut: Callable[[], None]) -> None:
        """Forget a connection."""
        self._open.pop(cut, None)

    def drop(self) -> None:
        """Cut them all."""
        for cut in list(self._open):
            cut()


class Faults:
    """The rules of one server, and whether it can be reached at all."""

    def __init__(self, seed: int = 0) -> None:
        self.rules: list[Fault] = []
        self.connections = Connections()
        self._random = random.Random(seed)
        self._partition: PartitionMode | None = None
        self._healed = anyio.Event()

    def add(
        self,
        effect: Effect,
        *,
        on: Match | None = None,
        at: Side = "request",
        times: int | None = None,
        probability: float = 1.0,
    ) -> Fault:
        """Add a rule.

        Args:
            effect: what happens.
            on: to which calls; to all if not given.
            at: `request`: before the store sees it; `reply`: after the store has done it.
            times: how often at most.
            probability: of each matching call to be hit.
        """
        fault = Fault(effect, on or Match(), at, times, probability)
        self.rules.append(fault)
        return fault

    def remove(self, fault: Fault) -> None:
        """Take a rule away."""
        self.rules.remove(fault)

    def clear(self) -> None:
        """Take all rules away."""
        self.rules.clear()

    def match(self, call: Call) -> list[Fault]:
        """The rules that hit this call; they count it."""
        hit = []
        for fault in self.rules:
            spent = fault.times is not None and fault.hits >= fault.times
            if spent or not fault.on.fits(call):
                continue
            if fault.probability < 1 and self._random.random() >= fault.probability:
                continue
            fault.hits += 1
            hit.append(fault)
        return hit

    async def apply(self, hit: list[Fault], at: Side) -> None:
        """Let the rules of one side happen, the partition included.

        Raises:
            ConnectionLostError: the client gets no answer.
            StatusError: it gets this one.
        """
        await self.reach()
        for fault in hit:
            if fault.at == at:
                await _happen(fault.effect)

    def partition(self, mode: PartitionMode = "hang") -> None:
        """Cut the server off: packets vanish (`hang`), or connections are refused and reset (`reset`)."""
        self._partition = mode
        self._healed = anyio.Event()
        if mode == "reset":
            self.connections.drop()

    def heal(self) -> None:
        """Make it reachable again; connections that hung in the partition are dead."""
        self._partition = None
        self._healed.set()

    async def reach(self) -> None:
        """Get through to the other side, in either direction.

        Raises:
            ConnectionLostError: a partition was in the way.
        """
        if self._partition is None:
            return
        if self._partition == "hang":
            await self._healed.wait()
        raise ConnectionLostError("partitioned")


async def _happen(effect: Effect) -> None:
    match effect:
        case Delay(seconds):
            await anyio.sleep(seconds)
        case Refuse(code, retry_after):
            raise _refusal(code, retry_after)
        case Reset():
            raise ConnectionLostError("reset")
        case Hang():
            await anyio.sleep_forever()
        case _:
            return  # what concerns watches happens in their stream


def _refusal(code: int, retry_after: int | None) -> StatusError:
    message = f"injected {code}"
    if retry_after is None:
        return StatusError(code, REASONS.get(code, ""), message)
    details = {"retryAfterSeconds": retry_after}
    headers = {"Retry-After": str(retry_after)}
    return StatusError(code, REASONS.get(code, ""), message, details=details, headers=headers)
