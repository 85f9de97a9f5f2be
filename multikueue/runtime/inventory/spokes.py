"""ManagedClusters that Placements select: their MultiKueueClusters, credentials and permissions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from functools import partial
from typing import Final

import anyio
import attrs

from multikueue.core.config.admission_check import clusters
from multikueue.core.effects import Announce, Apply, Create, Delete, Patch, Write
from multikueue.core.inventory.names import CLUSTER_PERMISSION, kubeconfig_secret, older_secret, synced_secret
from multikueue.core.inventory.ocm_workers.plan import SpokePlan, plan_spoke
from multikueue.core.inventory.ocm_workers.spoke import Spoke, spokes_of
from multikueue.core.inventory.settings import ConnectionSource, SpokeSettings
from multikueue.core.inventory.telling import Told
from multikueue.core.machinery.action import Action
from multikueue.core.model.kinds import MULTIKUEUE_CLUSTER, MULTIKUEUE_CONFIG, SECRET
from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.core.model.objects import name_of, uid
from multikueue.errors import ApiError, Forbidden
from multikueue.kube.informers.informer import Informer
from multikueue.logs import get_logger
from multikueue.protocols import ApiClient
from multikueue.runtime.controller import Controller, KeyQueue, Process
from multikueue.runtime.events import EventRecorder
from multikueue.runtime.inventory.caches import HubCaches
from multikueue.runtime.inventory.executor import Executor
from multikueue.runtime.inventory.selection import PlacementSelector
from multikueue.runtime.inventory.spoke_informers import SpokeInformers
from multikueue.runtime.inventory.spoke_reader import REREAD, SpokeReader

CONCURRENCY: Final = 4
"""Spokes reconciled at a time."""


FORBIDDEN: Final = 30.0
"""Seconds until a write that was forbidden is tried again; each time twice as long, up to `LONGEST`."""
LONGEST: Final = 3600.0
DRAINING: Final = 5.0
"""Seconds between two looks whether a cluster that is not selected any more is still in use."""
_VERBS: Mapping[type[Write], tuple[str, str]] = {
    Create: ("created", "Create"),
    Patch: ("updated", "Update"),
    Delete: ("deleted", "Delete"),
}
"""What logs and events say of each, and the action of the events: those of OCM's addon."""
log = get_logger(__name__)


@attrs.define(eq=False)
class SpokeReconciler:
    """Keeps what a spoke is made of in line with what Placements select."""

    reader: SpokeReader
    executor: Executor
    events: EventRecorder
    settings: SpokeSettings
    clock: Callable[[], datetime]
    problems: dict[str, Told] = attrs.field(factory=dict, init=False)
    """By spoke that is selected or in use, why it is no worker, or is not kept up."""
    _left: dict[str, Told] = attrs.field(factory=dict, init=False)
    """By spoke, what was told to be left there by whoever was taken over from."""
    _refusals: dict[str, int] = attrs.field(factory=dict, init=False)
    """By spoke, how often its last write was forbidden, one time after the other."""

    async def reconcile(self, key: ObjectKey) -> Action:
        """See `Reconciler`. The key is the name of a ManagedCluster."""
        if not self.reader.known:
            return Action.done()  # once it is, all are looked at
        spoke = await self.reader.read(key.name)
        now = self.clock()
        plan = plan_spoke(spoke, self.settings, now)
        tries = self._refusals.get(key.name, 0)
        if not tries:
            self._report(spoke, plan)
        failed = await self.executor.execute(plan.effects, partial(self._written, key.name))
        if failed is not None and isinstance(failed[1], Forbidden) and not isinstance(failed[0], Announce):
            self._report(spoke, attrs.evolve(plan, problem=_forbidden(failed[0], failed[1])))
            self._refusals[key.name] = tries + 1
            return Action.earliest(min(FORBIDDEN * 2 ** min(tries, 8), LONGEST), *self._told_again_in(key.name))
        if tries:
            del self._refusals[key.name]
            self._report(spoke, plan)
        if failed is not None:
            raise failed[1]
        expires = (plan.again - now).total_seconds() if plan.again is not None else None
        rereads = self.settings.source is ConnectionSource.KUBECONFIG and (spoke.wanted or plan.draining)
        told_again = self._told_again_in(key.name)
        return Action.earliest(expires, DRAINING if plan.draining else None, REREAD if rereads else None, *told_again)

    def _told_again_in(self, spoke: str) -> Iterator[float | None]:
        """In how many seconds what is wrong with a spoke, and what is left there, is to be said again."""
        now = self.clock()  # no earlier than when it was said
        return (said[spoke].due_in(now) for said in (self.problems, self._left) if spoke in said)

    def _written(self, spoke: str, effect: Write, obj: Json) -> None:
        """Remember a write until the caches show it, log it, and say so in an event."""
        key, cache, kind = ObjectKey.of(obj), self.reader.caches[effect.resource], effect.resource.gvk.kind
        if isinstance(effect, Delete):
            cache.removed(key, uid(obj))
        else:
            cache.wrote(obj)
        verb, action = _VERBS[type(effect)]
        what = "taken over" if isinstance(effect, Patch) and effect.adopts else verb
        log.info(f"object of a spoke {what}", spoke=spoke, kind=kind, object=str(key))
        if effect.resource == MULTIKUEUE_CLUSTER:
            note = f"MultiKueueCluster {key} of ManagedCluster {spoke} {what}"
            self.events.emit(obj, "Normal", f"MultiKueueCluster{verb.capitalize()}", action, note)

    def _report(self, spoke: Spoke, plan: SpokePlan) -> None:
        """Log a problem when it comes and when it is over, and say it and what is left in events while they last."""
        self._tell_left(spoke, plan.left)
        before, told = self._then(self.problems, spoke.name, plan.problem)
        if told == before:
            return
        if not plan.problem:
            log.info("spoke ready", spoke=spoke.name)
            return
        if plan.problem != before.words:
            log.info("spoke not ready", spoke=spoke.name, why=plan.problem)
        reason = "Conflict" if plan.conflict is not None else "WorkerNotReady"
        for regarding in (spoke.managed, plan.conflict):
            if regarding is not None:
                self.events.emit(regarding, "Warning", reason, "Connect", plan.problem)

    def _tell_left(self, spoke: Spoke, left: str) -> None:
        before, told = self._then(self._left, spoke.name, left)
        if told != before and left and spoke.managed is not None:
            if left != before.words:
                log.warning("objects of a spoke are left", spoke=spoke.name, what=left)
            self.events.emit(spoke.managed, "Warning", "LeftBehind", "Adopt", left)

    def _then(self, said: dict[str, Told], spoke: str, words: str) -> tuple[Told, Told]:
        """What was said last of a spoke before, and what is now; the same: nothing is to be said."""
        before = said.pop(spoke, Told())
        told = before.then(words, self.clock())
        if words:
            said[spoke] = told
        return before, told


def _forbidden(effect: Write | Apply, error: ApiError) -> str:
    """What a person can do where settings have changed, and with them rights: what was made before is still there."""
    made, kind = ObjectKey.of(effect.object), effect.resource
    right = (
        "give the daemon that right again (multikueue rbac manager with the settings of before | kubectl apply -f -)"
    )
    where = f" -n {made.namespace}" if made.namespace else ""
    mend = f", or delete it: kubectl delete {kind} {made.name}{where}" if isinstance(effect, Delete) else ""
    return f"{error}: {right}{mend}"


@attrs.define(eq=False)
class Spokes:
    """The workers that are made for selected ManagedClusters: nothing is done before `run`."""

    client: ApiClient
    permissions: ApiClient
    """Who writes ClusterPermissions."""
    hub: HubCaches
    secrets: Informer
    """Of Kueue's namespace. Both are run by somebody else, and later."""
    selection: PlacementSelector
    settings: SpokeSettings
    process: Process
    informers: SpokeInformers = attrs.field(init=False)
    controller: Controller[ObjectKey] = attrs.field(init=False)
    reconciler: SpokeReconciler = attrs.field(init=False)
    _events: EventRecorder = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        """Build each part from those before it."""
        settings, process = self.settings, self.process
        self.informers = SpokeInformers.build(
            self.client, settings, self.enqueue, self.enqueue_all, fraction=process.fraction
        )
        self._events = EventRecorder(self.client, "multikueue-ocm", process.instance, process.clock)
        reader = SpokeReader(self.client, self.hub, self.secrets, self.informers, self.selection, settings)
        executor = Executor(self.client, self._events, {CLUSTER_PERMISSION: self.permissions})
        self.reconciler = SpokeReconciler(reader, executor, self._events, settings, process.clock)
        self.controller = process.controller("multikueue_spoke", self.reconciler, KeyQueue(), CONCURRENCY)
        for informer in (self.hub.clusters, self.hub.configs, self.secrets):
            informer.subscribe(partial(self._changed, informer.resource))
        self.selection.listen(self.enqueue, self.enqueue_all)

    async def run(self) -> None:
        """Keep the caches and send events until cancelled."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self.informers.run)
            tasks.start_soon(self._events.run)

    def problem(self, cluster: str) -> str:
        """Why a ManagedCluster is no worker; empty: nothing is wrong, or nothing is known."""
        return self.reconciler.problems.get(cluster, Told()).words

    def enqueue(self, spoke: str) -> None:
        """Have a spoke looked at."""
        self.controller.enqueue(ObjectKey("", spoke))

    def enqueue_all(self) -> None:
        """Have all looked at: a kind can be read now, or what is selected has changed."""
        informers = self.informers
        names = [name_of(cluster) for cluster in informers.clusters.values()]
        names += [key.namespace for key in (*informers.accounts.keys(), *informers.permissions.keys())]
        names += [name for worker in self.hub.clusters.values() for name in spokes_of(worker)]
        for name in dict.fromkeys(names):
            self.enqueue(name)

    def _changed(self, resource: Resource, key: ObjectKey, old: Json | None, new: Json | None) -> None:
        """Something that the manager's own caches show has changed."""
        for name in dict.fromkeys(self._concerned(resource, key, [obj for obj in (old, new) if obj is not None])):
            self.enqueue(name)

    def _concerned(self, resource: Resource, key: ObjectKey, objects: Iterable[Json]) -> Iterator[str]:
        if resource == MULTIKUEUE_CLUSTER:
            for changed in objects:
                yield from spokes_of(changed)
        elif resource == MULTIKUEUE_CONFIG:
            for name in (name for config in objects for name in clusters(config)):
                worker = self.hub.clusters.get(ObjectKey("", name))
                yield from spokes_of(worker) if worker is not None else (name,)
        elif resource == SECRET:
            yield from _possible(key.name)


def _possible(secret: str) -> Iterator[str]:
    """The spokes that a Secret of this name may belong to."""
    for naming in (kubeconfig_secret, synced_secret, older_secret):
        before, _, after = naming("\0").partition("\0")
        name = secret[len(before) : len(secret) - len(after)]
        if name and naming(name) == secret:
            yield name
