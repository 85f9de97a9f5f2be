"""Reports as text for people."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import datetime

import click

from multikueued.commands.tables import age, listed, paint, paragraph, span, table, until
from multikueued.diagnosis.fleet import StatusReport
from multikueued.reports.cluster_answers import WorkerState
from multikueued.reports.daemon_lease import DaemonReport
from multikueued.reports.events import EventReport
from multikueued.reports.explanation import Explanation
from multikueued.reports.jobs import JobReport, JobState
from multikueued.reports.remedies.remedy import Finding
from multikueued.reports.workers import WorkerReport


def jobs_table(
    jobs: Sequence[JobReport], now: datetime, width: int | None, *, wide: bool, everywhere: bool, users: bool
) -> list[str]:
    """One line for each job.

    Args:
        jobs: to show.
        now: for their ages.
        width: of the terminal; None: nothing is cut.
        wide: with more columns.
        everywhere: with the namespace.
        users: with the user.
    """
    columns = [*(["NAMESPACE"] if everywhere else []), "JOB", "CLUSTER", "STATE", "AGE", *(["USER"] if users else [])]
    columns += ["QUEUE", "CLUSTERQUEUE", "PLACE", "START", "OFFERED", "SINCE", "WORKLOAD"] if wide else []
    rows = []
    for job in jobs:
        row = [*([job.namespace] if everywhere else []), job.job, job.worker or "-", str(job.state)]
        row += [age(job.created, now), *([job.user or "-"] if users else [])]
        if wide:
            offered = ",".join(job.offered_to) or "-"
            row += [job.queue or "-", job.cluster_queue or "-", str(job.place or "-"), start(job, now)]
            row += [offered, age(job.since, now), job.workload]
        rows.append([*row, job.reason])
    return table([*columns, "REASON"], rows, width)


def start(job: JobReport, now: datetime) -> str:
    """From now until when it starts, if that is known: `4m-20m`."""
    if job.start_earliest is None or job.start_latest is None:
        return "-"
    return f"{span(job.start_earliest - now)}-{span(job.start_latest - now)}"


def workers_table(workers: Sequence[WorkerReport], now: datetime, width: int | None, *, wide: bool) -> list[str]:
    """One line for each worker."""
    columns = [
        "WORKER",
        "STATE",
        "SINCE",
        "RUNNING",
        "WAITING",
        "USED",
        "QUOTA",
        *(["CHECKS", "ATTEMPTS"] if wide else []),
    ]
    rows = []
    for worker in workers:
        state = f"{worker.state},Cordoned" if worker.cordoned else worker.state
        row = [
            worker.name,
            state,
            age(worker.since, now),
            str(worker.running),
            str(worker.waiting),
            listed(worker.used),
        ]
        row += [quota(worker, now)]
        row += [",".join(worker.checks) or "-", str(worker.attempts)] if wide else []
        twin = f"the same cluster as {', '.join(worker.same_as)}" if worker.same_as and not worker.cordoned else ""
        rows.append([*row, "; ".join(filter(None, (worker.error, worker.cordon, twin))) or _quota_unseen(worker)])
    return table([*columns, "WHY"], rows, width)


def _quota_unseen(worker: WorkerReport) -> str:
    """Why nobody knows the quota of a worker that is connected; empty: somebody does."""
    unknown = worker.state is WorkerState.CONNECTED and worker.quota.at is None and worker.quota.not_checked
    return f"its quota: {worker.quota.not_checked}" if unknown else ""


def quota(worker: WorkerReport, now: datetime) -> str:
    """What of a worker's quota was in use, and how long ago: `cpu 3/8 (20s ago)`; or that nobody knows."""
    known = worker.quota
    return "not checked" if known.at is None else f"{listed(known.used, known.total)} ({age(known.at, now)} ago)"


def status_lines(status: StatusReport, width: int | None, *, wide: bool) -> list[str]:
    """The whole status."""
    queues = [
        [
            queue.name,
            str(queue.queued),
            str(queue.waiting),
            str(queue.running),
            listed(queue.used, queue.total),
            queue.message,
        ]
        for queue in status.queues
    ]
    return [
        *paragraph(daemon_line(status.daemon, status.now), width or 1_000),
        "",
        *(workers_table(status.workers, status.now, width, wide=wide) if status.workers else ["No worker clusters."]),
        "",
        *(
            table(["QUEUE", "QUEUED", "WAITING", "RUNNING", "USED/TOTAL", ""], queues, width)
            if queues
            else ["No queues."]
        ),
        "",
        totals_line(status),
        *mirrors_lines(status),
        *_findings(status.findings, width or 100),
        *not_checked_lines(status.not_checked, width or 100),
    ]


def daemon_line(daemon: DaemonReport, now: datetime) -> str:
    """Who dispatches."""
    if not daemon.seen:
        return "Daemon: there is no Lease, or it may not be read: whether it runs is not checked."
    if not daemon.alive:
        return f"Daemon: nobody leads; the Lease was renewed {age(daemon.renewed, now)} ago."
    return f"Daemon: {daemon.leader} leads, and was heard {age(daemon.renewed, now)} ago."


def totals_line(status: StatusReport) -> str:
    """How many jobs are in which state."""
    states = ", ".join(f"{count} {state}" for state, count in status.totals.items())
    return f"Jobs: {sum(status.totals.values())}{f' ({states})' if states else ''}"


def mirrors_lines(status: StatusReport) -> list[str]:
    """How many pods of runs the manager shows; nothing where it shows none."""
    if (pods := status.mirrors) is None:
        return []
    refused = f" ({pods.refused} refused; events PodNotShown on their jobs say why)" if pods.refused else ""
    return [f"Pods shown: {pods.shown}{refused}"]


def explanation_lines(explanation: Explanation, now: datetime, width: int) -> list[str]:
    """The whole explanation."""
    job = explanation.job
    since = f" since {_moment(job.since)} ({age(job.since, now)})" if job.since is not None else ""
    *first, last = paragraph(f"{job.job} in namespace {job.namespace}: {job.state}{since}", width)
    painted = last.replace(f": {job.state}", f": {paint(str(job.state))}", 1)
    lines = [*first, painted, *paragraph(explanation.summary, width), ""]
    if job.place is not None:
        among = "in its ClusterQueue" if job.state is JobState.QUEUED else "of those held that share a worker with it"
        lines[-1:-1] = paragraph(f"Place {job.place} {among}.", width)
    if (within := start(job, now)) != "-":
        lines[-1:-1] = paragraph(f"Four of five such jobs that had waited so long started {within} from now.", width)
    chain = [[link.kind, link.name or "-", link.state, link.told] for link in explanation.chain]
    lines += table(["CHAIN", "NAME", "STATE", "SAYS"], chain, width, wrapped=True)
    if explanation.workers:
        answers = [[answer.worker, answer.state, answer.told] for answer in explanation.workers]
        lines += ["", *table(["WORKER", "STATE", "SAYS"], answers, width, wrapped=True)]
    if explanation.others:
        lines += ["", *paragraph(f"The job has other Workloads, too: {', '.join(explanation.others)}.", width)]
    if any(placement.ran for placement in explanation.placements):
        placed = [
            [
                placement.worker,
                _moment(placement.since),
                _moment(placement.until) if placement.until else "now",
                placement.why,
            ]
            for placement in explanation.placements
            if placement.ran
        ]
        lines += ["", *table(["RAN ON", "FROM", "UNTIL", "WHY IT LEFT"], placed, width, wrapped=True)]
    if explanation.next:
        lines += ["", "What happens next:"]
        for step in explanation.next:
            at = f"{until(step.at, now)}: " if step.at is not None else ""
            lines += paragraph(at + step.text, width, first="- ", rest="  ")
    lines += _findings(explanation.findings, width)
    return lines + not_checked_lines(explanation.not_checked, width)


def not_checked_lines(what: Sequence[str], width: int | None) -> list[str]:
    """What could not be read; nothing if all could."""
    return ["", *paragraph(f"Not checked: {'; '.join(what)}.", width or 1_000)] if what else []


def _findings(findings: Iterable[Finding], width: int) -> list[str]:
    listed_findings = list(findings)
    lines: list[str] = []
    for title, blocking in (("What to do:", True), ("Noticed beside that:", False)):
        chosen = [finding for finding in listed_findings if finding.blocking is blocking]
        lines += ["", click.style(title, fg="red") if blocking else title] if chosen else []
        for finding in chosen:
            lines += finding_lines(finding, width)
    return lines


def finding_lines(finding: Finding, width: int, head: str = "- ", *, wide: bool = False) -> list[str]:
    """What is wrong, the words that say so, why it matters, and the remedy.

    Args:
        finding: what to print.
        width: of the terminal.
        head: how it begins.
        wide: whether to name its id and side.
    """
    named = re.search(rf"(?<![\w-]){re.escape(finding.where)}(?![\w-])", finding.why) if finding.workers else None
    text = f"{finding.where}: {finding.why}" if named is None else finding.why
    lines = paragraph(text, width, first=head, rest="  ")
    if finding.told and finding.told not in finding.why:
        lines += paragraph(f'it says: "{finding.told}"', width, first="  ", rest="  ")
    if finding.matters:
        lines += paragraph(f"Why it matters: {finding.matters}.", width, first="  ", rest="  ")
    if wide:
        lines += paragraph(f"Finding {finding.id}, to be mended on the {finding.side}.", width, first="  ", rest="  ")
    return lines + paragraph(finding.remedy, width, first="  → ", rest="    ")


def events_lines(events: Sequence[EventReport], now: datetime, width: int, *, wide: bool) -> list[str]:
    """Two or more lines for each event or series: when, how often and about what; then the whole note."""
    lines: list[str] = []
    for event in events:
        often = f", {event.count} times, last {age(event.last, now)} ago" if event.count > 1 else ""
        by = f" by {event.source}, reason {event.reason}" if wide else ""
        lines += paragraph(f"{_moment(event.first)}  {event.type}  {event.object}{often}{by}", width, rest="    ")
        lines += paragraph(event.note, width, first="    ", rest="    ")
    return lines or ["No events."]


def _moment(moment: datetime | None) -> str:
    return "-" if moment is None else f"{moment:%m-%d %H:%M:%SZ}"
