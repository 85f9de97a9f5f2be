"""Reads the manager for the doctor: what may not be read is noted as not checked."""

from __future__ import annotations

from collections.abc import Container, Mapping
from datetime import datetime
from typing import Final

import attrs
import yaml

from multikueue import JobKind
from multikueue.core.model.conditions import parse_timestamp
from multikueue.core.model.kinds import (
    COHORT,
    CONFIG_MAP,
    CUSTOM_RESOURCE_DEFINITION,
    DEPLOYMENT,
    EVENT,
    LEASE,
    MULTIKUEUE_CLUSTER,
    MUTATING_WEBHOOKS,
    SECRET,
    WORKLOAD,
)
from multikueue.core.model.labels import FINDING_LABEL
from multikueue.core.model.names import GVK, Json, ObjectKey, Resource
from multikueue.core.model.objects import annotations_of, dig, name_of, uid
from multikueue.errors import ApiError, Forbidden, NotFound
from multikueue.kube.kubernetes_yaml import KubernetesLoader
from multikueued.diagnosis.checks.jobs import rejected
from multikueued.diagnosis.checks.webhooks import ours, service_of
from multikueued.diagnosis.facts import Facts, KueueFacts, MirrorFacts, MirrorWay, StatusWriter, WebhookFacts
from multikueued.doctor.cluster_reader import Sight, needed, permissions
from multikueued.doctor.credentials import HeldCredentials, held_for
from multikueued.doctor.installation import Daemon
from multikueued.doctor.worker_reader import lacking_of
from multikueued.mirror_names import node_name
from multikueued.mirrors.endpoint.routes import HEALTH, WELL
from multikueued.rbac.policies import POLICY, TAKING
from multikueued.rbac.rules import in_namespace, on_manager
from multikueued.reading.manager_lists import job_behind, read_objects
from multikueued.remote.shared_key import ORIGIN
from multikueued.reports.daemon_lease import daemon_findings
from multikueued.reports.events import EventReport, event_reports
from multikueued.reports.objects import ManagerObjects
from multikueued.reports.worker_facts import Permission
from multikueued.settings.config import Settings
from multikueued.settings.kinds import chosen_kinds

SERVICE: Final = Resource(GVK("", "v1", "Service"), "services")
KUEUES_DEPLOYMENT: Final = "kueue-controller-manager"
KUEUES_CONFIG: Final = ("kueue-manager-config", "controller_manager_config.yaml")
JOBS: Final = 50
"""Rejected jobs that are read one by one; as a rule they have one reason."""
STATUSES: Final = 20
"""MultiKueueClusters that are read one by one, for who writes their status."""


async def read_manager(sight: Sight, daemon: Daemon, now: datetime) -> tuple[Facts, Mapping[str, HeldCredentials]]:
    """Read the manager.

    Args:
        sight: of the manager.
        daemon: what is known of the daemon: its settings, and its account.
        now: this machine's clock.

    Returns:
        The facts without the workers', and what the manager holds for each worker.

    Raises:
        ApiError: the manager does not answer, or does not accept the credentials.
    """
    kinds = tuple(chosen_kinds(daemon.settings))
    namespace = str(daemon.settings.namespace)
    objects = await _objects(sight, daemon.settings)
    held = {name_of(cluster): await held_for(cluster, sight, namespace) for cluster in objects.clusters}
    known = {name: credentials for name, credentials in held.items() if credentials is not None}
    lacking = await lacking_of(sight, [kind.resource.gvk for kind in kinds if not kind.workload_only])
    events = await _finding_events(sight, objects)
    facts = Facts(
        now=now,
        objects=objects,
        settings=daemon.settings,
        settings_known=daemon.settings_known,
        settings_source=daemon.source,
        installations=daemon.installations,
        kinds=kinds,
        lacking=lacking,
        jobs=await _jobs(sight, objects, events),
        events=events,
        definitions=await _definitions(sight, kinds),
        kueue=await _kueue(sight, namespace),
        status_writers=await _status_writers(sight, objects),
        account=daemon.account,
        permissions=await _permissions(sight, daemon, kinds, lacking),
        credentials={name: access.credentials for name, access in known.items()},
    )
    facts = attrs.evolve(facts, webhooks=await _webhooks(sight, facts), noted_origin=await _noted_origin(sight, facts))
    return attrs.evolve(facts, mirrors=await mirrors_of(sight, facts)), known


async def _noted_origin(sight: Sight, facts: Facts) -> str:
    if not daemon_findings(facts.objects.lease, facts.managers_now, facts.objects.daemon_namespace):
        return ""
    key = ObjectKey(facts.objects.daemon_namespace, facts.settings.marks_secret)
    secret = await sight.get(SECRET, key, "whether the daemon does not start as it has another origin than before")
    return annotations_of(secret or {}).get(ORIGIN, "")


async def _objects(sight: Sight, settings: Settings) -> ManagerObjects:
    def noted(resource: Resource, error: ApiError) -> bool:
        return sight.noted("why jobs wait" if resource is WORKLOAD else f"{resource.gvk.kind}s", resource, error)

    objects = await read_objects(sight.client, lenient=True, noted=noted)
    objects = attrs.evolve(objects, daemon_namespace=str(settings.namespace))
    if await sight.lacks(COHORT.gvk, "whether the manager serves Cohort") is False:
        objects = attrs.evolve(objects, cohorts=await sight.items(COHORT, "cohorts above others") or ())
    election, what = settings.leader_election, "whether a daemon leads"
    if election.enabled:
        lease = await sight.get(LEASE, ObjectKey(str(settings.namespace), settings.name), what)
        return attrs.evolve(objects, lease=lease)
    sight.blind(what, "there is no Lease without leader election", f"look whether it runs in {settings.namespace}")
    return objects


async def _finding_events(sight: Sight, objects: ManagerObjects) -> dict[ObjectKey, tuple[EventReport, ...]]:
    """The events that tell of findings, by the Workload."""
    what = "whether statuses are refused, and fields of copies contested"
    events = await sight.items(EVENT, what, label_selector=FINDING_LABEL)
    uids = {str(dig(event, "regarding", "uid")) for event in events or ()}
    about = [workload for workload in objects.workloads if uid(workload) in uids]
    return {
        ObjectKey.of(workload): event_reports(events or (), [{"kind": WORKLOAD.gvk.kind, **workload}])
        for workload in about
    }


async def _jobs(sight: Sight, objects: ManagerObjects, with_events: Container[ObjectKey]) -> dict[ObjectKey, Json]:
    """The jobs behind Workloads that were rejected, where the reason stands nowhere else once the events are gone, or
    of which events tell."""
    jobs: dict[ObjectKey, Json] = {}
    concerned = [workload for workload in objects.workloads if ObjectKey.of(workload) in with_events]
    for workload in [*rejected(objects)[:JOBS], *concerned[:JOBS]]:
        try:
            job = await job_behind(sight.client, workload)
        except Forbidden:
            sight.blind("what rejected jobs, and those of which events tell, say of themselves", "you may not get them")
            break
        if job is not None:
            jobs[ObjectKey.of(workload)] = job
    return jobs


async def _definitions(sight: Sight, kinds: tuple[JobKind, ...]) -> dict[GVK, Json]:
    """The definitions of kinds that are not Kubernetes' own. One that does not exist is no definition."""
    definitions: dict[GVK, Json] = {}
    for kind in kinds:
        if "." not in kind.resource.gvk.group or kind.workload_only:
            continue
        try:
            key = ObjectKey("", kind.resource.qualified)
            definitions[kind.resource.gvk] = await sight.client.get(CUSTOM_RESOURCE_DEFINITION, key)
        except NotFound:
            continue
        except Forbidden:
            why = "you may not get customresourcedefinitions there"
            sight.blind(f"whether jobs of {kind.resource} can say who runs them", why)
    return definitions


async def _kueue(sight: Sight, namespace: str) -> KueueFacts:
    deployment = await sight.get(
        DEPLOYMENT, ObjectKey(namespace, KUEUES_DEPLOYMENT), "Kueue's version and feature gates"
    )
    if deployment is None:
        return KueueFacts()
    containers = dig(deployment, "spec", "template", "spec", "containers") or [{}]
    main = next((container for container in containers if container.get("name") == "manager"), containers[0])
    arguments = tuple(str(argument) for argument in (*(main.get("command") or ()), *(main.get("args") or ())))
    name, field = KUEUES_CONFIG
    stored = await sight.get(CONFIG_MAP, ObjectKey(namespace, name), "feature gates in Kueue's Configuration")
    configuration = _document(sight, stored, field) if stored is not None else None
    return KueueFacts(str(main.get("image") or ""), arguments, configuration)


def _document(sight: Sight, stored: Json, field: str) -> Json | None:
    try:
        document = yaml.load(str(dig(stored, "data", field) or ""), KubernetesLoader)
    except yaml.YAMLError:
        document = ""
    if document is None or isinstance(document, dict):
        return document or {}
    sight.blind("feature gates in Kueue's Configuration", f"ConfigMap {name_of(stored)} holds no YAML in {field}")
    return None


async def _status_writers(sight: Sight, objects: ManagerObjects) -> dict[str, tuple[StatusWriter, ...]]:
    """Who wrote the status of workers: lists come without that, so some are read one by one."""
    writers: dict[str, tuple[StatusWriter, ...]] = {}
    for cluster in objects.clusters[:STATUSES]:
        name = name_of(cluster)
        try:
            read = await sight.client.get(MULTIKUEUE_CLUSTER, ObjectKey("", name))
        except (NotFound, Forbidden):
            continue
        entries = [
            entry for entry in dig(read, "metadata", "managedFields") or [] if entry.get("subresource") == "status"
        ]
        times = [(str(entry.get("manager")), parse_timestamp(entry.get("time"))) for entry in entries]
        writers[name] = tuple(StatusWriter(manager, at) for manager, at in times if at is not None)
    return writers


async def _permissions(
    sight: Sight, daemon: Daemon, kinds: tuple[JobKind, ...], lacking: frozenset[GVK]
) -> tuple[Permission, ...]:
    if not daemon.account:
        return ()
    settings, namespace = daemon.settings, str(daemon.settings.namespace)
    webhook, is_registered, has_certificate = settings.webhook, True, True
    if webhook.enabled:
        what = "whether the daemon needs the right to create its webhook's registration"
        key = ObjectKey("", webhook.configuration_name)
        is_registered = await sight.exists(MUTATING_WEBHOOKS, key, what) is not False
    if webhook.enabled and not webhook.cert_dir:
        what = "whether the daemon needs the right to create its certificate"
        key = ObjectKey(namespace, webhook.service_name)
        has_certificate = await sight.exists(SECRET, key, what) is not False
    asked = [*permissions(on_manager(settings, prepared=is_registered))]
    asked += permissions(in_namespace(settings, prepared=has_certificate), namespace)
    asked = needed(asked, kinds, lacking)
    return await sight.reviewed(asked, "the daemon's permissions on the manager", daemon.account)


async def _webhooks(sight: Sight, facts: Facts) -> WebhookFacts | None:
    listed = await sight.items(MUTATING_WEBHOOKS, "the webhook's registration")
    if listed is None:
        return None
    webhooks = WebhookFacts({name_of(configuration): configuration for configuration in listed})
    services: dict[ObjectKey, bool] = {}
    for entry in ours(attrs.evolve(facts, webhooks=webhooks)).values():
        key = service_of(entry)
        there = await sight.exists(SERVICE, key, "the webhook's Service") if key.name else None
        if there is not None:
            services[key] = there
    return attrs.evolve(webhooks, services=services)


NODE = Resource(GVK("", "v1", "Node"), "nodes", namespaced=False)
"""Of the manager."""


async def mirrors_of(sight: Sight, facts: Facts) -> MirrorFacts | None:
    """What is known of mirrors; None: they are off, or nobody knows.

    Raises:
        ApiError: the manager does not accept the credentials.
    """
    if not facts.settings_known or not facts.settings.mirror_pods.logs:
        return None
    key, what = ObjectKey("", facts.settings.mirrors_policy), "whether the policy that bounds mirrors is in force"
    there = [await sight.exists(kind, key, what) for kind in (POLICY, TAKING)]
    bounded = False if False in there else None if None in there else True
    return MirrorFacts(bounded, await _way(sight, facts))


async def _way(sight: Sight, facts: Facts) -> MirrorWay | None:
    """One Node stands for all: they have one address."""
    workers = sorted(map(name_of, facts.objects.clusters))
    if not workers:
        return None
    node = node_name(workers[0])
    try:
        answer = await sight.client.part(NODE, ObjectKey("", node), f"proxy{HEALTH}")
    except NotFound as error:  # of the Node, or of a path: by who answers there in our place
        return MirrorWay(node, is_missing=True) if error.reason else MirrorWay(node, str(error))
    except ApiError as error:
        if isinstance(error, Forbidden) and error.reason:  # the API server's own word, about whoever asks
            why = f"you may not get nodes/proxy of {node}"
            sight.blind("whether the manager's API server reaches who answers for mirrors", why)
            return None
        return MirrorWay(node, str(error))
    return MirrorWay(node, "" if answer == WELL else f"it answers {str(answer)[:200]}")
