"""What running jobs say themselves, in lists of jobs, in the status, and in an explanation with their pods."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from multikueue.adapters.sets import STATEFUL_SET
from multikueue.core.model.conditions import new_condition
from multikueue.core.model.kinds import EVENT, JOB, POD, SECRET, WORKLOAD
from multikueue.core.model.names import Json, ObjectKey
from multikueue.sandbox.apiserver import DirectClient, Hang, Match, Refuse
from multikueue.testing import NOW
from multikueued.commands.options import CLIENT
from multikueued.reading import own_words
from multikueued.remote import explained_pods
from tests.commands.people import people
from tests.commands.test_on_servers import Shell, shell
from tests.remote.test_on_servers import STARTED, Fleet, fleet
from tests.reports.objects import CHECK

KEY = ObjectKey("default", "train")


async def start(person: Shell, local: Json, *, fails: bool = False) -> None:
    """The check is Ready, and the manager's Job shows a run of which no pod is ready."""
    ready = [{"name": CHECK, "state": "Ready", "message": "", "lastTransitionTime": STARTED}]
    await person.admin.merge_patch(
        WORKLOAD, ObjectKey.of(local), {"status": {"admissionChecks": ready}}, subresource="status"
    )
    key = ObjectKey("default", local["metadata"]["ownerReferences"][0]["name"])
    await person.admin.merge_patch(JOB, key, {"spec": {"suspend": False}})
    ends = new_condition("FailureTarget", True, "BackoffLimitExceeded", "reached the limit", now=NOW)
    status: Json = {"active": 1, "ready": 0, "startTime": STARTED} | ({"conditions": [ends]} if fails else {})
    await person.admin.merge_patch(JOB, key, {"status": status}, subresource="status")


async def test_lists_tell_what_jobs_say_of_trouble(tmp_path: Path) -> None:
    async with shell(tmp_path) as person:
        await start(person, await person.submit("fails", offered=False, cluster="worker1"), fails=True)
        for name in ("waits", "waits-too"):
            await start(person, await person.submit(name, offered=False, cluster="worker1"))
        jobs = json.loads((await person.run("get", "jobs", "-o", "json")).stdout)["jobs"]
        status = await person.run("status", "-o", "json")
        person.server.faults.add(Refuse(403), on=Match(verbs=("get",), resource=JOB.plural))
        refused = json.loads((await person.run("get", "jobs", "-o", "json")).stdout)["jobs"]
        names = await person.run("get", "jobs", "-o", "name")

    none_ready = "none of its pods on worker1 is ready, minutes after it got there"
    assert {job["job"]: job["reason"] for job in jobs} == {
        "job/fails": "BackoffLimitExceeded: reached the limit",
        "job/waits": none_ready,
        "job/waits-too": none_ready,
    }
    assert {job["reason"] for job in refused} == {""}, "who may not get them reads what is known without"
    assert names.exit_code == 0
    findings = [entry for entry in json.loads(status.stdout)["findings"] if entry["id"].startswith("job-")]
    assert [(entry["id"], entry["where"], entry["blocking"]) for entry in findings] == [
        ("job-failing", "default/job/fails", False),
        ("job-not-ready", "default/job/waits and 1 more", False),
    ]


async def test_of_very_many_running_jobs_the_first_are_asked_about(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that have ended cost nothing, whatever their number: no kind is listed."""
    monkeypatch.setattr(own_words, "MOST", 1)
    async with shell(tmp_path) as person:
        for name in ("a", "b"):
            await start(person, await person.submit(name, offered=False, cluster="worker1"), fails=True)
        person.server.faults.add(Refuse(403), on=Match(verbs=("list",), resource=JOB.plural))
        listed = json.loads((await person.run("get", "jobs", "-o", "json")).stdout)
        status = json.loads((await person.run("status", "-o", "json")).stdout)
        text = await person.run("status")

    assert [job["reason"] for job in listed["jobs"]] == ["BackoffLimitExceeded: reached the limit", ""]
    more = "what 1 more running jobs say of themselves: only 1 are asked about"
    assert listed["notChecked"] == status["notChecked"] == [more]
    assert [entry["where"] for entry in status["findings"] if entry["id"] == "job-failing"] == ["default/job/a"]
    assert more in text.stdout


async def explained(here: Fleet, code: int) -> Json:
    done = await here.person.run("explain", "job/train", "-o", "json")
    assert done.exit_code == code, done.output
    explanation: Json = json.loads(done.stdout)
    return explanation


async def pod_that(here: Fleet, copy: Json, **state: Any) -> None:
    """A pod of the job's whose only container says that."""
    await here.pod("train-a", copy, running=True)
    there = DirectClient(here.workers["worker1"], user="multikueue")
    status = {"containerStatuses": [{"name": "main", "ready": False, "restartCount": 0, "state": state}]}
    await there.merge_patch(POD, ObjectKey("default", "train-a"), {"status": status}, subresource="status")


@pytest.mark.parametrize(
    ("reason", "id"),
    [
        ("ErrImagePull", "image-not-pulled"),
        ("CrashLoopBackOff", "container-crashes"),
        ("CreateContainerConfigError", "dependency-missing"),
        ("RunContainerError", "container-not-started"),
    ],
)
async def test_an_explanation_has_the_reason_of_pods_that_do_not_run(reason: str, id: str, tmp_path: Path) -> None:
    async with fleet(tmp_path) as here:
        local, copy = await here.run_job()
        await start(here.person, local)
        await pod_that(here, copy, waiting={"reason": reason, "message": "its words"})
        explanation = await explained(here, 1)

    (finding,) = explanation["findings"]
    assert (finding["id"], finding["where"], finding["told"]) == (
        id,
        "pod train-a",
        f"container main: {reason}: its words",
    )


async def test_pods_are_asked_where_the_job_does_not_tell(tmp_path: Path) -> None:
    """As with StatefulSets, groups of pods, and jobs that may not be read."""
    async with fleet(tmp_path) as here:
        local, copy = await here.run_job()
        await start(here.person, local)
        await pod_that(here, copy, waiting={"reason": "ImagePullBackOff"})
        here.person.server.faults.add(Refuse(403), on=Match(verbs=("get",), resource=JOB.plural))
        explanation = await explained(here, 1)

    assert [entry["id"] for entry in explanation["findings"]] == ["image-not-pulled"]
    assert explanation["summary"] == 'Worker cluster "worker1" has it, and somebody has to act: ' + (
        "the image of container main cannot be pulled on worker1."
    )


async def test_where_pods_may_not_be_read_the_next_step_is_named(tmp_path: Path) -> None:
    async with fleet(tmp_path) as here:
        local, copy = await here.run_job()
        await start(here.person, local)
        await pod_that(here, copy, waiting={"reason": "ErrImagePull"})
        here.workers["worker1"].faults.add(Refuse(403), on=Match(verbs=("list",), resource=POD.plural))
        explanation = await explained(here, 1)

    (finding,) = explanation["findings"]
    assert (finding["id"], finding["blocking"]) == ("job-not-ready", True)
    assert finding["remedy"].startswith("multikueue pods job/train -n default")
    assert [entry for entry in explanation["notChecked"] if entry.startswith("its pods: ")] != []


async def test_a_failed_jobs_pods_name_the_reason(tmp_path: Path) -> None:
    async with fleet(tmp_path) as here:
        local, copy = await here.run_job()
        await pod_that(here, copy, terminated={"reason": "OOMKilled", "exitCode": 137, "finishedAt": STARTED})
        await here.finish(local, reason="Failed")
        explanation = await explained(here, 0)

    assert [(entry["id"], entry["blocking"]) for entry in explanation["findings"]] == [
        ("out-of-memory", False),
        ("job-failed", False),
    ]
    assert explanation["findings"][0]["told"] == "container main: OOMKilled, exit code 137"
    logs = "multikueue logs job/train -n default has its words, as long as worker1 keeps its copy"
    assert explanation["findings"][1]["remedy"] == logs


async def test_pods_that_went_with_the_end_of_their_job_are_not_told_as_never_made(tmp_path: Path) -> None:
    async with fleet(tmp_path) as here:
        local, _ = await here.run_job()
        await here.finish(local, reason="Failed")
        explanation = await explained(here, 0)
        listed = await here.person.run("pods", "job/train")

    assert [entry["id"] for entry in explanation["findings"]] == ["job-failed"]
    assert "It has no pods there: it has ended. Finished copies vanish; set retention" in listed.stdout, listed.output


@pytest.mark.parametrize("there", [False, True])
async def test_a_secret_that_is_not_on_the_worker(there: bool, tmp_path: Path) -> None:
    """A volume of it keeps the pod from starting, and only an event there says so."""
    async with fleet(tmp_path) as here:
        local, copy = await here.run_job(needs=["db"])
        await start(here.person, local)
        await pod_that(here, copy, waiting={"reason": "ContainerCreating"})
        if there:
            made: Json = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "db", "namespace": "default"}}
            await DirectClient(here.workers["worker1"], user="multikueue").create(SECRET, made)
        explanation = await explained(here, 1)

    ids = ["job-not-ready", "pod-starts"] if there else ["dependency-missing"]
    assert [entry["id"] for entry in explanation["findings"]] == ids
    if not there:
        assert explanation["findings"][0]["why"] == "its pods name Secret db, which is not on worker1"


async def test_one_that_may_not_be_looked_for_is_told(tmp_path: Path) -> None:
    async with fleet(tmp_path) as here:
        local, copy = await here.run_job(needs=["db"])
        await start(here.person, local)
        await pod_that(here, copy, waiting={"reason": "ContainerCreating"})
        here.workers["worker1"].faults.add(Refuse(403), on=Match(verbs=("get",), resource=SECRET.plural))
        explanation = await explained(here, 1)

    assert 'whether Secret "db" is there: the daemon\'s account may not get that' in explanation["notChecked"]
    assert 'they name Secret "db"' in explanation["findings"][0]["why"]


@pytest.mark.parametrize(("fault", "why"), [(Refuse(500), "injected 500"), (Hang(), "no answer within")])
async def test_what_is_not_looked_for_in_time_or_for_an_error_is_told_beside_what_is_missing(
    fault: Refuse | Hang, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(explained_pods, "PATIENCE", 1.0)
    async with fleet(tmp_path) as here:
        local, copy = await here.run_job(needs=["certificate", "db", "key"])
        await start(here.person, local)
        await pod_that(here, copy, waiting={"reason": "ContainerCreating"})
        here.workers["worker1"].faults.add(fault, on=Match(verbs=("get",), resource=SECRET.plural, name="db"))
        explanation = await explained(here, 1)

    assert [entry["why"] for entry in explanation["findings"]] == [
        "its pods name Secret certificate, which is not on worker1"
    ]
    (gap,) = (entry for entry in explanation["notChecked"] if entry.startswith("whether Secret"))
    assert gap.startswith('whether Secret "db", Secret "key" is there: ')
    assert why in gap


async def test_pods_that_may_not_be_seen_are_told(tmp_path: Path) -> None:
    """What stands between a job and its pods may not be listed: those that were seen are not all."""
    async with fleet(tmp_path) as here:
        local, copy = await here.run_job()
        await start(here.person, local)
        await pod_that(here, copy, waiting={"reason": "ErrImagePull"})
        pod: Json = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "a", "image": "a"}]}}
        web: Json = {
            "metadata": {"name": "web", "namespace": "default"},
            "apiVersion": "apps/v1",
            "kind": "StatefulSet",
        }
        web["spec"] = {"serviceName": "web", "selector": {"matchLabels": {"app": "web"}}, "template": pod}
        there = DirectClient(here.workers["worker1"], user="multikueue")
        await here.pod("web-0", await there.create(STATEFUL_SET.resource, web))
        here.workers["worker1"].faults.add(Refuse(403), on=Match(verbs=("list",), resource="statefulsets"))
        explanation = await explained(here, 1)

    assert [entry["id"] for entry in explanation["findings"]] == ["image-not-pulled"]
    assert "whether it has more pods there: statefulsets.apps may not be listed there" in explanation["notChecked"]


@pytest.mark.timeout(60)
async def test_a_submitter_reads_the_same_through_the_api(tmp_path: Path) -> None:
    """The API knows neither the job nor its pods: what the submitter may read of both is added, for a submitter."""
    async with people(tmp_path) as here:
        local, copy = await here.stage.fleet.run_job()
        await start(here.stage.fleet.person, local)
        await pod_that(here.stage.fleet, copy, waiting={"reason": "ErrImagePull", "message": "its words"})
        said = {who: await here.run(who, "explain", "job/train", "-o", "json") for who in ("admin", "submitter")}
        await start(here.stage.fleet.person, local, fails=True)
        failing = await here.run("submitter", "explain", "job/train", "-o", "json")
        listed = await here.run("submitter", "get", "jobs")

    assert {who: done.exit_code for who, done in said.items()} == {"admin": 1, "submitter": 1}
    findings = {who: json.loads(done.stdout)["findings"] for who, done in said.items()}
    assert {who: [entry["id"] for entry in each] for who, each in findings.items()} == {
        "admin": ["image-not-pulled"],
        "submitter": ["image-not-pulled"],
    }
    assert "ServiceAccount" in findings["admin"][0]["remedy"]
    assert findings["submitter"][0]["remedy"].endswith("or ask whoever runs the workers for the right to pull it")
    assert json.loads(failing.stdout)["findings"][0]["id"] == "job-failing"
    assert "BackoffLimitExceeded: reached the limit" in listed.stdout


async def test_a_list_does_not_wait_for_what_jobs_say_that_are_not_answered_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each was asked about with the deadline of a command: with a slow manager a list took minutes."""
    monkeypatch.setattr(own_words, "PATIENCE", 0.5)
    async with shell(tmp_path) as person:
        await start(person, await person.submit("fails", offered=False, cluster="worker1"), fails=True)
        person.server.faults.add(Hang(), on=Match(verbs=("get",), resource=JOB.plural))
        with anyio.fail_after(CLIENT.deadline / 2):
            listed = json.loads((await person.run("get", "jobs", "-o", "json")).stdout)

    assert [job["job"] for job in listed["jobs"]] == ["job/fails"]
    assert listed["notChecked"] == ["what 1 more running jobs say of themselves: no answer within 0.5 s"]


@pytest.mark.parametrize("permitted", [True, False])
async def test_a_job_whose_pods_nobody_can_make(permitted: bool, tmp_path: Path) -> None:
    """Its PriorityClass is not there. It was Running without a word for five minutes, and then had "no pods yet"."""
    words = 'pods "train-" is forbidden: no PriorityClass with name pp was found'
    async with fleet(tmp_path) as here:
        local, copy = await here.run_job()
        await start(here.person, local)
        there = DirectClient(here.workers["worker1"], user="multikueue")
        about = {
            "kind": "Job",
            "apiVersion": "batch/v1",
            **{f: copy["metadata"][f] for f in ("name", "namespace", "uid")},
        }
        event: Json = {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": "train.1", "namespace": "default"},
            "regarding": about,
            "type": "Warning",
            "reason": "FailedCreate",
            "note": words,
            "eventTime": "2026-01-01T00:00:00.000000Z",
            "reportingController": "job-controller",
            "reportingInstance": "job-controller",
            "action": "Create",
        }
        await there.create(EVENT, event)
        if not permitted:
            here.workers["worker1"].faults.add(Refuse(403), on=Match(verbs=("list",), resource=EVENT.plural))
        explanation = await explained(here, 1)
        listed = await here.person.run("pods", "job/train")

    (finding,) = explanation["findings"]
    expected = ("pods-refused", f"FailedCreate: {words}") if permitted else ("job-not-ready", "")
    assert (finding["id"], finding["told"]) == expected
    assert ("It has no pods there: FailedCreate: " in listed.stdout) is permitted, listed.output
