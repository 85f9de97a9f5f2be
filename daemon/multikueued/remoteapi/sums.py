"""What the API makes of all jobs of the fleet, or of a namespace: from the view, and places from Kueue."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

import attrs

from multikueue.core.model import workloads
from multikueue.core.model.conditions import timestamp
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import is_terminating
from multikueued.clusters import ClusterClient
from multikueued.diagnosis.fleet import MOST, fleet_findings, without_queue
from multikueued.reading.manager_lists import not_checked
from multikueued.reading.queue_places import read_waiting
from multikueued.remoteapi.manager_view import ManagerView
from multikueued.remoteapi.objects import api_name, for_tenants, with_jobs_taken_away, without_workloads
from multikueued.remoteapi.overview import overview
from multikueued.remoteapi.shares import shares_of, use_of_fleet
from multikueued.reports.jobs import JobState, job_report
from multikueued.reports.objects import Chain, ManagerObjects
from multikueued.reports.places import Waiting, starving
from multikueued.reports.remedies.audience import Audience, audience_of, for_audience
from multikueued.reports.remedies.remedy import Finding
from multikueued.reports.waiting_jobs import causes, with_waiting
from multikueued.reports.workers import worker_reports

PLACES: Final = 500
"""Jobs of a queue whose places are told."""


def jobs_in(view: ManagerView, namespace: str) -> list[Json]:
    """The jobs of a namespace, as the API has them; empty: all."""
    return [job for key, job in view.jobs.items() if namespace in ("", key.namespace)]


def overview_of(view: ManagerView, namespace: str) -> Json:
    """The fleet at one look, or a namespace: of that what concerns its own jobs alone.

    Args:
        view: of the manager.
        namespace: empty: the fleet.
    """
    objects, now, jobs = view.objects, view.now(), jobs_in(view, namespace)
    use, findings = list[Json](), list[Finding]()
    if namespace:
        objects = _of_namespace(objects, namespace)
    else:
        workers = worker_reports(without_workloads(objects), ())
        use = use_of_fleet(shares_of(workers, objects.workloads).values())
        findings += fleet_findings(with_jobs_taken_away(objects), now)
    findings += without_queue(objects)
    if any(job["status"]["state"] == JobState.WAITING for job in jobs):  # of those that are held some may starve
        findings += islice(starving(objects, now), MOST)
    audience = Audience.SUBMITTER if namespace else audience_of(view.unread)
    addressed = (for_audience(finding, audience) for finding in with_waiting(findings, objects, now))
    status = overview(jobs, now, addressed, use=use, history=view.history.of(namespace))
    unread = not_checked(view.context)
    return status | ({"notChecked": "; ".join(unread)} if unread else {})


def _of_namespace(objects: ManagerObjects, namespace: str) -> ManagerObjects:
    def own(listed: Iterable[Json]) -> tuple[Json, ...]:
        return tuple(obj for obj in listed if ObjectKey.of(obj).namespace == namespace)

    return attrs.evolve(objects, workloads=own(objects.workloads), local_queues=own(objects.local_queues))


def causes_in(view: ManagerView, namespace: str) -> list[Json]:
    """What keeps the jobs of a namespace from running, by the names of their Workloads; empty: of all."""
    known = causes(view.objects, view.now(), namespace).items()
    return [{"metadata": key._asdict(), "why": for_tenants(why)} for key, why in known]


async def places_in(view: ManagerView, client: ClusterClient, namespace: str, queue: str) -> list[Json]:
    """The places of the jobs that wait in a queue, the next first, as far as they are known.

    Args:
        view: of the manager.
        client: of the manager.
        namespace: whose jobs; empty: all.
        queue: a ClusterQueue or LocalQueue.
    """
    objects = view.objects
    chosen = [chain.workload for chain in objects.chains if _waits(chain, namespace, queue)][:PLACES]
    known = await read_waiting(client, chosen, objects, view.namespace, view.now())
    return sorted(_placed(chosen, known), key=lambda line: (line["place"], line["namespace"], line["name"]))


def _waits(chain: Chain, namespace: str, queue: str) -> bool:
    return (
        not workloads.is_finished(chain.workload)
        and not is_terminating(chain.workload)
        and not workloads.cluster_name(chain.workload)
        and namespace in ("", chain.queue.namespace)
        and queue in (chain.queue.name, chain.cluster_queue_name)
    )


def _placed(chosen: Iterable[Json], known: dict[ObjectKey, Waiting]) -> Iterator[Json]:
    for workload in chosen:
        key = ObjectKey.of(workload)
        waits = known.get(key, Waiting())
        reserved = workloads.reserved_at(workload)
        line = waits.on(job_report(ManagerObjects().chain(workload)), reserved)
        if line.place is not None:
            yield {
                "namespace": key.namespace,
                "name": api_name(workload),
                "place": line.place,
                "startEarliest": timestamp(line.start_earliest) if line.start_earliest else None,
                "startLatest": timestamp(line.start_latest) if line.start_latest else None,
            }
