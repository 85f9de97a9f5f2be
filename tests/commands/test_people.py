"""Every command, as each who may run it: an administrator, those with the roles of `rbac user`, and nobody."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import click
import pytest
from click.testing import Result

from multikueue.adapters.pod import KINDS, PODS
from multikueue.core.model.kinds import CONFIG_MAP, JOB, NAMESPACE, WORKLOAD
from multikueue.core.model.labels import RETRY_ANNOTATION
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import annotations_of, name_of, uid
from multikueue.sandbox.apiserver import DirectClient
from multikueue.testing import NOW, job, stored, workload
from multikueue.testing.waiting import until
from multikueued.api_answers import GROUP
from multikueued.cli import main
from multikueued.lazy_group import LazyGroup
from multikueued.rbac.objects import (
    CLUSTER_ROLE,
    CLUSTER_ROLE_BINDING,
    ROLE,
    ROLE_BINDING,
    Account,
    binding,
    role,
    user_kind_rules,
    verbs_of,
    viewer_rules,
)
from multikueued.reading.pods import RETENTION
from multikueued.remoteapi import handlers
from multikueued.reports.published import Published, config_map, written
from multikueued.reports.worker_facts import WorkerFacts
from multikueued.reports.worker_queues import QueuesOnWorker
from tests.commands.people import People, people
from tests.docs.cli_reference import EXIT_CODES
from tests.examples import shared

(POD,) = KINDS

WHO: Final = ("admin", "submitter", "viewer", "nobody")
ENDLESS: Final = ("api-server", "dashboard", "demo", "run", "sandbox")
"""They serve until they are told to stop, and have tests of their own."""
OFFLINE: Final = (0, 0, 0, 0)
"""It prints what it knows by itself."""
OPERATORS: Final = (0, 4, 4, 4)
USERS: Final = (0, 0, 0, 4)
WALK: Final[Mapping[str, tuple[str, tuple[int, int, int, int]]]] = {
    "doctor": ("doctor", (1, 4, 4, 4)),
    "events": ("events job/train", USERS),
    "exec": ("exec job/train -- true", (3, 4, 4, 4)),
    "explain": ("explain job/train", USERS),
    "get jobs": ("get jobs", USERS),
    "get workers": ("get workers", OPERATORS),
    "logs": ("logs job/train", USERS),
    "pods": ("pods job/train", USERS),
    "queues mirror": ("queues mirror user-queue --worker-context manager --worker worker1 --print", OPERATORS),
    "rbac api-server": ("rbac api-server", OFFLINE),
    "rbac logs-worker": ("rbac logs-worker", OFFLINE),
    "rbac manager": ("rbac manager", OFFLINE),
    "rbac spoke": ("rbac spoke", OFFLINE),
    "rbac user": ("rbac user", OFFLINE),
    "rbac worker": ("rbac worker", OFFLINE),
    "retry": ("retry job/train", (0, 0, 4, 4)),
    "status": ("status", OPERATORS),
    "usage": ("usage", (0, 0, 0, 4)),
    "worker add": ("worker add worker3 --worker-context manager --outside --timeout 1s", (1, 4, 4, 4)),
    "worker cordon": ("worker cordon worker2", OPERATORS),
    "worker drain": ("worker drain worker2 --timeout 1s", OPERATORS),
    "worker grant-logs": ("worker grant-logs worker2 --worker-context manager", (1, 4, 4, 4)),
    "worker list": ("worker list", OPERATORS),
    "worker remove": ("worker remove worker2", OPERATORS),
    "worker rotate": ("worker rotate worker1 --worker-context manager --timeout 1s", (1, 4, 4, 4)),
    "worker uncordon": ("worker uncordon worker2", OPERATORS),
}
"""By command: how it is run, and its exit code by who runs it."""
LAST: Final = ("worker remove", "worker rotate")


def _paths(group: Mapping[str, object], before: str = "") -> Iterator[str]:
    for name, command in group.items():
        if isinstance(command, LazyGroup):
            yield from _paths(command.subcommands, f"{before}{name} ")
        elif not isinstance(command, click.Group) and f"{before}{name}" not in ENDLESS:
            yield f"{before}{name}"


def test_every_command_is_walked() -> None:
    assert sorted(WALK) == sorted(_paths(main.subcommands))
    assert {code for _, codes in WALK.values() for code in codes} <= set(EXIT_CODES)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("who", shared(WHO, first=2))
async def test_a_command_ends_as_documented_with_one_message(who: str, tmp_path: Path) -> None:
    wrong: dict[str, str] = {}
    async with people(tmp_path) as here:
        await with_a_job(here)
        for name in sorted(WALK, key=lambda name: (name in LAST, name)):
            arguments, codes = WALK[name]
            if flaw := flaw_of(await here.run(who, *arguments.split()), codes[WHO.index(who)]):
                wrong[name] = flaw
    assert wrong == {}


def flaw_of(done: Result, code: int) -> str:
    """What is not as documented of how a command ended."""
    if not isinstance(done.exception, SystemExit | None) or "Traceback" in done.output:
        return f"traceback: {done.exception!r}"
    if done.exit_code != code:
        return f"{done.exit_code} instead of {code}: {done.output}"
    errors = re.findall(r"^multikueue: error: (.*)$", done.stderr, re.MULTILINE)
    if done.stdout.startswith("Not checked:"):  # doctor, which tells what it could not look at
        return ""
    if code in (3, 4) and (len(errors) != 1 or done.stdout or "is forbidden: User" in errors[0]):
        return f"it is not one clear message: {done.output}"
    return ""


async def with_a_job(here: People) -> None:
    """A job on worker1 that has ended, and that the API knows."""
    await here.stage.fleet.run_with_pod()

    async def known() -> bool:
        return "job/train" in (await here.run("admin", "get", "jobs")).stdout

    await until(known)


@pytest.mark.timeout(60)
async def test_a_viewer_gets_the_same_with_and_without_the_api_but_for_workers(tmp_path: Path) -> None:
    """What may not be read is told in one line, and nothing is said to be missing or lost because of it."""
    async with people(tmp_path) as here:
        await with_a_job(here)
        with_api = await here.run("viewer", "get", "jobs", "-o", "json")
        explained = await here.run("viewer", "explain", "train", "-o", "json")
        pods = await here.run("viewer", "pods", "jobs/train", "-o", "json")
        pod_names = await here.run("viewer", "pods", "jobs/train", "-o", "name")
        logs = await here.run("viewer", "logs", "train")
        here.serves = False
        without = await here.run("viewer", "get", "jobs", "-o", "json")
        alone = await here.run("viewer", "explain", "train", "-o", "json")
        no_pods = await here.run("viewer", "pods", "job/train")
        text = await here.run("viewer", "get", "jobs")

    by_api_listed, other = json.loads(with_api.stdout), json.loads(without.stdout)
    assert by_api_listed["jobs"] == other["jobs"]
    assert by_api_listed["notChecked"] == []
    (gap,) = other["notChecked"]
    assert gap == "you may not read ClusterQueues, checks, configs, workers"
    assert text.stdout.splitlines()[-1] == f"Not checked: {gap}."
    (said,) = json.loads(alone.stdout)["notChecked"]
    assert len(f"Not checked: {said}.") <= 80, "one line of a terminal"
    by_api, by_oneself = json.loads(explained.stdout), json.loads(alone.stdout)
    for field in ("summary", "next", "placements", "findings", "workers"):
        assert by_api[field] == by_oneself[field], field
    assert "Missing" not in alone.stdout
    assert [pod["name"] for pod in json.loads(pods.stdout)["pods"]] == ["train-a"]
    assert pod_names.stdout == "train-a\n", "for loops"
    assert "ended with exit code 0" in logs.stdout
    assert no_pods.exit_code == 4
    assert "ask an operator who may, or for multikueue api-server" in no_pods.stderr


@pytest.mark.timeout(60)
async def test_with_view_alone_there_are_the_jobs_themselves_and_their_events(tmp_path: Path) -> None:
    async with people(tmp_path) as here:
        await with_a_job(here)
        jobs = await here.run("view", "get", "jobs")
        none = await here.run("view", "get", "jobs", "-l", "team=red")
        explained = await here.run("view", "explain", "job/train")
        events = await here.run("view", "events", "job/train")
        pods = await here.run("view", "pods", "job/train")
        missing = await here.run("view", "explain", "job/other")

    assert [done.exit_code for done in (jobs, none, explained, events, pods, missing)] == [0, 0, 0, 0, 4, 3]
    assert "job/train  -        Waiting" in jobs.stdout
    assert none.stdout.splitlines()[0] == "None of the jobs in namespace default match."
    for text in (jobs.stdout, " ".join(explained.stdout.split())):
        assert "Not checked: you may not read Workloads, LocalQueues, ClusterQueues, checks" in text
        assert "shows the role of a viewer (multikueue rbac user)." in text
    assert "workers: which worker has a job" in pods.stderr


@pytest.mark.timeout(60)
async def test_the_api_is_left_where_it_fails_and_its_own_error_told_to_whom_nothing_else_answers(
    tmp_path: Path,
) -> None:
    async with people(tmp_path) as here:
        await with_a_job(here)
        here.broken = True
        admin = await here.run("admin", "get", "jobs")
        viewer = await here.run("viewer", "pods", "job/train")

    assert admin.exit_code == 0
    assert "job/train" in admin.stdout
    assert viewer.exit_code == 4
    assert "the service is away" in viewer.stderr


@pytest.mark.timeout(60)
async def test_all_namespaces_of_a_viewer_are_those_in_which_he_may_list_jobs(tmp_path: Path) -> None:
    """The chart has a role for that, which may be bound to everybody."""
    rule = {"apiGroups": [GROUP], "resources": ["remotenamespaces"], "verbs": ["list"]}
    named = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "namespaces"}}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "namespaces"}
    everybody = [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "system:authenticated"}]
    async with people(tmp_path) as here:
        await with_a_job(here)
        before = await here.run("viewer", "get", "jobs", "-A")
        await here.stage.admin.create(CLUSTER_ROLE, {**named, "kind": "ClusterRole", "rules": [rule]})
        bound = {**named, "kind": "ClusterRoleBinding", "roleRef": reference, "subjects": everybody}
        await here.stage.admin.create(CLUSTER_ROLE_BINDING, bound)

        async def answered() -> bool:  # a refusal is kept for a while
            return (await here.run("viewer", "get", "jobs", "-A")).exit_code == 0

        await until(answered, within=40)
        after = await here.run("viewer", "get", "jobs", "-A")
        nobody = await here.run("nobody", "get", "jobs", "-A")

    assert before.exit_code == 4
    assert "name a namespace with -n, without -A" in before.stderr
    assert after.stdout.splitlines()[1].split()[:3] == ["default", "job/train", "worker1"]
    assert nobody.stdout == "No jobs.\n"


@pytest.mark.timeout(60)
@pytest.mark.parametrize("follow", [(), ("-f",)])
async def test_logs_of_a_job_whose_copy_is_gone_say_the_same_to_everybody(
    follow: tuple[str, ...], tmp_path: Path
) -> None:
    """A submitter read that the cluster does not serve a kind, and whether Kueue was installed there."""
    async with people(tmp_path) as here:
        local, _ = await here.stage.fleet.run_job()
        await here.stage.fleet.finish(local)
        there = DirectClient(here.stage.fleet.workers["worker1"], user="multikueue")
        for resource in (JOB, WORKLOAD):
            for copy in (await there.list(resource)).items:
                await there.delete(resource, ObjectKey.of(copy), uid=uid(copy))
        said = {who: await here.run(who, "logs", "job/train", *follow) for who in ("admin", "submitter", "viewer")}
        pods = {who: (await here.run(who, "pods", "job/train")).stdout for who in said}

    assert all(f"It has no pods there: it has ended. {RETENTION}." in text for text in pods.values())
    assert {who: done.exit_code for who, done in said.items()} == dict.fromkeys(said, 3)
    words = f'job/train has ended on worker cluster "worker1". {RETENTION}'
    assert {done.stderr for done in said.values()} == {f"multikueue: error: {words}\n"}


async def test_a_submitter_retries_a_group_on_one_of_its_pods(tmp_path: Path) -> None:
    """He may patch no Workload. A pod that is gone, or was made again, is passed over."""
    async with people(tmp_path) as here:
        admin = here.stage.admin
        await admin.create(ROLE, role("pods", user_kind_rules(POD, verbs_of("submitter")), "default"))
        await admin.create(ROLE_BINDING, binding("pods", Account("default", "submitter"), "default"))
        for member in ("again", "last"):
            spec: Json = {"containers": [{"name": "main", "image": "example.com/train"}]}
            metadata: Json = {"namespace": "default", "name": member}
            await admin.create(PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
        last = await admin.get(PODS, ObjectKey("default", "last"))
        made = await here.stage.fleet.person.submit("sort")
        members = [("gone", "u1"), ("again", "u2"), ("last", last["metadata"]["uid"])]
        owners = [{"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid} for name, uid in members]
        noted = {"ownerReferences": owners, "annotations": {"kueue.x-k8s.io/is-group-workload": "true"}}
        await admin.merge_patch(WORKLOAD, ObjectKey.of(made), {"metadata": noted})
        name = f"podgroup/{name_of(made)}"
        viewer = await here.run("viewer", "retry", name)
        done = await here.run("submitter", "retry", name)
        pods = [await admin.get(PODS, ObjectKey("default", member)) for member in ("again", "last")]
        workload = await admin.get(WORKLOAD, ObjectKey.of(made))

    assert (viewer.exit_code, done.exit_code) == (4, 0), viewer.output + done.output
    assert f" on pod/last: workers that refuse {name} are asked again" in done.stdout
    assert [RETRY_ANNOTATION in annotations_of(obj) for obj in (*pods, workload)] == [False, True, False]


@pytest.mark.timeout(60)
async def test_what_the_daemon_publishes_is_found_whatever_its_settings_call_it(tmp_path: Path) -> None:
    """By its label; the one of the usual name counts more."""
    queues = QueuesOnWorker({ObjectKey("default", "user-queue"): "cq"}, {"cq": _queue("4")})
    usual = QueuesOnWorker({ObjectKey("default", "user-queue"): "cq"}, {"cq": _queue("6")})
    async with people(tmp_path) as here:
        made = {"worker1": written(Published(WorkerFacts("worker1", queues=queues), quota_at=NOW))}
        await here.stage.admin.create(CONFIG_MAP, config_map("kueue-system", "seen-by-me", made))
        shown = await here.run("admin", "get", "workers", "-o", "json")
        made = {"worker1": written(Published(WorkerFacts("worker1", queues=usual), quota_at=NOW))}
        former = config_map("kueue-system", "multikueue-findings", made)
        await here.stage.admin.create(CONFIG_MAP, former)
        both = await here.run("admin", "get", "workers", "-o", "json")

    assert _totals(shown.stdout)["worker1"] == {"cpu": "4"}
    assert _totals(both.stdout)["worker1"] == {"cpu": "6"}


def _queue(cpu: str) -> Json:
    flavors = [{"name": "default", "resources": [{"name": "cpu", "nominalQuota": cpu}]}]
    return {"metadata": {"name": "cq"}, "spec": {"resourceGroups": [{"coveredResources": ["cpu"], "flavors": flavors}]}}


def _totals(printed: str) -> dict[str, Json]:
    return {worker["name"]: worker["quota"]["total"] for worker in json.loads(printed)["workers"]}


@pytest.mark.timeout(60)
async def test_jobs_of_all_ones_namespaces_are_listed_however_many_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The API tells namespaces in pages; here each page asks about one, and the second shows none."""
    monkeypatch.setattr(handlers, "NAMESPACES", 1)
    async with people(tmp_path) as here:
        admin = here.stage.admin
        await with_a_job(here)
        for name in ("team-a", "team-b"):
            await admin.create(NAMESPACE, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
            made = workload(stored(job("sort", namespace=name)))
            status, metadata = made.pop("status"), made["metadata"]
            del metadata["resourceVersion"], metadata["uid"]
            await admin.create(WORKLOAD, made)
            await admin.merge_patch(WORKLOAD, ObjectKey.of(made), {"status": status}, subresource="status")
        await admin.create(ROLE, role("reads", viewer_rules(), "team-b"))
        await admin.create(ROLE_BINDING, binding("reads", Account("default", "viewer"), "team-b"))
        rule: Json = {"apiGroups": [GROUP], "resources": ["remotenamespaces"], "verbs": ["list"]}
        await admin.create(CLUSTER_ROLE, role("namespaces", [rule]))
        await admin.create(CLUSTER_ROLE_BINDING, binding("namespaces", Account("default", "viewer")))

        async def known() -> bool:
            return (await here.run("admin", "get", "jobs", "-A")).stdout.count("job/sort") == 2

        await until(known)
        done = await here.run("viewer", "get", "jobs", "-A", "-o", "json")

    assert done.exit_code == 0, done.output
    assert [entry["namespace"] for entry in json.loads(done.stdout)["jobs"]] == ["default", "team-b"]
