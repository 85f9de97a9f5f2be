"""A scripted server in memory: `Lister` and `Watcher`, on the loop's clock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

import anyio
import anyio.lowlevel
import attrs

from multikueue.core.model.names import Json, Resource
from multikueue.kube.informers.reflector import NOTHING
from multikueue.protocols import Known, ObjectList, WatchEvent


@attrs.frozen
class Told:
    """A watch sends an event after some seconds; with an empty `kind` it only waits."""

    kind: str
    version: str
    name: str = "a"
    after: float = 0.0


@attrs.frozen
class Refused:
    """The server refuses a watch after some seconds."""

    error: Exception
    after: float = 0.0


@attrs.frozen
class Broken:
    """An open watch breaks, after some seconds."""

    error: Exception
    after: float = 0.0


Step: TypeAlias = Told | Refused | Broken


def wait(seconds: float) -> Told:
    """Nothing happens for a while."""
    return Told("", "", after=seconds)


HANGS: Final = "a server that takes requests and does not answer"
"""What `FakeServer.present` is then."""


@attrs.define(eq=False)
class FakeServer:
    """Each list returns the next of `lists`, each watch plays the next of `watches`; the last ones repeat."""

    lists: list[ObjectList | Exception]
    watches: list[list[Step]]
    present: str | Exception = "1000000"
    """Its resourceVersion, as a probe reads it."""
    slow: float = 0.0
    """Seconds that it takes to answer a probe."""
    log: list[tuple[float, str]] = attrs.field(factory=list)
    """The requests, and when they came."""
    _listed: int = 0
    _watched: int = 0

    async def list(
        self, resource: Resource, *, namespace: str = "", label_selector: str = "", limit: int = 0, each: object = None
    ) -> ObjectList:
        if label_selector == NOTHING:
            self.log.append((anyio.current_time(), "probe"))
            await anyio.lowlevel.checkpoint()
            if isinstance(self.present, Exception):
                raise self.present
            if self.present is HANGS:
                await anyio.sleep_forever()
            await anyio.sleep(self.slow)
            return ObjectList([], self.present)
        self.log.append((anyio.current_time(), "list"))
        answer = self.lists[min(self._listed, len(self.lists) - 1)]
        self._listed += 1
        await anyio.lowlevel.checkpoint()
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def watch(
        self,
        resource: Resource,
        on_event: Callable[[WatchEvent], None],
        *,
        resource_version: str,
        namespace: str = "",
        label_selector: str = "",
        idle: float = 90.0,
        on_open: Callable[[], None] | None = None,
        known: Known | None = None,
    ) -> None:
        self.log.append((anyio.current_time(), f"watch {resource_version}"))
        steps = self.watches[min(self._watched, len(self.watches) - 1)]
        self._watched += 1
        if on_open is not None and not (steps and isinstance(steps[0], Refused)):
            on_open()
        for step in steps:
            await anyio.sleep(step.after)
            match step:
                case Refused(error) | Broken(error):
                    raise error
                case Told(kind, version, name) if kind:
                    on_event(WatchEvent(kind, obj(name, version)))


def obj(name: str, version: str, **metadata: object) -> Json:
    """An object."""
    return {"metadata": {"namespace": "n", "name": name, "resourceVersion": version, **metadata}}


def listed(version: str, *objects: Json) -> ObjectList:
    """A list's answer."""
    return ObjectList(list(objects), version)
