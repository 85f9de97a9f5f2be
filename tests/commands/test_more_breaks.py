"""More breaks, made by somebody who knew the documentation alone: one finding each, as in `test_ten_breaks`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

import anyio
import pytest

from multikueue import PlanSettings
from multikueue.adapters import BUILTIN, AdapterRegistry
from multikueue.core.model.kinds import (
    ADMISSION_CHECK,
    CLUSTER_QUEUE,
    CONFIG_MAP,
    LOCAL_QUEUE,
    MULTIKUEUE_CLUSTER,
    MULTIKUEUE_CONFIG,
    NAMESPACE,
    RESOURCE_FLAVOR,
    SECRET,
)
from multikueue.core.model.names import ObjectKey, Resource
from multikueue.errors import Forbidden, NotFound, ServerFault
from multikueue.runtime.manager import Manager, ManagerSettings
from multikueue.sandbox.apiserver import DirectClient
from multikueue.sandbox.setting_up import (
    CHECK,
    CLUSTER_QUEUE_NAME,
    KUEUE_NAMESPACE,
    LOCAL_QUEUE_NAME,
    admission_check,
    local_queue,
)
from multikueued.commands.get import gather_jobs
from multikueued.commands.status import gather_status
from multikueued.reading.source import JobsWanted
from multikueued.reports.jobs import JobFilter
from multikueued.reports.remedies.remedy import Severity
from tests.commands.breaking import Change, Person, explained, seen_after
from tests.commands.diagnosing import diagnosed
from tests.commands.test_breaks import refuse, shrink
from tests.commands.test_ten_breaks import DEAD, Break, all_say, only_findings
from tests.runtime.fleet import Fleet, now

pytestmark = pytest.mark.looptime

_QUEUE: Final = ObjectKey("", CLUSTER_QUEUE_NAME)
_LOCAL: Final = ObjectKey("default", LOCAL_QUEUE_NAME)


def there(spec: Mapping[str, Any], resource: Resource = CLUSTER_QUEUE, key: ObjectKey = _QUEUE) -> Change:
    """A queue of all workers gets another spec."""

    async def change(fleet: Fleet) -> None:
        for worker in fleet.workers.values():
            await DirectClient(worker).merge_patch(resource, key, {"spec": dict(spec)})

    return change


async def stop_here(fleet: Fleet) -> None:
    await fleet.admin.merge_patch(CLUSTER_QUEUE, _QUEUE, {"spec": {"stopPolicy": "Hold"}})


async def name_other_controller(fleet: Fleet) -> None:
    await fleet.admin.delete(ADMISSION_CHECK, ObjectKey("", CHECK))
    await fleet.admin.create(ADMISSION_CHECK, admission_check("kueue.x-k8s.io/multikueu"))


async def delete_namespace(fleet: Fleet) -> None:
    """Something in it holds it up."""
    worker = DirectClient(fleet.workers["worker1"])
    metadata = {"name": "stays", "namespace": "default", "finalizers": ["example.com/stays"]}
    await worker.create(CONFIG_MAP, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
    await worker.delete(NAMESPACE, ObjectKey("", "default"))


async def let_namespace_go(fleet: Fleet) -> None:
    worker = DirectClient(fleet.workers["worker1"])
    await worker.merge_patch(CONFIG_MAP, ObjectKey("default", "stays"), {"metadata": {"finalizers": None}})


async def make_it_again(fleet: Fleet) -> None:
    """Without its LocalQueue."""
    await let_namespace_go(fleet)
    await anyio.sleep(5)
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}
    await DirectClient(fleet.workers["worker1"]).create(NAMESPACE, namespace)


async def lead_nowhere(fleet: Fleet) -> None:
    worker = DirectClient(fleet.workers["worker1"])
    await worker.delete(LOCAL_QUEUE, _LOCAL)
    await worker.create(LOCAL_QUEUE, local_queue(of="cluster-que"))


async def cover_less(fleet: Fleet) -> None:
    """The queue there has quota of memory alone."""
    worker = DirectClient(fleet.workers["worker1"])
    (group,) = (await worker.get(CLUSTER_QUEUE, _QUEUE))["spec"]["resourceGroups"]
    for flavor in group["flavors"]:
        flavor["resources"] = [{"name": "memory", "nominalQuota": "16Gi"}]
    spec = {"resourceGroups": [{**group, "coveredResources": ["memory"]}]}
    await worker.merge_patch(CLUSTER_QUEUE, _QUEUE, {"spec": spec})


async def name_no_config(fleet: Fleet) -> None:
    (config,) = (await fleet.admin.list(MULTIKUEUE_CONFIG)).items
    reference = {"apiGroup": "kueue.x-k8s.io", "kind": "MultiKueueConfig", "name": "multikeue"}
    for item in (await fleet.admin.list(ADMISSION_CHECK)).items:
        assert item["spec"]["parameters"]["name"] == config["metadata"]["name"]
        await fleet.admin.merge_patch(ADMISSION_CHECK, ObjectKey.of(item), {"spec": {"parameters": reference}})


async def rename_key(fleet: Fleet) -> None:
    key = ObjectKey(KUEUE_NAMESPACE, "worker1-secret")
    data = (await fleet.admin.get(SECRET, key))["data"]
    await fleet.admin.merge_patch(SECRET, key, {"data": {"kubeconfig": None, "config": data["kubeconfig"]}})


async def take_check(fleet: Fleet) -> None:
    await fleet.admin.merge_patch(CLUSTER_QUEUE, _QUEUE, {"spec": {"admissionChecksStrategy": None}})


async def taint_flavors(fleet: Fleet) -> None:
    worker = DirectClient(fleet.workers["worker1"])
    for item in (await worker.list(RESOURCE_FLAVOR)).items:
        spec = {"nodeTaints": [{"key": "gpu", "value": "a100", "effect": "NoSchedule"}]}
        await worker.merge_patch(RESOURCE_FLAVOR, ObjectKey.of(item), {"spec": spec})


_NAMED: Final = "spec.admissionChecksStrategy"
BREAKS: Final = (
    Break(
        "queue stopped there",
        all_say("queue-inactive", "get ClusterQueue", ("worker-cluster-queue", "patch clusterqueue")),
        before=there({"stopPolicy": "Hold"}),
    ),
    Break(
        "queue stopped on both workers there",
        all_say(
            "queue-inactive", "--context worker2", ("worker-cluster-queue", "--context worker2 patch clusterqueue")
        ),
        before=there({"stopPolicy": "HoldAndDrain"}),
        workers=2,
    ),
    Break(
        "LocalQueue stopped on both workers there",
        all_say(
            "queue-inactive", "--context worker2", ("worker-local-queue-stopped", "worker2 -n default patch localqu")
        ),
        before=there({"stopPolicy": "Hold"}, LOCAL_QUEUE, _LOCAL),
        workers=2,
    ),
    Break(
        "namespace being deleted there",
        all_say("namespace-terminating", "create it again there"),
        before=delete_namespace,
    ),
    Break(
        "namespace that was being deleted is gone there",
        all_say("namespace-terminating", "create it again there", ("worker-namespace-missing", "queues mirror")),
        before=delete_namespace,
        after=let_namespace_go,
    ),
    Break(
        "namespace that was being deleted is back without its queue there",
        all_say("namespace-terminating", "create it again there", ("worker-local-queue-missing", "queues mirror")),
        before=delete_namespace,
        after=make_it_again,
    ),
    Break(
        "check of another controller",
        all_say("check-unseen", "start the daemon"),
        before=name_other_controller,
    ),
    Break(
        "queue leads nowhere there",
        all_say("queue-inactive", "get clusterqueues", ("worker-cluster-queue", "get clusterqueues")),
        before=lead_nowhere,
    ),
    Break(
        "namespace not selected there",
        all_say("namespace-not-selected", "get clusterqueues"),
        before=there({"namespaceSelector": {"matchLabels": {"team": "x"}}}),
    ),
    Break(
        "resource not covered there",
        all_say("quota-too-small", "coveredResources", ("never-fits", "nominalQuota")),
        before=cover_less,
    ),
    Break("check names no config", all_say("config-missing", "spec.parameters.name"), before=name_no_config),
    Break("Secret with another key", all_say("kubeconfig-key", "--from-file=kubeconfig=FILE"), after=rename_key),
    Break(
        "no check on the queue",
        {**all_say("no-check", _NAMED), "explain": ("queue-without-check", _NAMED)},
        before=take_check,
    ),
    Break("taint nobody tolerates there", all_say("no-flavor", "get resourceflavors"), before=taint_flavors),
)


@pytest.mark.parametrize("case", BREAKS, ids=lambda case: case.name.replace(" ", "-"))
async def test_each_command_tells_a_break_with_one_finding(case: Break) -> None:
    findings = await only_findings(case)
    assert {finding.side for finding in findings.values()} == {"worker" if case.name.endswith("there") else "manager"}


@pytest.mark.parametrize("has_job", [True, False], ids=["a job waits", "no job"])
async def test_a_stopped_queue_of_the_manager_is_one_finding_with_what_resumes_it(has_job: bool) -> None:
    submit: Change = (lambda fleet: fleet.submit()) if has_job else (lambda fleet: fleet.quota())
    diagnosis = await seen_after(diagnosed, before=stop_here, submit=submit, seconds=10.0)
    assert [(finding.id, finding.where) for finding in diagnosis.findings] == [
        ("queue-stopped", "ClusterQueue cluster-queue")
    ]
    assert "kubectl patch clusterqueue cluster-queue" in diagnosis.findings[0].remedy


async def test_a_worker_whose_kueue_has_no_local_queues_is_told_and_no_right_is_asked_for() -> None:
    """Doctor alone asks there for them."""
    words = "list localqueues: the server could not find the requested resource"
    refusals = refuse(NotFound, 404, ("list", "localqueues"), words=words)
    diagnosis = await seen_after(partial(diagnosed, refusals=refusals), seconds=10.0)
    assert [finding.id for finding in diagnosis.findings] == ["worker-without-kueue"]
    assert [gap.who for gap in diagnosis.not_checked if "LocalQueues" in gap.what] == []


async def test_a_webhook_that_is_down_is_told_without_a_gap() -> None:
    """Between the minute for which it is tried in place and the check's words nobody told it."""

    async def untold(fleet: Fleet) -> list[int]:
        gaps = []
        for second in range(120):
            if "webhook-down" not in {each.id for each in (await explained(fleet)).findings}:
                gaps.append(second)
            await anyio.sleep(1)
        return gaps

    refusals = refuse(ServerFault, 500, ("create", "workloads"), words=DEAD)
    assert await seen_after(untold, refusals=refusals, seconds=10.0) == []


_MISSPELT: Final = {"spec": {"admissionChecksStrategy": {"admissionChecks": [{"name": "multikeue"}]}}}


@pytest.mark.parametrize(
    ("lose", "id"),
    [
        (lambda fleet: fleet.admin.delete(ADMISSION_CHECK, ObjectKey("", CHECK)), "check-missing"),
        (lambda fleet: fleet.admin.delete(CLUSTER_QUEUE, _QUEUE), "cluster-queue-missing"),
        (lambda fleet: fleet.admin.merge_patch(CLUSTER_QUEUE, _QUEUE, _MISSPELT), "check-missing"),
    ],
    ids=["check", "ClusterQueue", "name of the check"],
)
async def test_a_way_that_is_cut_on_the_manager_is_one_finding_and_get_lists_the_job(lose: Change, id: str) -> None:
    """They were two findings each, and `get` had no such job."""

    async def look(fleet: Fleet) -> tuple[list[str], list[str], list[str], list[str]]:
        person = Person(fleet.manager)
        listed = await gather_jobs(
            person, JobsWanted(JobFilter("default"), now=now(), daemon_namespace=KUEUE_NAMESPACE)
        )
        by_reader = (
            (await diagnosed(fleet)).findings,
            (await gather_status(person, now(), KUEUE_NAMESPACE)).findings,
            (await explained(fleet)).findings,
        )
        ids = [[each.id for each in findings if each.severity is not Severity.INFO] for findings in by_reader]
        return ids[0], ids[1], ids[2], [job.job for job in listed.jobs]

    assert await seen_after(look, before=lose, seconds=10.0) == ([id], [id], [id], ["job/job"])


async def test_a_check_that_is_deleted_under_a_job_is_told_and_the_job_runs() -> None:
    async def lose(fleet: Fleet) -> None:
        await fleet.admin.delete(ADMISSION_CHECK, ObjectKey("", CHECK))

    seen = await seen_after(explained, after=lose, seconds=10.0)
    assert [each.id for each in seen.findings] == ["check-missing"]
    assert (seen.job.state, seen.summary) == ("Running", 'It runs on worker cluster "worker1".')


async def test_a_job_that_its_worker_refuses_is_told_while_it_is_tried_there() -> None:
    """For a minute `explain` said that it is being created, and nothing else."""
    words = 'jobs.batch "job" is forbidden: exceeded quota: limits, requested: count/jobs.batch=1'
    refusals = refuse(Forbidden, 403, ("create", "jobs"), words=words)
    seen = await seen_after(explained, refusals=refusals, seconds=20.0)
    assert [(each.id, each.blocking) for each in seen.findings] == [("resource-quota", True)]


async def test_a_worker_that_is_cordoned_is_told_by_all_while_a_job_waits_for_it() -> None:
    """`status` was silent: `explain` alone said that somebody has to act."""

    async def cordon(fleet: Fleet) -> None:
        metadata = {"annotations": {"multikueue.dev/cordoned": "repair"}}
        await fleet.admin.merge_patch(MULTIKUEUE_CLUSTER, ObjectKey("", "worker1"), {"metadata": metadata})

    async def look(fleet: Fleet) -> list[list[str]]:
        status = await gather_status(Person(fleet.manager), now(), KUEUE_NAMESPACE)
        findings = (await diagnosed(fleet)).findings, status.findings, (await explained(fleet)).findings
        return [[each.remedy for each in of_reader] for of_reader in findings]

    remedy = "if that is over: multikueue worker uncordon worker1"
    assert await seen_after(look, before=cordon, seconds=10.0) == [[remedy]] * 3


async def test_two_daemons_of_one_manager_are_what_is_looked_for_first() -> None:
    """Each removes what the other has made: it was told as copies that do not last, with no remedy."""
    fleet = await Fleet.connected("worker1")
    await shrink(fleet)
    first, second = (
        Manager(
            DirectClient(fleet.manager, user="multikueue"),
            AdapterRegistry(BUILTIN),
            ManagerSettings(PlanSettings(mark_key=bytes([number]) * 32)),
            fleet.client,
            clock=now,
        )
        for number in (1, 2)
    )
    async with fleet.kueues(), fleet.running(first), fleet.running(second):
        await anyio.sleep(5)
        await fleet.submit()
        await anyio.sleep(60)
        (finding,) = (await explained(fleet)).findings
    assert (finding.id, finding.blocking) == ("copies-go", True)
    assert finding.remedy.startswith("look for a second daemon of this manager (kubectl get pods -A")


async def test_what_is_to_be_made_on_a_worker_is_named_as_the_worker_calls_it() -> None:
    """The namespace of the manager was to be created there, and the job would have waited on."""

    async def rename(fleet: Fleet) -> None:
        metadata = {"annotations": {"multikueue.dev/namespaces": '{"default": "elsewhere"}'}}
        await fleet.admin.merge_patch(MULTIKUEUE_CLUSTER, ObjectKey("", "worker1"), {"metadata": metadata})

    (finding,) = (await seen_after(explained, before=rename, seconds=100.0)).findings
    assert finding.id == "namespace-missing"
    mirror = "multikueue queues mirror user-queue -n default --worker-context worker1 --worker worker1"
    assert f"{mirror}; then multikueue retry job/job -n default" in finding.remedy  # which looks up the names there
