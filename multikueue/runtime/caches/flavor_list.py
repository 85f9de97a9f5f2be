"""The ResourceFlavors of one cluster. They are few and rarely change, so they are listed now and then, not watched."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import anyio
import attrs

from multikueue.core.model.flavors import Flavor, flavor_names, flavors
from multikueue.core.model.kinds import RESOURCE_FLAVOR
from multikueue.core.model.names import Json
from multikueue.errors import ApiError, Forbidden, NotFound
from multikueue.kube.informers.informer import Informer
from multikueue.protocols import Reader

INTERVAL: Final = 300.0
"""Seconds between two lists."""
SOON: Final = 30.0
"""Seconds until the next one where a queue names a flavor that is not known, or the server did not answer."""
PAUSE: Final = 5.0
"""Seconds between two lists at least, whatever queues name."""
DEADLINE: Final = 10.0
"""Seconds for which an answer is waited for; until the first one nothing is offered."""
MOST: Final = 1_000
"""ResourceFlavors of one cluster that are looked at."""


@attrs.define(eq=False)
class FlavorList:
    """What is known of them: nothing where they may not be listed."""

    client: Reader
    queues: Informer
    """Of the ClusterQueues, which name them."""
    on_change: Callable[[], None]
    """Called when `known` or `settled` has changed."""
    known: Mapping[str, Flavor] = attrs.field(factory=dict, init=False)
    """By name, those that can be read."""
    settled: bool = attrs.field(default=False, init=False)
    """Whether they have been asked for once, with an answer or without."""
    _sought: frozenset[str] = attrs.field(default=frozenset(), init=False)
    """Those that queues named at the last list."""
    _named: anyio.Event = attrs.field(factory=anyio.Event, init=False)

    def __attrs_post_init__(self) -> None:
        self.queues.subscribe(lambda _key, _old, new: self._note(new))

    async def run(self) -> None:
        """List them once the queues are known, and again, until cancelled."""
        await self.queues.wait_synced()
        while True:
            self._named, pause = anyio.Event(), SOON
            with anyio.move_on_after(DEADLINE):
                pause = INTERVAL if await self._look() else SOON
            if not self.settled:
                self.settled = True
                self.on_change()
            await anyio.sleep(PAUSE)
            with anyio.move_on_after(pause - PAUSE):
                await self._named.wait()

    async def _look(self) -> bool:
        """List them; return whether nothing more is to be learned for now."""
        self._sought = frozenset[str]().union(*map(flavor_names, self.queues.values()))
        listed, refused = list[Json](), False
        try:
            listed = (await self.client.list(RESOURCE_FLAVOR, limit=MOST)).items
        except (Forbidden, NotFound):
            refused = True
        except ApiError:  # what was known still is
            return False
        known = flavors(listed[:MOST])
        if known != self.known:
            self.known = known
            self.on_change()
        return refused or self._sought <= known.keys()

    def _note(self, queue: Json | None) -> None:
        if queue is not None and not self._sought.issuperset(flavor_names(queue)):
            self._named.set()
