"""Workers on sandbox servers with the real daemon: added, used, cordoned, drained, rotated and removed."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from multikueue.core.machinery.connection import CREDENTIALS
from multikueue.core.model.conditions import condition, is_true
from multikueue.core.model.kinds import JOB, MULTIKUEUE_CLUSTER, NAMESPACE, POD, SECRET, WORKLOAD
from multikueue.core.model.labels import CORDON_ANNOTATION
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import annotations_of
from multikueue.errors import Forbidden
from multikueue.kube import KubeClient, parse_worker_kubeconfig
from multikueue.sandbox.setting_up import set_up_queues
from multikueued.rbac.objects import CLUSTER_ROLE, CLUSTER_ROLE_BINDING, SERVICE_ACCOUNT
from multikueued.rbac.role_rule import allow, rule
from multikueued.rbac.rules import ON_WORKER
from tests.daemon.workers.ground import KUEUE_NAMESPACE, Ground, ground, until

pytestmark = pytest.mark.timeout(120)


async def waits(here: Ground, words: str) -> None:
    """Wait until the check of a Workload says something."""

    async def messages() -> list[str]:
        workloads = (await here.manager.list(WORKLOAD)).items
        return [
            entry.get("message", "")
            for workload in workloads
            for entry in workload["status"].get("admissionChecks", ())
        ]

    await until(messages, lambda messages: any(words in message for message in messages))


async def tokens(here: Ground, worker: str) -> list[str]:
    secrets = (await here.worker(worker).list(SECRET, namespace=KUEUE_NAMESPACE)).items
    return [secret["metadata"]["name"] for secret in secrets]


async def test_a_worker_is_added_to_bare_clusters_and_runs_a_job(tmp_path: Path) -> None:
    async with ground(tmp_path, workers=1) as here:
        await set_up_queues(here.worker("worker1"), {"cpu": "4"})
        said = await here.done("worker", "add", "worker1", "--worker-context", "worker1", "--outside")
        assert "worker1 is connected, and MultiKueueConfig multikueue lists it" in said
        assert is_true(await here.cluster("worker1"), "Active")
        assert await here.clusters() == ["worker1"]
        await here.submit("first")
        await until(here.runs_on, lambda places: places == {"first": ["worker1"]})


async def test_the_same_again_changes_nothing(tmp_path: Path) -> None:
    async with ground(tmp_path, workers=1, joined=["worker1"]) as here:

        async def versions() -> list[str]:
            there = here.worker("worker1")
            role = ObjectKey("", "kueue-system-multikueue")
            objects = [
                await here.kubeconfig_of("worker1"),
                await here.cluster("worker1"),
                await there.get(CLUSTER_ROLE, role),
                await there.get(CLUSTER_ROLE_BINDING, role),
                await there.get(SERVICE_ACCOUNT, ObjectKey(KUEUE_NAMESPACE, "multikueue")),
                await there.get(SECRET, ObjectKey(KUEUE_NAMESPACE, "multikueue-token")),
            ]
            return [obj["metadata"]["resourceVersion"] for obj in objects]

        before = await versions()
        await here.done("worker", "add", "worker1", "--worker-context", "worker1", "--outside")
        assert await versions() == before
        assert await here.clusters() == ["worker1"]


async def test_a_cluster_that_is_a_worker_already_is_said_to_get_nothing_by_another_name(tmp_path: Path) -> None:
    async with ground(tmp_path, workers=1, joined=["worker1"]) as here:
        said = await here.done("worker", "add", "worker1-too", "--worker-context", "worker1", "--outside")
        assert "worker1-too gets no jobs: it leads to the same cluster as worker1, and gets nothing beside it." in said
        again = await here.done("worker", "add", "worker1", "--worker-context", "worker1", "--outside")
        assert "gets no jobs" not in again


async def test_the_same_with_other_options_takes_no_grant_away(tmp_path: Path) -> None:
    async with ground(tmp_path, workers=1) as here:
        command = ("worker", "add", "worker1", "--worker-context", "worker1", "--outside")
        await here.done(*command, "--logs", "--least")
        assert "the same command with --diagnose grants that" in await here.done(*command)
        rules = (await here.worker("worker1").get(CLUSTER_ROLE, ObjectKey("", "kueue-system-multikueue")))["rules"]
        assert not allow(rules, ON_WORKER["diagnose"]), "nobody who upgrades gives a right without a word"
        said = await here.done(*command, "--diagnose")
        rules = (await here.worker("worker1").get(CLUSTER_ROLE, ObjectKey("", "kueue-system-multikueue")))["rules"]

    assert "what --logs grants is there already and stays" in said
    assert allow(rules, [rule("", ["pods/log"], ["get"]), *ON_WORKER["diagnose"]])
    assert not allow(rules, [rule("", ["pods/exec"], ["create"])])


async def test_the_logs_server_gets_an_account_of_its_own(tmp_path: Path) -> None:
    """It reads logs there, and no more; the same again changes nothing."""
    async with ground(tmp_path, workers=1, joined=["worker1"]) as here:
        command = ("worker", "grant-logs", "worker1", "--worker-context", "worker1", "--outside")
        said = await here.done(*command)
        assert "--worker worker1=multikueue-logs-worker1" in said
        key = ObjectKey("multikueue", "multikueue-logs-worker1")
        secret = await here.manager.get(SECRET, key)
        await here.done(*command)
        assert (await here.manager.get(SECRET, key))["data"] == secret["data"]
        config = parse_worker_kubeconfig(base64.b64decode(secret["data"]["kubeconfig"]))
        async with KubeClient(config, name="worker1") as client:
            assert (await client.list(POD, namespace="default")).items == []
            await client.list(JOB, namespace="default")
            for resource in (SECRET, NAMESPACE):
                with pytest.raises(Forbidden):
                    await client.list(resource)
        assert "as the daemon's: use another --account" in await here.refused(*command, "--account", "multikueue")
        await here.manager.merge_patch(SECRET, key, {"metadata": {"labels": None}})
        assert "this command did not make it" in await here.refused(*command)
        assert 'there is no MultiKueueCluster "other"' in await here.refused(
            *command[:2], "other", *command[3:], code=3
        )


async def test_cordon_and_uncordon(tmp_path: Path) -> None:
    async with ground(tmp_path, workers=1, joined=["worker1"]) as here:
        await here.submit("stays")
        await until(here.runs_on, lambda places: places == {"stays": ["worker1"]})
        said = await here.done("worker", "cordon", "worker1", "--reason", "new racks")
        assert "keeps 1 job that it has" in said
        assert "built-in MultiKueue controller ignores a cordon" in said
        await here.submit("waits")
        await waits(here, "worker1: cordoned: new racks")
        assert await here.runs_on() == {"stays": ["worker1"]}
        await here.refused("worker", "drain", "worker1", "--timeout", "1s")  # which cordons it, too
        assert annotations_of(await here.cluster("worker1"))[CORDON_ANNOTATION] == "new racks"
        await here.done("worker", "cordon", "worker1", "--reason", "new floor")
        assert annotations_of(await here.cluster("worker1"))[CORDON_ANNOTATION] == "new floor"
        await here.done("worker", "uncordon", "worker1")
        await until(here.runs_on, lambda places: places == {"stays": ["worker1"], "waits": ["worker1"]})


async def test_draining_waits_for_what_runs(tmp_path: Path) -> None:
    async with ground(tmp_path, workers=1, joined=["worker1"]) as here:
        await here.submit("long")
        await until(here.runs_on, lambda places: places == {"long": ["worker1"]})
        error = await here.refused("worker", "drain", "worker1", "--timeout", "1s")
        assert "the time is over" in error
        assert "default/job/long" in error
        assert annotations_of(await here.cluster("worker1"))[CORDON_ANNOTATION] == "true"
        await here.manager.delete(JOB, ObjectKey("default", "long"), propagation="Background")
        assert "worker1 is drained" in await here.done("worker", "drain", "worker1", "--timeout", "30s")


async def test_draining_moves_one_after_the_other_and_what_cannot_go_stays(tmp_path: Path) -> None:
    """Both workers have 4 CPUs; a job of 4 fits on the other one once that is free."""
    async with ground(tmp_path, joined=["worker1"]) as here:
        await here.submit("one", "two")
        await until(here.runs_on, lambda places: places == {"one": ["worker1"], "two": ["worker1"]})
        await here.join("worker2")
        said = await here.done("worker", "drain", "worker1", "--move", "--timeout", "60s", answer="y\n")
        assert "default/job/one is on worker2" in said
        assert "default/job/two is on worker2" in said
        assert "begin anew on another worker" in said
        assert await here.places() == {"one": "worker2", "two": "worker2"}
        await until(here.runs_on, lambda places: places == {"one": ["worker2"], "two": ["worker2"]})


async def test_a_job_that_could_never_fit_elsewhere_is_listed_and_stays(tmp_path: Path) -> None:
    async with ground(tmp_path, joined=["worker1"]) as here:
        await here.submit("large", cpu="4")
        await until(here.runs_on, lambda places: places == {"large": ["worker1"]})
        await here.join("worker2", cpu="2")
        result = await here.run("worker", "drain", "worker1", "--move", "--yes", "--timeout", "1s")
        assert result.exit_code == 1
        why = "default/job/large: no other worker can take it: worker2: insufficient quota for cpu (4 > 2)"
        assert f"stays: {why}" in result.stderr
        assert await here.places() == {"large": "worker1"}


async def test_nothing_is_moved_without_a_yes(tmp_path: Path) -> None:
    async with ground(tmp_path, joined=["worker1"]) as here:
        await here.submit("one")
        await until(here.runs_on, lambda places: places == {"one": ["worker1"]})
        await here.join("worker2")
        result = await here.run("worker", "drain", "worker1", "--move", answer="n\n")
        assert result.exit_code == 1
        assert "nothing was moved; worker1 stays cordoned" in result.stderr
        assert await here.places() == {"one": "worker1"}


async def test_rotating_keeps_the_connection_and_voids_the_old_token(tmp_path: Path) -> None:
    async with ground(tmp_path, workers=1, joined=["worker1"]) as here:
        await here.submit("runs")
        await until(here.runs_on, lambda places: places == {"runs": ["worker1"]})
        before: Json = await here.cluster("worker1")
        said = await here.done("worker", "rotate", "worker1", "--worker-context", "worker1")
        assert "Secret kueue-system/multikueue-token is deleted, its token void" in said
        after: Json = await here.cluster("worker1")
        assert condition(after, "Active") == condition(before, "Active")
        assert (condition(after, CREDENTIALS) or {})["message"] != (condition(before, CREDENTIALS) or {})["message"]
        (left,) = await tokens(here, "worker1")
        assert left.startswith("multikueue-token-")
        server = here.sandbox.workers["worker1"].server
        accounts = [user for user in (server.tokens or {}).values() if user.startswith("system:serviceaccount:")]
        assert len(accounts) == 1
        await here.submit("later")
        await until(here.runs_on, lambda places: places == {"runs": ["worker1"], "later": ["worker1"]})


async def test_removing_takes_everything_along(tmp_path: Path) -> None:
    async with ground(tmp_path, joined=["worker1", "worker2"]) as here:
        await here.submit("runs")
        await until(here.runs_on)
        ((place,),) = (await here.runs_on()).values()
        error = await here.refused("worker", "remove", place, "--worker-context", place)
        assert "has jobs: wait for them with --timeout" in error
        assert "default/job/runs" in error
        assert sorted(await here.clusters()) == ["worker1", "worker2"]

        await here.manager.delete(JOB, ObjectKey("default", "runs"), propagation="Background")
        said = await here.done("worker", "remove", place, "--worker-context", place, "--timeout", "30s")
        assert "its role and its tokens are deleted" in said
        assert place not in await here.clusters()
        assert [cluster["metadata"]["name"] for cluster in (await here.manager.list(MULTIKUEUE_CLUSTER)).items] == [
            name for name in ("worker1", "worker2") if name != place
        ]
        assert await tokens(here, place) == []
        own = "!kubernetes.io/bootstrapping"
        assert not (await here.worker(place).list(CLUSTER_ROLE, label_selector=own)).items
        assert not (await here.worker(place).list(SERVICE_ACCOUNT, namespace=KUEUE_NAMESPACE)).items
        await here.done("worker", "remove", place, "--worker-context", place)  # what is gone is passed over


async def test_a_worker_removed_by_force_runs_its_job_to_the_end(tmp_path: Path) -> None:
    async with ground(tmp_path, joined=["worker1", "worker2"]) as here:
        await here.submit("runs")
        await until(here.runs_on)
        ((place,),) = (await here.runs_on()).values()
        said = await here.done("worker", "remove", place, "--force")
        assert f"{place} still has the account kueue-system/multikueue" in said
        assert place not in await here.clusters()
        job = ObjectKey("default", "runs")
        ended = {"conditions": [{"type": "Complete", "status": "True"}], "succeeded": 1, "active": 0}
        there = here.worker(place)
        await there.merge_patch(JOB, job, {"status": _complete(await there.get(JOB, job), ended)}, subresource="status")

        async def complete() -> bool:
            return is_true(await here.manager.get(JOB, job), "Complete")

        await until(complete)


def _complete(job: Json, status: Json) -> Json:
    """The status of a Job that has ended, as its API server takes it."""
    at = job["status"]["startTime"]
    conditions = [
        {"type": kind, "status": "True", "lastTransitionTime": at} for kind in ("SuccessCriteriaMet", "Complete")
    ]
    return {**status, "startTime": at, "completionTime": at, "ready": 0, "terminating": 0, "conditions": conditions}


async def test_a_config_that_is_made_is_told_with_one_that_may_have_been_meant(tmp_path: Path) -> None:
    """A mistyped name made another one without a word."""
    async with ground(tmp_path, workers=1, joined=["worker1"]) as here:
        command = ("worker", "add", "worker1", "--worker-context", "worker1", "--outside")
        said = await here.done(*command, "--multikueue-config", "multikeue")
        assert "made MultiKueueConfig multikeue, as there was none of that name; if you meant multikueue," in said
        assert "made MultiKueueConfig" not in await here.done(*command, "--multikueue-config", "multikueue")
