"""Collects the facts: the manager's, then those of all workers at once, and what the daemon saw of the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from pathlib import Path
from typing import Final

import anyio
import attrs

from multikueue.core.model.conditions import is_true, timestamp
from multikueue.core.model.objects import name_of
from multikueue.core.model.worker_kueue import version_of
from multikueue.kube import ClusterConfig
from multikueued.clusters import ClusterClient, Connect
from multikueued.diagnosis.checks.access import has_new_credentials
from multikueued.diagnosis.checks.kueue import gate_is_on
from multikueued.diagnosis.facts import Facts
from multikueued.doctor.cluster_reader import MANAGER, Sight
from multikueued.doctor.installation import find_daemon
from multikueued.doctor.manager_reader import read_manager
from multikueued.doctor.needs import OF_ONE, needs_of
from multikueued.doctor.probe import Measure, ProbeResult, probe
from multikueued.doctor.worker_reader import CONNECT, Rounds
from multikueued.rbac.objects import Account
from multikueued.reading.manager_lists import read_findings
from multikueued.reports.published import Published, published_in
from multikueued.reports.waiting_jobs import MOST, waiting
from multikueued.reports.worker_facts import NotChecked


@attrs.frozen
class Examination:
    """What is to be examined."""

    config: ClusterConfig
    """The manager's."""
    daemon_namespace: str
    settings_file: Path | None = None
    account: Account | None = None
    """The daemon's; None: that of its Deployment."""
    connect: Connect = CONNECT
    measure: Measure = probe
    tell: Callable[[str], None] = lambda text: None
    """Is told what takes long."""
    kubectl: str = "kubectl"
    """How a shell calls it for the manager."""


async def gather(client: ClusterClient, request: Examination, now: datetime) -> Facts:
    """Read both sides.

    Raises:
        ApiError: the manager does not answer, or does not accept the credentials.
        SettingsError: the settings file cannot be used.
    """
    sight = Sight(client, MANAGER, "ask somebody who may, or an administrator of the manager")
    measured: list[ProbeResult] = []

    async def measure() -> None:
        measured.append(await request.measure(request.config))

    daemon = await find_daemon(sight, request.settings_file, request.account, request.daemon_namespace)
    facts, held = await read_manager(sight, daemon, now)
    active = frozenset(name_of(cluster) for cluster in facts.objects.clusters if is_true(cluster, "Active"))
    newer = {name for name, each in facts.credentials.items() if has_new_credentials(name, each, facts.objects)}
    by_daemon = published_in(await read_findings(client, facts.objects.daemon_namespace))
    rounds = Rounds(
        facts.settings,
        facts.kinds,
        facts.lacking,
        active - newer,
        request.connect,
        request.measure,
        facts.credentials,
        now=now,
        tell=request.tell,
        orphans={name: _orphans(report) for name, report in by_daemon.items()},
        needs=needs_of(facts.objects),
    )
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(measure)
        tasks.start_soon(
            rounds.visit,
            {name: credentials.config for name, credentials in held.items() if credentials.config is not None},
        )
    seen = dict(sorted(rounds.workers.items()))
    facts = attrs.evolve(facts, workers=seen, clock=measured[0].clock, kubectl=request.kubectl)
    facts = attrs.evolve(facts, not_checked=(*sight.not_checked, *rounds.not_checked))
    facts = completed(facts, by_daemon)
    return attrs.evolve(facts, not_checked=(*facts.not_checked, *_untold(facts)))


def _orphans(report: Published) -> frozenset[str]:
    """The UIDs of job copies whose Workload is gone: only the daemon knows which are its own."""
    return frozenset(copy.uid for copy in report.facts.overdue or () if copy.orphaned)


def _untold(facts: Facts) -> list[NotChecked]:
    """What follows from what was read: that it is not enough to tell."""
    gaps: list[NotChecked] = []
    if gate_is_on(facts.kueue) is None:
        why = "Kueue's Deployment and Configuration cannot both be read; only signs of it are looked for"
        gaps.append(NotChecked("whether Kueue's own MultiKueue is off", why, "ask an administrator of the manager"))
    if facts.kueue.image and version_of(facts.kueue.image) is None:
        why = f"its image {facts.kueue.image} does not tell"
        gaps.append(NotChecked("Kueue's version", why, "ask an administrator of the manager"))
    if (more := len(waiting(facts.objects)) - MOST) > 0:
        limit = f"only the {MOST} that have waited longest are looked at"
        gaps.append(NotChecked(f"why {more} more jobs wait", limit, OF_ONE))
    if facts.clock is None:
        gaps.append(NotChecked("the manager's clock", "it did not say the time", "compare the clocks there"))
    return gaps


def completed(facts: Facts, known: dict[str, Published]) -> Facts:
    """The facts with the workers that were not asked from here, as the daemon saw them, and what that leaves open."""
    whole = facts.with_published(known)
    taken = {name: known[name] for name in whole.seen_at}
    gaps = [gap for gap in facts.not_checked if gap.worker not in taken]
    more_gaps = [gap for name, report in taken.items() for gap in _gaps(name, report, facts.not_checked)]
    return attrs.evolve(whole, not_checked=(*gaps, *more_gaps))


_LOOKS: Final = "somebody with its credentials; explain tells it of a job that waits"


def _gaps(name: str, report: Published, here: Iterable[NotChecked]) -> list[NotChecked]:
    """What the daemon could not see, and what only somebody with the credentials can."""
    assert report.at is not None, "it was looked at"
    seen = f"as the daemon saw it at {timestamp(report.at)}"
    why = next((gap for gap in here if gap.worker == name), None)
    own = (
        []
        if why is None
        else [NotChecked(f"{name} from here, and the Secret with its kubeconfig ({seen})", why.why, why.who)]
    )
    ends = NotChecked(f"which job copies on {name} do not end", "the daemon did not look for them", _LOOKS)
    unseen = [ends] if report.facts.overdue is None else []
    return [*own, *unseen, *(attrs.evolve(gap, why=f"{gap.why} ({seen})") for gap in report.not_checked)]
