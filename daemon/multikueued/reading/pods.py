"""A job's pods as values: what is printed of them, and whose log is meant. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final

import attrs

from multikueue.core.model import workloads
from multikueue.core.model.conditions import UNSCHEDULABLE, created_at
from multikueue.core.model.names import Json
from multikueue.core.model.objects import annotations_of, dig, is_terminating, name_of, uid
from multikueue.core.model.outside_text import plain
from multikueued.exits import NOT_FOUND, CommandError
from multikueued.reading.owned import Owned
from multikueued.reading.placed_job import PlacedJob
from multikueued.reports.events import EVER
from multikueued.reports.remedies.pod_remedies import PodReason, reason_of_pod

ENDED: Final = ("Succeeded", "Failed")
DEFAULT_CONTAINER: Final = "kubectl.kubernetes.io/default-container"
"""Annotation of a pod: the container that is meant where none is named."""
RETENTION: Final = "Finished copies vanish; set retention.finished to keep them"
_RANK: Final = {"Running": 0, "Succeeded": 1, "Failed": 1}


@attrs.frozen
class PodReport:
    """One pod of a job, on its worker."""

    name: str
    phase: str
    """The pod's; `Terminating` while it is being deleted."""
    ready: int
    """How many of its containers are ready."""
    containers: tuple[str, ...]
    restarts: int
    node: str
    """Empty: none yet."""
    created: datetime | None
    reason: str
    """Why it waits or has failed, in the worker's words."""
    why: PodReason = attrs.field(factory=PodReason)
    """The same in parts."""


@attrs.frozen
class PodList:
    """What `multikueue pods` prints."""

    job: str
    """TYPE/NAME."""
    namespace: str
    worker: str
    pods: tuple[PodReport, ...]
    not_read: tuple[str, ...] = ()
    """Why there may be more pods: what between the job and them was not looked at."""
    warning: str = ""
    """Why none can be made, in the worker's words; empty: it said nothing."""
    has_ended: bool = False
    """Whether there is none any more, as the job has ended."""

    @property
    def why_none(self) -> str:
        """Why there is none; empty: that is not known."""
        return f"it has ended. {RETENTION}" if self.has_ended else self.warning


def pod_list(sought: PlacedJob, owned: Owned) -> PodList:
    """Report the pods of a job that a worker has."""
    reports = tuple(pod_report(pod) for pod in in_order(owned.pods))
    has_ended = workloads.is_finished(sought.workload) and not reports
    warning = "" if has_ended else warning_of(owned)
    return PodList(sought.job, sought.namespace, sought.worker, reports, owned.not_read, warning, has_ended)


def warning_of(owned: Owned) -> str:
    """What was said last where a job has no pods, on one line; empty: nothing is known."""
    said = owned.warning
    return plain(": ".join(filter(None, (said.reason, said.note)))) if said is not None else ""


def pod_report(pod: Json) -> PodReport:
    """Report one pod."""
    statuses, why = dig(pod, "status", "containerStatuses") or [], reason_of_pod(pod)
    return PodReport(
        name=name_of(pod),
        phase="Terminating" if is_terminating(pod) else phase_of(pod),
        ready=sum(bool(status.get("ready")) for status in statuses),
        containers=containers_of(pod),
        restarts=sum(_restarts(status) for status in _all_statuses(pod)),
        node=str(dig(pod, "spec", "nodeName") or ""),
        created=created_at(pod),
        reason=_reason(why),
        why=why,
    )


def restarts_of(pod: Json, container: str) -> int:
    """How often one of its containers has been started again."""
    return sum(_restarts(status) for status in _all_statuses(pod) if status.get("name") == container)


def _all_statuses(pod: Json) -> list[Json]:
    """Those of init containers, too: one that fails again and again is all that its pod does."""
    fields = ("initContainerStatuses", "containerStatuses")
    return [status for field in fields for status in dig(pod, "status", field) or []]


def _restarts(status: Json) -> int:
    return int(status.get("restartCount") or 0)


def _reason(why: PodReason) -> str:
    """In a column: what kubectl shows of a container that all others wait for, needs its name."""
    if why.is_init:
        return why.sentence
    return why.message if why.reason == UNSCHEDULABLE and why.message else why.reason


def troubled(listed: PodList) -> dict[str, PodReason]:
    """What the pods say that do not run, and those that have failed; by name."""
    unready = (pod for pod in listed.pods if pod.phase != "Succeeded" and pod.ready < len(pod.containers))
    return {pod.name: pod.why for pod in unready if pod.why.reason}


def phase_of(pod: Json) -> str:
    """`Pending`, `Running`, `Succeeded`, `Failed` or `Unknown`."""
    return str(dig(pod, "status", "phase") or "Pending")


def has_ended(pod: Json) -> bool:
    """Whether none of its containers will run again."""
    return phase_of(pod) in ENDED


def containers_of(pod: Json) -> tuple[str, ...]:
    """The names of its containers."""
    return tuple(str(container.get("name")) for container in dig(pod, "spec", "containers") or [])


def container_of(pod: Json, wanted: str) -> str:
    """The container whose log is meant: the one named, that of kubectl's annotation, or the first.

    Raises:
        CommandError: it has none of that name.
    """
    listed = containers_of(pod)
    inits = tuple(str(container.get("name")) for container in dig(pod, "spec", "initContainers") or [])
    if wanted and wanted not in (*listed, *inits):
        named = ", ".join((*listed, *(f"{name} (init)" for name in inits)))
        raise CommandError(f'pod {name_of(pod)} has no container "{wanted}", but {named}', NOT_FOUND)
    noted = annotations_of(pod).get(DEFAULT_CONTAINER, "")
    return wanted or (noted if noted in listed else listed[0])


def held_up_by(pod: Json, container: str) -> str:
    """That a container waits for an init container which does not end well, and whose log to ask for; empty: it does
    not."""
    why = reason_of_pod(pod)
    if not why.is_init or why.container == container or why.reason == "PodInitializing":
        return ""
    code = f", exit code {why.exit_code}" if why.exit_code is not None else ""
    said = plain(f"{why.reason}{code}{f': {why.message}' if why.message else ''}")
    name = plain(why.container)
    return f"{plain(container)} starts after init container {name}, which says {said}; -c {name} shows its log"


def created(pod: Json) -> datetime:
    """When it was created."""
    return created_at(pod) or EVER


def in_order(pods: Iterable[Json]) -> list[Json]:
    """Those that run first, then those that have ended, then those that wait; of each the oldest first."""
    return sorted(pods, key=lambda pod: (_RANK.get(phase_of(pod), 2), created(pod), name_of(pod)))


def next_shown(pods: Iterable[Json], shown: Iterable[Json], *, all_pods: bool) -> list[Json]:
    """The pods whose logs are to be shown, beside those that are or have been.

    Args:
        pods: all that there are.
        shown: those before.
        all_pods: whether all are wanted. Otherwise it is one, and once it has gone, one that was made after it.
    """
    before = list(shown)
    known = {uid(pod) for pod in before}
    new = [pod for pod in in_order(pods) if uid(pod) not in known]
    if all_pods:
        return new
    latest = max(map(created, before), default=None)
    return [pod for pod in new if latest is None or created(pod) > latest][:1]
