"""Which workers the daemon can reach, and since when: what it can be held responsible for."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any, Final

import anyio
import attrs

from multikueue.core.machinery.liveness import LOST_AFTER
from multikueue.core.model.kinds import CLUSTER_PROFILE, MULTIKUEUE_CLUSTER, SECRET
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import dig
from multikueue.kube.informers.informer import LOOK_AGAIN
from multikueue.sandbox.apiserver.kinds.resources import ResourceType
from multikueue.sandbox.setting_up import KUEUE_NAMESPACE
from tests.simulation.hostility import Hostility
from tests.simulation.objects import find
from tests.simulation.weather import FINE, Weather
from tests.simulation.world import World

NOTICED: Final = 90.0
"""Seconds for which a worker must have been back for its loss to be over: the daemon asks it once a minute."""

BEFORE: Final = 3 * LOST_AFTER
"""Seconds before a link breaks since when a worker may count as lost, where requests or answers were lost on it: what
did not answer comes back by lists that all get through, and is tried again ever later."""

_UNREADABLE: Final = (Hostility.ODD, Hostility.ENDLESS, Hostility.BOMB)


@attrs.define(eq=False)
class Reach:
    """Follows links, credentials and MultiKueueClusters."""

    world: World
    manager_since: float | None = 0.0
    """Since when the manager's API can be reached; None: it cannot be."""
    absent_since: Callable[[float], float] = lambda _: 0.0
    """Seconds since a time in which no daemon ran: they do not count as the loss of a worker."""
    _since: dict[str, float] = attrs.field(factory=dict)
    _out_since: dict[str, float] = attrs.field(factory=dict)
    _calm_since: dict[str, float] = attrs.field(factory=dict)
    _odd_until: dict[str, float] = attrs.field(factory=dict)
    """Until when workers have shown odd shapes; infinity: they still do. What was unknown then is listed again after a
    while only: no event tells that it is well."""
    _unreadable_until: dict[str, float] = attrs.field(factory=dict)
    """Until when what workers list could not be read; infinity: it still cannot."""

    def listen(self) -> None:
        """Begin to follow."""
        for cluster in self.world.clusters:
            cluster.link.on_change = self._look
        self.world.manager.registry.cluster.listeners.append(self._manager_changed)

    def since(self, worker: str) -> float | None:
        """Since when a worker can be reached; None: it cannot be."""
        return self._since.get(worker)

    def longer_than(self, worker: str, seconds: float) -> bool:
        """Whether a worker has been within reach for longer than that."""
        since = self.since(worker)
        return since is not None and anyio.current_time() - since >= seconds

    def out_for(self, worker: str) -> float | None:
        """For how many seconds a worker has been out of reach; None: it is within reach."""
        return None if worker in self._since else self._lost_for(worker)

    def recently_out_for(self, worker: str) -> float:
        """For how many seconds a worker has been out of reach, or had been until a moment ago; 0 if it has not."""
        if self.longer_than(worker, NOTICED):
            return 0.0
        return self._lost_for(worker) if worker in self._out_since else 0.0

    def readable_for(self, worker: str) -> float:
        """For how many seconds a worker has been within reach, and what it lists could be read; 0: it cannot."""
        since = self.since(worker)
        if since is None:
            return 0.0
        unknown_for = LOOK_AGAIN if worker in self._odd_until else 0.0
        return anyio.current_time() - max(since, self._unreadable_until.get(worker, 0.0)) - unknown_for

    def calm_since(self, cluster: str) -> float:
        """Since when nothing is slow, refused or lost on the way to a cluster; infinity: something is."""
        return max(self._calm_since.get(cluster, 0.0), self.unknown_until(cluster))

    def unknown_until(self, worker: str) -> float:
        """Until when objects of a worker may be unknown because they had odd shapes; minus infinity: none had."""
        return self._odd_until.get(worker, float("-inf")) + LOOK_AGAIN

    def _lost_for(self, worker: str) -> float:
        since = self._out_since.get(worker, 0.0)
        return anyio.current_time() - since - self.absent_since(since)

    def _manager_changed(self, row: ResourceType, old: Json | None, new: Json | None) -> None:
        del old, new
        if row.plural in (SECRET.plural, MULTIKUEUE_CLUSTER.plural, CLUSTER_PROFILE.plural):
            self._look()

    def _look(self) -> None:
        now = anyio.current_time()
        was_calm = {name for name in self.world.workers if now - self.calm_since(name) > LOST_AFTER}
        for cluster in self.world.clusters:
            if not is_calm(cluster.link.weather) or cluster.name in self.world.away:
                self._calm_since[cluster.name] = float("inf")
            elif self._calm_since.get(cluster.name) == float("inf"):
                self._calm_since[cluster.name] = now
        for name, worker in self.world.workers.items():
            hostility = worker.link.weather.hostility
            _follow(self._odd_until, name, hostility is Hostility.ODD, now)
            _follow(self._unreadable_until, name, hostility in _UNREADABLE, now)
        if not self.world.manager.link.is_up:
            self.manager_since = None
        elif self.manager_since is None:
            self.manager_since = now
        for name in self.world.workers:
            if self._is_within_reach(name):
                self._since.setdefault(name, now)
            elif name not in self._out_since or now - self._since.get(name, now) >= NOTICED:
                self._since.pop(name, None)
                self._out_since[name] = now - (0.0 if name in was_calm else BEFORE)
            else:
                self._since.pop(name, None)

    def _is_within_reach(self, worker: str) -> bool:
        link = self.world.workers[worker].link
        if not link.is_up or find(self.world.manager, MULTIKUEUE_CLUSTER, ObjectKey("", worker)) is None:
            return False
        if self.world.inventory is not None:
            return self.world.inventory.leads_to(self.world.workers[worker])
        secret = find(self.world.manager, SECRET, ObjectKey(KUEUE_NAMESPACE, f"{worker}-secret"))
        return secret is not None and link.accepts(_token(secret) or "")


def _follow(until: dict[str, float], worker: str, lasts: bool, now: float) -> None:
    """Note until when something lasts on a worker."""
    if lasts:
        until[worker] = float("inf")
    elif until.get(worker) == float("inf"):
        until[worker] = now


def is_calm(weather: Weather) -> bool:
    """Whether nothing is slow, refused or lost; a webhook may be at work."""
    return attrs.evolve(weather, mutates_copies=False, nameless=0) == FINE


def _token(secret: Json) -> str | None:
    """The token in a kubeconfig that is what `world.kubeconfig` makes; None for any other."""
    try:
        document: Any = json.loads(base64.b64decode(dig(secret, "data", "kubeconfig") or ""))
        cluster, user = document["clusters"][0]["cluster"], document["users"][0]["user"]
    except (ValueError, LookupError, TypeError):
        return None
    return str(user["token"]) if set(user) == {"token"} and set(cluster) == {"server"} else None
