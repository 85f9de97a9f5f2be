"""The pods that a job has made, by the UIDs of their owners: Job → Pod, JobSet → Job → Pod, RayJob → RayCluster → Pod.

A name proves nothing: another pod can have it, and so can the job of a namespace that was made again. Nor does an owner
reference that is not the controller's: anybody can have one, and a controller lets go what it has not made.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import attrs

from multikueue.core.model.kinds import EVENT, POD
from multikueue.core.model.names import GVK, Json
from multikueue.core.model.objects import dig, uid
from multikueue.errors import ApiError, Forbidden, NotFound
from multikueued.clusters import ClusterClient
from multikueued.reading.manager_lists import job_resource
from multikueued.reports.events import EVER, EventReport, event_report

_FAILS: Final = "Fail"
"""In the reason of a warning that pods could not be made: FailedCreate, JobCreationFailed, FailedToCreateHeadPod."""
DEPTH: Final = 5
"""How many objects may stand between a pod and its job."""
MAX_KINDS: Final = 16
"""How many kinds of objects in between are read."""


@attrs.define
class Ownership:
    """Which object controls which, as far as it is known."""

    roots: frozenset[str]
    """UIDs of the job's copies."""
    _owners: dict[str, list[Json]] = attrs.field(factory=dict, init=False)
    """References to the controller, by the UID of who has them."""

    def add(self, objects: Iterable[Json]) -> None:
        """Learn of objects."""
        for obj in objects:
            references = dig(obj, "metadata", "ownerReferences") or []
            self._owners[uid(obj)] = [owner for owner in references if owner.get("controller") is True]

    def reaches(self, obj: Json) -> bool:
        """Whether it is one of the roots, or goes back to one."""
        wave, seen = {uid(obj)}, set[str]()
        for _ in range(DEPTH + 1):
            if wave & self.roots:
                return True
            seen |= wave
            wave = {str(owner.get("uid") or "") for known in wave for owner in self._owners.get(known, ())} - seen
        return False

    def unknown(self) -> set[GVK]:
        """The kinds of owners that nothing is known about yet."""
        known = self._owners.keys() | self.roots
        refs = (owner for owners in self._owners.values() for owner in owners)
        return {
            GVK.of(owner.get("apiVersion", ""), owner.get("kind", "")) for owner in refs if owner["uid"] not in known
        }


@attrs.frozen
class Owned:
    """The pods of a job."""

    pods: tuple[Json, ...]
    not_read: tuple[str, ...] = ()
    """Why there may be more pods: what of the objects in between was not looked at."""
    warning: EventReport | None = None
    """Of a job without pods: the last that was said there of it, or of what it has made; None: nothing is known."""


async def owned_pods(worker: ClusterClient, roots: frozenset[str], namespace: str, *, why_none: bool = False) -> Owned:
    """List the pods of a namespace, and what they go back to; if it is asked, look why there are none.

    Raises:
        ApiError: pods cannot be listed.
    """
    pods = (await worker.list(POD, namespace=namespace)).items
    family = Ownership(roots)
    family.add(pods)
    read = set[GVK]()
    unread = await _climb(worker, family, namespace, read) if roots else ()
    owned = tuple(pod for pod in pods if family.reaches(pod))
    warning = await _last_warning(worker, family, namespace, read) if why_none and roots and not owned else None
    return Owned(owned, unread, warning)


async def _climb(worker: ClusterClient, family: Ownership, namespace: str, read: set[GVK]) -> tuple[str, ...]:
    """Learn of the owners of what is known, wave by wave; what was not looked at. `read` are the kinds that were."""
    unread = list[str]()
    for _ in range(DEPTH):
        kinds = sorted(family.unknown() - read)[: MAX_KINDS - len(read)]
        if not kinds:
            break
        for gvk in kinds:
            read.add(gvk)
            resource = await job_resource(worker, gvk)
            if resource is None or not resource.namespaced:
                continue
            try:
                family.add((await worker.list(resource, namespace=namespace)).items)
            except Forbidden:
                unread.append(f"{resource} may not be listed there")
            except NotFound:
                continue
    if more := sorted(family.unknown() - read):
        named = f"{more[0].kind} ({more[0].api_version}){f' and {len(more) - 1} more' if len(more) > 1 else ''}"
        unread.append(f"owners of kind {named} are not looked at, as there are so many")
    return tuple(unread)


async def _last_warning(worker: ClusterClient, family: Ownership, namespace: str, read: set[GVK]) -> EventReport | None:
    """What a controller there says that cannot make the pods: a quota, a policy, a PriorityClass that is not there."""
    try:
        listed = (await worker.list(EVENT, namespace=namespace)).items
    except ApiError:  # it is told beside what is known
        return None
    failures = (event for event in listed if event.get("type") == "Warning" and _FAILS in str(event.get("reason")))
    about = {uid(event): event.get("regarding") or {} for event in failures}
    family.add(
        {"metadata": {"uid": event, "ownerReferences": [{**regarding, "controller": True}]}}
        for event, regarding in about.items()
        if regarding.get("uid") and regarding.get("kind") != POD.gvk.kind
    )
    await _climb(worker, family, namespace, read)
    reports = [event_report(event) for event in listed if uid(event) in about and family.reaches(event)]
    return max(reports, key=lambda report: report.last or EVER, default=None)
