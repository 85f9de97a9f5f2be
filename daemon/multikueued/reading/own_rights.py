"""The manager as who runs a command may read it, or the API server: the objects themselves, at once."""

from __future__ import annotations

from datetime import datetime

import attrs

from multikueue.core.model.kinds import WORKLOAD
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.workloads import reserved_at
from multikueue.errors import ApiError, Forbidden
from multikueued.clusters import ClusterClient
from multikueued.reading.asked import Asked
from multikueued.reading.job_lookup import Found, find_job
from multikueued.reading.manager_lists import (
    events_of,
    jobs_of_all_kinds,
    not_checked,
    read_objects,
    workloads_of_labelled_jobs,
)
from multikueued.reading.pod_lookup import WorkerPods, sought_job
from multikueued.reading.pods import PodList, pod_list
from multikueued.reading.queue_places import read_waiting
from multikueued.reading.source import Explained, JobList, JobsWanted
from multikueued.reading.worker_access import worker_client, worker_for_people
from multikueued.reports.events import EventReport
from multikueued.reports.explanation import Explanation, Seen, Unqueued, explain, unqueued
from multikueued.reports.jobs import JobReport, JobState, job_reports, state_of
from multikueued.reports.jobs_alone import jobs_alone, summary_alone
from multikueued.reports.objects import ManagerObjects
from multikueued.reports.remedies.audience import Audience, audience_of


@attrs.frozen
class OwnRights:
    """Implements `Source` with what one may read on the manager and, for pods, with the credentials there."""

    client: ClusterClient

    async def jobs(self, wanted: JobsWanted) -> JobList:
        """See `Source`."""
        namespace = wanted.chosen.namespace
        objects = await read_objects(self.client, namespace, lenient=True)
        if WORKLOAD in objects.unread:
            jobs = await jobs_of_all_kinds(self.client, namespace, wanted.selector)
            return JobList(jobs_alone(jobs, wanted.chosen, wanted.user_label), not_checked(objects))
        of = objects.dispatched
        if wanted.selector:
            of = tuple(await workloads_of_labelled_jobs(self.client, of, wanted.selector, namespace))
        found = job_reports(objects, wanted.chosen, user_label=wanted.user_label, of=of)
        if wanted.waiting_at is not None:
            found = await self._placed(found, objects, namespace, wanted.waiting_at)
        return JobList(found, not_checked(objects))

    async def explanation(self, asked: Asked, now: datetime) -> Explained:
        """See `Source`."""
        target = asked.target
        found = await find_job(self.client, asked.job, target.namespace, target.daemon_namespace)
        if found.workload is None:
            return Explained(_without_workload(found, target.namespace))
        events, not_read = await self._events_if_permitted(found)
        found = attrs.evolve(found, unread=(*found.unread, *not_read))
        who = audience_of(found.objects.unread)
        made = await explained(self.client, found, events, now, target.daemon_namespace, target.namespace, who)
        return Explained(made, found.workload, found.job)

    async def events(self, asked: Asked) -> tuple[EventReport, ...]:
        """See `Source`."""
        target = asked.target
        found = await find_job(self.client, asked.job, target.namespace, target.daemon_namespace)
        return await events_of(self.client, found.about)

    async def pods(self, asked: Asked) -> PodList:
        """See `Source`."""
        sought = await sought_job(self.client, asked)
        async with worker_client(self.client, sought.worker, asked.target.daemon_namespace) as client:
            with worker_for_people(sought.worker):
                found = await WorkerPods(client, sought).now()
        return pod_list(sought, found)

    async def _placed(
        self, jobs: tuple[JobReport, ...], objects: ManagerObjects, namespace: str, now: datetime
    ) -> tuple[JobReport, ...]:
        """The jobs with their places in queues, and when they may start."""
        listed = {ObjectKey(job.namespace, job.workload) for job in jobs}
        shown = {key: one for one in objects.dispatched if (key := ObjectKey.of(one)) in listed}
        waits = await read_waiting(self.client, tuple(shown.values()), objects, namespace, now)
        keyed = ((ObjectKey(job.namespace, job.workload), job) for job in jobs)
        return tuple(waits[key].on(job, reserved_at(shown[key])) if key in shown else job for key, job in keyed)

    async def _events_if_permitted(self, found: Found) -> tuple[tuple[EventReport, ...], tuple[str, ...]]:
        try:
            return await events_of(self.client, found.about), ()
        except Forbidden:
            return (), ("events, which tell what workers refuse: you may not list events.events.k8s.io",)


async def explained(
    client: ClusterClient,
    found: Found,
    events: tuple[EventReport, ...],
    now: datetime,
    daemon_namespace: str,
    namespace: str,
    audience: Audience,
    *,
    others_named: bool = True,
) -> Explanation:
    """A job that has a Workload, explained: by what was read of the manager, and by places in queues.

    Args:
        client: of the manager.
        found: the job.
        events: about it.
        now: the wall clock.
        daemon_namespace: for remedies.
        namespace: whose Workloads were read; empty: all.
        audience: whom the remedies are for.
        others_named: whether other jobs may be named.
    """
    assert found.workload is not None, "without it there is nothing to explain"
    waits = await read_waiting(client, (found.workload,), found.objects, namespace, now)
    objects = await _with_other_jobs(client, found.workload, found.objects) if namespace else found.objects
    about = (found.workload, found.job, objects, events, now, daemon_namespace, found.unread, found.others)
    return explain(Seen(*about, waits[ObjectKey.of(found.workload)], audience, others_named))


def _without_workload(found: Found, namespace: str) -> Unqueued:
    assert found.job is not None, "one of the two was found"
    if WORKLOAD in found.objects.unread:
        summary = summary_alone(found.job)
        return Unqueued(job=found.name, namespace=namespace, summary=summary, not_checked=found.unread)
    return unqueued(found.job, found.name, found.objects)


async def _with_other_jobs(client: ClusterClient, workload: Json, objects: ManagerObjects) -> ManagerObjects:
    """The objects with the Workloads of all namespaces where these may hold the quota that one waits for."""
    if state_of(workload, objects) is not JobState.QUEUED:
        return objects
    try:
        return attrs.evolve(objects, workloads=tuple((await client.list(WORKLOAD)).items))
    except ApiError:  # it may be told without them
        return objects
