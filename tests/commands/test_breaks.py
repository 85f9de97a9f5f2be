"""Breaks beside those of `test_ten_breaks`: `explain`, `status` (by the manager alone) and `doctor` tell each once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import attrs
import pytest

from multikueue.adapters import BUILTIN, JobKind
from multikueue.core.model.kinds import (
    CLUSTER_QUEUE,
    CONFIG_MAP,
    JOB,
    LOCAL_QUEUE,
    MULTIKUEUE_CONFIG,
    NAMESPACE,
    SECRET,
)
from multikueue.core.model.names import Json, ObjectKey
from multikueue.errors import ApiError, Forbidden, Invalid, NotFound
from multikueue.sandbox.apiserver import DirectClient
from multikueue.sandbox.setting_up import CHECK, CLUSTER_QUEUE_NAME, KUEUE_NAMESPACE, LOCAL_QUEUE_NAME
from multikueue.testing import job
from multikueued.commands.status import gather_status
from multikueued.diagnosis.findings import Diagnosis
from multikueued.diagnosis.fleet import StatusReport
from multikueued.remote.explain import gather_explanation
from multikueued.reports.explanation import Explanation
from multikueued.reports.jobs import JobState
from multikueued.reports.remedies.remedy import Severity
from tests.commands.breaking import (
    Change,
    Person,
    Refusals,
    Refusing,
    asked_about,
    explained,
    explained_after,
    finding,
    seen_after,
)
from tests.commands.diagnosing import diagnosed, named
from tests.runtime.fleet import Fleet, kubeconfig, now

pytestmark = pytest.mark.looptime

Words: TypeAlias = tuple[str, ...]


async def rename_key(fleet: Fleet) -> None:
    key = ObjectKey(KUEUE_NAMESPACE, "worker1-secret")
    data = (await fleet.admin.get(SECRET, key))["data"]["kubeconfig"]
    await fleet.admin.merge_patch(SECRET, key, {"data": {"kubeconfig": None, "config": data}})


async def spoil_token(fleet: Fleet) -> None:
    await fleet.write_secret("worker1", kubeconfig("worker1", "expired"))


async def delete_namespace(fleet: Fleet) -> None:
    await DirectClient(fleet.workers["worker1"]).delete(NAMESPACE, ObjectKey("", "default"))


async def misspell_cluster(fleet: Fleet) -> None:
    await fleet.admin.merge_patch(MULTIKUEUE_CONFIG, ObjectKey("", CHECK), {"spec": {"clusters": ["wroker1"]}})


async def take_name(fleet: Fleet) -> None:
    await DirectClient(fleet.workers["worker1"]).create(JOB, job("job", delegated=False, queue=""))


async def have_other_settings(fleet: Fleet) -> None:
    for client, text in ((fleet.admin, "ours"), (DirectClient(fleet.workers["worker1"]), "theirs")):
        metadata = {"name": "settings", "namespace": "default"}
        made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"text": text}}
        await client.create(CONFIG_MAP, made)


async def delete_queue(fleet: Fleet) -> None:
    await DirectClient(fleet.workers["worker1"]).delete(LOCAL_QUEUE, ObjectKey("default", LOCAL_QUEUE_NAME))


async def shrink(fleet: Fleet) -> None:
    client, key = DirectClient(fleet.workers["worker1"]), ObjectKey("", CLUSTER_QUEUE_NAME)
    groups = (await client.get(CLUSTER_QUEUE, key))["spec"]["resourceGroups"]
    groups[0]["flavors"][0]["resources"][0]["nominalQuota"] = "100m"
    await client.merge_patch(CLUSTER_QUEUE, key, {"spec": {"resourceGroups": groups}})


def submit_with(**pod: Any) -> Change:
    return lambda fleet: fleet.submit(template=pod)


MOUNTS = [{"name": "v", "configMap": {"name": "settings"}}]


def submit(made: Json) -> Change:
    return lambda fleet: fleet.admin.create(JOB, made)


def partition(how: Any) -> Change:
    async def part(fleet: Fleet) -> None:
        fleet.workers["worker1"].faults.partition(how)

    return part


def refuse(error: type[ApiError], status: int, *places: tuple[str, str], words: str) -> Refusals:
    return {place: error(f"worker1: {words}", status=status) for place in places}


@attrs.frozen
class Break:
    """What is broken, and of the findings of both commands the id and words of reason and remedy."""

    name: str
    id: str
    explain: Words
    doctors_id: str
    doctor: Words
    before: Change | None = None
    submit: Change | None = None
    after: Change | None = None
    refusals: Refusals = attrs.field(factory=dict)
    kinds: Sequence[JobKind] = BUILTIN
    state: JobState | None = None
    seconds: float = 60.0


def missing_verb(verb: str, plural: str, group: str) -> Break:
    who = 'User "system:serviceaccount:kueue-system:multikueue"'
    denial = f'{who} cannot {verb} resource "{plural}" in API group "{group}" at the cluster scope'
    words = f"{verb} {plural}.{group}: {plural}.{group} is forbidden: {denial}"
    return Break(
        f"rbac {verb} {plural}",
        "rbac",
        (f'may not {verb} {plural} (API group "{group}")', "multikueue rbac worker"),
        "worker-permission-missing",
        (f"the user of its kubeconfig may not {verb} {plural}.{group}", "multikueue rbac worker"),
        refusals=refuse(Forbidden, 403, (verb, plural), words=words),
    )


def refusing_webhook(plural: str) -> Break:
    words = 'create: admission webhook "policy.example.com" denied the request: no team label'
    refusals = refuse(Invalid, 400, ("create", plural), words=words)
    in_why = ('"policy.example.com"', "no team label", "exempt")
    return Break(f"webhook {plural}", "webhook", in_why, "webhook", (in_why[0], "exempt"), refusals=refusals)


NOT_SERVED = "list workloads.kueue.x-k8s.io: the server could not find the requested resource"
BREAKS = (
    Break(
        "kubeconfig key",
        "kubeconfig-key",
        (
            'Secret "worker1-secret" has no key "kubeconfig"',
            "create secret generic worker1-secret --from-file=kubeconfig=FILE",
            "kubectl -n kueue-system",
        ),
        "kubeconfig-key",
        ("--from-file=kubeconfig=FILE",),
        before=rename_key,
    ),
    Break(
        "namespace",
        "namespace-missing",
        (
            'namespace "default" does not exist on worker1',
            "multikueue queues mirror user-queue -n default --worker-context worker1 --worker worker1",
            "multikueue retry job/job",
        ),
        "worker-namespace-missing",
        ("multikueue queues mirror user-queue -n default --worker-context worker1 --worker worker1",),
        before=delete_namespace,
        seconds=100.0,  # for a minute it may pass, and only an event tells it
    ),
    Break(
        "kind not enabled",
        "kind-not-enabled",
        (
            'its check was rejected, because the daemon\'s settings do not name kind "batch/v1, Kind=Job"',
            'add "batch/job" to integrations.frameworks',
        ),
        "kind-not-enabled",
        ('add "batch/job" to integrations.frameworks', "default/job/job"),
        kinds=(),
        state=JobState.REJECTED,
    ),
    Break(
        "no managedBy",
        "not-delegated",
        ("create it again with managedBy", "webhook.enabled: true"),
        "not-delegated",
        ("enable the daemon's webhook",),
        submit=submit(job("job", delegated=False)),
        state=JobState.REJECTED,
    ),
    Break(
        "typo in the config",
        "cluster-missing",
        ('it lists "wroker1"', 'did you mean "worker1"?', "spec.clusters"),
        "cluster-missing",
        ('did you mean "worker1"?', "spec.clusters"),
        before=misspell_cluster,
    ),
    Break(
        "quota too small",
        "quota-too-small",
        ("raise nominalQuota of cpu there",),
        "never-fits",
        ("nominalQuota",),
        before=shrink,
    ),
    Break(
        "worker hung",
        "worker-hung",
        ("accepts connections and answers nothing", "API server and etcd"),
        "worker-hung",
        ("API server and etcd",),
        after=partition("hang"),
    ),
    Break(
        "crd workloads",
        "crd-missing",
        ("workloads.kueue.x-k8s.io", "install it there"),
        "worker-without-kueue",
        ("nstall",),
        refusals=refuse(NotFound, 404, ("list", "workloads"), words=NOT_SERVED),
    ),
    missing_verb("create", "jobs", "batch"),
    missing_verb("list", "jobs", "batch"),
    refusing_webhook("workloads"),
    refusing_webhook("jobs"),
    Break(
        "name taken",
        "name-taken",
        (
            "another object has the job's name on worker1",
            "kubectl --context worker1 -n default delete job/job",
        ),
        "name-taken",
        ("kubectl --context worker1 -n default delete job/job",),
        before=take_name,
    ),
    Break(
        "ConfigMap of somebody else",
        "dependency-foreign",
        ("on worker1 somebody else has made or changed ConfigMap settings", "multikueue retry job/job"),
        "dependency-foreign",
        ("kubectl --context worker1 -n default delete ConfigMap settings",),
        before=have_other_settings,
        submit=submit_with(volumes=MOUNTS),
    ),
    Break(
        "ConfigMap nowhere",
        "dependency-nowhere",
        ("name ConfigMap settings, which is neither here nor on worker1", "create it in namespace default here"),
        "dependency-nowhere",
        ("create it in namespace default here",),
        submit=submit_with(volumes=MOUNTS),
    ),
    Break(
        "ServiceAccount missing",
        "dependency-not-copied",
        ("name ServiceAccount robot, which is not on worker1", "create it in the job's namespace there"),
        "dependency-not-copied",
        ("create it in the job's namespace there",),
        submit=submit_with(serviceAccountName="robot"),
    ),
)


async def seen_by_all(case: Break) -> tuple[Explanation, Diagnosis, StatusReport]:
    async def look(fleet: Fleet) -> tuple[Explanation, Diagnosis, StatusReport]:
        status = await gather_status(Person(fleet.manager), now(), "kueue-system")
        return await explained(fleet), await diagnosed(fleet, case.refusals), status

    changes = {when: getattr(case, when) for when in ("before", "submit", "after", "refusals", "kinds", "seconds")}
    return await seen_after(look, **changes)


@pytest.mark.parametrize("case", BREAKS, ids=lambda case: case.name.replace(" ", "-"))
async def test_each_command_names_the_reason_and_the_remedy_once(case: Break) -> None:
    explanation, diagnosis, status = await seen_by_all(case)

    wrong, seen = finding(explanation, case.id), named(diagnosis, case.doctors_id)
    assert wrong.blocking
    assert [words for words in case.explain if words not in f"{wrong.why}\n{wrong.remedy}"] == []
    assert [words for words in case.doctor if words not in f"{seen.why}\n{seen.remedy}"] == []
    assert case.state in (None, explanation.job.state)
    assert [finding.id for finding in diagnosis.findings if finding.severity is not Severity.INFO] == [case.doctors_id]
    assert [finding.id for finding in explanation.findings if finding.blocking] == [case.id]
    assert [finding.id for finding in status.findings] == [case.id]


async def test_nothing_is_wrong_with_a_job_that_runs() -> None:
    explanation = await explained_after(workers=2)

    assert explanation.job.state is JobState.RUNNING
    assert explanation.summary == f'It runs on worker cluster "{explanation.job.worker}".'
    assert explanation.findings == ()
    assert [link.kind for link in explanation.chain] == [
        "Job",
        "LocalQueue",
        "ClusterQueue",
        "Workload",
        "AdmissionCheck",
        "MultiKueueConfig",
    ]
    assert all(link.ok for link in explanation.chain)


async def test_explain_tells_where_and_what_comes_next_and_when() -> None:
    refused = await explained_after(before=spoil_token)
    lost = await explained_after(after=partition("reset"))
    misspelt = await explained_after(before=misspell_cluster)

    assert (finding(refused, "bad-token").where, finding(refused, "bad-token").blocking) == ("worker1", True)
    assert finding(misspelt, "cluster-missing").where == f"MultiKueueConfig {CHECK}"
    assert [step.at for step in refused.next if step.text == "worker1 is asked again"] != []
    assert any("goes to another worker" in step.text and "moves at" in step.text for step in lost.next)


async def test_the_doctor_tells_where_and_how_bad_and_never_the_token() -> None:
    diagnosis = await seen_after(diagnosed, before=spoil_token)
    renamed = await seen_after(diagnosed, before=rename_key)

    assert 'Secret "worker1-secret" has no key "kubeconfig"' in named(renamed, "kubeconfig-key").why
    wrong = named(diagnosis, "bad-token")
    assert (wrong.severity.value, wrong.where) == ("error", "worker1")
    assert "expired" not in wrong.told


@pytest.mark.parametrize("how", ["reset", "hang"])
async def test_the_doctor_examines_the_others_beside_a_worker_that_is_away(how: str) -> None:
    diagnosis = await seen_after(diagnosed, 2, after=partition(how))

    assert "worker1 itself" in {gap.what for gap in diagnosis.not_checked}
    assert [worker.worker for worker in diagnosis.workers if worker.latency is not None] == ["worker2"]


async def test_who_may_not_list_workers_is_told_whom_to_ask_and_no_operators_command() -> None:
    refused = Forbidden("no", status=403)
    lists = ("multikueueclusters", "multikueueconfigs", "clusterqueues", "admissionchecks")

    async def look(fleet: Fleet) -> Explanation:
        client: Any = Refusing(Person(fleet.manager), {("list", plural): refused for plural in lists})
        explanation = await gather_explanation(client, asked_about("job/job"), now())
        assert isinstance(explanation, Explanation)
        return explanation

    wrong = finding(await seen_after(look, before=delete_queue), "local-queue-missing")
    assert wrong.remedy == "ask whoever runs the workers: it is theirs to mend"
