"""`multikueue doctor` and `queues mirror` over HTTPS, with the real daemon and workers that were added."""

from __future__ import annotations

import json
from datetime import timedelta
from email.utils import format_datetime
from pathlib import Path

import pytest
import yaml
from aiohttp import web
from aiohttp.test_utils import TestServer

from multikueue.core.model.kinds import CONFIG_MAP, DEPLOYMENT, LOCAL_QUEUE, MULTIKUEUE_CLUSTER, NAMESPACE, WORKLOAD
from multikueue.core.model.labels import NAMESPACES_ANNOTATION, QUEUES_ANNOTATION, RETRY_ANNOTATION
from multikueue.core.model.names import GVK, Json, ObjectKey, Resource
from multikueue.core.model.objects import annotations_of
from multikueue.kube import ClusterConfig
from multikueue.runtime.loop import utc_now
from multikueue.sandbox.setting_up import LOCAL_QUEUE_NAME
from multikueued.doctor.credentials import token_expires
from multikueued.doctor.probe import probe
from multikueued.rbac.objects import CLUSTER_ROLE, Account, manager_objects
from multikueued.rbac.rules import RBAC_GROUP
from multikueued.workers.objects import WorkerSide
from tests.daemon.workers.ground import KUEUE_NAMESPACE, SETTINGS, Ground, ground, until

ACCOUNT = Account(KUEUE_NAMESPACE, "m-multikueued")
ROLE_BINDING = Resource(GVK(RBAC_GROUP, "v1", "RoleBinding"), "rolebindings")
TWIN = ObjectKey("default", LOCAL_QUEUE_NAME)


def deployment(name: str, labels: dict[str, str], **template: object) -> Json:
    """A Deployment in Kueue's namespace."""
    metadata = {"name": name, "namespace": KUEUE_NAMESPACE, "labels": labels}
    spec = {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": template}}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


def config_map(name: str, field: str, document: Json) -> Json:
    """A ConfigMap with one document."""
    metadata = {"name": name, "namespace": KUEUE_NAMESPACE}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {field: yaml.safe_dump(document)}}


async def install(here: Ground, *, gate: bool = False) -> None:
    """Put there what Kueue's manifests and our chart make, as far as the doctor reads it."""
    kueue = {"name": "manager", "image": "registry.k8s.io/kueue/kueue:v0.19.0", "args": ["--config=/c.yaml"]}
    ours = {"name": "multikueued", "image": "multikueue"}
    volume = {"name": "settings", "configMap": {"name": "m-multikueued"}}
    settings = {"namespace": KUEUE_NAMESPACE, "leaderElection": {"enabled": False}}
    labels = {"app.kubernetes.io/name": "multikueued"}
    made = deployment("m-multikueued", labels, containers=[ours], volumes=[volume], serviceAccountName="m-multikueued")
    for resource, obj in (
        (DEPLOYMENT, deployment("kueue-controller-manager", {"a": "b"}, containers=[kueue])),
        (
            CONFIG_MAP,
            config_map(
                "kueue-manager-config", "controller_manager_config.yaml", {"featureGates": {"MultiKueue": gate}}
            ),
        ),
        (DEPLOYMENT, made),
        (CONFIG_MAP, config_map("m-multikueued", "settings.yaml", settings)),
    ):
        await here.manager.create(resource, obj)
    for obj in manager_objects(SETTINGS, "multikueue", ACCOUNT):
        gvk = GVK.of(obj["apiVersion"], obj["kind"])
        if gvk.kind == "Secret":  # the key of marks: the ground has made it
            continue
        plural = Resource(gvk, f"{gvk.kind.lower()}s", namespaced="namespace" in obj["metadata"])
        await here.manager.create(plural, obj)


async def test_a_fleet_that_is_well(tmp_path: Path) -> None:
    async with ground(tmp_path, joined=["worker1", "worker2"]) as here:
        await install(here)
        text = await here.done("doctor")
        wide = await here.done("doctor", "-o", "wide")
        listed = json.loads((await here.run("doctor", "--json")).stdout)  # beside it: for whom it waits, if it is slow
        secrets = [token for worker in here.sandbox.workers.values() for token in worker.server.tokens or ()]

    assert "no findings" in text
    assert all(len(line) <= 80 for line in text.splitlines())
    assert "between -" in wide
    assert listed["findings"] == []
    assert [worker["worker"] for worker in listed["workers"]] == ["worker1", "worker2"]
    # The sandbox has no admission webhooks, and this daemon no Lease.
    assert {gap["what"] for gap in listed["notChecked"]} == {"whether a daemon leads", "the webhook's registration"}
    assert not any(token in text + wide for token in secrets)


async def test_findings_exit_code_and_remedies(tmp_path: Path) -> None:
    async with ground(tmp_path, joined=["worker1", "worker2"]) as here:
        await install(here, gate=True)
        key = ObjectKey("", WorkerSide().role)
        role = await here.worker("worker2").get(CLUSTER_ROLE, key)
        rules = [
            {**rule, "verbs": [verb for verb in rule["verbs"] if verb != "patch"] or ["get"]} for rule in role["rules"]
        ]
        await here.worker("worker2").merge_patch(CLUSTER_ROLE, key, {"rules": rules})
        binding = next(obj for obj in manager_objects(SETTINGS, "multikueue", ACCOUNT) if obj["kind"] == "RoleBinding")
        await here.manager.delete(ROLE_BINDING, ObjectKey.of(binding))
        await here.worker("worker1").delete(LOCAL_QUEUE, TWIN)
        result = await here.run("doctor", "-o", "yaml")
        text = (await here.run("doctor")).stdout

    findings = {finding["id"]: finding for finding in yaml.safe_load(result.stdout)["findings"]}
    assert result.exit_code == 1
    assert list(findings) == [
        "gate-on",
        "permission-missing",
        "worker-permission-missing",
        "worker-local-queue-missing",
    ]
    denial = findings["permission-missing"]["why"]
    assert denial.startswith(
        "system:serviceaccount:kueue-system:m-multikueued may not list, watch secrets in namespace"
    )
    granting = "multikueue rbac manager --config /dev/stdin --service-account kueue-system/m-multikueued | KUBECONFIG="
    assert granting in findings["permission-missing"]["remedy"]
    assert findings["gate-on"]["remedy"].startswith("turn it off: --feature-gates=MultiKueue=false")
    assert "may not patch workloads.kueue.x-k8s.io" in findings["worker-permission-missing"]["why"]
    assert f"multikueue queues mirror {LOCAL_QUEUE_NAME} -n default --worker-context worker1" in " ".join(text.split())
    assert "3 errors, 1 warning" in text
    assert all(len(line) <= 80 or str(tmp_path) in line for line in text.splitlines()), "a path is not broken"


async def test_a_second_release_is_seen_and_stopped(tmp_path: Path) -> None:
    """With a Lease of its own it led, too, and nobody told it."""
    async with ground(tmp_path, joined=["worker1", "worker2"]) as here:
        await install(here)
        labels, settings = {"app.kubernetes.io/name": "multikueued"}, {"namespace": KUEUE_NAMESPACE, "name": "second"}
        ours, volume = {"name": "d", "image": "d"}, {"name": "settings", "configMap": {"name": "n-multikueued"}}
        await here.manager.create(CONFIG_MAP, config_map("n-multikueued", "settings.yaml", settings))
        await here.manager.create(DEPLOYMENT, deployment("n-multikueued", labels, containers=[ours], volumes=[volume]))
        result = await here.run("doctor", "--json")
        stopped = {"spec": {"replicas": 0}}
        await here.manager.merge_patch(DEPLOYMENT, ObjectKey(KUEUE_NAMESPACE, "n-multikueued"), stopped)
        text = await here.done("doctor")

    (finding,) = json.loads(result.stdout)["findings"]
    assert (finding["id"], finding["where"]) == ("two-daemons", "Deployment kueue-system/n-multikueued")
    assert "works on the same checks as Deployment kueue-system/m-multikueued" in finding["why"]
    assert "kubectl -n kueue-system scale deployment n-multikueued --replicas=0" in finding["remedy"]
    assert "no findings" in text


async def test_a_twin_is_made_as_the_doctor_says(tmp_path: Path) -> None:
    async with ground(tmp_path, joined=["worker1", "worker2"]) as here:
        await here.worker("worker1").delete(LOCAL_QUEUE, TWIN)
        await here.worker("worker1").delete(NAMESPACE, ObjectKey("", "default"))
        mirror = ("queues", "mirror", LOCAL_QUEUE_NAME, "-n", "default", "--worker-context", "worker1")
        printed = list(yaml.safe_load_all(await here.done(*mirror, "--print")))
        made = await here.done(*mirror)
        again = await here.done(*mirror)
        text = await here.done("doctor")
        typo = await here.refused(
            "queues", "mirror", "user-queeu", "-n", "default", "--worker-context", "worker1", code=3
        )
        elsewhere = await here.refused(*mirror, "--cluster-queue", "cluster-queeu")

    assert [obj["kind"] for obj in printed] == ["Namespace", "LocalQueue"]
    assert "made namespace default" in made
    assert "made LocalQueue default/user-queue, which leads to ClusterQueue cluster-queue" in made
    assert "nothing to do" in again
    assert "no findings" in text
    assert 'did you mean "user-queue"?' in typo
    assert "that cannot be changed" in elsewhere


async def test_a_twin_is_made_under_the_names_of_its_worker(tmp_path: Path) -> None:
    """As the doctor says; then a job runs there, and its Workload says where."""
    async with ground(tmp_path, workers=1, joined=["worker1"]) as here:
        said = {NAMESPACES_ANNOTATION: '{"*": "mk-*"}', QUEUES_ANNOTATION: f'{{"{LOCAL_QUEUE_NAME}": "theirs"}}'}
        key = ObjectKey("", "worker1")
        await here.manager.merge_patch(MULTIKUEUE_CLUSTER, key, {"metadata": {"annotations": said}})
        mirror = ("queues", "mirror", LOCAL_QUEUE_NAME, "-n", "default", "--worker-context", "worker1", "--worker")
        output = (await here.run("doctor")).stdout
        made = await here.done(*mirror, "worker1")
        again = await here.done(*mirror, "worker1")
        refused = await here.refused(*mirror, "worker9", code=3)
        text = await here.done("doctor")
        await here.submit("train")
        (copy,) = await until(lambda: _copies(here))

    assert 'namespace "mk-default" does not exist there' in " ".join(output.split())
    assert "queues mirror user-queue -n default --worker-context worker1 --worker worker1" in " ".join(output.split())
    assert "made namespace mk-default" in made
    assert "made LocalQueue mk-default/theirs, which leads to ClusterQueue cluster-queue" in made
    assert "LocalQueue mk-default/theirs is there: nothing to do" in again
    assert 'there is no MultiKueueCluster "worker9"' in refused
    assert "no findings" in text
    assert copy["metadata"]["namespace"] == "mk-default"
    assert copy["spec"]["queueName"] == "theirs"


async def _copies(here: Ground) -> list[Json]:
    return (await here.worker("worker1").list(WORKLOAD)).items


async def test_a_cluster_queue_is_never_made(tmp_path: Path) -> None:
    async with ground(tmp_path, workers=1, daemon=False) as here:
        error = await here.refused("queues", "mirror", LOCAL_QUEUE_NAME, "-n", "default", "--worker-context", "worker1")

    assert 'the worker has no ClusterQueue "cluster-queue"; there is none' in error
    assert "its quota is yours to decide" in error


async def test_fix_shows_asks_and_does(tmp_path: Path) -> None:
    async with ground(tmp_path, workers=1, joined=["worker1"]) as here:
        await here.submit("train")
        (workload,) = await until(lambda: _workloads(here))
        key = ObjectKey.of(workload)
        noted = {"metadata": {"annotations": {RETRY_ANNOTATION: "now"}}}
        await here.manager.merge_patch(WORKLOAD, key, noted)
        declined = await here.run("doctor", "--fix", answer="n\n")
        kept = annotations_of(await here.manager.get(WORKLOAD, key)).get(RETRY_ANNOTATION)
        agreed = await here.run("doctor", "--fix", "--yes")
        after = annotations_of(await here.manager.get(WORKLOAD, key))
        nothing = await here.run("doctor", "--fix")
        alone = await here.run("doctor", "--yes")

    assert f"would take annotation {RETRY_ANNOTATION} off Workload {key}" in declined.stderr
    assert kept == "now"
    assert "which is no time" in " ".join(declined.stdout.split())
    assert f"done: take annotation {RETRY_ANNOTATION} off Workload {key}" in agreed.stderr
    assert RETRY_ANNOTATION not in after
    assert "no time" not in agreed.stdout
    assert "Nothing that --fix may change" in nothing.stderr
    assert alone.exit_code == 2


async def _workloads(here: Ground) -> list[Json]:
    return (await here.manager.list(WORKLOAD)).items


async def test_a_clock_is_read_from_the_header_of_any_answer() -> None:
    """A refusal has it, too: the probe sends no credentials."""
    seen: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        seen.append(request.headers.get("Authorization", ""))
        date = format_datetime(utc_now() + timedelta(seconds=90), usegmt=True)
        return web.Response(status=401, headers={"Date": date})

    application = web.Application()
    application.router.add_get("/version", answer)
    async with TestServer(application) as server:
        probed = await probe(ClusterConfig(str(server.make_url("")).rstrip("/"), token="secret"))

    assert seen == ["", "", ""]
    assert probed.latency is not None
    assert probed.clock is not None
    assert 88 < probed.clock.low <= probed.clock.high < 93


async def test_a_server_that_is_away_measures_nothing() -> None:
    async with TestServer(web.Application()) as server:
        url = str(server.make_url("")).rstrip("/")
    probed = await probe(ClusterConfig(url))
    assert (probed.latency, probed.clock) == (None, None)
    assert probed.error


@pytest.mark.parametrize("token", ["", "opaque", "a.b.c", "a.bm8.c"])
def test_what_is_no_jwt_does_not_expire(token: str) -> None:
    assert token_expires(token) is None


def test_the_claim_of_a_jwt() -> None:
    expiry = token_expires("e30.eyJleHAiOiAxNzY3MjI1NjAwfQ.c2ln")
    assert expiry is not None
    assert expiry.isoformat() == "2026-01-01T00:00:00+00:00"
