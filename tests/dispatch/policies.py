"""The dispatchers, as the simulated engine asks them: here those that need no facts of workers' queues."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from multikueue.core.dispatchers.dispatcher import AllAtOnce, Candidate, Candidates, Dispatcher, Nomination
from multikueue.core.dispatchers.incremental import Incremental
from multikueue.core.dispatchers.scored.profile import Profile
from multikueue.core.model.names import ClusterName, Json
from tests.dispatch.clock import moment
from tests.dispatch.kueue import Copy
from tests.dispatch.manager import Manager, Policy
from tests.dispatch.scored import ScoredPolicy
from tests.dispatch.sites import Site
from tests.dispatch.workloads import Workload

_NOTHING: Final[Json] = {}
"""Neither of them looks at the Workload."""


class Plain:
    """Tells a dispatcher who can be reached, and who has been asked."""

    def __init__(self, manager: Manager, dispatcher: Dispatcher) -> None:
        self._manager = manager
        self._dispatcher = dispatcher
        self._known = {
            (name, available, nominated): Candidate(ClusterName(name), available=available, nominated=nominated)
            for name in manager.sites
            for available in (True, False)
            for nominated in (True, False)
        }

    def nominate(self, workload: Workload) -> Nomination:
        """See `manager.Policy`."""
        workers = tuple(
            self._known[site.name, site.reachable, site.name in workload.nominated]
            for site in self._manager.by_queue[workload.job.queue]
        )
        candidates = Candidates(workers, workload.nominated, workload.message)
        return self._dispatcher.nominate(_NOTHING, candidates, moment(self._manager.clock.now))

    def settled(self, workload: Workload) -> None:
        """See `manager.Policy`."""

    def ended(self, workload: Workload, site: Site, copy: Copy) -> None:
        """See `manager.Policy`."""

    def touched(self, site: Site) -> None:
        """See `manager.Policy`."""


Build = Callable[[Manager], Policy]


def all_at_once(manager: Manager) -> Policy:
    """The project's default."""
    return Plain(manager, AllAtOnce())


def incremental(manager: Manager) -> Policy:
    """Three more every five minutes."""
    return Plain(manager, Incremental())


def scored(manager: Manager) -> Policy:
    """The one that knows where."""
    return ScoredPolicy(manager, Profile())


POLICIES: Final[Mapping[str, Build]] = {"all-at-once": all_at_once, "incremental": incremental, "scored": scored}
