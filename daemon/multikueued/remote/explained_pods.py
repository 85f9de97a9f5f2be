"""What a job and its pods add to its explanation, as far as whoever asks may read them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final

import anyio
import attrs

from multikueue.core.model.dependencies import Dependency, dependencies_of
from multikueue.core.model.names import Json, ObjectKey
from multikueue.errors import ApiError, Forbidden
from multikueued.clusters import ClusterClient
from multikueued.exits import CommandError
from multikueued.reading.api_first import ask
from multikueued.reading.asked import Asked
from multikueued.reading.pod_lookup import LocatorOfManager
from multikueued.reading.pods import PodList, troubled
from multikueued.reports.explanation import Explanation, with_findings
from multikueued.reports.jobs import JobState
from multikueued.reports.remedies.job_trouble import (
    NOT_READY,
    NOT_READY_AFTER,
    has_run,
    is_ready,
    should_have_pods,
    still_there,
)
from multikueued.reports.remedies.pod_remedies import NEED_MISSING, NONE_MADE, STARTS, pod_findings
from multikueued.reports.remedies.remedy import REMEDIES, Finding

PATIENCE: Final = 5.0
"""Seconds for what pods say: the rest of the explanation does not wait longer."""
_LATE: Final = f"no answer within {PATIENCE:g} s"
_ASKING: Final = frozenset(row.id for row in REMEDIES.values() if row.pods)
"""The findings of which pods may know the cause."""


@attrs.frozen
class JobPods:
    """Reads what is asked about one job."""

    manager: ClusterClient
    asked: Asked
    now: datetime

    async def added_to(self, explanation: Explanation, workload: Json | None, job: Json | None) -> Explanation:
        """The explanation with what pods say; as it is where they need not be asked, or may not be.

        Args:
            explanation: made without them.
            workload: the manager's; None: it was not read.
            job: the manager's; None: it could not be read.
        """
        asking = next((finding for finding in explanation.findings if finding.id in _ASKING), None)
        unknown = job is None or is_ready(job) is None
        if asking is None and not (unknown and has_run(explanation.job, self.now, NOT_READY_AFTER)):
            early = job is not None and should_have_pods(job, explanation.job, self.now)
            pods, _ = await self._pods() if early else (None, "")
            return with_findings(explanation, *self._none_made(explanation, pods)) if pods is not None else explanation
        pods, why = await self._pods()
        if pods is None:
            unread = (f"its pods: {why}",) if asking is not None and why else ()
            return attrs.evolve(explanation, not_checked=(*explanation.not_checked, *unread))
        hidden = tuple(f"whether it has more pods there: {reason}" for reason in pods.not_read)
        explanation = attrs.evolve(explanation, not_checked=(*explanation.not_checked, *hidden))
        findings = self._findings(explanation, pods)
        needs = dependencies_of(workload) if workload is not None else ()
        if not any(finding.blocking for finding in findings) and explanation.job.state is JobState.RUNNING and needs:
            missing, unseen = await self._missing(need for need in needs if need.required)
            findings = [*missing, *(finding for finding in findings if not missing or finding.id != STARTS.id)]
            explanation = attrs.evolve(explanation, not_checked=(*explanation.not_checked, *unseen))
        known = any(finding.blocking for finding in findings)
        kept = tuple(still_there(explanation.findings, explanation.job, pods.pods))
        seen = attrs.evolve(explanation, findings=kept)
        return with_findings(seen, *findings, without=NOT_READY.id if known else "")

    async def _pods(self) -> tuple[PodList | None, str]:
        """The pods, or why they could not be read."""
        with anyio.move_on_after(PATIENCE):
            try:
                return await ask(self.manager, lambda source: source.pods(self.asked)), ""
            except (CommandError, ApiError) as error:
                return None, str(error)
        return None, _LATE

    def _findings(self, explanation: Explanation, pods: PodList) -> list[Finding]:
        job = explanation.job
        context = {"worker": pods.worker, "job": job.job, "namespace": job.namespace}
        findings = [*self._none_made(explanation, pods), *pod_findings(troubled(pods), context)]
        return [finding.mild(job.state is not JobState.RUNNING) for finding in findings]

    def _none_made(self, explanation: Explanation, pods: PodList) -> Iterator[Finding]:
        """That a job has no pods, where its worker says why."""
        if not pods.pods and pods.warning:
            yield NONE_MADE.about(explanation.job.job, pods.warning, {"worker": pods.worker})

    async def _missing(self, needs: Iterable[Dependency]) -> tuple[list[Finding], tuple[str, ...]]:
        """What of these is not on the worker, and what could not be looked for, with why."""
        findings, unseen = list[Finding](), dict.fromkeys(needs, _LATE)
        with anyio.move_on_after(PATIENCE):
            try:
                places = LocatorOfManager(self.manager, self.asked)
                job = await places.placed()
                async with places.client(job.worker) as client:
                    for need in tuple(unseen):
                        try:
                            there = await client.exists(need.resource, ObjectKey(job.namespace_there, need.name))
                        except Forbidden:
                            unseen[need] = "the daemon's account may not get that"
                            continue
                        del unseen[need]
                        if not there:
                            words = {"kind": need.kind, "name": need.name, "worker": job.worker}
                            findings.append(NEED_MISSING.about(job.worker, "", words))
            except (CommandError, ApiError) as error:
                unseen = {need: str(error) if why == _LATE else why for need, why in unseen.items()}
        alike: dict[str, list[Dependency]] = defaultdict(list)
        for need, why in unseen.items():
            alike[why].append(need)
        return findings, tuple(f"whether {', '.join(map(str, each))} is there: {why}" for why, each in alike.items())
