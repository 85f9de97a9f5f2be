"""A status that the manager's API server refuses, with the real daemon on a virtual clock: `doctor` and `explain`."""

from __future__ import annotations

from typing import Any

import pytest

from multikueue.core.model.kinds import EVENT, JOB
from multikueue.core.model.labels import FINDING_LABEL
from multikueue.core.model.names import ObjectKey
from multikueue.errors import Forbidden
from multikueue.sandbox.apiserver import Match, Refuse
from multikueued.diagnosis.findings import Diagnosis
from multikueued.reports.explanation import Explanation
from tests.commands.breaking import explained, seen_after
from tests.commands.diagnosing import diagnosed, named
from tests.runtime.fleet import Fleet

pytestmark = pytest.mark.looptime

WORDS = "the manager's API server refuses what the worker says of the job"


async def refuse(fleet: Fleet) -> None:
    """A definition, or a webhook, of the manager's takes no status of Jobs from the daemon."""
    only = Match(verbs=("patch",), resource="jobs", subresource="status", user="multikueue")
    fleet.manager.faults.add(Refuse(422), on=only)


async def both(fleet: Fleet) -> tuple[Diagnosis, Explanation]:
    return await diagnosed(fleet), await explained(fleet)


async def test_the_doctor_and_explain_tell_it_with_what_to_do() -> None:
    diagnosis, explanation = await seen_after(both, before=refuse)
    finding = named(diagnosis, "status-refused")
    assert finding.where == "default/job/job"
    assert WORDS in finding.why
    assert "kubectl -n default get job/job" in finding.remedy
    (explained,) = [finding for finding in explanation.findings if finding.id == "status-refused"]
    assert explained.blocking
    assert "refuses the status of jobs.batch" in explained.told


async def test_not_once_a_status_is_taken() -> None:
    """Events stay for an hour."""

    async def mended(fleet: Fleet) -> None:
        fleet.manager.faults.clear()
        await fleet.admin.merge_patch(JOB, ObjectKey("default", "job"), {"metadata": {"labels": {"mended": "yes"}}})

    async def seen(fleet: Fleet) -> tuple[Diagnosis, Explanation, list[Any]]:
        events = await fleet.admin.list(EVENT, label_selector=FINDING_LABEL)
        return *await both(fleet), [*events.items]

    diagnosis, explanation, events = await seen_after(seen, before=refuse, after=mended)
    assert events
    ids = [*(finding.id for finding in diagnosis.findings), *(finding.id for finding in explanation.findings)]
    assert "status-refused" not in ids


async def test_who_may_not_read_events_is_told_that_this_was_not_checked() -> None:
    async def look(fleet: Fleet) -> Diagnosis:
        return await diagnosed(fleet, manager={("list", "events"): Forbidden("no", status=403)})

    diagnosis = await seen_after(look, before=refuse)
    assert "whether statuses are refused, and fields of copies contested" in [gap.what for gap in diagnosis.not_checked]
