"""A list of jobs says of each that is kept from running what its explanation says first that somebody has to mend."""

from __future__ import annotations

from typing import Any, Final

import attrs
import pytest

from multikueue.core.model.names import Json, Resource
from multikueue.errors import Forbidden
from multikueue.protocols import ObjectList
from multikueue.testing import NOW
from multikueued.api_answers import REMOTE_JOB
from multikueued.commands.get import gather_jobs
from multikueued.reading import causes
from multikueued.reading.source import JobList, JobsWanted
from multikueued.reading.through_api import CAUSES, ThroughApi
from multikueued.reports.explanation import Explanation
from multikueued.reports.jobs import JobFilter
from tests.commands.breaking import Person, explained, seen_after
from tests.commands.test_breaks import BREAKS
from tests.runtime.fleet import Fleet, now

TOLD: Final = ("token", "kind not enabled", "no LocalQueue there", "worker down", "name taken", "typo in the config")
WANTED: Final = JobsWanted(JobFilter("default"), now=NOW, daemon_namespace="kueue-system")


async def seen(fleet: Fleet) -> tuple[JobList, Explanation]:
    wanted = attrs.evolve(WANTED, now=now())
    return await gather_jobs(Person(fleet.manager), wanted), await explained(fleet)


@pytest.mark.looptime
@pytest.mark.parametrize("name", TOLD, ids=lambda name: name.replace(" ", "-"))
async def test_get_tells_what_explain_finds(name: str) -> None:
    """It told the words of Kueue alone: `ClusterQueue cluster-queue is inactive`, where a token had expired."""
    (case,) = (case for case in BREAKS if case.name == name)
    changes = {when: getattr(case, when) for when in ("before", "submit", "after", "refusals", "kinds", "seconds")}
    listed, explanation = await seen_after(seen, **changes)
    assert [job.reason for job in listed.jobs] == [explanation.findings[0].why]


@pytest.mark.looptime
async def test_of_very_many_those_that_have_waited_longest_are_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(causes, "MOST", 0)
    (case,) = (case for case in BREAKS if case.name == "token")
    listed, _ = await seen_after(seen, before=case.before)
    assert [job.reason for job in listed.jobs] == ["ClusterQueue cluster-queue is inactive"]


@attrs.define
class EarlierApi:
    """A manager whose API knows no causes, or does not tell them to who asks."""

    async def list(self, resource: Resource, *, namespace: str = "", **_: Any) -> ObjectList:
        if resource == CAUSES:
            raise Forbidden("manager: list causes: no", status=403)
        assert (resource, namespace) == (REMOTE_JOB, "default")
        status = {"job": "job/train", "state": "Waiting", "reason": "No worker cluster takes it"}
        item: Json = {"metadata": {"namespace": "default", "name": "job.train"}, "status": status}
        return ObjectList([item], "1")


async def test_who_may_not_ask_for_causes_reads_the_words_of_before() -> None:
    client: Any = EarlierApi()
    listed = await ThroughApi(client).jobs(WANTED)
    assert listed is not None
    assert [job.reason for job in listed.jobs] == ["No worker cluster takes it"]
