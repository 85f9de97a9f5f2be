"""One examination: the manager, then all workers at once, then the checks."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import anyio
import attrs

from multikueue.core.model.conditions import is_true
from multikueue.core.model.objects import name_of
from multikueue.core.model.worker_kueue import version_of
from multikueue.kube import ClusterConfig
from multikueued.doctor.cluster_reader import MANAGER, Client, Sight
from multikueued.doctor.daemon_sight import completed, published
from multikueued.doctor.installed import find_daemon
from multikueued.doctor.manager import read_manager
from multikueued.doctor.probing import Measure, Probe, probe
from multikueued.doctor.workers import Connect, Rounds, connected
from multikueued.reports.doctor.facts import Facts, NotChecked
from multikueued.reports.doctor.findings import Diagnosis, diagnose
from multikueued.reports.doctor.jobs import MOST, waiting
from multikueued.reports.doctor.kueue import gate_is_on
from multikueued.reports.doctor.table import CHECKS


@attrs.frozen
class Request:
    """What is to be examined."""

    config: ClusterConfig
    """The manager's."""
    daemon_namespace: str
    settings_file: Path | None = None
    account: str = ""
    """NAMESPACE/NAME of the daemon's service account; empty: that of its Deployment."""
    connect: Connect = connected
    measure: Measure = probe


async def examine(client: Client, request: Request, now: datetime) -> Diagnosis:
    """Read both sides and run all checks.

    Raises:
        ApiError: the manager does not answer, or does not accept the credentials.
        SettingsError: the settings file cannot be used.
    """
    return diagnose(await gather(client, request, now), CHECKS)


async def gather(client: Client, request: Request, now: datetime) -> Facts:
    """Read both sides; see `examine`."""
    sight = Sight(client, MANAGER, "ask somebody who may, or an administrator of the manager")
    measured: list[Probe] = []

    async def measure() -> None:
        measured.append(await request.measure(request.config))

    daemon = await find_daemon(sight, request.settings_file, request.account, request.daemon_namespace)
    facts, held = await read_manager(sight, daemon, now)
    active = frozenset(name_of(one) for one in facts.objects.clusters if is_true(one, "Active"))
    accounts = {name: one.bound.account for name, one in facts.credentials.items() if one.bound is not None}
    rounds = Rounds(facts.settings, facts.kinds, facts.lacking, active, request.connect, request.measure, accounts)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(measure)
        tasks.start_soon(rounds.visit, {name: one.config for name, one in held.items() if one.config is not None})
    facts = attrs.evolve(facts, workers=dict(sorted(rounds.found.items())), clock=measured[0].clock)
    facts = attrs.evolve(facts, not_checked=(*sight.not_checked, *rounds.not_checked))
    facts = completed(facts, await published(client, facts))
    return attrs.evolve(facts, not_checked=(*facts.not_checked, *_untold(facts)))


def _untold(facts: Facts) -> list[NotChecked]:
    """What follows from what was read: that it is not enough to tell."""
    found: list[NotChecked] = []
    if gate_is_on(facts.kueue) is None:
        why = "Kueue's Deployment and Configuration cannot both be read; only signs of it are looked for"
        found.append(NotChecked("whether Kueue's own MultiKueue is off", why, "an administrator of the manager"))
    if facts.kueue.image and version_of(facts.kueue.image) is None:
        why = f"its image {facts.kueue.image} does not tell"
        found.append(NotChecked("Kueue's version", why, "an administrator of the manager"))
    if (more := len(waiting(facts)) - MOST) > 0:
        told = f"only the {MOST} that have waited longest are looked at"
        found.append(NotChecked(f"why {more} more jobs wait", told, "multikueue explain JOB tells it of one"))
    if facts.clock is None:
        found.append(NotChecked("the manager's clock", "it did not say the time", "compare the clocks there"))
    return found
