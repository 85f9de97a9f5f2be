"""Executing effects: the request for each of them, and what is remembered of its answer."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from http import HTTPStatus
from typing import Final

import attrs

from multikueue.core.model.conditions import timestamp
from multikueue.core.model.kinds import CONFIG_MAP, POD, REFUSED, WORKLOAD, worker_reference
from multikueue.core.model.labels import ASKED_AGAIN_ANNOTATION, ToldFinding
from multikueue.core.model.names import ClusterName, Json, ObjectKey, Resource
from multikueue.core.model.objects import dig, is_terminating, namespace_of
from multikueue.core.model.outside_text import without_addresses
from multikueue.core.model.refusal_facts import RefusalFacts
from multikueue.core.model.worker_kueue import told_dropped, topology_of
from multikueue.core.model.worker_states import NAME_TAKEN
from multikueue.core.model.workload_facts import WORKLOADS
from multikueue.core.model.workloads import job_reference
from multikueue.core.workload import effects
from multikueue.errors import (
    AlreadyExists,
    ApiError,
    Conflict,
    DependencyUnavailable,
    Forbidden,
    Invalid,
    NotFound,
    NotSent,
)
from multikueue.logs import get_logger
from multikueue.protocols import ManagerHook, Propagation, Subresource
from multikueue.runtime.caches.workload_memory import WorkloadMemory
from multikueue.runtime.contested_fields import ContestedFields, contested
from multikueue.runtime.create_conflicts import CERTAIN_AFTER, PASSING_FOR, facts_of
from multikueue.runtime.dependency_copies import DependencyCopies
from multikueue.runtime.events import EventRecorder
from multikueue.runtime.origin import Origin, coming_from
from multikueue.runtime.target import Target, has_origin_of, is_the_copy, object_there

log = get_logger(__name__)

_CREATIONS: Final = (effects.CreateWorkload, effects.CreateJob)
PODS_ASKED: Final = 500
"""Pods that are listed to find one that has not ended: of more, the first page tells."""
TELL_AFTER: Final = 1.0
"""Seconds for which a name must be taken by an object that informers do not show, until there is an event."""


@attrs.define(eq=False)
class EffectExecutor:
    """Executes effects."""

    target: Callable[[ClusterName], Target | None]
    """Finds the cluster of a name, `MANAGER` included; None if it is not connected."""
    events: EventRecorder
    memory: WorkloadMemory
    hook: ManagerHook | None = None
    ask_again: Callable[[ObjectKey], object] = lambda _: None
    """Has a Workload planned again that a worker had refused."""
    origin: Origin | None = None
    """What copies say of where they come from; None: nothing."""
    _contested: ContestedFields = attrs.field(factory=ContestedFields, init=False)
    _dependencies: DependencyCopies = attrs.field(factory=DependencyCopies, init=False)

    async def execute(self, workload: Json | None, part: tuple[effects.Effect, ...], *, again: bool = False) -> None:
        """Execute effects one after the other, up to the first that fails and is not optional.

        A deletion `unless_stopped` is left out unless the effect before it was refused. A first conflict is no refusal.

        Args:
            workload: the manager's Workload they are for; None if it is gone.
            part: the effects of one cluster.
            again: whether what was sent there for this Workload last has failed, too.

        Raises:
            ApiError: an effect failed; those after it were not tried, unless it is optional.
        """
        failed: ApiError | None = None
        for effect in part:
            may_stop = failed is None or (isinstance(failed, Conflict) and not again)
            if isinstance(effect, effects.DeleteJob) and effect.unless_stopped and may_stop:
                continue
            try:
                await self._execute(workload, effect)
            except ApiError as error:
                if not (isinstance(effect, effects.ApplyStatus | effects.PatchWorkload) and effect.optional):
                    raise
                failed = error
        if failed is not None:
            raise failed

    async def _execute(self, workload: Json | None, effect: effects.Effect) -> None:
        match effect:
            case effects.AnnounceWorkload():
                about = (workload, job_reference(workload) if effect.on_job else None) if workload else (effect.about,)
                for regarding in filter(None, about):
                    self._emit(regarding, effect.type, effect.note, finding=effect.finding)
            case effects.CountAdmitted():
                if self.hook is not None:
                    self.hook.admitted(effect.cluster_queue, effect.worker)
            case effects.CountRejections():
                if self.hook is not None:
                    for worker, reason in effect.reasons:
                        self.hook.rejected(worker, reason)
            case _:
                target = self.target(effect.cluster)
                if target is None:
                    raise NotSent(f'cluster "{effect.cluster}" is not connected')
                await self._write(target, effect, workload)

    async def _write(self, target: Target, effect: effects.Effect, workload: Json | None) -> None:
        effect = await self._from_here(effect, workload)
        match effect:
            case effects.ApplyStatus(object=body, field_manager=manager):
                written = await target.client.apply(WORKLOAD, body, field_manager=manager, subresource="status")
                target.workloads.wrote(written)
            case effects.PatchJobStatus() | effects.PatchJob():
                await self._patch_job(target, effect, workload)
            case effects.CreateWorkload() if workload is not None:
                facts = WORKLOADS.of(workload)
                target.want(facts.owner.gvk if facts.owner is not None else None)
                await self._create_workload(target, effect, workload)
                if self.hook is not None:
                    self.hook.dispatched(facts.cluster_queue, effect.cluster)
            case effects.CreateJob() if workload is not None:
                target.want(effect.resource.gvk)
                await self._create_job(target, effect, workload)
            case effects.PatchWorkload(key=key, patch=patch):
                written = await target.client.merge_patch(WORKLOAD, key, patch)
                target.workloads.wrote(written)
                asked, got = dig(patch, "spec", "priority"), dig(written, "spec", "priority")
                if asked not in (None, got):  # else it would be sent again at once, and for ever
                    raise Invalid(f"{effect.cluster}: something there gives Workload {key} the priority {got}")
            case effects.DeleteJob() | effects.DeleteWorkload():
                await self._remove(target, effect, workload)
            case effects.LookForPods() if workload is not None:
                await self._look_for_pods(target, effect, workload)
            case effects.DependencyEffect() if workload:
                await self._supply(target, effect, workload)

    async def _remove(
        self, target: Target, effect: effects.DeleteJob | effects.DeleteWorkload, workload: Json | None
    ) -> None:
        """Delete one object; a refusal, as by a webhook, is told: what is not removed holds up the next attempt."""
        resource = effect.resource if isinstance(effect, effects.DeleteJob) else WORKLOAD
        try:
            propagation = effect.propagation if isinstance(effect, effects.DeleteJob) else "Background"
            done = await _delete(target, resource, effect.key, effect.uid, propagation, version=effect.version or None)
        except ApiError as error:
            if HTTPStatus.BAD_REQUEST <= error.status < HTTPStatus.INTERNAL_SERVER_ERROR and not error.retryable:
                note = f'{_where(effect.cluster)} refuses the deletion of {resource} "{effect.key}": {error}'
                if workload is not None:
                    self._emit(workload, "Warning", note, effect.cluster)
                log.warning(
                    "deletion refused", cluster=effect.cluster, object=f"{resource} {effect.key}", error=str(error)
                )
            raise
        if done and workload is not None and isinstance(effect, effects.DeleteJob) and effect.note:
            await self._execute(workload, effects.AnnounceWorkload("Normal", effect.note, on_job=True))

    async def _from_here(self, effect: effects.Effect, workload: Json | None) -> effects.Effect:
        """The effect; of a creation, with what the object says of where it comes from."""
        if self.origin is None or workload is None or not isinstance(effect, _CREATIONS):
            return effect
        said = await self.origin.of(namespace_of(workload))
        return attrs.evolve(effect, object=coming_from(effect.object, said))

    async def _patch_job(
        self, target: Target, effect: effects.PatchJobStatus | effects.PatchJob, workload: Json | None
    ) -> None:
        behind_status = isinstance(effect, effects.PatchJobStatus) and effect.subresource
        part: Subresource = "status" if behind_status else ""
        resource, key = effect.resource, effect.key
        cache = target.cache_of(resource.gvk)
        of_copy = isinstance(effect, effects.PatchJob)
        if of_copy and self._contested.is_left_to_others(effect.cluster, effect.patch):
            await self._tell_contested(target, effect, workload)
            return
        try:
            written = await target.client.merge_patch(resource, key, effect.patch, subresource=part)
            if cache is not None:
                cache.patched(effect.patch, written)
            if of_copy:
                self._contested.made(effect.cluster, effect.patch)
        except ApiError as error:
            in_vain = isinstance(error, Invalid) and behind_status
            if not of_copy and cache is not None and not isinstance(error, Conflict):
                cache.refused(key, effect.patch, may_pass=not in_vain)
            is_gone = isinstance(error, NotFound) and error.name == key.name
            # No event for a job that is gone, but for a kind without that subresource: its CRD came after discovery.
            if workload is not None and isinstance(error, (Forbidden, Invalid, NotFound)) and not is_gone:
                what = "the status of " if isinstance(effect, effects.PatchJobStatus) else "a change of "
                note = f'{_where(effect.cluster)} refuses {what}{resource} "{key}": {error}'
                self._emit(
                    workload, "Warning", note, effect.cluster, finding=ToldFinding.STATUS_REFUSED if in_vain else None
                )
            raise

    async def _tell_contested(
        self, target: Target, effect: effects.PatchJobStatus | effects.PatchJob, workload: Json | None
    ) -> None:
        """Tell once that something there sets what we set back, and that we do so no more."""
        if self._contested.is_reported(effect.cluster, effect.patch):
            return
        what = contested(effect.patch, await target.client.get(effect.resource, effect.key))
        of = f'{effect.resource} "{effect.key}" on worker cluster "{effect.cluster}"'
        log.warning(
            "a field of a copy is left to who else sets it", cluster=effect.cluster, key=str(effect.key), field=what
        )
        if workload is not None:
            note = f"{of}: {what} does not stay as here: it is set back no more until it is changed here"
            self._emit(workload, "Warning", note, finding=ToldFinding.CONTESTED_FIELD)

    async def _create_workload(self, target: Target, effect: effects.CreateWorkload, workload: Json) -> None:
        created = await self._create(target, effect, WORKLOAD, workload)
        was_here = self.memory.last_worker(ObjectKey.of(workload)) == effect.cluster
        target.create_conflicts.made(ObjectKey.of(workload), WORKLOADS.of(workload).attempt, was_here=was_here)
        target.stored(effect.object, created)
        if note := told_dropped(effect.cluster, WORKLOAD, topology_of(effect.object), created):
            self._emit(workload, "Warning", note)
        target.workloads.wrote(created)

    async def _create_job(self, target: Target, effect: effects.CreateJob, workload: Json) -> None:
        """Create the job, and remember whether it may exist."""
        where = effect.cluster, ObjectKey.of(workload), ObjectKey.of(effect.object)
        still_unanswered = self.memory.sending(*where)
        try:
            created = await self._create(target, effect, effect.resource, workload)
        except ApiError as error:
            if _has_no_effect(error):
                self.memory.not_created(*where, still_unanswered=still_unanswered)
            else:
                self.memory.unanswered(*where)
            raise
        self.memory.created(*where, WORKLOADS.of(workload).attempt)
        if note := told_dropped(effect.cluster, effect.resource, effect.object, created):
            self._emit(workload, "Warning", note)
        if (cache := target.cache_of(effect.resource.gvk)) is not None:
            cache.wrote(created)

    async def _create(
        self, target: Target, effect: effects.CreateWorkload | effects.CreateJob, resource: Resource, workload: Json
    ) -> Json:
        key = ObjectKey.of(effect.object)
        try:
            created = await target.client.create(resource, effect.object)
        except ApiError as error:
            if not error.status:  # no answer is no refusal
                raise
            existing = await object_there(target, resource, key) if isinstance(error, AlreadyExists) else None
            if existing is None or not is_the_copy(existing, effect.object):
                if existing is not None and has_origin_of(existing, effect.object) and is_terminating(existing):
                    error = Conflict(NAME_TAKEN.why, status=error.status)
                refused = self._refused(target, effect.cluster, resource, key, workload, error)
                if isinstance(refused, AlreadyExists):
                    refused.foreign = existing is not None and not has_origin_of(existing, effect.object)
                raise refused from error
            created = existing
        if (waiting := target.create_conflicts.created(resource, ObjectKey.of(workload))) is not None:
            self.ask_again(waiting)
        return created

    async def _look_for_pods(self, target: Target, effect: effects.LookForPods, workload: Json) -> None:
        """Remember which pods of an earlier attempt have not ended; where they may not be listed, none is known.

        Whatever else fails is told, and tried again: nobody is offered the job meanwhile.
        """
        running: tuple[Json, ...] = ()
        try:
            listed = await target.client.list(
                POD, namespace=effect.namespace, label_selector=effect.selector, limit=PODS_ASKED
            )
            running = tuple(pod for pod in listed.items if dig(pod, "status", "phase") not in ("Succeeded", "Failed"))
        except Forbidden as error:
            note = (
                f'worker cluster "{effect.cluster}" does not show whether pods of an earlier attempt still end: {error}'
            )
            self._emit(workload, "Warning", note)
        except ApiError as error:
            ends = "whether pods of an earlier attempt still end, and the job waits for that"
            self._emit(workload, "Warning", f'worker cluster "{effect.cluster}" does not answer {ends}: {error}')
            raise
        self.memory.saw_pods(effect.cluster, ObjectKey.of(workload), effect.attempt, running[:1])

    async def _supply(self, target: Target, effect: effects.DependencyEffect, workload: Json) -> None:
        """Have on a worker what the job needs, and remember that, or that it cannot be had there."""
        of, here = ObjectKey.of(workload), self.target(effects.MANAGER)
        if here is None:
            raise NotSent("the manager cluster is not connected")
        said = await self.origin.of(of.namespace) if self.origin is not None else ""
        try:
            owned_by = await self._dependencies.supply(here.client, target, effect, of.namespace, said)
        except DependencyUnavailable as error:
            raise self._refused(target, effect.cluster, CONFIG_MAP, of, workload, error) from error
        if owned_by:
            self.memory.supply(effect.cluster, of, owned_by)
        if (waiting := target.create_conflicts.created(CONFIG_MAP, of)) is not None:
            self.ask_again(waiting)

    def _refused(
        self, target: Target, cluster: str, resource: Resource, key: ObjectKey, workload: Json, error: ApiError
    ) -> ApiError:
        """Note that a worker refuses an object, and emit an event."""
        taken = isinstance(error, AlreadyExists)
        why = str(error).removeprefix(f"{cluster}: create {resource}: ")
        note = f'worker cluster "{cluster}" refuses {resource} "{key}": {error}'
        if taken:
            why = "its name is taken by an object that is not known as a copy of ours"
            note = (
                f'{resource} "{key}" exists on worker cluster "{cluster}" and is not known as a copy of ours: '
                "if it is somebody else's, rename or delete one of the two"
            )
        tell_after, thing = TELL_AFTER if taken else 0.0, f"{resource} {key}"
        if isinstance(error, DependencyUnavailable):
            tell_after, thing = CERTAIN_AFTER if error.passing else 0.0, "what the job needs"
            note = f'worker cluster "{cluster}" cannot run the job: {error}'
        conflicts, of = target.create_conflicts, ObjectKey.of(workload)
        lasted = conflicts.met(resource, of, key, error, why)
        refused = AlreadyExists(note, status=error.status, reason=error.reason) if taken else error
        # Right after a lost reply the taken name is that of our own object, which the watch is about to show.
        if not error.retryable and lasted >= tell_after:
            left = conflicts.refusal(resource, of, own=())
            self._emit(workload, "Warning", note, cluster, facts_of(error), left.left if left is not None else None)
            if self.hook is not None:
                self.hook.refused(ClusterName(cluster), error.reason or type(error).__name__)
            wait = {"asked_again_in": round(left.left.total_seconds())} if left is not None else {}
            if conflicts.is_news(resource, of, key):
                log.warning("refused", cluster=cluster, workload=str(of), object=thing, error=why, **wait)
            refused.reported = left is not None
        elif lasted >= CERTAIN_AFTER and (conflicts.is_news(resource, of, key) or lasted >= PASSING_FOR):
            # It is tried in place at first, and the check does not tell of it yet; then after each back-off.
            waits = conflicts.refusal(resource, of, own=())
            left_of_it = waits.left if waits is not None else timedelta(seconds=max(0.0, PASSING_FOR - lasted))
            self._emit(workload, "Warning", note, cluster, facts_of(error), left_of_it)
        return refused

    def _emit(
        self,
        workload: Json,
        type: str,
        note: str,
        refused_by: str = "",
        why: RefusalFacts | None = None,
        asked_again_in: timedelta | None = None,
        finding: ToldFinding | None = None,
    ) -> None:
        """Emit an event into the job's namespace, without the addresses that a server's words may have."""
        action, related = (REFUSED, worker_reference(refused_by)) if refused_by else ("MultiKueue", None)
        due = None if asked_again_in is None else self.events.clock() + asked_again_in
        noted = {} if due is None else {ASKED_AGAIN_ANNOTATION: timestamp(due)}
        noted |= why.annotations if why is not None else {}
        self.events.emit(workload, type, "MultiKueue", action, without_addresses(note), related, noted, finding)


def _where(cluster: ClusterName) -> str:
    return f'worker cluster "{cluster}"' if cluster else "the manager cluster"


def _has_no_effect(error: ApiError) -> bool:
    """Whether a creation that failed so has made nothing, now or later.

    A taken name says so only if the object was read and is somebody else's: requests are sent twice, by proxies too,
    and then the second one finds what the first has made.
    """
    return error.foreign if isinstance(error, AlreadyExists) else error.did_nothing


async def _delete(
    target: Target,
    resource: Resource,
    key: ObjectKey,
    uid: str,
    propagation: Propagation,
    *,
    version: str | None,
) -> bool:
    """Delete exactly this object. One that has still to end stays in the cache as the server answered it.

    Returns:
        Whether this request deletes it: it was there, and as it was seen.
    """
    left, is_served, done = None, True, True
    try:
        left = await target.client.delete(resource, key, uid=uid, resource_version=version, propagation=propagation)
    except NotFound as error:
        is_served, done = error.name == key.name, False
    except Conflict:
        return False  # another object has the name by now, or it has changed: its event leads to the next decision
    cache = target.workloads if resource == WORKLOAD else target.cache_of(resource.gvk)
    if cache is not None and left is not None:
        cache.leaves(left)
    elif cache is not None:
        cache.removed(key, uid, is_certain=is_served)
    return done
