"""Facts of a fleet with which nothing is wrong, to break one thing of."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import cache
from typing import Any

import attrs

from multikueue import AVAILABLE, JobKind
from multikueue.core.admission.registration import Registration
from multikueue.core.machinery.connection import CREDENTIALS, FROM_KUBECONFIG
from multikueue.core.model.conditions import new_condition, timestamp
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.worker_kueue import WorkerKueue
from multikueue.sandbox.setting_up import CLUSTER_QUEUE_NAME, LOCAL_QUEUE_NAME, cluster_queue
from multikueue.webhook.certificates import make_authority, pem
from multikueued.diagnosis.checks.webhooks import KUEUES
from multikueued.diagnosis.facts import Facts, KueueFacts, StatusWriter, WebhookFacts
from multikueued.reports.worker_facts import ClockBound, KubeconfigFacts, Permission, WorkerFacts
from multikueued.reports.worker_queues import QueuesOnWorker
from multikueued.settings.config import Settings, WebhookSettings
from tests.reports.objects import NOW, fleet, worker

JOB_KIND = next(kind for kind in AVAILABLE if kind.resource.plural == "jobs")
RAY_KIND = next(kind for kind in AVAILABLE if kind.resource.plural == "rayjobs")
QUEUE = ObjectKey("default", LOCAL_QUEUE_NAME)
WEBHOOK_NAME = "multikueue-webhook"
ALLOWED = Permission("list", "workloads", "kueue.x-k8s.io", "", "", allowed=True)


@cache
def authority(now: datetime = NOW) -> str:
    """A certificate authority that is made at that time and lasts a year, as PEM."""
    return pem(make_authority("test", now, timedelta(days=365)).certificate)


def registered(
    name: str = WEBHOOK_NAME, *, trusted: str | None = None, kinds: tuple[JobKind, ...] = (JOB_KIND, RAY_KIND)
) -> dict[str, Json]:
    """Our configuration beside Kueue's."""
    registration = Registration(name, ObjectKey("kueue-system", "multikueue-webhook"))
    made = registration.configuration((kind.resource for kind in kinds), authority() if trusted is None else trusted)
    return {name: made, KUEUES: {"metadata": {"name": KUEUES}, "webhooks": []}}


def definition(kind: JobKind = RAY_KIND, *fields: str) -> Json:
    """A CustomResourceDefinition whose spec has these fields."""
    spec = {"type": "object", "properties": {field: {"type": "string"} for field in fields}}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    return {"spec": {"versions": [{"name": kind.resource.gvk.version, "schema": schema}]}}


def queues(*, cpu: str = "4", local: dict[ObjectKey, str] | None = None, **spec: Any) -> QueuesOnWorker:
    """A worker's queues."""
    queue = cluster_queue({"cpu": cpu})
    leads = {QUEUE: CLUSTER_QUEUE_NAME} if local is None else local
    return QueuesOnWorker(leads, {CLUSTER_QUEUE_NAME: {**queue, "spec": {**queue["spec"], **spec}}})


def worker_facts(name: str = "worker1", **changed: Any) -> WorkerFacts:
    """A worker that has everything."""
    made = WorkerFacts(
        name,
        latency=0.02,
        clock=ClockBound(-0.5, 0.6),
        permissions=(ALLOWED,),
        namespaces=frozenset({"default"}),
        queues=queues(),
        kueue=WorkerKueue((0, 19), read=True),
    )
    return attrs.evolve(made, **changed)


def lease(seconds_ago: float = 3.0) -> Json:
    """The daemon's."""
    renewed = timestamp(NOW - timedelta(seconds=seconds_ago))
    return {"spec": {"holderIdentity": "multikueued-0_1", "renewTime": renewed, "leaseDurationSeconds": 15}}


def saying_digest(name: str, digest: str) -> Json:
    """A MultiKueueCluster whose connection uses the kubeconfig with that digest."""
    made = worker(name)
    digest_condition = new_condition(CREDENTIALS, True, FROM_KUBECONFIG, digest, now=NOW)
    return {**made, "status": {"conditions": [*made["status"]["conditions"], digest_condition]}}


def healthy(*workloads: Json, **changed: Any) -> Facts:
    """A fleet of two workers with which nothing is wrong; `changed` are fields of `Facts`."""
    objects = fleet(*workloads, workers=(saying_digest("worker1", "abc"), worker("worker2")))
    active = new_condition("Active", True, "Active", "The admission check is active", now=NOW)
    checks = tuple({**check, "status": {"conditions": [active]}} for check in objects.checks)
    made = Facts(
        now=NOW,
        objects=attrs.evolve(objects, lease=lease(), checks=checks, daemon_namespace="kueue-system"),
        settings=Settings(namespace="kueue-system", webhook=WebhookSettings(enabled=True)),
        settings_known=True,
        kinds=(JOB_KIND, RAY_KIND),
        definitions={RAY_KIND.resource.gvk: definition(RAY_KIND, "managedBy")},
        kueue=KueueFacts("registry.k8s.io/kueue/kueue:v0.19.0", ("--feature-gates=MultiKueue=false",), {}),
        status_writers={"worker1": (StatusWriter("multikueue", NOW),)},
        webhooks=WebhookFacts(registered(), {ObjectKey("kueue-system", "multikueue-webhook"): True}),
        account="system:serviceaccount:kueue-system:multikueue",
        permissions=(ALLOWED,),
        credentials={"worker1": KubeconfigFacts("worker1-secret", "abc", token_expires=NOW + timedelta(days=30))},
        workers={name: worker_facts(name) for name in ("worker1", "worker2")},
        clock=ClockBound(-0.5, 0.6),
    )
    return attrs.evolve(made, **changed)


def objects_of(facts: Facts, **changed: Any) -> Facts:
    """The same with other objects of the manager."""
    return attrs.evolve(facts, objects=attrs.evolve(facts.objects, **changed))


__all__ = ["NOW"]
