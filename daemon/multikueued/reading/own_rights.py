"""The manager as who runs a command may read it, or the API server: the objects themselves, at once."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

import attrs

from multikueue.core.model.kinds import WORKLOAD
from multikueue.core.model.names import ObjectKey
from multikueue.core.model.workloads import reserved_at
from multikueue.errors import Forbidden
from multikueued.clusters import ClusterClient
from multikueued.diagnosis.fleet import fleet_findings
from multikueued.reading.asked import Asked
from multikueued.reading.job_lookup import ManagerJob, find_job
from multikueued.reading.log_output import LogSelection
from multikueued.reading.manager_lists import (
    events_of,
    jobs_of_all_kinds,
    not_checked,
    read_objects,
    workloads_of_labelled_jobs,
)
from multikueued.reading.placement_watch import show_logs
from multikueued.reading.pod_lookup import LocatorOfManager
from multikueued.reading.pods import PodList, pod_list
from multikueued.reading.queue_places import read_waiting, with_other_jobs
from multikueued.reading.source import Explained, JobList, JobsWanted
from multikueued.reports.events import EventReport
from multikueued.reports.explanation import Explanation, explain
from multikueued.reports.job_findings import OF_WORKERS
from multikueued.reports.jobs import JobReport, JobState, job_reports, state_of
from multikueued.reports.jobs_alone import jobs_alone, summary_alone
from multikueued.reports.objects import ManagerObjects
from multikueued.reports.places import is_held
from multikueued.reports.remedies.audience import audience_of
from multikueued.reports.remedies.remedy import Finding
from multikueued.reports.seen import Seen
from multikueued.reports.unqueued import Unqueued, unqueued
from multikueued.reports.waiting_jobs import causes, with_causes


@attrs.frozen
class OwnRights:
    """Implements `Source` with what one may read on the manager and, for pods, with the credentials there."""

    client: ClusterClient

    async def jobs(self, wanted: JobsWanted) -> JobList:
        """See `Source`."""
        namespace = wanted.chosen.namespace
        objects = await read_objects(self.client, namespace, wanted.daemon_namespace, lenient=True)
        if WORKLOAD in objects.unread:
            jobs = await jobs_of_all_kinds(self.client, namespace, wanted.selector)
            return JobList(jobs_alone(jobs, wanted.chosen, wanted.user_label), not_checked(objects))
        chains = objects.chains
        if wanted.selector:
            taken = await workloads_of_labelled_jobs(self.client, objects.dispatched, wanted.selector, namespace)
            chains = tuple(map(objects.chain, taken))
        reports = job_reports(chains, wanted.chosen, user_label=wanted.user_label)
        if wanted.now is not None:
            seen, whose = objects, namespace
            if namespace and any(map(is_held, objects.chains)):
                seen, whose = await with_other_jobs(self.client, objects, namespace)
            reports = with_causes(reports, causes(seen, wanted.now, namespace))
            if wanted.places:
                reports = await self._placed(reports, seen, whose, wanted.now)
        return JobList(reports, not_checked(objects))

    async def explanation(self, asked: Asked, now: datetime) -> Explained:
        """See `Source`."""
        job, namespace = await find_job(self.client, asked), asked.target.namespace
        if job.workload is None:
            return Explained(_without_workload(job, namespace))
        events, not_read = await self._events_if_permitted(job)
        seen = Seen(
            job.workload,
            job.object,
            job.objects,
            events,
            now,
            not_checked=(*job.unread, *not_read),
            others=job.others,
            audience=audience_of(job.objects.unread),
        )
        return Explained(await explained(self.client, seen, namespace), job.workload, job.object)

    async def events(self, asked: Asked) -> tuple[EventReport, ...]:
        """See `Source`."""
        return await events_of(self.client, (await find_job(self.client, asked)).about)

    async def pods(self, asked: Asked) -> PodList:
        """See `Source`."""
        places = LocatorOfManager(self.client, asked)
        async with places.pods_of(await places.placed()) as pods:
            return pod_list(pods.sought, await pods.now())

    async def logs(self, asked: Asked, wanted: LogSelection, *, follow: bool) -> bool:
        """See `Source`."""
        await show_logs(LocatorOfManager(self.client, asked), wanted, follow=follow)
        return True

    async def _placed(
        self, jobs: tuple[JobReport, ...], objects: ManagerObjects, namespace: str, now: datetime
    ) -> tuple[JobReport, ...]:
        """The jobs with their places in queues, and when they may start."""
        listed = {ObjectKey(job.namespace, job.workload) for job in jobs}
        shown = {key: workload for workload in objects.dispatched if (key := ObjectKey.of(workload)) in listed}
        waits = await read_waiting(self.client, tuple(shown.values()), objects, namespace, now)
        keyed = ((ObjectKey(job.namespace, job.workload), job) for job in jobs)
        return tuple(waits[key].on(job, reserved_at(shown[key])) if key in shown else job for key, job in keyed)

    async def _events_if_permitted(self, job: ManagerJob) -> tuple[tuple[EventReport, ...], tuple[str, ...]]:
        try:
            return await events_of(self.client, job.about), ()
        except Forbidden:
            return (), ("events, which tell what workers refuse: you may not list events.events.k8s.io",)


async def explained(client: ClusterClient, seen: Seen, namespace: str) -> Explanation:
    """A job explained by what was seen of it, and by the fleet and the queues around it.

    Args:
        client: of the manager.
        seen: the job.
        namespace: whose Workloads are among the objects; empty: all.
    """
    state = state_of(seen.chain)
    if namespace and (state is JobState.QUEUED or is_held(seen.chain)):  # others have what it waits for
        objects, namespace = await with_other_jobs(client, seen.objects, namespace)
        seen = attrs.evolve(seen, objects=objects)
    waits = await read_waiting(client, (seen.workload,), seen.objects, namespace, seen.now)
    fleet: Iterable[Finding] = ()
    if state in OF_WORKERS:  # then alone something of the fleet may be about it
        fleet = fleet_findings(attrs.evolve(seen.objects, workloads=()), seen.now)
    return explain(attrs.evolve(seen, waiting=waits[ObjectKey.of(seen.workload)], fleet=tuple(fleet)))


def _without_workload(job: ManagerJob, namespace: str) -> Unqueued:
    assert job.object is not None, "one of the two was found"
    if WORKLOAD in job.objects.unread:
        summary = summary_alone(job.object)
        return Unqueued(job=job.name, namespace=namespace, summary=summary, not_checked=job.unread)
    return unqueued(job.object, job.name, job.objects)
