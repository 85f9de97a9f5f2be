"""Jobs and the fleet as objects of the manager: over HTTPS, by the word of a front proxy.

Which changes of the manager make jobs anew.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import aiohttp
import anyio
import anyio.lowlevel
import pytest

from multikueue.core.model.conditions import new_condition, timestamp
from multikueue.core.model.kinds import CONFIG_MAP, LEASE, MULTIKUEUE_CLUSTER, NAMESPACE, WORKLOAD
from multikueue.core.model.names import Json, ObjectKey
from multikueue.testing import NOW, job, stored, workload
from multikueue.testing.waiting import until
from multikueued.rbac.objects import ROLE, ROLE_BINDING, Account, binding, role
from multikueued.remoteapi import handlers, manager_view
from multikueued.remoteapi.job_query import BREATH, page_of
from multikueued.remoteapi.job_watch import INITIAL_EVENTS_END
from multikueued.remoteapi.manager_view import ManagerView
from multikueued.reports.published import Published, config_map, written
from multikueued.reports.worker_facts import WorkerFacts
from multikueued.reports.worker_queues import QueuesOnWorker
from tests.commands.test_report_runner import NOBODY
from tests.logserver.stage import BASE, FINDINGS, LEASE_OF_DAEMON, TENANT, Stage, stage

JOBS = f"{BASE}/namespaces/default/remotejobs"
TENANT_TOO = "system:serviceaccount:default:other"
READER = "system:serviceaccount:default:reader"
EVERYTHING = ("remotejobs", "remotejobs/pods", "remotejobs/events", "remotejobs/explain", "fleet", "remotenamespaces")
OWN = f"{BASE}/namespaces/default"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


async def read(here: Stage, path: str, **options: Any) -> Json:
    status, text = await here.ask(path, user=READER, **options)
    assert status == 200, text
    answer: Json = json.loads(text)
    return answer


async def ready(here: Stage) -> None:
    await here.grant(READER, resources=EVERYTHING)

    async def served() -> bool:
        return (await here.ask(JOBS, user=READER))[0] == 200

    await until(served)


@asynccontextmanager
async def served(folder: Path) -> AsyncIterator[Stage]:
    """The server, when its reader is answered."""
    async with stage(folder) as here:
        await ready(here)
        yield here


async def next_event(response: aiohttp.ClientResponse) -> Json:
    with anyio.fail_after(10):
        event: Json = json.loads(await response.content.readline())
    return event


async def event_where(response: aiohttp.ClientResponse, wanted: Callable[[Json], bool]) -> Json:
    """The first such event: what changes quickly may be told at once."""
    while not wanted(event := await next_event(response)):
        pass
    return event


async def test_a_job_is_listed_got_explained_and_printed(tmp_path: Path) -> None:
    async with served(tmp_path) as here:
        local, copy = await here.fleet.run_job()
        await here.fleet.pod("train-a", copy, running=True)
        async with here.asking(JOBS, user=READER, watch="true") as response:
            await next_event(response)
        listed = await read(here, JOBS)
        job = await read(here, f"{JOBS}/job.train")
        explained = await read(here, f"{JOBS}/job.train/explain")
        events = await read(here, f"{JOBS}/job.train/events")
        pods = await read(here, f"{JOBS}/job.train/pods")
        missing = await here.refused(f"{JOBS}/job.other", user=READER)

    assert [item["metadata"]["name"] for item in listed["items"]] == ["job.train"]
    assert listed["items"][0] == job
    assert (job["status"]["cluster"], job["status"]["workload"]) == ("worker1", local["metadata"]["name"])
    assert int(job["metadata"]["resourceVersion"]) <= int(listed["metadata"]["resourceVersion"])
    assert explained["job"]["worker"] == "worker1"
    assert events["items"] == []
    assert [pod["name"] for pod in pods["pods"]] == ["train-a"]
    assert missing == (404, 'remotejobs.remote.multikueue.dev "job.other" not found')


async def test_every_field_of_a_job_is_documented(tmp_path: Path) -> None:
    async with served(tmp_path) as here:
        await here.fleet.run_job()
        async with here.asking(JOBS, user=READER, watch="true") as response:
            await next_event(response)
        job = await read(here, f"{JOBS}/job.train")
        document = await read(here, f"/openapi/v3{BASE}")

    schema = document["components"]["schemas"]["dev.multikueue.remote.v1alpha1.RemoteJob"]
    assert job["status"]["placements"], "or nothing is compared"
    assert undocumented(job, schema) == []


def undocumented(value: Any, schema: Json, path: str = "") -> list[str]:
    """Fields that `kubectl explain` does not know; what has no properties of its own may have any."""
    if isinstance(value, list):
        return [place for item in value for place in undocumented(item, schema["items"], f"{path}[]")]
    if not isinstance(value, dict) or "properties" not in schema:
        return []
    known = schema["properties"]
    return [
        undescribed
        for name, item in value.items()
        for undescribed in (undocumented(item, known[name], f"{path}.{name}") if name in known else [f"{path}.{name}"])
    ]


async def test_a_job_whose_name_has_its_group_has_logs(tmp_path: Path) -> None:
    """Its name here is dashed, and no TYPE that people write."""
    volcano: Json = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "sort", "uid": "u"}}
    async with stage(tmp_path) as here:
        await ready(here)
        made = await here.fleet.person.submit("sort", offered=False)
        owner = {**volcano, **volcano["metadata"], "controller": True}
        del owner["metadata"]
        await here.admin.merge_patch(WORKLOAD, ObjectKey.of(made), {"metadata": {"ownerReferences": [owner]}})

        async def named() -> list[str]:
            return [job["metadata"]["name"] for job in (await read(here, JOBS))["items"]]

        async def renamed() -> bool:
            return await named() == ["job-batch-volcano-sh.sort"]

        await until(renamed)
        names = await named()
        code, message = await here.refused(f"{JOBS}/{names[0]}/log")

    assert names == ["job-batch-volcano-sh.sort"]
    assert code == 404
    assert message.startswith("job.batch.volcano.sh/sort has no pods: no worker has it; it is Waiting")


async def test_kubectl_gets_a_table_and_pages(tmp_path: Path) -> None:
    async with served(tmp_path) as here:
        await here.fleet.run_job()
        async with here.asking(JOBS, user=READER, watch="true", accept=TABLE) as response:
            event = await next_event(response)
        printed = await read(here, JOBS, accept=TABLE)
        bad = [
            await here.refused(JOBS, user=READER, **{name: value})
            for name, value in (
                ("labelSelector", "a=b"),
                ("fieldSelector", "status.state=Running"),
                ("continue", "?"),
                ("limit", "x"),
            )
        ]

    assert event["type"] == "ADDED"
    assert [column["name"] for column in printed["columnDefinitions"]][:4] == ["Name", "State", "Cluster", "Since"]
    assert printed["rows"][0]["cells"][0] == "job.train"
    assert printed["rows"][0]["object"]["kind"] == "PartialObjectMetadata"
    assert [code for code, _ in bad] == [400] * 4


async def test_a_watch_shows_what_changes_and_an_old_version_is_gone(tmp_path: Path) -> None:
    async with served(tmp_path) as here:
        local = await here.fleet.person.submit(offered=False)
        async with here.asking(JOBS, user=READER, watch="true") as first:
            added = await next_event(first)
        version = added["object"]["metadata"]["resourceVersion"]
        async with here.asking(JOBS, user=READER, watch="true", resourceVersion=version) as response:
            again = await next_event(response)
            await here.fleet.move(local, "worker1")
            changed = await event_where(response, lambda event: "cluster" in event["object"]["status"])
            # What is known of a worker is part of its jobs: no Workload has changed.
            gone = await here.admin.get(MULTIKUEUE_CLUSTER, ObjectKey("", "worker1"))
            await here.admin.delete(MULTIKUEUE_CLUSTER, ObjectKey.of(gone))
            lost = await event_where(response, lambda event: event["object"]["status"]["state"] == "Lost")
            await here.admin.merge_patch(WORKLOAD, ObjectKey.of(local), {"metadata": {"finalizers": None}})
            await here.admin.delete(WORKLOAD, ObjectKey.of(local))
            deleted = await event_where(response, lambda event: event["type"] == "DELETED")
        async with here.asking(JOBS, user=READER, watch="true", sendInitialEvents="true") as response:
            end = await next_event(response)
        old = await here.refused(JOBS, user=READER, watch="true", resourceVersion="1")
        forged = [await here.refused(JOBS, user=READER, **asked) for asked in FORGED]

    assert (added["type"], again["type"]) == ("ADDED", "ADDED")
    assert (changed["type"], changed["object"]["status"]["cluster"]) == ("MODIFIED", "worker1")
    assert lost["object"]["status"]["state"] == "Lost"
    assert deleted["type"] == "DELETED"
    versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in (added, changed, lost, deleted)]
    assert versions == sorted(versions)
    assert (end["type"], end["object"]["metadata"]["annotations"]) == ("BOOKMARK", {INITIAL_EVENTS_END: "true"})
    assert old[0] == 410
    assert [code for code, _ in forged] == [410] * len(FORGED)


NEVER = str(10**20 - 1)
FORGED = (
    {"resourceVersion": NEVER[:18]},
    {"resourceVersion": NEVER[:18], "watch": "true"},
    {"continue": base64.urlsafe_b64encode(f'[{NEVER}, "a", "b"]'.encode()).decode()},
    {"continue": base64.urlsafe_b64encode(f'["{NEVER}", "", ""]'.encode()).decode()},
)
"""Versions that no server has given: a watch behind one of them would show nothing for ever."""


async def test_a_page_of_many_jobs_lets_others_run() -> None:
    """A list held its place without an await, so that no place was ever taken."""
    jobs = {ObjectKey(f"ns-{number % 7}", f"{number:05}"): {"number": number} for number in range(4 * BREATH)}
    ran = list[int]()

    async def other() -> None:
        while len(ran) < 3:
            ran.append(len(ran))
            await anyio.lowlevel.checkpoint()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(other)
        shown, last = await page_of(jobs, lambda job: job["number"] % 2 == 0, ("ns-1", ""), 3)
        assert ran
    assert [job["number"] for job in shown] == [8, 22, 36]
    assert last == ObjectKey("ns-1", "00036")
    assert await page_of(jobs, lambda _: True, ("ns-6", "99999"), math.inf) == ([], None)


async def test_every_replica_understands_the_versions_of_the_others(tmp_path: Path) -> None:
    """A watch that moves to another replica, which began later, goes on or is told to list again: nothing is missed."""
    async with served(tmp_path) as here:
        await here.fleet.person.submit(offered=False)
        async with here.asking(JOBS, user=READER, watch="true") as response:
            version = (await next_event(response))["object"]["metadata"]["resourceVersion"]
        async with here.another() as second:
            await until(lambda: _serves(second))
            older = await second.ask(JOBS, user=READER, watch="true", resourceVersion="1", timeoutSeconds="1")
            listed = await read(second, JOBS)
            there = listed["metadata"]["resourceVersion"]
            async with second.asking(JOBS, user=READER, watch="true", resourceVersion=there) as response:
                newer = response.status

    assert older[0] == 410
    assert int(listed["metadata"]["resourceVersion"]) >= int(version)
    assert newer == 200


async def _serves(here: Stage) -> bool:
    return (await here.ask(JOBS, user=READER))[0] == 200


async def test_who_may_not_is_refused_and_the_fleet_has_no_address(tmp_path: Path) -> None:
    async with served(tmp_path) as here:
        await here.fleet.run_job()
        refused = [
            await here.refused(path, user=TENANT)
            for path in (JOBS, f"{JOBS}/job.train", f"{JOBS}/job.train/explain", f"{BASE}/fleet", f"{BASE}/remotejobs")
        ]
        names = (await read(here, f"{BASE}/remotenamespaces"))["items"]
        fleet = await read(here, f"{BASE}/fleet")

    assert [code for code, _ in refused] == [403] * 5
    assert 'cannot list resource "remotejobs" in API group' in refused[0][1]
    assert names == [{"metadata": {"name": "default"}}]
    assert [worker["name"] for worker in fleet["status"]["workers"]] == ["worker1", "worker2"]
    assert "https://" not in json.dumps(fleet)


WHOLE = ("overview", "timeline", "places")


async def test_a_page_of_jobs_is_of_the_namespaces_that_who_asks_may_list(tmp_path: Path) -> None:
    """Of all namespaces, each sees theirs; who has seen it already gets nothing but that it is the same."""
    async with served(tmp_path) as here:
        await here.fleet.run_job()
        rule = {"apiGroups": ["remote.multikueue.dev"], "resources": ["remotejobs"], "verbs": ["list"]}
        await here.admin.create(ROLE, role("own", [rule], "default"))
        await here.admin.create(ROLE_BINDING, binding("own", Account("default", "other"), "default"))

        async def known() -> bool:
            return bool((await read(here, f"{BASE}/jobpage"))["status"]["inAll"])

        await until(known)
        pages = {
            user: json.loads((await here.ask(f"{BASE}/jobpage", user=user))[1]) for user in (READER, TENANT_TOO, TENANT)
        }
        own = json.loads((await here.ask(f"{OWN}/jobpage", user=TENANT_TOO))[1])
        again = json.loads((await here.ask(f"{OWN}/jobpage", user=TENANT_TOO, seen=own["seen"]))[1])
        refused = await here.refused(f"{OWN}/jobpage", user=TENANT)

    assert {user: page["status"]["inAll"] for user, page in pages.items()} == {READER: 1, TENANT_TOO: 1, TENANT: 0}
    assert pages[TENANT]["status"]["states"] == []
    assert [job["job"] for job in own["status"]["jobs"]] == ["job/train"]
    assert again == {field: own[field] for field in ("apiVersion", "kind", "seen")}
    assert refused[0] == 403


async def test_sums_are_of_the_jobs_that_who_asks_may_list(tmp_path: Path) -> None:
    """Who may list jobs of one namespace sees its history, waiting times and findings, and nothing of another's; the
    fleet is for who may see that. Answers are kept by what they show, so nobody gets another's."""
    async with served(tmp_path) as here:
        await here.admin.create(NAMESPACE, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "others"}})
        await here.fleet.run_job()
        stranger = workload(stored(job("secret", namespace="others")), quota=False)
        for field in ("resourceVersion", "uid"):
            del stranger["metadata"][field]
        del stranger["status"]
        stranger["spec"]["queueName"] = "no-such-queue"
        await here.admin.create(WORKLOAD, stranger)
        rule = {"apiGroups": ["remote.multikueue.dev"], "resources": ["remotejobs"], "verbs": ["list"]}
        await here.admin.create(ROLE, role("own", [rule], "default"))
        await here.admin.create(ROLE_BINDING, binding("own", Account("default", "other"), "default"))
        answers: list[Json] = []

        async def known() -> bool:
            answers[:] = [(await read(here, f"{BASE}/overview"))["status"]]
            return bool(answers[0]["jobs"]["running"] and answers[0]["findings"])

        await until(known)
        own = {part: json.loads((await here.ask(f"{OWN}/{part}", user=TENANT_TOO))[1]) for part in WHOLE}
        refused = [await here.refused(f"{BASE}/{part}", user=TENANT_TOO) for part in WHOLE]
        refused += [await here.refused(f"{BASE}/namespaces/others/{part}", user=TENANT_TOO) for part in WHOLE]
        whole = await read(here, f"{BASE}/timeline", seconds="600", until="99999999999999")
        odd = [await here.refused(f"{BASE}/timeline", user=READER, seconds=value) for value in ("x", "-1")]

    assert [code for code, _ in refused] == [403] * 6
    assert "no-such-queue" in json.dumps(answers[0]["findings"])
    assert own["overview"]["status"]["jobs"]["running"] == 1
    assert (own["overview"]["status"]["findings"], own["overview"]["status"]["use"]) == ([], [])
    assert "secret" not in json.dumps(own)
    assert [job["job"] for job in own["timeline"]["status"]["jobs"]] == ["job/train"]
    assert {job["job"] for job in whole["status"]["jobs"]} >= {"job/train"}
    assert [code for code, _ in odd] == [400] * 2


async def test_that_nobody_dispatches_needs_somebody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As `multikueue status` says, by the Lease of the name that the option says; to a tenant it is none of theirs."""
    monkeypatch.setattr(manager_view, "FINDINGS_AGAIN", 0.05)
    monkeypatch.setattr(handlers, "FLEET_KEPT", 0.05)
    async with stage(tmp_path) as here:
        spec = {"holderIdentity": "gone", "leaseDurationSeconds": 15, "renewTime": "2026-01-01T00:00:00.000000Z"}
        metadata = {"namespace": LEASE_OF_DAEMON.namespace, "name": LEASE_OF_DAEMON.name}
        lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}
        await here.admin.create(LEASE, lease)
        await ready(here)

        async def needs_somebody() -> bool:
            findings = (await read(here, f"{BASE}/overview"))["status"]["findings"]
            return [finding["id"] for finding in findings if finding["blocking"]][:1] == ["daemon-not-running"]

        await until(needs_somebody)
        assert (await read(here, f"{OWN}/overview"))["status"]["findings"] == []


async def test_the_fleet_has_what_the_daemon_publishes_and_what_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ConfigMap has the name that the option says; what a lost worker's error quotes has no address."""
    monkeypatch.setattr(manager_view, "FINDINGS_AGAIN", 0.05)
    monkeypatch.setattr(handlers, "FLEET_KEPT", 0.05)
    spec = {"resourceGroups": [{"flavors": [_flavor("spot", nominalQuota="4"), _flavor("steady", nominalQuota="6")]}]}
    used = {"flavorsUsage": [_flavor("spot", total="1"), _flavor("steady", total="2")]}
    queues = QueuesOnWorker(
        {ObjectKey("default", "user-queue"): "cq"}, {"cq": {"metadata": {"name": "cq"}, "spec": spec, "status": used}}
    )
    written_facts = written(Published(WorkerFacts("worker1", queues=queues), quota_at=NOW))
    async with stage(tmp_path) as here:
        stored = config_map(FINDINGS.namespace, FINDINGS.name, {"worker1": written_facts})
        await here.admin.create(CONFIG_MAP, stored)
        await ready(here)
        await _lose(here, "worker2")
        answers: list[Json] = []

        async def shown() -> bool:
            answers[:] = (await read(here, f"{BASE}/fleet"))["status"]["workers"]
            return "quota" in answers[0] and answers[1]["state"] == "Lost"

        await until(shown)

    flavors = [
        {"name": "spot", "used": "1", "nominal": "4", "ours": "0", "others": "1"},
        {"name": "steady", "used": "2", "nominal": "6", "ours": "0", "others": "2"},
    ]
    assert answers[0]["quota"] == [{"resource": "cpu", "used": "3", "nominal": "10", "flavors": flavors}]
    assert answers[0]["readAt"] == timestamp(NOW)
    assert [finding["id"] for finding in answers[1]["findings"]] == ["worker-not-connected"]
    assert "10.11.12.13" not in json.dumps(answers)


def _flavor(name: str, **amounts: str) -> Json:
    return {"name": name, "resources": [{"name": "cpu", **amounts}]}


async def test_of_many_namespaces_each_page_is_asked_about(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handlers, "NAMESPACES", 2)
    names = [f"ns-{number}" for number in range(5)]
    async with served(tmp_path) as here:
        for name in names:
            await here.admin.create(NAMESPACE, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
            made = workload(stored(job("train", namespace=name)))
            del made["metadata"]["resourceVersion"], made["metadata"]["uid"]
            status = made.pop("status")
            await here.admin.create(WORKLOAD, made)
            await here.admin.merge_patch(WORKLOAD, ObjectKey.of(made), {"status": status}, subresource="status")
        await here.grant(TENANT_TOO, resources=("remotenamespaces",))
        rule = {"apiGroups": ["remote.multikueue.dev"], "resources": ["remotejobs"], "verbs": ["list"]}
        await here.admin.create(ROLE, role("reads", [rule], "ns-4"))
        await here.admin.create(ROLE_BINDING, binding("reads", Account("default", "other"), "ns-4"))

        async def all_shown() -> bool:
            return [name for page in await _pages(here, READER) for name in page] == names

        await until(all_shown)
        own = await _pages(here, TENANT_TOO)

    assert own == [[], [], ["ns-4"]]


async def _pages(here: Stage, user: str) -> list[list[str]]:
    pages: list[list[str]] = []
    more = ""
    while more or not pages:
        status, text = await here.ask(f"{BASE}/remotenamespaces", user=user, **{"continue": more})
        assert status == 200, text
        page = json.loads(text)
        pages.append([job["metadata"]["name"] for job in page["items"]])
        more = page["metadata"].get("continue", "")
    return pages


async def _lose(here: Stage, worker: str) -> None:
    lost = new_condition(
        "Active",
        status=False,
        reason="ClientConnectionFailed",
        now=NOW,
        message="dial tcp 10.11.12.13:6443: refused",
    )
    key = ObjectKey("", worker)
    await here.admin.merge_patch(MULTIKUEUE_CLUSTER, key, {"status": {"conditions": [lost]}}, subresource="status")


async def test_a_tenant_reads_no_address_of_a_worker(tmp_path: Path) -> None:
    async with served(tmp_path) as here:
        await here.fleet.run_job()
        await _lose(here, "worker1")

        async def is_lost() -> bool:
            return bool((await read(here, f"{JOBS}/job.train"))["status"]["state"] == "Lost")

        await until(is_lost)
        answers = [await read(here, f"{JOBS}/job.train{part}") for part in ("", "/explain", "/events")]

    assert "10.11.12.13" not in json.dumps(answers)
    assert "refused" in answers[0]["status"]["reason"]


async def test_one_workload_that_cannot_be_shown_stops_nobody(tmp_path: Path) -> None:
    """Whoever may patch a Workload writes times that are none in UTC."""
    async with served(tmp_path) as here:
        local, _ = await here.fleet.run_job()
        noted = json.dumps(
            [{"worker": "worker1", "since": "0001-01-01T00:00:00+23:59", "until": "9999-12-31T23:59:59-23:59"}]
        )
        annotations = {"metadata": {"annotations": {"multikueue.dev/placements": noted}}}
        await here.admin.merge_patch(WORKLOAD, ObjectKey.of(local), annotations)
        async with here.another() as second:
            await until(lambda: _serves(second))
            job = await read(second, f"{JOBS}/job.train")
        fleet = await read(here, f"{BASE}/fleet")

    assert job["status"]["cluster"] == "worker1"
    assert fleet["kind"] == "Fleet"


async def test_a_reader_who_is_gone_frees_the_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("multikueued.api_server.running.WATCHES_PER_USER", 1)
    async with served(tmp_path) as here:
        await here.fleet.person.submit(offered=False)

        async def watches() -> bool:
            async with here.asking(JOBS, user=READER, watch="true") as response:
                return response.status == 200 and bool(await next_event(response))

        for _ in range(3):
            await until(watches)


async def test_bookmarks_are_for_those_who_ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """kubectl prints every event of its watch."""
    monkeypatch.setattr("multikueued.remoteapi.job_watch.BOOKMARK", 0.1)
    async with served(tmp_path) as here:
        version = (await read(here, JOBS))["metadata"]["resourceVersion"]
        asked = {"watch": "true", "resourceVersion": version, "timeoutSeconds": "1"}
        without = await here.ask(JOBS, user=READER, **asked)
        async with here.asking(JOBS, user=READER, allowWatchBookmarks="true", **asked) as response:
            event = await next_event(response)

    assert (without[0], without[1].strip()) == (200, "")
    assert event["type"] == "BOOKMARK"


async def test_a_watch_ends_once_its_user_may_not_read_any_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("multikueued.logserver.access.CHECK", 0.1)
    async with served(tmp_path) as here:
        await here.fleet.person.submit(offered=False)
        async with here.asking(JOBS, user=READER, watch="true") as response:
            await next_event(response)
            await here.revoke(READER)
            with anyio.fail_after(10):
                rest = await response.content.read()

    assert rest == b""


async def test_watches_have_bounds_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("multikueued.api_server.running.WATCHES_PER_USER", 1)
    async with served(tmp_path) as here:
        await here.fleet.person.submit(offered=False)
        async with here.asking(JOBS, user=READER, watch="true") as response:
            await next_event(response)
            refused = await here.refused(JOBS, user=READER, watch="true")
            listed = await here.ask(JOBS, user=READER)

    assert (refused[0], listed[0]) == (429, 200)


async def test_a_job_whose_queue_does_not_exist_is_there_until_it_is_somebody_elses(tmp_path: Path) -> None:
    async with served(tmp_path) as here:
        made = await here.fleet.person.submit(offered=False)
        key = ObjectKey.of(made)
        without = {"status": {"admission": None, "admissionChecks": None, "conditions": None}}
        await here.admin.merge_patch(WORKLOAD, key, without, subresource="status")
        await here.admin.merge_patch(WORKLOAD, key, {"spec": {"queueName": "user-qeue"}})

        async def is_explained() -> bool:
            items = (await read(here, JOBS))["items"]
            return any('did you mean "user-queue"?' in item["status"].get("reason", "") for item in items)

        await until(is_explained)


KEY = ObjectKey("default", "queue")


def queue(**changed: Json) -> Json:
    return {"metadata": {"namespace": "default", "name": "queue"}, "spec": {"clusterQueue": "cq"}, **changed}


@pytest.mark.parametrize(
    ("kind", "old", "new", "due"),
    [
        ("local_queues", queue(status={"pendingWorkloads": 1}), queue(status={"pendingWorkloads": 2}), False),
        ("local_queues", queue(), queue(spec={"clusterQueue": "other"}), True),
        ("local_queues", queue(), None, True),
        ("cluster_queues", queue(status={"pendingWorkloads": 1}), queue(status={"pendingWorkloads": 2}), False),
        ("cluster_queues", queue(), queue(spec={"admissionChecks": ["multikueue"]}), True),
        ("checks", queue(), queue(status={}), True),
    ],
)
async def test_figures_of_queues_make_no_job_anew(kind: str, old: Json | None, new: Json | None, due: bool) -> None:
    """Kueue writes them with each admission, and there may be ten thousand jobs."""
    view = ManagerView(cast(Any, NOBODY), lambda: NOW, cast(Any, None), "kueue-system")
    view._by_job[ObjectKey("default", "job.train")] = {ObjectKey("default", "w")}
    view._other_changed(kind, KEY, old, new)
    assert bool(view._due) is due
