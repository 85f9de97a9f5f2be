"""The breaks that an operator meets: `explain` names the reason and the remedy, and sees the manager alone."""

from __future__ import annotations

import pytest

from multikueue.core.model.kinds import (
    JOB,
    MULTIKUEUE_CONFIG,
    NAMESPACE,
    SECRET,
)
from multikueue.core.model.names import ObjectKey
from multikueue.errors import Forbidden, Invalid, NotFound
from multikueue.sandbox.apiserver import DirectClient
from multikueue.sandbox.setting_up import CHECK, KUEUE_NAMESPACE
from multikueue.testing import job
from multikueued.reports.jobs import JobState
from tests.commands.breaking import explained_after, finding
from tests.runtime.fleet import Fleet, kubeconfig

pytestmark = pytest.mark.looptime

SECRET_KEY = ObjectKey(KUEUE_NAMESPACE, "worker1-secret")


async def test_nothing_is_wrong_with_a_job_that_runs() -> None:
    found = await explained_after(workers=2)

    assert found.job.state is JobState.RUNNING
    assert found.summary == f'It runs on worker cluster "{found.job.worker}".'
    assert not found.needs_somebody
    assert found.findings == ()
    assert [link.kind for link in found.chain] == [
        "Job",
        "LocalQueue",
        "ClusterQueue",
        "Workload",
        "AdmissionCheck",
        "MultiKueueConfig",
    ]
    assert all(link.ok for link in found.chain)


async def test_wrong_kubeconfig_key() -> None:
    async def rename(fleet: Fleet) -> None:
        data = (await fleet.admin.get(SECRET, SECRET_KEY))["data"]["kubeconfig"]
        await fleet.admin.merge_patch(SECRET, SECRET_KEY, {"data": {"kubeconfig": None, "config": data}})

    found = await explained_after(before=rename)

    wrong = finding(found, "kubeconfig-key")
    assert (wrong.where, wrong.blocking) == ("worker1", True)
    assert wrong.why == 'Secret "worker1-secret" has no key "kubeconfig"'
    assert "create secret generic worker1-secret --from-file=kubeconfig=FILE" in wrong.remedy
    assert "kubectl -n kueue-system" in wrong.remedy


async def test_bad_token() -> None:
    async def spoil(fleet: Fleet) -> None:
        await fleet.write_secret("worker1", kubeconfig("worker1", "expired"))

    found = await explained_after(before=spoil)

    wrong = finding(found, "bad-token")
    assert wrong.blocking
    assert "does not accept the daemon's credential" in wrong.why
    assert "multikueue worker rotate worker1" in wrong.remedy
    assert [step.at for step in found.next if step.text == "worker1 is asked again"] != []


async def test_missing_namespace_on_the_worker() -> None:
    async def delete(fleet: Fleet) -> None:
        await DirectClient(fleet.workers["worker1"]).delete(NAMESPACE, ObjectKey("", "default"))

    found = await explained_after(before=delete)

    wrong = finding(found, "namespace-missing")
    assert wrong.blocking
    assert wrong.why == 'namespace "default" does not exist on worker1'
    assert "kubectl --context worker1 create namespace default" in wrong.remedy
    assert "multikueue retry job/job" in wrong.remedy


async def test_kind_not_enabled() -> None:
    found = await explained_after(kinds=())

    wrong = finding(found, "kind-not-enabled")
    assert wrong.blocking
    assert wrong.why.endswith("""because the daemon's settings do not name kind "batch/v1, Kind=Job\"""")
    assert 'add "batch/job" to integrations.frameworks' in wrong.remedy
    assert found.job.state is JobState.INACTIVE  # Kueue deactivates what was rejected


async def test_no_managed_by() -> None:
    async def submit(fleet: Fleet) -> None:
        await fleet.admin.create(JOB, job("job", delegated=False))

    found = await explained_after(submit=submit)

    wrong = finding(found, "not-delegated")
    assert wrong.blocking
    assert "create it again with managedBy" in wrong.remedy
    assert "webhook.enabled: true" in wrong.remedy
    assert found.job.state is JobState.INACTIVE  # Kueue deactivates what was rejected


async def test_typo_in_the_config() -> None:
    async def misspell(fleet: Fleet) -> None:
        await fleet.admin.merge_patch(MULTIKUEUE_CONFIG, ObjectKey("", CHECK), {"spec": {"clusters": ["wroker1"]}})

    found = await explained_after(before=misspell)

    wrong = finding(found, "cluster-missing")
    assert wrong.blocking
    assert wrong.where == f"MultiKueueConfig {CHECK}"
    assert 'it lists "wroker1"' in wrong.why
    assert 'did you mean "worker1"?' in wrong.why
    assert "spec.clusters" in wrong.remedy


async def test_worker_down() -> None:
    async def stop(fleet: Fleet) -> None:
        fleet.workers["worker1"].faults.partition("reset")

    found = await explained_after(after=stop)

    wrong = finding(found, "worker-down")
    assert wrong.blocking
    assert found.job.state is JobState.LOST
    assert "look whether its API server runs" in wrong.remedy
    assert any("goes to another worker" in step.text and step.at is not None for step in found.next)


async def test_worker_hung() -> None:
    async def hang(fleet: Fleet) -> None:
        fleet.workers["worker1"].faults.partition("hang")

    found = await explained_after(after=hang)

    wrong = finding(found, "worker-hung")
    assert wrong.blocking
    assert "accepts connections and answers nothing" in wrong.why
    assert "API server and etcd" in wrong.remedy


@pytest.mark.parametrize(("plural", "kind"), [("workloads", "workloads.kueue.x-k8s.io"), ("jobs", "jobs.batch")])
async def test_crd_missing_on_the_worker(plural: str, kind: str) -> None:
    told = f"worker1: list {kind}: the server could not find the requested resource"
    found = await explained_after(refusals={("list", plural): NotFound(told, status=404)})

    wrong = finding(found, "crd-missing")
    assert wrong.blocking
    assert kind in wrong.why
    assert "install it there" in wrong.remedy


@pytest.mark.parametrize(
    ("verb", "resource", "group"),
    [("create", "workloads", "kueue.x-k8s.io"), ("create", "jobs", "batch"), ("list", "jobs", "batch")],
)
async def test_rbac_verb_missing(verb: str, resource: str, group: str) -> None:
    who = 'User "system:serviceaccount:kueue-system:multikueue"'
    told = f'{who} cannot {verb} resource "{resource}" in API group "{group}" at the cluster scope'
    error = Forbidden(f"worker1: {verb} {resource}.{group}: {resource}.{group} is forbidden: {told}", status=403)
    found = await explained_after(refusals={(verb, resource): error})

    wrong = finding(found, "rbac")
    assert wrong.blocking
    assert f'may not {verb} {resource} (API group "{group}")' in wrong.why
    assert "multikueue rbac worker" in wrong.remedy


@pytest.mark.parametrize("plural", ["workloads", "jobs"])
async def test_webhook_refusing(plural: str) -> None:
    told = 'worker1: create: admission webhook "policy.example.com" denied the request: no team label'
    found = await explained_after(refusals={("create", plural): Invalid(told, status=400)})

    wrong = finding(found, "webhook")
    assert wrong.blocking
    assert '"policy.example.com"' in wrong.why
    assert "no team label" in wrong.why
    assert "exempt" in wrong.remedy


async def test_name_taken_by_a_foreign_object() -> None:
    async def occupy(fleet: Fleet) -> None:
        made = job("job", delegated=False, queue="")
        await DirectClient(fleet.workers["worker1"]).create(JOB, made)

    found = await explained_after(before=occupy)

    wrong = finding(found, "name-taken")
    assert wrong.blocking
    assert "another object has the job's name on worker1" in wrong.why
    assert "kubectl --context worker1 -n default delete job/job" in wrong.remedy
