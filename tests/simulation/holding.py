"""Quota is held only by what can run, and every wait is told."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Final

import anyio
import attrs

from multikueue.core.model.kinds import WORKLOAD
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.workloads import (
    CheckState,
    check,
    check_state,
    has_quota,
    is_admitted,
    is_evicted,
    is_finished,
)
from multikueue.sandbox.setting_up import CHECK
from tests.simulation.objects import is_ours, objects
from tests.simulation.promises import Promises
from tests.simulation.reach import Reach
from tests.simulation.world import World

IDLE: Final = 600.0
"""Virtual seconds for which a copy may hold quota on a worker while nothing of it runs: as long as a lost worker that
may have the job is waited for, and several attempts."""
UNTOLD: Final = 120.0
"""Virtual seconds for which a Workload may wait without a word."""


@attrs.define(eq=False)
class Holding:
    """Looks again and again, and counts only the time in which a daemon could do something about it."""

    world: World
    reach: Reach
    promises: Promises
    _since: dict[Hashable, float] = attrs.field(factory=dict)

    def check(self, alive_since: float) -> None:
        """Note what has been so for too long.

        Args:
            alive_since: since when a daemon runs.
        """
        now = anyio.current_time()
        manager = self.reach.manager_since
        able = max(alive_since, manager) if manager is not None else float("inf")
        found = {key: (text, max(since, able), bound) for key, text, since, bound in self._found()}
        self._since = {key: self._since.get(key, now) for key in found}
        for key, (text, since, bound) in found.items():
            lasted = now - max(self._since[key], since)
            if lasted > bound:
                self.promises.broken.append(f"{text} for {lasted:.0f} s")

    def _found(self) -> Iterator[tuple[Hashable, str, float, float]]:
        """What should not last: a key, what it is, since when the daemon can see it, and how long it may."""
        for name, worker in self.world.workers.items():
            since = self.reach.since(name)
            for copy in objects(worker, WORKLOAD) if since is not None and name not in self.world.gone else ():
                if is_ours(copy) and _holds(copy) and not self.promises.runs(name, ObjectKey.of(copy)):
                    text = f"the copy of {ObjectKey.of(copy)} holds quota on {name} and does not run"
                    yield (name, copy["metadata"]["uid"]), text, since or 0.0, IDLE
        for workload in filter(_holds, objects(self.world.manager, WORKLOAD)):
            key, uid = ObjectKey.of(workload), workload["metadata"]["uid"]
            if _is_untold(workload):
                yield (uid, "untold"), f"{key} waits without a word", 0.0, UNTOLD
            if check_state(workload, CHECK) is CheckState.READY and not is_admitted(workload):
                yield (uid, "ready"), f"{key} is Ready and is not admitted", 0.0, UNTOLD


def _holds(workload: Json) -> bool:
    return has_quota(workload) and not is_finished(workload) and not is_evicted(workload)


def _is_untold(workload: Json) -> bool:
    entry = check(workload, CHECK)
    return entry is not None and check_state(workload, CHECK) is CheckState.PENDING and not entry.get("message")
