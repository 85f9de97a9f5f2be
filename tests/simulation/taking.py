"""What runs is never taken: whatever is stopped on a worker before it has ended is stopped for a reason with a name."""

from __future__ import annotations

from typing import Final

import anyio
import attrs

from multikueue.core.model.conditions import condition, is_true
from multikueue.core.model.eviction import ADMISSION_CHECK
from multikueue.core.model.kinds import JOB, MULTIKUEUE_CLUSTER, MULTIKUEUE_CONFIG, WORKLOAD
from multikueue.core.model.labels import MOVE_FROM_ANNOTATION
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import annotations_of, dig, is_terminating, uid
from multikueue.core.model.workloads import (
    CheckState,
    check_state,
    cluster_name,
    component_index,
    evictions,
    has_quota,
    is_evicted,
    is_finished,
    nominated,
    owner,
)
from multikueue.sandbox.apiserver.kinds.resources import ResourceType
from multikueue.sandbox.setting_up import CHECK
from tests.simulation.objects import find, is_of_present_attempt, is_ours, objects
from tests.simulation.promises import Place, Promises
from tests.simulation.reach import Reach
from tests.simulation.running import KINDS, Item
from tests.simulation.world import SimCluster, World

EXCUSED: Final = 600.0
"""Seconds for which what a user did to a copy explains what becomes of it."""
BY_MANAGER: Final = "EvictedOnManagerCluster"
"""Reason of the condition by which the daemon has a worker's Kueue stop a job."""


@attrs.define(eq=False)
class Taking:
    """Looks at the moment of each write that takes something: what did the clusters say then?"""

    world: World
    reach: Reach
    promises: Promises
    _excused: dict[tuple[str, ObjectKey], float] = attrs.field(factory=dict)
    """When a user last laid hands on the copies of a Workload on a worker."""
    _disturbed: set[str] = attrs.field(factory=set)
    """UIDs of copies that their own worker has evicted, finished, or that were on their way out."""

    def listen(self) -> None:
        """Begin to watch."""
        self.promises.on_stop = self._stopped
        self.world.manager.registry.cluster.listeners.append(self._manager_changed)
        for worker in self.world.workers.values():

            def changed(row: ResourceType, old: Json | None, new: Json | None, worker: SimCluster = worker) -> None:
                if row.plural == WORKLOAD.plural and is_ours(new or old or {}):
                    self._copy_changed(worker, old, new)

            worker.registry.cluster.listeners.append(changed)

    def excuse(self, worker: str, workload: ObjectKey) -> None:
        """Note that a user lays hands on copies there."""
        self._excused[worker, workload] = anyio.current_time()
        self.promises.removed.add(workload)

    def excused_at(self, worker: str, workload: ObjectKey) -> float | None:
        """When a user laid hands on them last."""
        return self._excused.get((worker, workload))

    def is_excused(self, worker: str, workload: ObjectKey) -> bool:
        since = self.excused_at(worker, workload)
        return since is not None and anyio.current_time() - since < EXCUSED

    def _stopped(self, worker: SimCluster, item: Item, place: Place) -> None:
        """Something has stopped: its worker's Kueue may have a reason as well."""
        copy = find(worker, WORKLOAD, place.workload)
        if copy is None or is_terminating(copy) or _is_disturbed(copy):
            return  # its worker's doing, or that of whoever removed the copy, which was looked at then
        local = find(self.world.manager, KINDS[item.plural].resource, item.key)
        if local is None or is_terminating(local):
            return  # one pod of several is not wanted any more
        if not self._reason(worker, place.workload, copy):
            self.promises.broken.append(f"{item} is stopped on {worker.name} for no reason")

    def _copy_changed(self, worker: SimCluster, old: Json | None, new: Json | None) -> None:
        """A Workload copy is removed, or its worker is asked to stop it."""
        copy = new or old or {}
        if new is not None and _is_disturbed(new):
            self._disturbed.add(new["metadata"]["uid"])
        removed = new is None or (is_terminating(new) and not is_terminating(old or {}))
        asked = new is not None and _is_asked(new) and not _is_asked(old or {})
        if not (removed or asked) or (is_terminating(old or {}) and not asked):
            return
        key = ObjectKey.of(copy)
        if not self.promises.runs(worker.name, key) or copy["metadata"]["uid"] in self._disturbed:
            return
        if not self._reason(worker, key, copy):
            self.promises.broken.append(f"the copy of {key} is taken from {worker.name}, where it runs, for no reason")

    def _manager_changed(self, row: ResourceType, old: Json | None, new: Json | None) -> None:
        """A Workload is sent back, rejected, or gives its quota back."""
        if row.plural != WORKLOAD.plural or new is None or old is None:
            return
        state, key = _taken_off(new), ObjectKey.of(new)
        if not state or _taken_off(old) or check_state(old, CHECK) == CheckState.RETRY:  # Kueue's eviction follows that
            return
        for name in self.world.workers:
            called = cluster_name(old)
            recorded = self.world.place_of(called) in (name, None)
            if recorded and self.promises.runs(name, key) and not self._may_be_given_up(name, new, called or name):
                self.promises.broken.append(f"{key} becomes {state} while it runs on {name}, within reach")

    def _may_be_given_up(self, name: str, workload: Json, called: str) -> bool:
        """Whether a worker's copy is of no use, or was out of reach for long enough; it may be called otherwise."""
        worker, key = self.world.workers[name], ObjectKey.of(workload)
        if annotations_of(workload).get(MOVE_FROM_ANNOTATION) == name:
            return True  # somebody asked for it
        if worker.link.weather.keeps:
            return True  # what runs there is of an earlier attempt, as a webhook refuses to let it go
        copy = find(worker, WORKLOAD, key)
        if copy is None or is_terminating(copy) or copy["metadata"]["uid"] in self._disturbed:
            return True
        if not is_of_present_attempt(worker, copy, workload) or self.is_excused(name, key):
            return True
        return self._is_lost(name, called)

    def _is_lost(self, name: str, called: str) -> bool:
        if find(self.world.manager, MULTIKUEUE_CLUSTER, ObjectKey("", called)) is None:
            return True
        return self.reach.recently_out_for(name) >= self.promises.least_loss

    def _reason(self, worker: SimCluster, key: ObjectKey, copy: Json) -> str:
        """Why something of a Workload may be stopped there now; empty if nothing explains it."""
        workload = find(self.world.manager, WORKLOAD, key)
        if workload is None or is_terminating(workload):
            return "its Workload is deleted"
        job = self._job(workload)
        reasons = {
            "its Kueue has stopped it": job is not None and dig(job, "spec", "suspend") is True,
            "somebody has settled its end": job is not None and uid(job) in self.promises.settled,
            "it has finished": is_finished(workload),
            "it was evicted": is_evicted(workload),
            "it has no quota": not has_quota(workload),
            "it was deactivated": dig(workload, "spec", "active") is False,
            "it is of an earlier attempt": not is_of_present_attempt(worker, copy, workload),
            "it is on another worker": self.world.place_of(cluster_name(workload)) not in (worker.name, None),
            "a user took it": self.is_excused(worker.name, key),
            "its group goes elsewhere, or anew": self._may_move(worker.name, workload),
            "our check was taken off": not dig(workload, "status", "admissionChecks"),
        }
        return next((name for name, holds in reasons.items() if holds), "")

    def _job(self, workload: Json) -> Json | None:
        """The manager's Job of a Workload."""
        of = owner(workload)
        if of is None or of.gvk != JOB.gvk:
            return None
        return find(self.world.manager, JOB, ObjectKey(workload["metadata"]["namespace"], of.name))

    def _may_move(self, name: str, workload: Json) -> bool:
        """Whether the group of a part goes elsewhere, or begins anew, and nothing is recorded of the part: it follows
        its first one.
        """
        if component_index(workload) is None or cluster_name(workload) is not None:
            return False
        parts = [other for other in objects(self.world.manager, WORKLOAD) if owner(other) == owner(workload)]
        if all(self.world.place_of(cluster_name(part)) != name and evictions(part) for part in parts):
            return True  # evicted one after the other: what runs there is of an earlier attempt of each
        config = find(self.world.manager, MULTIKUEUE_CONFIG, ObjectKey("", CHECK)) or {}
        if name not in (dig(config, "spec", "clusters") or ()):
            return True
        first = next((part for part in parts if component_index(part) == 0), None)
        asked = () if first is None else map(self.world.place_of, (cluster_name(first), *nominated(first)))
        return first is not None and name not in asked


def _is_asked(copy: Json) -> bool:
    """Whether the daemon has asked the copy's worker to stop it."""
    target = condition(copy, "DeactivationTarget") or {}
    return target.get("status") == "True" and target.get("reason") == BY_MANAGER


def _taken_off(workload: Json) -> str:
    """How the daemon takes it off its worker; empty: it does not."""
    state = check_state(workload, CHECK)
    by_check = is_true(workload, "Evicted") and (condition(workload, "Evicted") or {}).get("reason") == ADMISSION_CHECK
    return "evicted" if by_check else str(state) if state in (CheckState.RETRY, CheckState.REJECTED) else ""


def _is_disturbed(copy: Json) -> bool:
    """Whether its own worker, or somebody there, has put an end to it."""
    eviction = condition(copy, "Evicted") or {}
    evicted = eviction.get("status") == "True" and not str(eviction.get("reason")).endswith(BY_MANAGER)
    deactivated = dig(copy, "spec", "active") is False and not is_true(copy, "Evicted") and not _is_asked(copy)
    return evicted or deactivated or is_finished(copy)
