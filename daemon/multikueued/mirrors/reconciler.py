"""Brings the mirror of one pod about: it reads the caches, plans, and sends the requests of that plan.

Keys are those of pods on workers (`pod_key`). Nothing waits for it, and it has a pace and connections of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Final

import anyio
import attrs

from multikueue.core.machinery.action import Action
from multikueue.core.model.kinds import POD
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import (
    controller_of,
    digest,
    is_terminating,
    name_of,
    namespace_of,
    reference_to,
    uid,
    version_of,
)
from multikueue.errors import ApiError, Conflict, NotFound
from multikueue.protocols import ApiClient
from multikueue.runtime.caches.manager_cluster import ManagerCluster
from multikueue.runtime.caches.mutation_cache import MutationCache
from multikueue.runtime.loop import loop_time
from multikueued.mirror_names import PROOF
from multikueued.mirrors.mirror import LARGEST, Run, Shows, is_too_large, mirror_status, pod_key, shows
from multikueued.mirrors.owners import Owners
from multikueued.mirrors.plan import Create, Delete, PatchStatus, Refuse, Seen, Step, plan
from multikueued.mirrors.proof import proof, proven
from multikueued.mirrors.removing import end_mirror
from multikueued.mirrors.tally import Held, Pace, Places, Refusals
from multikueued.mirrors.worker_pods import Sight
from multikueued.reports.worker_facts import ShownPods

STEPS: Final = 4
"""Of one turn: another's mirror goes, the mirror is made, and gets its status."""
BETWEEN_PATCHES: Final = 1.0
"""Seconds between two writes of one mirror's status."""
A_SECOND: Final = 100
"""Requests to the manager, of all mirrors together."""
WHILE_BUSY: Final = 10
"""How many times slower they come while Workloads are looked at or wait for that: both take the same CPU."""
TRIED_AGAIN: Final = 600.0
"""Seconds after which what was refused is tried once more, whatever its status: a quota may have room by then."""
NO_PLACE: Final = "NoPlace"
"""Why a pod is not shown for which there is no room, or whose name is taken: a word for machines."""

TOO_LARGE: Final = f"without its commands, too, it takes more than {LARGEST >> 10} KiB"

Tell = Callable[[Json, str, str], None]
"""Told of a pod that is not shown: a reference to the job, a word for machines, and the reason for people."""


@attrs.define(eq=False)
class MirrorReconciler:
    """Implements `multikueue.protocols.Reconciler` for pods on workers."""

    client: ApiClient
    manager: ManagerCluster
    mirrors: MutationCache
    sight: Callable[[str], Sight]
    owners: Owners
    places: Places
    held: Held
    key: bytes = attrs.field(repr=False)
    """By which mirrors are proven."""
    origin: str
    refused: Tell
    busy: Callable[[], bool]
    """Whether Workloads are looked at, or wait for that."""
    _pods: dict[ObjectKey, set[ObjectKey]] = attrs.field(factory=dict, init=False)
    """By job of the manager, the keys of its pods: who has to be looked at when it changes."""
    _jobs: dict[ObjectKey, ObjectKey] = attrs.field(factory=dict, init=False)
    """By pod, its job."""
    _refusals: Refusals = attrs.field(factory=Refusals, init=False)
    _deleted: set[str] = attrs.field(factory=set, init=False)
    """UIDs of mirrors that we have deleted, and whose end no watch has shown yet."""
    _made: dict[str, Shows] = attrs.field(factory=dict, init=False)
    """By UID, as the answers said, what the mirrors show that this process has made: these alone get a proof, and for
    nothing else that they may say by then."""
    _sent: dict[str, tuple[str, str]] = attrs.field(factory=dict, init=False)
    """By mirror, the status that was written last, and what the server made of it."""
    _written: dict[str, int] = attrs.field(factory=dict, init=False)
    """By mirror, the version that our last write gave it."""
    _patched: dict[str, float] = attrs.field(factory=dict, init=False)
    """By mirror, when its status was written last, on the loop's clock."""
    _pace: Pace = attrs.field(factory=lambda: Pace(1 / A_SECOND), init=False)

    async def reconcile(self, key: ObjectKey) -> Action | None:
        """See `Reconciler`."""
        for _ in range(STEPS):
            seen = await self._seen(key)
            step = self._stale(key, seen) or plan(seen, self.origin)
            if step is None:
                return None
            if isinstance(step, PatchStatus) and (left := self._too_early(step, seen)) is not None:
                return left
            await self._perform(step, seen)
            if isinstance(step, Refuse | PatchStatus):
                return None  # what changes from here on has an event
        return Action.after(BETWEEN_PATCHES)

    async def _seen(self, key: ObjectKey) -> Seen:
        sight, there = self.sight(key.namespace), ObjectKey.parsed(key.name)
        pod = sight.pods.get(there) if sight.pods is not None else None
        run, current = None, False
        if pod is not None and sight.known is not None:
            run, current = await self.owners.run_of(key.namespace, sight.known, pod)
        mirror = next((shown for shown in self._shown(key) if pod is None or shows(shown)[2] == uid(pod)), None)
        in_the_way, room = None, ""
        if run is not None and pod is not None:
            job = self._jobs[key] = ObjectKey.of(run.job)
            self._pods.setdefault(job, set()).add(key)
            in_the_way, room = self._place(run, name_of(pod), mirror)
            room = TOO_LARGE if is_too_large(pod) else room
        return Seen(
            pod,
            run,
            current,
            mirror,
            job_gone=mirror is not None and self._job_gone(mirror),
            in_the_way=in_the_way,
            unseen=sight.pods is None and not sight.removed,
            lost_since=sight.lost_since,
            proven=mirror is not None and proven(self.key, mirror) is not None,
            held=pod is not None and self.held.holds(uid(pod), partial(_digest_of, pod), loop_time()),
            room=room,
        )

    def _place(self, run: Run, name: str, mirror: Json | None) -> tuple[Json | None, str]:
        """What of ours has a name and has to go first; and why there is no place for another one."""
        occupied = self.mirrors.get(ObjectKey(run.namespace, name))
        if occupied is None or occupied is mirror:
            return None, self.places.lack(run.uid)
        if self._is_ours(occupied) and (controller_of(occupied) or {}).get("uid") != run.uid:
            return None, f'another job has a pod "{name}" as well, on {shows(occupied)[0]}'
        return occupied, ""

    def _shown(self, key: ObjectKey) -> list[Json]:
        """Our mirrors that say that they show a pod of this name there."""
        return [mirror for mirror in self.mirrors.of(key) if self._is_ours(mirror)]

    def _is_ours(self, mirror: Json) -> bool:
        return self._made.get(uid(mirror)) == shows(mirror) or proven(self.key, mirror) is not None

    def _stale(self, key: ObjectKey, seen: Seen) -> Delete | None:
        """What says that it shows this pod and does not: it was made by somebody else, by a process that ended before
        it was proven, or for an earlier pod of that name."""
        if seen.unseen:
            return None
        return next((Delete(mirror) for mirror in self.mirrors.of(key) if mirror is not seen.mirror), None)

    def _job_gone(self, mirror: Json) -> bool:
        owner = controller_of(mirror)
        if owner is None:
            return True
        for gvk, cache in self.manager.jobs.items():
            if gvk.kind == owner.get("kind") and gvk.api_version == owner.get("apiVersion"):
                job = cache.get(ObjectKey(namespace_of(mirror), owner.get("name", "")))
                return cache.informer.status.synced and (job is None or uid(job) != owner.get("uid"))
        return False

    def _too_early(self, step: PatchStatus, seen: Seen) -> Action | None:
        """When to look again, if a status is not to be written now; None: it is."""
        mirror_uid, now = uid(step.mirror), loop_time()
        if seen.proven and self._sent.get(mirror_uid) == (digest(step.status), digest(step.mirror.get("status"))):
            return Action.done()  # the server made of it what it has
        left = self._patched.get(mirror_uid, float("-inf")) + BETWEEN_PATCHES - now
        return Action.after(left) if left > 0 else None

    async def _perform(self, step: Step, seen: Seen) -> None:
        if isinstance(step, Refuse):
            self._tell_once(seen, step.why)
            return
        await anyio.sleep(self._pace.wait(loop_time(), WHILE_BUSY if self.busy() else 1))
        match step:
            case Create():
                await self._create(step, seen)
            case PatchStatus():
                await self._patch(step, seen)
            case Delete():
                await self._delete(step.mirror)

    async def _create(self, step: Create, seen: Seen) -> None:
        job_uid, key = step.body["metadata"]["ownerReferences"][0]["uid"], ObjectKey.of(step.body)
        if self.places.lack(job_uid):
            return  # others have taken the last places meanwhile
        self.places.add(key, job_uid)
        try:
            answer = await self.client.create(POD, step.body)
        except ApiError as error:
            self.places.remove(key)
            self._refuse(seen, error)
            return
        self._made[uid(answer)] = shows(step.body)
        self._written[uid(answer)] = version_of(answer)
        self._refusals.forget(shows(step.body)[2])
        self.mirrors.wrote(answer)

    async def _patch(self, step: PatchStatus, seen: Seen) -> None:
        mirror, mirror_uid = step.mirror, uid(step.mirror)
        worker, there, pod_uid = shows(mirror)
        said = proof(self.key, mirror_uid=mirror_uid, worker=worker, worker_pod=str(there), worker_pod_uid=pod_uid)
        # The UID: else a pod that somebody has put in its place meanwhile would be proven.
        patch: Json = {"metadata": {"uid": mirror_uid, "annotations": {PROOF: said}}, "status": step.status}
        self._patched[mirror_uid] = loop_time()
        try:
            answer = await self.client.merge_patch(POD, ObjectKey.of(mirror), patch, subresource="status")
        except (NotFound, Conflict):
            return  # its end, or what has taken its place, comes by the watch
        except ApiError as error:
            self._refuse(seen, error)
            if step.status and not seen.proven:  # its logs can be read, whatever its status says
                await self._patch(PatchStatus(mirror, {}), seen)
            return
        self._sent[mirror_uid] = digest(step.status), digest(answer.get("status"))
        self._written[mirror_uid] = version_of(answer)
        self.mirrors.wrote(answer)
        if step.status:
            self.held.forget(pod_uid)
            self._refusals.forget(pod_uid)

    async def _delete(self, mirror: Json) -> None:
        if not is_terminating(mirror):
            self._deleted.add(uid(mirror))
        await end_mirror(self.client, mirror)
        self.mirrors.removed(ObjectKey.of(mirror), uid(mirror))
        self.forget(mirror)
        if is_terminating(mirror):  # somebody else has deleted it
            self.was_removed(mirror)

    def _refuse(self, seen: Seen, error: ApiError) -> None:
        """Note that a pod is not shown as it is; what may pass is tried again with a back-off."""
        if error.retryable:
            raise error
        if seen.pod is not None:
            self.held.hold(uid(seen.pod), _digest_of(seen.pod), loop_time() + TRIED_AGAIN)
        reason = error.reason or type(error).__name__
        self._count(seen, reason)
        self._tell(seen, reason, str(error))

    def _tell_once(self, seen: Seen, why: str) -> None:
        if self._count(seen, NO_PLACE):
            self._tell(seen, NO_PLACE, why)

    def _count(self, seen: Seen, reason: str) -> bool:
        """Whether that was not counted yet."""
        if seen.pod is None or seen.run is None:
            return False
        return self._refusals.add(uid(seen.pod), seen.run.worker, reason)

    def _tell(self, seen: Seen, reason: str, why: str) -> None:
        if (run := seen.run) is not None:
            reference = reference_to(run.job, run.gvk)
            about = {field: reference.pop(field) for field in ("name", "uid")} | {"namespace": run.namespace}
            self.refused({**reference, "metadata": about}, reason, why)

    def is_known(self, mirror: Json) -> bool:
        """Whether a version of a mirror is that of our last write, or an earlier one: the answer has shown it."""
        return version_of(mirror) <= self._written.get(uid(mirror), -1)

    def forget(self, mirror: Json) -> None:
        """A mirror is gone."""
        self.places.remove(ObjectKey.of(mirror))
        for known in (self._sent, self._written, self._patched, self._made):
            known.pop(uid(mirror), None)

    def was_removed(self, mirror: Json) -> None:
        """The watch shows that a mirror is gone: if somebody else removed it, it is not made again for the same."""
        self.forget(mirror)
        if uid(mirror) in self._deleted:
            self._deleted.discard(uid(mirror))
            return
        worker, there, pod_uid = shows(mirror)
        pods = self.sight(worker).pods
        pod = pods.get(there) if pods is not None else None
        if pod is not None and uid(pod) == pod_uid:
            self.held.hold(pod_uid, _digest_of(pod))

    def pod_gone(self, key: ObjectKey, pod: Json) -> None:
        """Forget what is known of a pod."""
        self.held.forget(uid(pod))
        self._refusals.forget(uid(pod))
        job = self._jobs.pop(key, None)
        if job is not None and (pods := self._pods.get(job)) is not None:
            pods.discard(key)
            if not pods:
                del self._pods[job]

    def counted(self) -> Mapping[str, ShownPods]:
        """By worker, how many of its pods are shown, and were refused."""
        return self._refusals.counted(shows(mirror)[0] for mirror in self.mirrors.informer.values())

    def pods_of(self, job: ObjectKey) -> Collection[ObjectKey]:
        """The keys of the pods of a job, and of others of its name."""
        return tuple(self._pods.get(job, ()))


def entries(mirror: Json) -> tuple[str, ...]:
    """The index of mirrors by the pod that they say they show, also of those that say nothing: these go."""
    worker, there, _ = shows(mirror)
    return (str(pod_key(worker, there)),)


def _digest_of(pod: Json) -> str:
    return digest(mirror_status(pod))
