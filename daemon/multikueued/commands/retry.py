"""`multikueue retry JOB`."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import attrs
import click

from multikueue.core.model.conditions import timestamp
from multikueue.core.model.kinds import WORKLOAD
from multikueue.core.model.labels import RETRY_ANNOTATION
from multikueue.core.model.names import GVK, Json, ObjectKey
from multikueue.core.model.objects import dig, name_of, uid
from multikueue.core.model.workloads import has_members, was_rejected
from multikueue.errors import Conflict, Forbidden, NotFound
from multikueued.clusters import ClusterClient
from multikueued.commands.options import JOB_NAME, OUTPUT, Format, target_of, target_options
from multikueued.commands.report_runner import Printed, run
from multikueued.exits import FINDING, NOT_FOUND, CommandError
from multikueued.reading.asked import Asked
from multikueued.reading.job_lookup import ManagerJob, find_job
from multikueued.reading.manager_lists import job_resource
from multikueued.reports.jobs import WAITING_STATES, JobState, state_of
from multikueued.reports.remedies.remedy import command_for


@attrs.frozen
class Retried:
    """What `multikueue retry` prints."""

    job: str
    """TYPE/NAME."""
    namespace: str
    workload: str
    """Empty: it may not be read."""
    retry_at: datetime
    told: str
    """What was done, in a sentence."""


@click.command("retry")
@JOB_NAME
@target_options
@OUTPUT
def retry_command(job: str, output: Format, **options: Any) -> None:
    """Ask the workers that refuse JOB again, now; or have a JOB that was rejected looked at again.

    It writes the annotation multikueue.dev/retry-at on the job, of a podgroup on one of its pods, which whoever
    submits it may patch; the daemon does the rest. Where you may not patch it, it is written on the Workload. JOB is
    named as for explain.
    """
    target = target_of(options)

    printed = Printed[Retried](
        lambda client, now: ask_again(client, Asked(job, target), now),
        lambda done, *_: [done.told],
    )
    raise SystemExit(run(target, printed, output))


async def ask_again(client: ClusterClient, asked: Asked, now: datetime) -> Retried:
    """Write the annotation.

    Raises:
        CommandError: there is no such job, or nothing to ask again.
    """
    manager_job = await find_job(client, asked)
    if manager_job.workload is None and not (manager_job.object is not None and WORKLOAD in manager_job.objects.unread):
        raise CommandError(f"{manager_job.name} has no Workload: {_explained(manager_job)} why", NOT_FOUND)
    state = _state(manager_job.workload, manager_job) if manager_job.workload is not None else None
    rejected = state is JobState.REJECTED
    try:
        where, active = await _ask(client, manager_job, timestamp(now), rejected=rejected)
    except (Conflict, NotFound) as error:
        raise CommandError(
            f"{manager_job.name} was deleted, or made again, meanwhile: try once more", NOT_FOUND
        ) from error
    workload = name_of(manager_job.workload) if manager_job.workload is not None else ""
    done = f"workers that refuse {manager_job.name} are asked again"
    if state is JobState.QUEUED:
        done += f" once it has quota here; {_explained(manager_job)} what it waits for"
    if rejected:
        done = f"{manager_job.name} is active again" if active else f"the daemon makes {manager_job.name} active again"
    done = f"wrote {RETRY_ANNOTATION}={timestamp(now)} on {where}: {done}"
    return Retried(manager_job.name, asked.target.namespace, workload, now, done)


def _explained(manager_job: ManagerJob) -> str:
    """The beginning of a sentence that says who tells more."""
    return f"{command_for(manager_job.name, 'explain', manager_job.namespace)} says"


def _state(workload: Json, manager_job: ManagerJob) -> JobState:
    """The state of a job that may be asked for again: it waits, or a check has rejected it and Kueue deactivated it.

    Raises:
        CommandError: nothing refuses it.
    """
    state = state_of(manager_job.objects.chain(workload))
    if state in (*WAITING_STATES, JobState.STARTING) or (state is JobState.REJECTED and was_rejected(workload)):
        return state
    if state is JobState.REJECTED:
        raise CommandError(f"{manager_job.name} is {state}, and Kueue deactivates it: retry it in a moment", FINDING)
    advice = f"; {_explained(manager_job)} what to do" if state is JobState.INACTIVE else ""
    raise CommandError(f"{manager_job.name} is {state}: there is no worker to be asked again{advice}", FINDING)


async def _ask(client: ClusterClient, manager_job: ManagerJob, asked: str, *, rejected: bool) -> tuple[str, bool]:
    """Write the annotation: on what, and whether the Workload is active again."""
    noted: Json = {RETRY_ANNOTATION: asked}
    job, refused = manager_job.object, None
    for obj in [job] if job is not None else _members(manager_job.workload):
        resource = await job_resource(client, GVK.of(obj["apiVersion"], obj["kind"]))
        try:
            if resource is not None:
                metadata = {"uid": uid(obj), "annotations": noted}
                await client.merge_patch(resource, ObjectKey.of(obj), {"metadata": metadata})
                return manager_job.name if job is not None else f"pod/{name_of(obj)}", False
        except Forbidden as error:
            refused = error
            break
        except (Conflict, NotFound):
            if job is not None:
                raise
    if manager_job.workload is None:
        raise refused or NotFound(f"{manager_job.name} has no Workload")
    key = ObjectKey.of(manager_job.workload)
    patch: Json = {"metadata": {"uid": uid(manager_job.workload), "annotations": noted}}
    try:
        await client.merge_patch(WORKLOAD, key, patch | ({"spec": {"active": True}} if rejected else {}))
    except Forbidden as error:
        raise refused or error from error
    return f"Workload {key}", rejected


def _members(workload: Json | None) -> list[Json]:
    """The pods of a group, of which one that is still there will do: what their Workload knows of them."""
    if workload is None or not has_members(workload):
        return []
    namespace = ObjectKey.of(workload).namespace
    return [
        {**reference, "metadata": {"namespace": namespace, "name": reference["name"], "uid": reference["uid"]}}
        for reference in dig(workload, "metadata", "ownerReferences") or []
    ]
