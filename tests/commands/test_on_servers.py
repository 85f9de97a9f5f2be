"""The commands over HTTPS: output, exit codes, and errors for people."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread
import attrs
import pytest
import yaml
from click.testing import CliRunner, Result

from multikueue.core.model.kinds import (
    ADMISSION_CHECK,
    EVENT,
    JOB,
    MULTIKUEUE_CLUSTER,
    WORKLOAD,
)
from multikueue.core.model.labels import CORDON_ANNOTATION, RETRY_ANNOTATION
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import annotations_of
from multikueue.sandbox.apiserver import ApiServer, DirectClient, Match, Refuse
from multikueue.sandbox.kinds import BATCH_JOB, define
from multikueue.sandbox.setting_up import CHECK, connect_workers, set_up_queues
from multikueue.testing import job, queues, workload
from multikueued.cli import main
from tests.reports.objects import worker
from tests.runtime.fleet import CRDS, kubeconfig

TOKENS = {"admins-token": "admin"}


@attrs.define(eq=False)
class Shell:
    """A manager that is served over HTTPS, and somebody with a kubeconfig of it."""

    server: ApiServer
    file: Path

    @property
    def admin(self) -> DirectClient:
        """Straight to the objects."""
        return DirectClient(self.server)

    async def run(self, *arguments: str, **environment: str) -> Result:
        """Run `multikueue` in a thread: it has an event loop of its own."""
        command = partial(CliRunner().invoke, main, [*arguments, "--kubeconfig", str(self.file)], env=environment)
        return await anyio.to_thread.run_sync(command)

    async def submit(
        self, name: str = "train", *, offered: bool = True, cluster: str = "", needs: Sequence[str] = ()
    ) -> Json:
        """A Job, which may mount Secrets, with its Workload, as far as Kueue and the daemon have brought it."""
        described = job(name)
        if needs:
            mounts = [{"name": name, "secret": {"secretName": name}} for name in needs]
            described["spec"]["template"]["spec"]["volumes"] = mounts
        stored = await self.admin.create(JOB, described)
        made = workload(stored, nominated=("worker1",) if offered else (), cluster=cluster)
        status = made.pop("status")
        for field in ("uid", "resourceVersion", "creationTimestamp"):
            made["metadata"].pop(field)
        created = await self.admin.create(WORKLOAD, made)
        return await self.admin.merge_patch(WORKLOAD, ObjectKey.of(created), {"status": status}, subresource="status")


@asynccontextmanager
async def shell(folder: Path) -> AsyncIterator[Shell]:
    """A manager with one worker that is connected, as its objects say."""
    async with ApiServer("manager", tokens=dict(TOKENS)) as server:
        file = folder / "kubeconfig"
        file.write_text(json.dumps(server.kubeconfig("admin")))
        define(server.registry, (BATCH_JOB,), CRDS)
        admin = DirectClient(server)
        await set_up_queues(admin, {"cpu": "4"}, [CHECK])
        await connect_workers(admin, {"worker1": kubeconfig("worker1")})
        connected = {"status": worker("worker1")["status"]}
        await admin.merge_patch(MULTIKUEUE_CLUSTER, ObjectKey("", "worker1"), connected, subresource="status")
        (_, check, *_) = queues(checked=True)
        active = {"status": check["status"]}
        await admin.merge_patch(ADMISSION_CHECK, ObjectKey("", CHECK), active, subresource="status")
        yield Shell(server, file)


async def test_status_get_and_explain(tmp_path: Path) -> None:
    async with shell(tmp_path) as person:
        await person.submit("a" * 60)
        status = await person.run("status")
        jobs = await person.run("get", "jobs")
        workers = await person.run("get", "workers", "-o", "json")
        explained = await person.run("explain", f"job/{'a' * 60}")

    assert "worker1  Connected" in status.stdout
    assert "Jobs: 1 (1 Offered)" in status.stdout
    assert jobs.exit_code == 0
    assert jobs.stdout.splitlines()[0].split() == ["JOB", "CLUSTER", "STATE", "AGE", "REASON"]
    assert f"job/{'a' * 60}  -        Offered" in jobs.stdout  # a pipe has no width, so nothing is cut
    assert [worker_shown["name"] for worker_shown in json.loads(workers.stdout)["workers"]] == ["worker1"]
    assert "What happens next:" in explained.stdout
    assert all(len(line) <= 80 for line in explained.stdout.splitlines())
    for printed in (status, jobs, explained):
        assert "\x1b" not in printed.stdout  # no terminal, no colours


async def test_wide_tables_have_more_columns(tmp_path: Path) -> None:
    async with shell(tmp_path) as person:
        await person.submit("a" * 60)
        jobs = await person.run("get", "jobs", "-A", "-o", "wide", "--user-label", "team")
        workers = await person.run("get", "workers", "-o", "wide")
        status = await person.run("status", "-o", "wide")

    heading, line = jobs.stdout.splitlines()
    assert heading.split()[:5] == ["NAMESPACE", "JOB", "CLUSTER", "STATE", "AGE"]
    assert heading.split()[5:] == [
        *("USER", "QUEUE", "CLUSTERQUEUE", "PLACE", "START"),
        *("OFFERED", "SINCE", "WORKLOAD", "REASON"),
    ]
    assert f"job/{'a' * 60}" in line  # nothing is cut
    for printed in (workers, status):
        assert {"CHECKS", "ATTEMPTS"} <= set(printed.stdout.split())


async def test_a_finding_is_exit_code_1(tmp_path: Path) -> None:
    async with shell(tmp_path) as person:
        await person.submit()
        lost = {"status": worker("worker1", "Unauthorized", reason="ClientConnectionFailed")["status"]}
        await person.admin.merge_patch(MULTIKUEUE_CLUSTER, ObjectKey("", "worker1"), lost, subresource="status")
        status = await person.run("status")
        explained = await person.run("explain", "train", "-o", "yaml")
        jobs = await person.run("get", "jobs")

    assert (status.exit_code, explained.exit_code, jobs.exit_code) == (1, 1, 0)
    assert "secret generic worker1-secret --from-file=kubeconfig=FILE" in " ".join(status.stdout.split())
    assert "bad-token" in [entry["id"] for entry in yaml.safe_load(explained.stdout)["findings"]]


async def test_jobs_by_label_worker_state_and_namespace(tmp_path: Path) -> None:
    async with shell(tmp_path) as person:
        await person.submit("one")
        await person.submit("two", cluster="worker1", offered=False)
        await person.admin.merge_patch(JOB, ObjectKey("default", "two"), {"metadata": {"labels": {"team": "red"}}})

        async def names(*arguments: str) -> list[str]:
            done = await person.run("get", "jobs", "-o", "json", *arguments)
            return [entry["job"] for entry in json.loads(done.stdout)["jobs"]]

        assert await names() == ["job/one", "job/two"]
        assert await names("-l", "team=red") == ["job/two"]
        assert await names("-l", "team!=red") == ["job/one"]
        assert await names("--state", "starting") == ["job/two"]
        assert await names("-n", "elsewhere") == []
        assert await names("-A", "--worker", "worker1") == ["job/one", "job/two"]
        nobody = await person.run("get", "jobs", "-n", "elsewhere")
        none = await person.run("get", "jobs", "-l", "team=blue")
        wrong = [await person.run("get", "jobs", "-n", "elsewhere", "-l", text) for text in ("a=(", "a in (", "a,")]
        right = [await person.run("get", "jobs", "-l", text) for text in ("a", "!a", "x.y/a notin (b, c),d!=e")]
        no_label = await person.run("get", "jobs", "--user", "me")

    assert nobody.stdout == "No jobs in namespace elsewhere; -A shows all.\n"
    assert none.stdout == "None of the jobs in namespace default match.\n"
    assert [done.exit_code for done in (*wrong, *right)] == [2, 2, 2, 0, 0, 0]
    assert "'a=(' is no label selector" in wrong[0].stderr
    assert no_label.exit_code == 2
    assert "--user needs --user-label" in no_label.stderr


async def test_a_job_that_does_not_exist_is_exit_code_3_with_a_hint(tmp_path: Path) -> None:
    async with shell(tmp_path) as person:
        await person.submit()
        results = [
            await person.run(command, *arguments)
            for command in ("explain", "events", "retry")
            for arguments in (["job/trian"], ["train", "-n", "other"])
        ]

    assert [result.exit_code for result in results] == [3] * 6
    assert results[0].stderr == (
        'multikueue: error: there is no job/trian in namespace default: did you mean "job/train"?\n'
    )
    assert "there is one in namespace default: use -n default" in results[1].stderr


async def test_a_name_alone_of_two_jobs_is_asked_about(tmp_path: Path) -> None:
    async with shell(tmp_path) as person:
        made = await person.submit()
        owner = {"apiVersion": "ray.io/v1", "kind": "RayJob", "name": "train", "uid": "u", "controller": True}
        metadata = {"name": "other", "namespace": "default", "ownerReferences": [owner]}
        twin = {"apiVersion": made["apiVersion"], "kind": "Workload", "metadata": metadata, "spec": made["spec"]}
        await person.admin.create(WORKLOAD, twin)
        result = await person.run("explain", "train")
        by_type = await person.run("explain", "rayjob/train")

    assert result.exit_code == 2
    assert "say which of job/train, rayjob/train" in result.stderr
    assert "rayjob/train in namespace default" in by_type.stdout


async def test_a_job_with_several_workloads(tmp_path: Path) -> None:
    async with shell(tmp_path) as person:
        made = await person.submit()
        owners = made["metadata"]["ownerReferences"]
        metadata = {"name": "part-2", "namespace": "default", "ownerReferences": owners}
        part = {"apiVersion": made["apiVersion"], "kind": "Workload", "metadata": metadata, "spec": made["spec"]}
        await person.admin.create(WORKLOAD, part)
        of_the_job = await person.run("explain", "job/train", "-o", "json")
        of_the_part = await person.run("explain", "workload/part-2", "-o", "json")

    listed = json.loads(of_the_job.stdout)
    assert {f"workload/{listed['job']['workload']}", *listed["others"]} == {
        f"workload/{made['metadata']['name']}",
        "workload/part-2",
    }
    assert json.loads(of_the_part.stdout)["job"]["workload"] == "part-2"


async def test_a_job_without_a_workload(tmp_path: Path) -> None:
    async with shell(tmp_path) as person:
        await person.admin.create(JOB, job("alone"))
        explained = await person.run("explain", "job/alone")
        retried = await person.run("retry", "job/alone")

    assert explained.exit_code == 1
    assert "Kueue has not made a Workload" in " ".join(explained.stdout.split())
    assert retried.exit_code == 3


async def test_events_of_a_job(tmp_path: Path) -> None:
    async with shell(tmp_path) as person:
        made = await person.submit()
        regarding = {"kind": "Workload", "name": made["metadata"]["name"], "uid": made["metadata"]["uid"]}
        last = "2026-01-01T00:10:00.000000Z"
        await person.admin.create(
            EVENT,
            {
                "apiVersion": "events.k8s.io/v1",
                "kind": "Event",
                "metadata": {"name": "e", "namespace": "default"},
                "eventTime": "2026-01-01T00:00:00.000000Z",
                "reportingController": "multikueue",
                "reportingInstance": "pod",
                "action": "MultiKueue",
                "reason": "MultiKueue",
                "type": "Warning",
                "regarding": {**regarding, "namespace": "default", "apiVersion": made["apiVersion"]},
                "note": "worker cluster refuses it",
                "series": {"count": 3, "lastObservedTime": last},
            },
        )
        table = await person.run("events", "job/train")
        listed = json.loads((await person.run("events", "job/train", "-o", "json")).stdout)["events"]

    assert table.stdout.splitlines()[0].startswith("01-01 00:00:00Z Warning workload/")
    assert "3 times" in " ".join(table.stdout.split())
    assert "worker cluster refuses it" in table.stdout
    assert [(event["count"], event["last"]) for event in listed] == [(3, "2026-01-01T00:10:00Z")]


async def test_retry_writes_the_annotation(tmp_path: Path) -> None:
    async with shell(tmp_path) as person:
        made = await person.submit()
        result = await person.run("retry", "train", "-o", "json")
        written = await person.admin.get(JOB, ObjectKey("default", "train"))
        assert RETRY_ANNOTATION not in annotations_of(await person.admin.get(WORKLOAD, ObjectKey.of(made)))
        refusal = person.server.faults.add(Refuse(403), on=Match(verbs=("patch",), resource="jobs"))
        on_workload = await person.run("retry", "train")
        noted = annotations_of(await person.admin.get(WORKLOAD, ObjectKey.of(made)))
        both = person.server.faults.add(Refuse(403), on=Match(verbs=("patch",), resource="workloads"))
        neither = await person.run("retry", "train")
        person.server.faults.remove(refusal)
        person.server.faults.remove(both)
        await person.submit("runs", cluster="worker1", offered=False)
        (check,) = made["status"]["admissionChecks"]
        ready = {"status": {"admissionChecks": [{**check, "state": "Ready"}]}}
        (runs,) = [made for made in (await person.admin.list(WORKLOAD)).items if "runs" in made["metadata"]["name"]]
        await person.admin.merge_patch(WORKLOAD, ObjectKey.of(runs), ready, subresource="status")
        refused = await person.run("retry", "runs")

    retried = json.loads(result.stdout)
    assert result.exit_code == 0
    assert written["metadata"]["annotations"][RETRY_ANNOTATION] == retried["retryAt"]
    assert "workers that refuse job/train are asked again" in retried["told"]
    assert f"on Workload {ObjectKey.of(made)}:" in on_workload.stdout
    assert RETRY_ANNOTATION in noted
    assert neither.exit_code == 4
    assert "patch jobs.batch: injected 403" in neither.stderr
    assert refused.exit_code == 1
    assert "job/runs is Running: there is no worker to be asked again" in refused.stderr


async def test_a_manager_that_is_away(tmp_path: Path) -> None:
    async with shell(tmp_path) as person:
        pass
    result = await person.run("status")

    assert result.exit_code == 4
    assert result.stderr.startswith("multikueue: error: the manager at https://")
    assert "cannot be reached" in result.stderr
    assert "look at --kubeconfig, --context and the network" in result.stderr
    assert result.stderr.count("\n") == 1


async def test_events_that_may_not_be_read_are_not_checked(tmp_path: Path) -> None:
    async with shell(tmp_path) as person:
        await person.submit()
        person.server.faults.add(Refuse(403), on=Match(verbs=("list",), resource="events"))
        result = await person.run("explain", "train")

    assert "you may not list events.events.k8s.io" in " ".join(result.stdout.split()).partition("Not checked: ")[2]


def test_without_a_kubeconfig_it_says_what_to_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    result = CliRunner().invoke(main, ["status"], env={"KUBECONFIG": "", "KUBERNETES_SERVICE_HOST": ""})

    assert result.exit_code == 2
    assert "name a kubeconfig with --kubeconfig" in result.stderr


async def test_the_namespace_of_the_context_is_the_default(tmp_path: Path) -> None:
    async with shell(tmp_path) as person:
        document = json.loads(person.file.read_text())
        document["contexts"][0]["context"]["namespace"] = "team"
        person.file.write_text(json.dumps(document))
        result = await person.run("get", "jobs")

    assert result.stdout == "No jobs in namespace team; -A shows all.\n"


async def test_a_job_whose_label_names_no_queue_is_shown_with_the_one_that_may_be_meant(tmp_path: Path) -> None:
    """It was in none of the lists: nothing led from it to a check."""
    async with shell(tmp_path) as person:
        made = await person.submit("typo", offered=False)
        key = ObjectKey.of(made)
        without = {"status": {"admission": None, "admissionChecks": None, "conditions": None}}
        await person.admin.merge_patch(WORKLOAD, key, without, subresource="status")
        await person.admin.merge_patch(WORKLOAD, key, {"spec": {"queueName": "user-qeue"}})
        jobs = await person.run("get", "jobs")
        status = await person.run("status")
        explained = await person.run("explain", "job/typo")
        doctor = await person.run("doctor")

    guess = 'LocalQueue default/user-qeue: it does not exist (did you mean "user-queue"?)'
    assert guess in jobs.stdout
    assert "Jobs: 1 (1 Queued)" in status.stdout
    assert status.exit_code == 0, "whoever submitted it has to act, no operator"
    for done in (status, explained, doctor):
        assert guess in " ".join(done.stdout.split())


async def test_status_tells_that_a_worker_refuses_jobs_why_one_is_cordoned_and_how_old_figures_are(
    tmp_path: Path,
) -> None:
    """A worker that is connected and whose RBAC refuses every job was all green."""
    async with shell(tmp_path) as person:
        made = await person.submit()
        before = await person.run("status")
        refusal = 'worker1: jobs.batch is forbidden: User "x" cannot create resource "jobs" in API group "batch"'
        (check,) = made["status"]["admissionChecks"]
        refused = {"status": {"admissionChecks": [{**check, "message": f"Offered to worker1 — {refusal}"}]}}
        await person.admin.merge_patch(WORKLOAD, ObjectKey.of(made), refused, subresource="status")
        after = await person.run("status")
        cordon = {"metadata": {"annotations": {CORDON_ANNOTATION: "disks are changed"}}}
        await person.admin.merge_patch(MULTIKUEUE_CLUSTER, ObjectKey("", "worker1"), cordon)
        cordoned = await person.run("status")

    assert before.exit_code == 0
    assert after.exit_code == 1
    assert "the daemon's identity on worker1 may not create jobs" in " ".join(after.stdout.split())
    (line,) = [line for line in cordoned.stdout.splitlines() if line.startswith("worker1 ")]
    assert "Connected,Cordoned" in line
    assert line.endswith("disks are changed")


async def test_usage_is_computed_from_the_workloads_that_are_there(tmp_path: Path) -> None:
    async with shell(tmp_path) as person:
        created = await person.submit(offered=False, cluster="worker1")
        long_ago = [
            {**entry, "lastTransitionTime": "2020-01-01T00:00:00Z"} for entry in created["status"]["conditions"]
        ]
        used = {"name": "main", "count": 1, "resourceUsage": {"cpu": "2"}}
        admission = {"clusterQueue": "cluster-queue", "podSetAssignments": [used]}
        status = {"admission": admission, "conditions": long_ago}
        await person.admin.merge_patch(WORKLOAD, ObjectKey.of(created), {"status": status}, subresource="status")
        printed = await person.run("usage", "-A")
        elsewhere = await person.run("usage", "-n", "elsewhere")
        asked = json.loads((await person.run("usage", "--last", "1h", "-o", "json")).stdout)

    assert printed.exit_code == elsewhere.exit_code == 0
    assert printed.stdout.splitlines()[2].split()[:5] == ["default", "user-queue", "worker1", "-", "1"]
    nothing = "No worker has been used by the Workloads that are still there in namespace elsewhere; -A counts all.\n"
    assert elsewhere.stdout == nothing
    assert asked["uses"][0]["seconds"] == {"cpu": 7200.0}


async def test_a_worker_or_queue_that_does_not_exist_is_no_list_without_entries(tmp_path: Path) -> None:
    """`None of the jobs match` is said of names that there are; what may not be read is not said to be missing."""
    async with shell(tmp_path) as person:
        await person.submit()
        for command in (("get", "jobs"), ("usage",)):
            worker = await person.run(*command, "--worker", "wroker1")
            assert (worker.exit_code, worker.stdout) == (3, "")
            assert 'there is no MultiKueueCluster "wroker1" on the manager: did you mean "worker1"?' in worker.stderr
            queue = await person.run(*command, "--queue", "user-qeue")
            assert (queue.exit_code, queue.stdout) == (3, "")
            assert 'there is no LocalQueue "user-qeue" in namespace default' in queue.stderr
            assert 'did you mean "user-queue"?' in queue.stderr
            there = await person.run(*command, "--worker", "worker1", "--queue", "cluster-queue", "-n", "elsewhere")
            assert there.exit_code == 0, there.stderr
        for resource in ("localqueues", "multikueueclusters"):
            person.server.faults.add(Refuse(403), on=Match(verbs=("list", "get"), resource=resource))
        unseen = await person.run("get", "jobs", "--worker", "wroker1", "--queue", "user-qeue")

    assert unseen.stdout.startswith("None of the jobs in namespace default match.\n")
