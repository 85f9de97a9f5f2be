"""A list of jobs says of each that is kept from running what its explanation says first that somebody has to mend."""

from __future__ import annotations

from typing import Any, Final

import anyio
import attrs
import pytest

from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.errors import ApiError, Forbidden, ServerFault, TooManyRequests
from multikueue.protocols import ObjectList
from multikueue.testing import NOW
from multikueued.api_answers import REMOTE_JOB
from multikueued.commands.get import gather_jobs
from multikueued.reading.source import JobList, JobsWanted
from multikueued.reading.through_api import AT_ONCE, CAUSES, NAMESPACES, ThroughApi
from multikueued.reports import waiting_jobs
from multikueued.reports.explanation import Explanation
from multikueued.reports.job_findings import findings_of
from multikueued.reports.jobs import JobFilter, JobReport, JobState
from multikueued.reports.objects import ManagerObjects
from tests.commands.breaking import Person, explained, seen_after
from tests.commands.test_breaks import BREAKS
from tests.commands.test_ten_breaks import BREAKS as TEN
from tests.core.building import workload
from tests.reports.objects import fleet
from tests.reports.test_places import late, waits
from tests.runtime.fleet import Fleet, now

JOB: Final = JobReport(
    "job/train", "default", JobState.WAITING, "", (), "user-queue", "cq", "job-train", "", None, None, ""
)
TOLD: Final = (
    "token void",
    "kind not enabled",
    "LocalQueue missing",
    "worker down",
    "name taken",
    "typo in the config",
)
WANTED: Final = JobsWanted(JobFilter("default"), now=NOW, daemon_namespace="kueue-system")


async def seen(fleet: Fleet) -> tuple[JobList, Explanation]:
    wanted = attrs.evolve(WANTED, now=now())
    return await gather_jobs(Person(fleet.manager), wanted), await explained(fleet)


@pytest.mark.looptime
@pytest.mark.parametrize("name", TOLD, ids=lambda name: name.replace(" ", "-"))
async def test_get_tells_what_explain_finds(name: str) -> None:
    """It told the words of Kueue alone: `ClusterQueue cluster-queue is inactive`, where a token had expired."""
    (case,) = (each for each in (*BREAKS, *TEN) if each.name == name)
    every = ("before", "submit", "after", "refusals", "kinds", "seconds")
    changes = {when: getattr(case, when) for when in every if hasattr(case, when)}
    listed, explanation = await seen_after(seen, **changes)
    assert [job.reason for job in listed.jobs] == [explanation.findings[0].sentence]


def _workload(name: str, minute: int, *, active: bool = True) -> Json:
    """A Workload that waits for quota, or was deactivated."""
    local = workload()
    local["metadata"] |= {"name": name, "uid": name, "creationTimestamp": f"2026-11-29T10:{minute:02}:00Z"}
    local["spec"]["active"] = active
    return {**local, "status": {}}


def test_what_waits_is_explained_before_what_somebody_has_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those stay for ever: two hundred of them, and no job that waits was explained."""
    monkeypatch.setattr(waiting_jobs, "AT_A_LOOK", 2)
    asked: list[str] = []

    def noted(seen: Any) -> Any:
        asked.append(seen.workload["metadata"]["name"])
        return findings_of(seen)

    monkeypatch.setattr(waiting_jobs, "findings_of", noted)
    listed = (_workload("off", 1, active=False), _workload("late", 3), _workload("early", 2))
    monkeypatch.setattr(ManagerObjects, "dispatched", listed)
    waiting_jobs.causes(ManagerObjects(workloads=listed), NOW)
    assert asked == ["early", "late"]


@pytest.mark.parametrize(("state", "reason"), [("Running", ""), ("Finished", ""), ("Waiting", "the token is void")])
def test_causes_of_before_are_not_told_of_what_runs(state: str, reason: str) -> None:
    """They are kept for some seconds: a job that ran had the reason for which it had waited."""
    job = attrs.evolve(JOB, state=JobState(state))
    with_causes = waiting_jobs.with_causes((job,), {ObjectKey(job.namespace, job.workload): "the token is void"})
    assert [report.reason for report in with_causes] == [reason]


@attrs.define
class EarlierApi:
    """A manager whose API knows no causes, or does not tell them to who asks, or not now."""

    error: ApiError

    async def list(self, resource: Resource, *, namespace: str = "", **_: Any) -> ObjectList:
        if resource == CAUSES:
            raise self.error
        assert (resource, namespace) == (REMOTE_JOB, "default")
        status = {"job": "job/train", "state": "Waiting", "reason": "No worker cluster takes it"}
        item: Json = {"metadata": {"namespace": "default", "name": "job.train"}, "status": status}
        return ObjectList([item], "1")


@pytest.mark.parametrize(
    ("error", "not_checked"),
    [
        (Forbidden("manager: list causes: no", status=403), ()),
        (TooManyRequests("manager: list causes: later", status=429), ("causes of jobs in default",)),
        (ServerFault("manager: list causes: failed", status=500), ("causes of jobs in default",)),
    ],
)
async def test_without_causes_the_list_has_the_words_of_before(error: ApiError, not_checked: tuple[str, ...]) -> None:
    """What fails for them alone took the whole list away."""
    client: Any = EarlierApi(error)
    listed = await ThroughApi(client).jobs(WANTED)
    assert listed is not None
    assert ([job.reason for job in listed.jobs], listed.not_checked) == (["No worker cluster takes it"], not_checked)


@attrs.define
class ManyNamespaces:
    """A manager whose API is asked for causes by who may see some namespaces, or all of them."""

    sees_all: bool
    asked: list[str] = attrs.field(factory=list)
    at_once: int = 0
    most: int = 0

    async def list(self, resource: Resource, *, namespace: str = "", **_: Any) -> ObjectList:
        if resource == REMOTE_JOB:
            status = {"job": "job/train", "state": "Waiting", "workload": "train"}
            names = [f"team-{number:02}" for number in range(12)]
            return ObjectList(
                [{"metadata": {"namespace": name, "name": "job.train"}, "status": status} for name in names], ""
            )
        self.asked.append(namespace)
        if not (namespace or self.sees_all):
            raise Forbidden("manager: list causes: no", status=403)
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        await anyio.sleep(1)
        self.at_once -= 1
        chosen = [namespace] if namespace else [f"team-{number:02}" for number in range(12)]
        return ObjectList(
            [{"metadata": {"namespace": name, "name": "train"}, "why": "the token is void"} for name in chosen], ""
        )


@pytest.mark.looptime
@pytest.mark.parametrize("sees_all", [True, False])
async def test_causes_of_many_namespaces_are_one_question_or_asked_side_by_side(sees_all: bool) -> None:
    """One after the other they had five seconds together, and the rest was not told."""
    manager = ManyNamespaces(sees_all)
    client: Any = manager
    listed = await ThroughApi(client).jobs(attrs.evolve(WANTED, chosen=JobFilter("")))
    assert listed is not None
    assert {job.reason for job in listed.jobs} == {"the token is void"}
    assert listed.not_checked == ()
    assert (len(manager.asked), manager.most) == ((1, 1) if sees_all else (13, AT_ONCE))


def test_a_job_starves_by_those_of_other_namespaces_whoever_asks() -> None:
    """`get` of one namespace saw that one alone."""
    gang = waits("gang", minutes=90)
    passed = late(20)
    passed["metadata"]["namespace"] = "other"
    known = waiting_jobs.causes(fleet(gang, passed), NOW, "default")
    assert known == {
        ObjectKey.of(gang): "held for more than an hour, while jobs of its queue that came later have started"
    }
    assert waiting_jobs.causes(fleet(gang, passed), NOW, "other") == {}


@attrs.define
class NamespacesAlone:
    """A manager whose API is asked for jobs by who may list them in some namespaces, and not in all."""

    at_once: int = 0
    most: int = 0

    async def list(self, resource: Resource, *, namespace: str = "", **_: Any) -> ObjectList:
        if resource == NAMESPACES:
            return ObjectList([{"metadata": {"name": f"team-{number}"}} for number in range(9)], "")
        if not namespace:
            raise Forbidden("manager: list remotejobs: no", status=403)
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        await anyio.sleep(1)
        self.at_once -= 1
        status = {"job": "job/train", "state": "Running", "workload": "train"}
        return ObjectList([{"metadata": {"namespace": namespace, "name": "job.train"}, "status": status}], "")


@pytest.mark.looptime
async def test_jobs_of_many_namespaces_are_asked_for_a_few_at_a_time() -> None:
    """The API reads four lists of one person at a time, and refuses the fifth."""
    manager = NamespacesAlone()
    client: Any = manager
    listed = await ThroughApi(client).all_jobs("")
    assert len({job.namespace for job in listed}) == 9
    assert manager.most == AT_ONCE
