"""Each finding of the doctor: facts that produce it, and the healthy ones, where it is absent.

What `doctor --fix` would change: our own webhook's registration and annotations of ours, and nothing else.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any, TypeAlias

import attrs
import pytest

from multikueue import AVAILABLE
from multikueue.core.dispatchers.dispatcher import SCORED
from multikueue.core.dispatchers.scored.profile import Hold, Profile
from multikueue.core.machinery.connection_facts import ConnectionFacts, facts_status
from multikueue.core.machinery.shares import UsedUp
from multikueue.core.model.conditions import condition, conditions, new_condition, timestamp
from multikueue.core.model.kinds import (
    ADMISSION_CHECK,
    CLUSTER_QUEUE,
    LOCAL_QUEUE,
    MULTIKUEUE_CLUSTER,
    MULTIKUEUE_CONFIG,
    MUTATING_WEBHOOKS,
    WORKLOAD,
)
from multikueue.core.model.labels import DETACHED_ANNOTATION, NAMESPACES_ANNOTATION
from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.core.model.second_names import SECOND_NAME
from multikueue.core.model.worker_kueue import GATES, WorkerKueue
from multikueue.errors import Cause
from multikueue.kube import ClusterConfig
from multikueue.sandbox.setting_up import (
    CHECK,
    CLUSTER_QUEUE_NAME,
    LOCAL_QUEUE_NAME,
    admission_check,
    cluster_queue,
    config,
    local_queue,
)
from multikueue.testing import workload
from multikueue.testing.objects import CheckState
from multikueued.diagnosis.checks.table import CHECKS
from multikueued.diagnosis.checks.webhooks import KUEUES, service_of
from multikueued.diagnosis.facts import Facts, Installation, KueueFacts, StatusWriter, WebhookFacts
from multikueued.diagnosis.findings import LONGEST, diagnose
from multikueued.doctor.credentials import facts_in_use, kubeconfig_facts
from multikueued.doctor.fixes import fixes
from multikueued.reports.chain import queue_findings
from multikueued.reports.ending_copies import EndingCopy
from multikueued.reports.events import EventReport
from multikueued.reports.remedies.remedy import Finding, Severity
from multikueued.reports.worker_facts import ClockBound, KubeconfigFacts, Need, NotChecked, stranded_pods
from multikueued.reports.worker_queues import QueuesOnWorker
from multikueued.settings.config import DispatcherSettings, LeaderElectionSettings, Settings, WebhookSettings
from multikueued.settings.sections import BoundTokenSettings, DependencySettings
from multikueued.tokens.bound import Bound
from tests.core.door import RefusalFacts
from tests.reports.doctor.healthy import (
    ALLOWED,
    JOB_KIND,
    NOW,
    QUEUE,
    RAY_KIND,
    authority,
    definition,
    healthy,
    lease,
    objects_of,
    queues,
    registered,
    saying_digest,
    worker_facts,
)
from tests.reports.doctor.mirror_cases import mirror_cases
from tests.reports.objects import job, judged, refused, saying, worker

Case: TypeAlias = tuple[str, Facts, str, str]
"""Id, facts, where, and a part of what it says."""

OFF = Settings(namespace="kueue-system")
RENEWS = attrs.evolve(OFF, bound_tokens=BoundTokenSettings(enabled=True))
POD = next(kind for kind in AVAILABLE if kind.resource.plural == "pods")


def pod_workload(check: CheckState) -> Json:
    """A Workload of a pod that runs on worker1."""
    made = workload(job(), checks={CHECK: check}, cluster="worker1")
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "train", "uid": "1", "controller": True}
    return {**made, "metadata": {**made["metadata"], "ownerReferences": [owner]}}


def with_webhook(configurations: dict[str, Json], *, service: bool = True, **changed: Any) -> Facts:
    """The webhook registered like this."""
    services = {ObjectKey("kueue-system", "multikueue-webhook"): service}
    return healthy(webhooks=WebhookFacts(configurations, services), **changed)


def with_worker(*made: Json, **changed: Any) -> Facts:
    """Another worker1."""
    return healthy(*made, workers={"worker1": worker_facts(**changed), "worker2": worker_facts("worker2")})


def with_objects(**changed: Any) -> Facts:
    """Other objects of the manager."""
    return objects_of(healthy(), **changed)


def with_queue(**changed: Any) -> Facts:
    """Another ClusterQueue on the manager."""
    (queue,) = healthy().objects.cluster_queues
    return with_objects(cluster_queues=({**queue, **changed},))


def installed(release: str, replicas: int = 2, *, elected: bool = True, **said: Any) -> Installation:
    """The chart's Deployment of a release."""
    settings = Settings(namespace="kueue-system", leader_election=LeaderElectionSettings(enabled=elected), **said)
    return Installation(ObjectKey("kueue-system", release), replicas, settings)


def several_daemons() -> Iterator[Case]:
    """Who leads beside whom."""
    first, where = installed("first"), "Deployment kueue-system/second"
    both = "it works on the same checks as Deployment kueue-system/first, without one Lease of both"
    for second in (installed("second", name="mine"), installed("second", elected=False, replicas=1)):
        yield "two-daemons", healthy(installations=(first, second)), where, both
        yield "two-daemons", healthy(installations=(second, first)), "Deployment kueue-system/first", "same checks as"
    alone = installed("second", elected=False)
    yield "two-daemons", healthy(installations=(alone,)), where, "it has 2 replicas without leader election"
    for_others = installed("second", controller_name="example.com/mine")
    yield "two-daemons", healthy(installations=(first, for_others)), where, "the Lease kueue-system/multikueue as"


@pytest.mark.parametrize(
    "beside",
    [
        (),
        (installed("second"),),
        (installed("second", name="mine", controller_name="example.com/mine"),),
        (installed("second", elected=False, replicas=1, controller_name="example.com/mine"),),
    ],
    ids=["alone", "one Lease", "other checks", "other checks without a Lease"],
)
def test_daemons_that_may_be_beside_each_other(beside: tuple[Installation, ...]) -> None:
    assert diagnose(healthy(installations=(installed("first"), *beside)), CHECKS).findings == ()


def manager_cases() -> Iterator[Case]:
    """On the manager, but for the webhook."""
    deployment = "Deployment kueue-controller-manager"
    on = KueueFacts("kueue:v0.19.0", (), {})
    yield "gate-on", healthy(kueue=on), deployment, "MultiKueue is on"
    yield "gate-on", healthy(kueue=attrs.evolve(on, arguments=("--feature-gates=A=true",))), deployment, "is on"
    wrote = {"worker1": (StatusWriter("multikueue", NOW), StatusWriter("kueue", NOW + timedelta(seconds=9)))}
    yield "gate-seems-on", healthy(kueue=KueueFacts(), status_writers=wrote), "MultiKueueCluster worker1", "wrote"
    old = KueueFacts("localhost:5000/kueue:v0.14.9", ("--feature-gates=MultiKueue=false",), {})
    yield "kueue-too-old", healthy(kueue=old), deployment, "v0.14.9"
    yield "kind-not-served", healthy(lacking=frozenset({RAY_KIND.resource.gvk})), "the manager", "rayjobs.ray.io"
    bare = healthy(definitions={RAY_KIND.resource.gvk: definition()})
    yield "kind-without-managed-by", bare, "CustomResourceDefinition rayjobs.ray.io", "no field spec.managedBy"
    yield "starts-here", healthy(pod_workload("Ready")), "default/pod/train", "its check is Ready"
    yield "daemon-not-running", with_objects(lease=lease(3600)), "the daemon", "no daemon leads since"
    refused = (ALLOWED, attrs.evolve(ALLOWED, verb="watch", allowed=False))
    denial = "system:serviceaccount:kueue-system:multikueue may not watch workloads.kueue.x-k8s.io"
    yield "permission-missing", healthy(permissions=refused), "the manager", denial
    yield from several_daemons()
    yield from chain_cases()
    yield from taken_away_cases()
    yield from placement_cases()
    yield from credential_cases()


def chain_cases() -> Iterator[Case]:
    """From ClusterQueues over their checks to the workers."""
    none = objects_of(with_queue(spec={}), checks=())
    yield "no-check", none, "the manager", "no AdmissionCheck of MultiKueue"
    yield (
        "no-check",
        with_queue(spec={}),
        "the manager",
        f"no ClusterQueue names an AdmissionCheck of MultiKueue ({CHECK})",
    )
    (check,) = healthy().objects.checks
    yield (
        "check-unseen",
        with_objects(checks=({**check, "status": {}},)),
        f"AdmissionCheck {CHECK}",
        "nobody has looked",
    )
    bare_spec = {"controllerName": "kueue.x-k8s.io/multikueue"}
    parameters = with_objects(checks=({**check, "spec": bare_spec},))
    strange = with_objects(checks=(admission_check("kueue.x-k8s.io/multikueu"),))
    said = "that of kueue.x-k8s.io/multikueu, and the daemon is kueue.x-k8s.io/multikueue"
    yield "check-unseen", strange, f"AdmissionCheck {CHECK}", said
    yield "check-parameters", parameters, f"AdmissionCheck {CHECK}", "does not refer to a MultiKueueConfig"
    other = config(("worker1",))
    renamed = with_objects(configs=({**other, "metadata": {"name": "multikeueu"}},))
    yield "config-missing", renamed, f"AdmissionCheck {CHECK}", 'did you mean "multikeueu"?'
    typo = with_objects(configs=(config(("worker1", "wroker3")),))
    yield "cluster-missing", typo, f"MultiKueueConfig {CHECK}", 'did you mean "worker2"?'
    checks = {"admissionChecksStrategy": {"admissionChecks": [{"name": "multikeue"}, {"name": CHECK}]}}
    yield "check-missing", with_queue(spec=checks), f"ClusterQueue {CLUSTER_QUEUE_NAME}", f'did you mean "{CHECK}"?'
    stopped = {"conditions": [new_condition("Active", False, "Stopped", "Can't admit: is stopped", now=NOW)]}
    yield "queue-inactive", with_queue(status=stopped), f"ClusterQueue {CLUSTER_QUEUE_NAME}", "is stopped"
    lost = local_queue("research")
    lost["spec"]["clusterQueue"] = "cluster-queeu"
    more = with_objects(local_queues=(*healthy().objects.local_queues, lost))
    yield "cluster-queue-missing", more, "LocalQueue research/user-queue", f'did you mean "{CLUSTER_QUEUE_NAME}"?'
    alone = with_objects(configs=(config(("worker1",)),))
    yield "worker-unlisted", alone, "MultiKueueCluster worker2", "no MultiKueueConfig of a check lists it"
    closed = worker("worker2", annotations={"multikueue.dev/cordoned": "repair"})
    yield "worker-cordoned", with_objects(clusters=(worker("worker1"), closed)), "worker2", "cordoned"
    held = {"message": '{"first": "worker1", "uid": "uid"}', "status": "True", "reason": "NotDifferent"}
    second = worker("worker2")
    second["status"]["conditions"].append({"type": SECOND_NAME, **held})
    reason = "has shown what worker1 has"
    yield "worker-second-name", with_objects(clusters=(worker("worker1"), second)), "worker2", reason
    yield "only-second-names", of_second_names("worker2"), "MultiKueueConfig other", "default/job/train waits"


def of_second_names(*listed: str) -> Facts:
    """Two configs that list a name each of one cluster, or the second one more; a job waits for the second."""
    held = {"message": '{"first": "worker1", "uid": "uid"}', "status": "True", "reason": "SameCluster"}
    second = worker("worker2")
    second["status"]["conditions"].append({"type": SECOND_NAME, **held})
    facts = healthy(workload(job("train"), checks={"other": "Pending"}))
    (check,) = facts.objects.checks
    parameters = {**check["spec"]["parameters"], "name": "other"}
    beside = {**check, "metadata": {"name": "other"}, "spec": {**check["spec"], "parameters": parameters}}
    other = {**config(listed), "metadata": {"name": "other"}}
    changed = {"checks": (check, beside), "configs": (config(("worker1",)), other)}
    return objects_of(facts, clusters=(worker("worker1"), worker("worker3"), second), **changed)


def test_a_second_name_beside_another_cluster_keeps_nobody_waiting() -> None:
    finding = {entry.id: entry for entry in findings(of_second_names("worker2"))}["only-second-names"]
    assert finding.remedy.startswith("list worker1 in spec.clusters of MultiKueueConfig other")
    assert finding.severity is Severity.ERROR
    assert "only-second-names" not in {finding.id for finding in findings(of_second_names("worker2", "worker3"))}


@pytest.mark.parametrize("id", ["check-missing", "queue-inactive", "cluster-queue-missing", "placement-inactive"])
def test_the_doctor_says_of_queues_and_checks_what_explain_says(id: str) -> None:
    """They are written once: what one of them knows more, both tell."""
    cases = [facts for known, facts, *_ in (*chain_cases(), *placement_cases()) if known == id]
    assert cases
    for facts in cases:
        shared = {finding.where: finding for finding in findings(facts) if finding.id == id}
        for key in facts.objects.local_queues_by_key:
            waiting = {"metadata": {"namespace": key.namespace}, "spec": {"queueName": key.name}}
            for finding in queue_findings(facts.objects.chain(waiting)):
                if finding.id == id:
                    assert shared[finding.where].why.startswith(finding.why)
                    assert shared[finding.where].remedy == finding.remedy


def taken_away_cases() -> Iterator[Case]:
    """Workers that go under their jobs."""
    at = {DETACHED_ANNOTATION: timestamp(NOW)}
    runs, detached = workload(job(), cluster="worker1", checks={CHECK: "Ready"}), "MultiKueueCluster worker1"
    since = f"detached since {timestamp(NOW)}"
    for facts, state in (
        (None, "nobody can stop or move them; it has default/job/train"),
        (ConnectionFacts(error="refused"), "start elsewhere workerLostTimeout after it is gone; it has"),
        (ConnectionFacts(error="refused", moves_at=NOW), f"start elsewhere at {timestamp(NOW)}; it has"),
    ):
        how: dict[str, Any] = (
            {} if facts is None else {"message": "refused", "reason": "ClientConnectionFailed", "facts": facts}
        )
        clusters = (worker("worker1", annotations=at, **how), worker("worker2"))
        yield "worker-detached", objects_of(healthy(runs), clusters=clusters), detached, state
        yield "worker-detached", objects_of(healthy(runs), clusters=clusters), detached, since
    yield (
        "worker-gone",
        objects_of(healthy(runs), clusters=(worker("worker2"),)),
        detached,
        "has that worker: the daemon",
    )


def test_a_placement_check_that_names_a_config_says_nothing_of_that_config() -> None:
    """The config was told to be half broken, in the words of the other check."""
    (check,) = healthy().objects.checks
    spec = {**check["spec"], "controllerName": "open-cluster-management.io/placement"}
    bad = new_condition("Active", False, "BadParameters", "spec.parameters.kind is ...", now=NOW)
    placed: Json = {"metadata": {"name": "placed"}, "spec": spec, "status": {"conditions": [bad]}}
    facts = with_objects(checks=(check, placed), configs=(config(("worker1", "worker3")),))
    (told,) = [finding.told for finding in findings(facts) if finding.id == "cluster-missing"]
    assert "spec.parameters" not in told


@pytest.mark.parametrize(
    ("reason", "remedy"),
    [
        ("NoClustersAvailable", "have Placement p select some: kubectl get placements -A"),
        ("PlacementNotFound", "make that Placement, or correct spec.parameters.name"),
        ("", "set ocm.enabled: true in the daemon's settings"),
        ("MultiKueueConfigError", "do what its words say"),
    ],
)
def test_a_placement_check_that_does_nothing_says_what_to_do(reason: str, remedy: str) -> None:
    """ "Do what its words say" was said of words that ask for nothing, or of a check that has none."""
    (check,) = healthy().objects.checks
    parameters = {"apiGroup": "cluster.open-cluster-management.io", "kind": "Placement", "name": "p"}
    spec = {"controllerName": "open-cluster-management.io/placement", "parameters": parameters}
    conditions = [new_condition("Active", False, reason, "words", now=NOW)] if reason else []
    placed: Json = {"metadata": {"name": "placed"}, "spec": spec, "status": {"conditions": conditions}}
    found = findings(with_objects(checks=(check, placed)))
    (told,) = [finding for finding in found if finding.id == "placement-inactive"]
    assert told.remedy.startswith(remedy)


def placement_cases() -> Iterator[Case]:
    """Of placement checks and the configs they fill."""
    (check,) = healthy().objects.checks
    spec = {"controllerName": "open-cluster-management.io/placement"}
    mine: Json = {**check, "metadata": {"name": "placed"}, "spec": spec, "status": {}}
    where = "AdmissionCheck placed"
    yield "placement-inactive", with_objects(checks=(check, mine)), where, "nobody handles it"
    misnamed: Json = {
        "controllerName": "open-cluster-managment.io/placement",
        "parameters": {"kind": "Placement", "name": "p"},
    }
    meant = (
        'nobody handles it: its controllerName is open-cluster-managment.io/placement (did you mean "open-cluster-man'
    )
    yield "placement-inactive", with_objects(checks=(check, {**mine, "spec": misnamed})), where, meant
    inactive = {"type": "Active", "status": "False", "reason": "PlacementNotFound", "message": "Placement p not found"}
    gone = {**mine, "status": {"conditions": [inactive]}}
    yield "placement-inactive", with_objects(checks=(check, gone)), where, "PlacementNotFound: Placement p not found"
    both = [{**inactive, "status": "True"}, {"type": "PlacementConflict", "status": "True", "reason": "Conflict"}]
    addons = {**mine, "status": {"conditions": both}}
    yield "placement-inactive", with_objects(checks=(check, addons)), where, "Conflict: "
    (filled,) = healthy().objects.configs
    filled = {**filled, "metadata": {**filled["metadata"], "labels": {"multikueue.dev/placement": CHECK}}}
    ordered = attrs.evolve(with_objects(configs=(filled,)), settings_known=True)
    misspelt = attrs.evolve(OFF, dependencies=(DependencySettings("multikeue", ("ConfigMap",)),))
    named = f'there is no MultiKueueConfig "multikeue" (did you mean "{CHECK}"?)'
    yield "dependencies-unused", healthy(settings=misspelt), "dependencies", named
    yield "order-unused", ordered, f"MultiKueueConfig {CHECK}", "does not ask its first clusters first"


def credential_cases() -> Iterator[Case]:
    """Of the kubeconfigs that the manager holds, and of what the daemon says about workers."""
    where = "worker1, Secret worker1-secret"
    soon, past = NOW + timedelta(days=2), NOW - timedelta(days=2)
    for made, words in (
        (KubeconfigFacts("worker1-secret", token_expires=past), "token expired at 2025-12-30T00:00:00Z"),
        (KubeconfigFacts("worker1-secret", token_expires=soon), "token expires at 2026-01-03T00:00:00Z"),
        (KubeconfigFacts("worker1-secret", certificate_expires=past), "client certificate expired at"),
    ):
        yield "credentials-expire", healthy(credentials={"worker1": made}), where, words
    bound = Bound(ObjectKey("kueue-system", "multikueue")).with_life(NOW, timedelta(days=1))
    for settings, words in (
        (RENEWS, "its token ends at 2026-01-02T00:00:00Z; the daemon renews it from 2026-01-01T19:12:00Z on"),
        (OFF, "its token ends at 2026-01-02T00:00:00Z, and the daemon does not renew it"),
    ):
        held = KubeconfigFacts("worker1-secret", token_expires=bound.expires, bound=bound)
        yield "bound-token", healthy(credentials={"worker1": held}, settings=settings), where, words
    wrong = KubeconfigFacts("worker1-secret", problem='it has no key "kubeconfig"')
    yield "kubeconfig-unusable", healthy(credentials={"worker1": wrong}), where, 'no key "kubeconfig"'
    newer = KubeconfigFacts("worker1-secret", "def")
    yield "credentials-not-in-use", healthy(credentials={"worker1": newer}), "worker1", "other credentials"
    for name, cause in (
        ("bad-token", Cause.BAD_TOKEN),
        ("worker-hung", Cause.NO_ANSWER),
        ("worker-down", Cause.OUT_OF_REACH),
    ):
        facts = ConnectionFacts(error="words", cause=cause)
        lost = worker("worker1", "words", reason="ClientConnectionFailed", facts=facts)
        yield name, with_objects(clusters=(lost, worker("worker2"))), "worker1", ""
    refused = worker("worker1", "words", reason="BadKubeConfig", facts=ConnectionFacts(cause=Cause.KEY_MISSING))
    yield "kubeconfig-key", with_objects(clusters=(refused, worker("worker2"))), "worker1", "worker1-secret"
    gone = {"Job.v1.batch": "the server could not find the requested resource"}
    lacking = worker("worker1", facts=ConnectionFacts(unusable=gone))
    yield "crd-missing", with_objects(clusters=(lacking, worker("worker2"))), "worker1", ""


def webhook_cases() -> Iterator[Case]:
    """Of the webhook's registration."""
    ours, kueues = "MutatingWebhookConfiguration multikueue-webhook", {KUEUES: registered()[KUEUES]}
    yield "webhook-not-registered", with_webhook(kueues), ours, "does not exist"
    yield "webhook-left-over", with_webhook(registered(), settings=OFF), ours, "the settings have it off"
    yield "webhook-off", with_webhook({}, settings=OFF), "the manager", "a job must name managedBy itself"
    early = "MutatingWebhookConfiguration a-webhook"
    yield "webhook-left-over", with_webhook(registered() | registered("a-webhook")), early, "have another name"
    yield "webhook-order", with_webhook(registered("a-webhook")), early, "is asked first"
    yield "webhook-authority", with_webhook(registered(trusted="")), ours, "names no certificate authority"
    old = authority(NOW - timedelta(days=800))
    yield "webhook-authority", with_webhook(registered(trusted=old)), ours, "expired at"
    yield "webhook-authority", with_webhook(registered(trusted="?")), ours, "no certificate that can be read"
    yield "webhook-service", with_webhook(registered(), service=False), ours, "Service kueue-system/multikueue-webhook"
    fewer = with_webhook(registered(kinds=(JOB_KIND,)))
    yield "webhook-kinds", fewer, ours, "not asked about rayjobs.ray.io"


def renaming(namespaces: str) -> Facts:
    """worker1 calls namespaces otherwise."""
    facts = healthy()
    metadata = {"name": "worker1", "annotations": {NAMESPACES_ANNOTATION: namespaces}}
    clusters = tuple(
        {**cluster, "metadata": {**cluster["metadata"], **metadata}}
        if cluster["metadata"]["name"] == "worker1"
        else cluster
        for cluster in facts.objects.clusters
    )
    return attrs.evolve(facts, objects=attrs.evolve(facts.objects, clusters=clusters))


def held_pod(**changed: Any) -> Json:
    """A pod of a group that has ended, is deleted, and that Kueue holds."""
    labels = {"kueue.x-k8s.io/prebuilt-workload-name": "train"}
    metadata = {"name": "train-0", "namespace": "default", "labels": labels, "finalizers": ["kueue.x-k8s.io/managed"]}
    metadata["deletionTimestamp"] = timestamp(NOW - timedelta(minutes=2))
    return {"metadata": {**metadata, **changed}, "status": {"phase": "Failed"}}


def inactive_queues() -> QueuesOnWorker:
    """A worker's queues, whose ClusterQueue names a flavor that is not there."""
    words = "Can't admit new workloads: references missing ResourceFlavor(s): gpu."
    made = queues()
    active = new_condition("Active", False, "FlavorNotFound", words, now=NOW)
    return QueuesOnWorker(
        made.local, {name: {**queue, "status": {"conditions": [active]}} for name, queue in made.cluster.items()}
    )


def worker_queue_cases() -> Iterator[Case]:
    """Queues of workers."""
    bare = with_worker(queues=queues(local={}))
    yield "worker-local-queue-missing", bare, f"worker1, LocalQueue {QUEUE}", "does not exist there"
    wrong = with_worker(queues=queues(local={QUEUE: "gone"}))
    yield "worker-cluster-queue", wrong, f"worker1, LocalQueue {QUEUE}", '"gone" there, which does not exist'
    going = with_worker(queues=queues(local={}), terminating=frozenset({"default"}))
    yield "namespace-terminating", going, "worker1, Namespace default", "is being deleted there"
    held_up = with_worker(queues=attrs.evolve(queues(), stopped=frozenset({QUEUE})))
    yield "worker-local-queue-stopped", held_up, f"worker1, LocalQueue {QUEUE}", "it is stopped there"
    both = {"worker1": queues(stopPolicy="Hold"), "worker2": inactive_queues()}
    apart = healthy(workers={name: worker_facts(name, queues=each) for name, each in both.items()})
    said = 'ClusterQueue "cluster-queue" there, which on worker1 is stopped, on worker2 is not active (FlavorNotFound'
    yield "worker-cluster-queue", apart, f"worker1, worker2, LocalQueue {QUEUE}", said
    stopped = with_worker(queues=queues(stopPolicy="Hold"))
    yield "worker-cluster-queue", stopped, f"worker1, LocalQueue {QUEUE}", "there, which is stopped"
    inactive = with_worker(queues=inactive_queues())
    said = "which is not active (FlavorNotFound: Can't admit new workloads: references missing ResourceFlavor(s): gpu.)"
    yield "worker-cluster-queue", inactive, f"worker1, LocalQueue {QUEUE}", said


def worker_cases() -> Iterator[Case]:
    """On workers."""
    yield from worker_queue_cases()
    refused = (attrs.evolve(ALLOWED, verb="create", allowed=False), ALLOWED)
    words = "may not create workloads.kueue.x-k8s.io"
    yield "worker-permission-missing", with_worker(permissions=refused), "worker1", words
    lacking = with_worker(lacking=frozenset({WORKLOAD.gvk}))
    yield "worker-without-kueue", lacking, "worker1", "Workload (kueue.x-k8s.io/v1beta2)"
    open_to_all = with_worker(takes_anybody=True)
    yield "worker-takes-anybody", open_to_all, "worker1", "asks its namespaces whose copies they take"
    full = with_worker(used_up=UsedUp("team-a", 75_000_000, 60, waiting=53))
    said = "namespace team-a has 71.5 MiB in 60 jobs there, more than any other; 53 jobs wait"
    yield "worker-share-used-up", full, "worker1", said
    older = with_worker(kueue=WorkerKueue((0, 16), frozenset({GATES}), read=True))
    yield "worker-kueue-older", older, "worker1", "Kueue 0.16 there lacks .spec.preemptionGates"
    lacking = with_worker(lacking=frozenset({RAY_KIND.resource.gvk}))
    yield "worker-without-kind", lacking, "worker1", "rayjobs.ray.io, which the manager serves"
    bare = with_worker(namespaces=frozenset({"kube-system"}), queues=queues(local={}))
    yield "worker-namespace-missing", bare, "worker1, Namespace default", "does not exist there"
    renamed = renaming('{"other": "x"}')
    yield "worker-namespace-unnamed", renamed, "worker1, Namespace default", 'gives namespace "default" none there'
    renamed = renaming('{"*": "mk-*"}')
    yield "worker-namespace-missing", renamed, "worker1, Namespace mk-default", '"mk-default" does not exist there'
    small = {name: worker_facts(name, queues=queues(cpu="100m")) for name in ("worker1", "worker2")}
    large = workload(job(cpu="500m"))
    large["status"]["admission"]["podSetAssignments"][0]["resourceUsage"] = {"cpu": "500m"}
    words = "worker1: insufficient quota for cpu (0.5 > 0.1); worker2: insufficient"
    yield "never-fits", healthy(large, workers=small), "default/job/train", words
    held = with_worker(stranded=(held_pod(),))
    yield "pods-stranded", held, "worker1, Pod default/train-0", "its finalizer kueue.x-k8s.io/managed stays"
    yield "worker-clock", with_worker(clock=ClockBound(60.0, 61.0)), "worker1", "at least 59 s ahead of the manager's"
    yield "worker-clock", with_worker(clock=ClockBound(-61.0, -60.0)), "worker1", "at least 59 s behind the manager's"
    moved = {name: worker_facts(name, clock=ClockBound(60.0, 61.0)) for name in ("worker1", "worker2")}
    yield "own-clock", healthy(clock=ClockBound(60.0, 61.0), workers=moved), "this machine", "60 s behind"
    yield "worker-slow", with_worker(latency=1.5), "worker1", "takes 1.5 s"
    ending = EndingCopy("Job", ObjectKey("a", "b"), "uid", NOW, NOW, NOW, ("example.com/slow",))
    yield "copy-does-not-end", with_worker(overdue=(ending,)), "worker1, Job a/b", "by the finalizer example.com/slow"
    yield "bad-token", with_worker(error="worker1: list: Unauthorized"), "worker1", "does not accept"


def on_manager(**pool: Any) -> Facts:
    """worker1 is the manager itself: the LocalQueue for copies there leads to a queue of its own."""
    facts = renaming('{"default": "local"}')
    (queue,) = facts.objects.cluster_queues
    made = cluster_queue({"cpu": "1"}, pool.get("checks", ()), name="pool")
    queues = tuple(
        {**queue, "spec": {**queue["spec"], "cohortName": cohort}}
        for queue, cohort in ((queue, "tenants"), (made, pool.get("cohort", "pools")))
    )
    facts = objects_of(facts, cluster_queues=queues, local_queues=(*facts.objects.local_queues, POOL_QUEUE))
    return with_role(facts, is_manager=True)


def with_role(facts: Facts, *, is_manager: bool | None) -> Facts:
    """The daemon has noted whether worker1 is the manager."""

    def noted(cluster: Json) -> Json:
        role = facts_status(cluster, condition(cluster, "Active"), ConnectionFacts(is_manager=is_manager), NOW)
        return {**cluster, "status": {"conditions": [*conditions(cluster), *([role] if role else [])]}}

    worker1, *others = facts.objects.clusters
    return objects_of(facts, clusters=(noted(worker1), *others))


TREE = ("tenants", "pools")
POOL_QUEUE = local_queue("local", of="pool")


def own_worker_cases() -> Iterator[Case]:
    """The manager as a worker."""
    checked = on_manager(checks=[CHECK])
    yield "own-worker-queue", checked, "worker1, ClusterQueue pool", f'it has AdmissionCheck "{CHECK}"'
    together = on_manager(cohort="tenants")
    yield "own-worker-queue", together, "worker1, ClusterQueue pool", 'shares cohort "tenants" with'
    above = objects_of(
        on_manager(), cohorts=tuple({"metadata": {"name": name}, "spec": {"parentName": "root"}} for name in TREE)
    )
    yield "own-worker-queue", above, "worker1, ClusterQueue pool", 'shares cohort "root" with'
    yield (
        "own-worker-unknown",
        with_role(healthy(), is_manager=None),
        "worker1",
        "cannot tell whether it is the manager",
    )


@pytest.mark.parametrize("fine", [on_manager(), with_role(healthy(), is_manager=False)])
def test_a_manager_that_keeps_its_copies_apart_is_a_worker_like_any_other(fine: Facts) -> None:
    ids = {finding.id for finding in diagnose(fine, CHECKS).findings}
    assert not {finding_id for finding_id in ids if finding_id.startswith("own-worker")}


SCORED_SETTINGS = attrs.evolve(OFF, dispatcher=DispatcherSettings(name=SCORED))
LATE = ObjectKey("late", LOCAL_QUEUE_NAME)


def shared(*, cpu: str = "4", leads: dict[ObjectKey, str] | None = None, **spec: Any) -> Facts:
    """Two tenants that share one large queue on each worker; `spec` is more of worker1's."""
    facts = healthy(settings=SCORED_SETTINGS, webhooks=WebhookFacts({}))
    (queue,), (local,) = facts.objects.cluster_queues, facts.objects.local_queues
    late = {**queue, "metadata": {**queue["metadata"], "name": "late"}}
    facts = objects_of(facts, cluster_queues=(queue, late), local_queues=(local, local_queue("late", of="late")))
    ours = dict.fromkeys((QUEUE, LATE), CLUSTER_QUEUE_NAME)
    made = {"worker1": queues(cpu=cpu, local={**ours, **(leads or {})}, **spec), "worker2": queues(cpu=cpu, local=ours)}
    namespaces = frozenset({"default", "late"})
    workers = {
        name: worker_facts(name, queues=queues_there, namespaces=namespaces) for name, queues_there in made.items()
    }
    return attrs.evolve(facts, workers=workers)


def pool_cases() -> Iterator[Case]:
    """What the scored dispatcher holds by."""
    newer = {"apiVersion": "config.kueue.x-k8s.io/v1beta2", "waitForPodsReady": {"blockAdmission": True}}
    older = {"apiVersion": "config.kueue.x-k8s.io/v1beta1", "waitForPodsReady": {"enable": True}}
    for configuration in (newer, older):
        kueue = attrs.evolve(healthy().kueue, configuration=configuration)
        waits = healthy(kueue=kueue, settings=SCORED_SETTINGS, webhooks=WebhookFacts({}))
        yield "hold-blocks-admission", waits, f"AdmissionCheck {CHECK}", "waitForPodsReady.blockAdmission"
    where = f"worker1, ClusterQueue {CLUSTER_QUEUE_NAME}"
    own = {"admissionChecks": [{"name": "provisioning"}]}
    yield "pool-spoiled", shared(admissionChecksStrategy=own), where, "admission checks of its own"
    yield "pool-spoiled", shared(cohortName="all"), where, "in cohort all"
    yield "pool-spoiled", shared(preemption={"withinClusterQueue": "LowerPriority"}), where, "withinClusterQueue"
    borrows = {"borrowWithinCohort": {"policy": "LowerPriority"}}
    yield "pool-spoiled", shared(preemption=borrows), where, "borrowWithinCohort"
    flavors = [{"name": name, "resources": [{"name": "cpu", "nominalQuota": "8"}]} for name in ("a", "b")]
    groups = [{"coveredResources": ["cpu"], "flavors": flavors}]
    yield "pool-spoiled", shared(resourceGroups=groups), where, "one of its flavors a, b"
    theirs = {ObjectKey("theirs", "queue"): CLUSTER_QUEUE_NAME}
    yield "pool-spoiled", shared(leads=theirs), where, "theirs/queue"
    yield "pools-too-small", shared(cpu="3"), f"AdmissionCheck {CHECK}", "are entitled to 8 cpu of 6"


def job_cases() -> Iterator[Case]:
    """What waiting jobs tell."""
    rejected = workload(job(), checks={CHECK: "Rejected"})
    yield "kind-not-enabled", healthy(judged(rejected, "KindNotEnabled")), "jobs", "it concerns default/job/train"
    behind = {ObjectKey.of(rejected): job("train", delegated=False)}
    undelegated = attrs.evolve(healthy(rejected), jobs=behind)
    yield "not-delegated", undelegated, "jobs", "does not say that MultiKueue runs it"
    offered, waits = workload(job(), nominated=("worker1", "worker2")), workload(job())
    dated = {**offered, "metadata": {**offered["metadata"], "annotations": {"multikueue.dev/retry-at": "now"}}}
    yield "annotation-unreadable", healthy(dated), f"Workload {ObjectKey.of(dated)}", "'now'"
    for finding, of, words in (
        ("status-refused", offered, "so the job does not show it: refuses: active"),
        ("contested-field", offered, "so it is set back no more: refuses: active"),
        ("copy-waits", waits, "one or two are at a time: refuses: active"),
    ):
        event = EventReport("workload/w", "Warning", "MultiKueue", "refuses: active", NOW, NOW, 2, "", finding=finding)
        yield finding, attrs.evolve(healthy(of), events={ObjectKey.of(of): (event,)}), "default/job/train", words
    lacking = with_worker(lacks=(Need("Secret", ObjectKey("default", "db"), "default/job/train"),))
    yield "dependency-missing", lacking, "worker1, Secret default/db", "pods of default/job/train name it"
    again = "refuses it, is asked again at 2026-01-01T00:05:00Z: "
    words = f"asked — worker1: {again}words"
    yield "name-taken", healthy(refused(saying(offered, words), worker1=RefusalFacts(Cause.NAME_TAKEN))), "worker1", ""
    for name, words in (
        ("webhook", 'admission webhook "policy.example.com" denied the request: no team label'),
        ("namespace-missing", 'namespaces "default" not found'),
    ):
        yield name, healthy(saying(offered, f"asked — worker1: {again}{words}")), "worker1", ""


CASES = [
    *manager_cases(),
    *mirror_cases(),
    *webhook_cases(),
    *worker_cases(),
    *own_worker_cases(),
    *pool_cases(),
    *job_cases(),
]
ABSENT = {check.id for check in CHECKS} - {"worker-says", "worker-answers", "job-waits"}
"""Rows with an id of their own; the others have that of the reason."""


def findings(facts: Facts) -> tuple[Finding, ...]:
    """What all rows find."""
    return diagnose(facts, CHECKS).findings


def test_the_first_thing_to_do_on_a_manager_without_workers_is_to_add_one() -> None:
    facts = objects_of(healthy(), configs=(), clusters=())
    first = diagnose(facts, CHECKS).findings[0]
    assert (first.id, first.where) == ("config-missing", f"AdmissionCheck {CHECK}")
    assert first.remedy.startswith("multikueue worker add NAME")


def test_a_clock_here_that_is_ahead_says_nothing_about_the_daemon() -> None:
    """Its Lease is as old as the manager's clock says."""
    ahead = healthy(now=NOW + timedelta(minutes=10), clock=ClockBound(-601.0, -600.0), workers={})
    assert [finding.id for finding in findings(ahead)][:1] == ["own-clock"]


def test_a_lost_worker_is_connected_with_no_credentials() -> None:
    """The digest of those that it was connected with stays in its status."""
    facts = healthy(credentials={"worker1": KubeconfigFacts("worker1-secret", "def")})
    lost = saying_digest("worker1", "abc")
    for entry in lost["status"]["conditions"]:
        if entry["type"] == "Active":
            entry |= {"status": "False", "reason": "ClientConnectionFailed", "message": "no route to host"}
    diagnosis = diagnose(objects_of(facts, clusters=(lost, worker("worker2"))), CHECKS)
    assert "credentials-not-in-use" not in {finding.id for finding in diagnosis.findings}


def test_a_healthy_fleet_has_no_findings() -> None:
    assert findings(healthy()) == ()
    assert findings(healthy(workload(job(), nominated=("worker1",)), workload(job("b"), cluster="worker1"))) == ()
    assert findings(healthy(pod_workload("Pending"))) == ()


@pytest.mark.parametrize(("id", "facts", "where", "words"), CASES, ids=[case[0] for case in CASES])
def test_a_finding_names_place_reason_and_remedy(id: str, facts: Facts, where: str, words: str) -> None:
    of_that_id = [finding for finding in findings(facts) if finding.id == id]

    assert [finding.where for finding in of_that_id][:1] == [where], findings(facts)
    assert words in f"{of_that_id[0].why}: {of_that_id[0].told}"
    assert of_that_id[0].matters
    assert of_that_id[0].remedy
    assert not re.search(r"\{\w*\}", of_that_id[0].remedy)


def test_every_row_has_a_case() -> None:
    assert ABSENT - {case[0] for case in CASES} == set()


def test_what_is_missing_everywhere_is_an_error() -> None:
    nowhere = {name: worker_facts(name, queues=queues(local={})) for name in ("worker1", "worker2")}
    missing = findings(healthy(workers=nowhere))
    assert {finding.severity for finding in missing} == {Severity.ERROR}
    assert "nor on any other worker" in missing[0].why


def test_a_kind_that_a_worker_lacks_is_an_error_once_jobs_of_it_wait() -> None:
    lacking = frozenset({JOB_KIND.resource.gvk})
    quiet, waits = with_worker(lacking=lacking), with_worker(workload(job()), lacking=lacking)
    assert [finding.severity for finding in findings(quiet)] == [Severity.WARNING]
    assert [finding.severity for finding in findings(waits)] == [Severity.ERROR]


def test_a_job_too_large_for_the_workers_that_were_seen_may_fit_on_another() -> None:
    large = workload(job())
    large["status"]["admission"]["podSetAssignments"][0]["resourceUsage"] = {"cpu": "500m"}
    small = {"worker1": worker_facts(queues=queues(cpu="100m"))}
    assert findings(healthy(large, workers=small)) == ()


def test_one_place_is_told_once_in_the_words_of_the_first() -> None:
    """The manager's word about a worker, what it answers itself, and the jobs that wait for it."""
    lost = worker("worker1", "Unauthorized", reason="ClientConnectionFailed")
    facts = with_worker(workload(job(), nominated=("worker1",)), error="worker1: list: Unauthorized")
    reported = findings(objects_of(facts, clusters=(lost, worker("worker2"))))
    assert [finding.id for finding in reported] == ["bad-token"]


@pytest.mark.parametrize(
    ("verb", "group", "follows"),
    [
        ("update", "coordination.k8s.io", True),
        ("get", "coordination.k8s.io", True),
        ("create", "coordination.k8s.io", False),  # its Lease is there
        ("patch", "coordination.k8s.io", False),  # of the Nodes of mirrors
        ("update", "example.com", False),
    ],
)
def test_a_daemon_that_may_not_hold_its_lease_is_told_as_that(verb: str, group: str, follows: bool) -> None:
    """Nobody leads then: that is what follows. What it lacks beside does not hide that it is off."""
    refused = attrs.evolve(ALLOWED, verb=verb, resource="leases", group=group, allowed=False)
    reported = findings(attrs.evolve(with_objects(lease=lease(3600)), permissions=(ALLOWED, refused)))
    assert [finding.id for finding in reported] == ["daemon-not-running"] * (not follows) + ["permission-missing"]


def test_the_gate_is_not_asked_for_with_a_controller_name_of_ones_own() -> None:
    name = "example.com/dispatcher"
    own = Settings(controller_name=name, webhook=WebhookSettings(enabled=True))
    assert findings(healthy(kueue=KueueFacts("kueue:v0.19.0", (), {}), settings=own)) == ()


def test_a_kind_that_auto_stands_for_need_not_be_served() -> None:
    source = "integrations.frameworks[0] (auto)"
    lacking = frozenset({RAY_KIND.resource.gvk})
    named, defaulted = (
        healthy(lacking=lacking),
        healthy(lacking=lacking, kinds=(attrs.evolve(RAY_KIND, source=source),)),
    )
    assert [finding.id for finding in findings(named)] == ["kind-not-served"]
    assert findings(defaulted) == ()


def test_a_workers_words_do_nothing_to_a_terminal() -> None:
    words = "Unauthorized \x1b[2J\x07" + "x" * 5_000
    gap = NotChecked("worker1 itself", words, "nobody")
    diagnosis = diagnose(with_worker(error=words), CHECKS)
    gaps = diagnose(healthy(not_checked=(gap,)), CHECKS).not_checked
    for text in (diagnosis.findings[0].why, gaps[0].why):
        assert text.isprintable()
        assert len(text) <= LONGEST


def test_a_pool_as_the_page_has_it_is_fine() -> None:
    assert [finding.id for finding in findings(shared())] == ["webhook-off"]


def test_only_what_is_held_is_looked_at() -> None:
    """Another dispatcher, or a profile that holds nothing."""
    kueue = attrs.evolve(healthy().kueue, configuration={"waitForPodsReady": {"blockAdmission": True}})
    never = DispatcherSettings(name=SCORED, profiles={"default": Profile(hold=Hold.NEVER)})
    for dispatcher in (DispatcherSettings(), never):
        facts = attrs.evolve(shared(cohortName="all"), kueue=kueue)
        reported = findings(attrs.evolve(facts, settings=attrs.evolve(OFF, dispatcher=dispatcher)))
        assert [finding.id for finding in reported] == ["webhook-off"]


def test_pods_are_stranded_once_they_have_ended_and_nobody_lets_go_of_them() -> None:
    """Kueue does while it sees their Workload being deleted, so one that is there yet will be."""
    held, runs = held_pod(), {**held_pod(), "status": {"phase": "Running"}}
    free, stays, alone = held_pod(finalizers=[]), held_pod(deletionTimestamp=None), held_pod(labels={})
    (pod,) = stranded_pods([held, runs, free, stays, alone], set())
    assert pod == {"metadata": {field: held["metadata"].get(field) for field in pod["metadata"]}}
    assert set(pod["metadata"]) == {"namespace", "name", "uid", "deletionTimestamp"}, "the daemon publishes it"
    assert list(stranded_pods([held], {ObjectKey("default", "train")})) == []


def test_a_pod_that_has_just_been_deleted_is_not_stranded() -> None:
    just = held_pod(deletionTimestamp=timestamp(NOW - timedelta(seconds=30)))
    assert not findings(with_worker(stranded=(just,)))
    (finding,) = findings(with_worker(stranded=(held_pod(),)))
    patch = '{"metadata":{"finalizers":null}}'
    assert finding.remedy.endswith(f"kubectl patch pod train-0 -n default --type=merge -p '{patch}'")


def test_errors_come_first() -> None:
    reported = findings(objects_of(with_worker(latency=9.0), lease=lease(3600)))
    assert [finding.severity for finding in reported] == [Severity.ERROR, Severity.WARNING]


@pytest.mark.parametrize(
    ("date", "sent", "received", "least"),
    [(100.0, 100.5, 100.7, 0.0), (160.0, 100.0, 100.2, 59.8), (40.0, 100.0, 100.2, -59.0)],
)
def test_the_bound_of_a_clock_counts_whole_seconds_and_the_request(
    date: float, sent: float, received: float, least: float
) -> None:
    assert ClockBound.of(date, sent, received).at_least == pytest.approx(least)


def test_a_bound_token_is_a_warning_only_once_its_renewal_is_overdue() -> None:
    """It lasts a day, so it always ends soon; at nine tenths of that it should have been renewed."""
    bound = Bound(ObjectKey("kueue-system", "multikueue")).with_life(NOW, timedelta(days=1))
    held = {"worker1": KubeconfigFacts("worker1-secret", token_expires=bound.expires, bound=bound)}

    def severities(hours: int, settings: Settings = RENEWS) -> list[Severity]:
        facts = healthy(credentials=held, settings=settings, now=NOW + timedelta(hours=hours))
        return [finding.severity for finding in diagnose(facts, CHECKS).findings if finding.id == "credentials-expire"]

    assert [severities(hours) for hours in (1, 20, 22, 25)] == [[], [], [Severity.WARNING], [Severity.ERROR]]
    assert severities(1, OFF) == [Severity.WARNING]


def test_a_bound_token_is_not_said_to_end_where_nobody_knows_whether_it_is_renewed() -> None:
    """`multikueue status` does not read the daemon's settings; the doctor, who does, said that all is well."""
    bound = Bound(ObjectKey("kueue-system", "multikueue")).with_life(NOW, timedelta(days=1))
    held = {"worker1": KubeconfigFacts("worker1-secret", token_expires=bound.expires, bound=bound)}

    def told(hours: int) -> set[str]:
        facts = healthy(credentials=held, settings=OFF, settings_known=False, now=NOW + timedelta(hours=hours))
        return {finding.id for finding in diagnose(facts, CHECKS).findings if finding.id == "credentials-expire"}

    assert [told(hours) for hours in (1, 22)] == [set(), {"credentials-expire"}]


def test_the_daemon_knows_that_the_token_of_a_clusterprofile_is_renewed() -> None:
    """Status told each worker of OCM's from its first minute, with a command that writes a Secret without a name."""
    ends = NOW + timedelta(days=7)
    claims = base64.urlsafe_b64encode(json.dumps({"exp": ends.timestamp()}).encode()).decode()
    config, profiled = ClusterConfig("https://c1", token=f"a.{claims}.b"), {"clusterProfileRef": {"name": "c1"}}
    held = facts_in_use({"spec": {"clusterSource": profiled}}, config, {})
    assert held.token_expires == ends

    def told(hours: int) -> list[str]:
        facts = healthy(credentials={"worker1": held}, now=NOW + timedelta(hours=hours))
        return [finding.where for finding in diagnose(facts, CHECKS).findings if finding.id == "credentials-expire"]

    assert (told(100), told(150)) == ([], ["worker1"])


def test_what_ocm_renews_is_a_warning_only_once_that_is_overdue() -> None:
    """Its token lasts a week, so it always ends within one; and our commands cannot change it."""
    secret: Json = {"metadata": {"name": "multikueue-c1", "labels": {"multikueue.dev/managed-by": "multikueue"}}}
    held = kubeconfig_facts("multikueue-c1", ClusterConfig("https://c1:6443"), secret)
    ends = attrs.evolve(held, token_expires=NOW + timedelta(days=7))

    def remedies(hours: int) -> list[str]:
        facts = healthy(credentials={"worker1": ends}, now=NOW + timedelta(hours=hours))
        return [finding.remedy for finding in diagnose(facts, CHECKS).findings if finding.id == "credentials-expire"]

    assert remedies(100) == []
    (remedy,) = remedies(150)
    assert "agent of managed-serviceaccount" in remedy


def test_a_worker_of_a_managed_cluster_that_is_not_selected_needs_nobody() -> None:
    labels = {"multikueue.dev/managed-by": "multikueue"}
    second = worker("worker2")
    second = {**second, "metadata": {**second["metadata"], "labels": labels}}
    facts = with_objects(configs=(config(("worker1",)),), clusters=(worker("worker1"), second))
    (unlisted,) = (finding for finding in diagnose(facts, CHECKS).findings if finding.id == "worker-unlisted")
    assert unlisted.remedy.startswith("nothing: it is made for a ManagedCluster")


def test_a_left_over_registration_is_deleted_by_uid() -> None:
    ours: dict[str, Json] = registered()
    ours["multikueue-webhook"]["metadata"].update(uid="seen", resourceVersion="7")
    (service,) = [service_of(entry) for entry in ours["multikueue-webhook"]["webhooks"]]
    (fix,) = fixes(healthy(settings=OFF, webhooks=WebhookFacts(ours, services={service: False})))
    assert fixes(healthy(settings=OFF, webhooks=WebhookFacts(ours))) == (), "it may be another daemon's"

    assert (fix.resource, fix.key, fix.uid, fix.version, fix.patch) == (
        MUTATING_WEBHOOKS,
        ObjectKey("", "multikueue-webhook"),
        "seen",
        "7",
        None,
    )


def test_one_that_others_share_stays() -> None:
    ours: dict[str, Json] = registered()
    ours["multikueue-webhook"]["webhooks"].append({"name": "policy.example.com"})
    assert fixes(healthy(settings=OFF, webhooks=WebhookFacts(ours))) == ()


def test_without_the_daemons_settings_nobody_knows_what_is_left_over() -> None:
    assert fixes(healthy(settings=OFF, settings_known=False)) == ()


def test_an_annotation_of_ours_that_is_no_time_is_taken_off() -> None:
    made = workload(job())
    made["metadata"]["annotations"] = {"multikueue.dev/retry-at": "now"}
    (fix,) = fixes(healthy(made))

    assert fix.resource == WORKLOAD
    seen = {field: made["metadata"][field] for field in ("uid", "resourceVersion")}
    assert fix.patch == {"metadata": {**seen, "annotations": {"multikueue.dev/retry-at": None}}}


def test_nothing_else_is_touched() -> None:
    """Of all breaks only those two lead to a change."""
    led = {name for name, facts, _, _ in CASES if fixes(facts)}
    assert led <= {"webhook-left-over", "webhook-order", "annotation-unreadable"}


def test_what_is_mended_is_no_finding_any_more() -> None:
    facts = healthy(settings=OFF)
    assert [finding.id for finding in diagnose(facts, CHECKS).findings] == ["webhook-left-over"]
    mended = attrs.evolve(facts, webhooks=WebhookFacts({}), workers={"worker1": worker_facts()})
    assert [finding.id for finding in diagnose(mended, CHECKS).findings] == ["webhook-off"]


@pytest.mark.parametrize(
    ("server", "option"),
    [("https://127.0.0.1:6443", " --outside"), ("https://localhost:1", " --outside"), ("https://w:1", "")],
)
def test_a_command_that_adds_a_worker_can_be_pasted_where_the_daemon_runs_on_one_machine_with_it(
    server: str, option: str
) -> None:
    """`worker add` refuses such an address without the option: in a pod it is the pod's own."""
    held = {
        "worker1": KubeconfigFacts("worker1-kubeconfig", problem="it names an exec plugin"),
        "worker2": kubeconfig_facts("worker2-secret", ClusterConfig(server), {}),
    }
    (remedy,) = [finding.remedy for finding in findings(healthy(credentials=held)) if "worker add" in finding.remedy]
    assert f"multikueue worker add worker1 --worker-context CONTEXT{option}" in remedy
    assert ("--outside" in remedy) is bool(option)


def test_a_secret_that_somebody_made_by_hand_is_not_to_be_made_anew_by_worker_add() -> None:
    """It refuses a MultiKueueCluster that it has not made."""
    held = {"worker1": KubeconfigFacts("worker1-secret", problem="it names an exec plugin")}
    (made_by_hand,) = [
        finding for finding in findings(healthy(credentials=held)) if finding.id == "kubeconfig-unusable"
    ]
    assert "worker add" not in made_by_hand.remedy
    assert "create secret generic worker1-secret --from-file=kubeconfig=FILE" in made_by_hand.remedy


@pytest.mark.parametrize(
    ("field", "resource"),
    [
        ("checks", ADMISSION_CHECK),
        ("configs", MULTIKUEUE_CONFIG),
        ("clusters", MULTIKUEUE_CLUSTER),
        ("cluster_queues", CLUSTER_QUEUE),
        ("local_queues", LOCAL_QUEUE),
        ("workloads", WORKLOAD),
    ],
)
def test_nothing_is_missing_from_a_list_that_cannot_be_read(field: str, resource: Resource) -> None:
    """A job that waits for a worker, and one that has one; the settings name a config, too."""
    asked, placed = workload(job("asked"), nominated=["worker1"]), workload(job("placed"), cluster="worker1")
    facts = healthy(asked, placed)
    dependencies = (DependencySettings(config=CHECK, kinds=("ConfigMap",)),)
    facts = attrs.evolve(facts, settings=attrs.evolve(facts.settings, dependencies=dependencies))
    assert diagnose(facts, CHECKS).findings == ()
    unread = objects_of(facts, **{field: (), "unread": frozenset({resource})})
    assert diagnose(unread, CHECKS).findings == ()


def test_a_check_of_another_controller_is_told_once_with_both_names() -> None:
    (finding,) = findings(objects_of(healthy(), checks=(admission_check("kueue.x-k8s.io/multikueu"),)))
    assert finding.remedy.startswith("make the AdmissionCheck anew with spec.controllerName kueue.x-k8s.io/multikueue")


def test_what_several_workers_lack_is_one_finding() -> None:
    lacks: dict[str, Any] = {
        "worker-without-kueue": {"lacking": frozenset({WORKLOAD.gvk})},
        "worker-without-kind": {"lacking": frozenset({RAY_KIND.resource.gvk})},
        "worker-kueue-older": {"kueue": WorkerKueue((0, 16), frozenset({GATES}), read=True)},
        "worker-takes-anybody": {"takes_anybody": True},
    }
    for expected, lack in lacks.items():
        both = {name: worker_facts(name, **lack) for name in ("worker1", "worker2")}
        assert [(finding.id, finding.where) for finding in findings(healthy(workers=both))] == [
            (expected, "worker1, worker2")
        ]


def test_the_verbs_of_a_resource_are_named_together() -> None:
    verbs = ("create", "delete", "get")
    lacking = [attrs.evolve(ALLOWED, verb=verb, allowed=False) for verb in verbs]
    status = attrs.evolve(lacking[0], verb="patch", resource="workloads/status")
    (finding,) = findings(with_worker(permissions=(*lacking, status)))
    words = "may not create, delete, get workloads.kueue.x-k8s.io; patch workloads/status.kueue.x-k8s.io"
    assert finding.why.endswith(words)


def test_a_misspelt_worker_is_one_finding() -> None:
    """That the one which is meant is listed nowhere follows from it, and removing that would be wrong."""
    said = [
        (finding.id, finding.severity) for finding in findings(with_objects(configs=(config(("worker1", "wroker2")),)))
    ]
    assert said == [("cluster-missing", Severity.WARNING)]


def test_a_second_check_that_nobody_looks_at_is_one_finding() -> None:
    """The queue is inactive for it, though the first of its checks is not."""
    second = {**admission_check("kueue.x-k8s.io/multikueu"), "metadata": {"name": "second"}}
    named = {"admissionChecksStrategy": {"admissionChecks": [{"name": CHECK}, {"name": "second"}]}}
    words = "Can't admit new workloads: references inactive AdmissionCheck(s): second."
    inactive = {"conditions": [new_condition("Active", False, "AdmissionCheckInactive", words, now=NOW)]}
    objects = with_queue(spec=named, status=inactive).objects
    facts = healthy(objects=attrs.evolve(objects, checks=(*objects.checks, second)), settings_known=False)

    (finding,) = findings(facts)
    assert (finding.id, finding.where) == ("check-unseen", "AdmissionCheck second")
    guess = 'kueue.x-k8s.io/multikueu (did you mean "kueue.x-k8s.io/multikueue"?)'
    assert finding.why == f"nobody has looked at this check: no daemon runs whose controllerName is {guess}"


def test_what_the_daemon_has_read_of_queues_since_a_job_went_there_counts() -> None:
    """It reads queues every half a minute, and looks at all else every ten minutes."""
    placed = workload(job("placed"), cluster="worker1", checks={CHECK: "Ready"})
    stopped = worker_facts(queues=queues(stopPolicy="Hold"))
    facts = healthy(placed, workers={"worker1": stopped, "worker2": worker_facts("worker2")})
    before = {name: NOW - timedelta(minutes=5) for name in facts.workers}

    (finding,) = findings(attrs.evolve(facts, seen_at=before, queues_at=dict.fromkeys(before, NOW)))
    assert (finding.id, finding.workers) == ("worker-cluster-queue", ("worker1",))
    assert findings(attrs.evolve(facts, seen_at=before, queues_at=before)) == ()
