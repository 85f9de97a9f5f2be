"""Builds the daemon from its settings and runs it: one tree of tasks until it is told to stop."""

from __future__ import annotations

import functools
import random
import signal
import socket
import uuid
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from datetime import datetime
from typing import TYPE_CHECKING, Final, TypeAlias

import anyio
import anyio.abc
import attrs
import structlog

from multikueue import (
    AdapterRegistry,
    ApiClient,
    ClientOptions,
    ClusterConfig,
    Elector,
    KubeClient,
    ObjectKey,
    PlanSettings,
)
from multikueue.kube.credentials.authenticator import Authenticators
from multikueue.kube.http.large_json import LargeJson
from multikueue.kube.http.response_limits import LISTS_UNLIMITED, AnswerLimits
from multikueue.kube.informers.list_pages import InitialList
from multikueue.runtime.cluster_pool import Connect
from multikueue.runtime.inventory_part import InventoryOptions
from multikueue.runtime.loop import utc_now
from multikueue.runtime.manager import Manager, ManagerSettings
from multikueue.runtime.plugins import installed_dispatchers
from multikueued.metrics.hooks import Metrics
from multikueued.mirrors.guard import why_unguarded
from multikueued.mirrors.part import MirrorOptions, own_client, server_version
from multikueued.remote.shared_key import check_origin, shared_key
from multikueued.run.kinds import known_kinds, until_more_served, with_assigned_kinds
from multikueued.run.leader_tasks import run_beside
from multikueued.run.leadership import Beside, Leadership, postponed
from multikueued.run.ocm_workers import granting_client, profile_settings, spoke_settings
from multikueued.serving.health import serving
from multikueued.settings.config import Settings
from multikueued.settings.dispatcher import chosen_dispatcher, dispatcher_name, placement_options
from multikueued.settings.kinds import chosen_kinds

if TYPE_CHECKING:
    from multikueued.webhook.run import Webhook

ELECTION: Final = ClientOptions(connections=2)
"""Connections that only the Lease uses: a renewal must not wait behind our writes. One may hang, another is tried."""

log = structlog.get_logger(__name__)

Build: TypeAlias = Callable[[AdapterRegistry, InitialList, datetime | None], Manager]
"""Builds a manager for these kinds, with the Workloads that were read; the time is `Elector.led_until`."""


async def serve(settings: Settings, config: ClusterConfig) -> None:
    """Run the daemon until SIGTERM or SIGINT; then stop in order: work, lease, connections.

    Args:
        settings: of the daemon.
        config: of the manager cluster.

    Raises:
        SettingsError: the port of health and metrics cannot be opened, or copies have another origin.
        KubeconfigError: the certificates in `config` cannot be used.
    """
    async with anyio.create_task_group() as tasks:
        with anyio.CancelScope() as scope:
            # Outside of the work: a second signal must not kill the process while it stops.
            term = Leadership(elected=settings.leader_election.enabled)
            await tasks.start(_stop_on_signal, term, scope)
            await work(settings, config, term)
        tasks.cancel_scope.cancel()
    log.info("stopped")


async def _stop_on_signal(
    term: Leadership, scope: anyio.CancelScope, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED
) -> None:
    async def drain() -> None:
        await term.drain()
        scope.cancel()

    async with anyio.create_task_group() as tasks:
        with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
            task_status.started()
            async for received in signals:
                log.info("stopping", signal=received.name)
                tasks.start_soon(drain)


async def work(settings: Settings, config: ClusterConfig, term: Leadership | None = None) -> None:
    """Run the daemon until cancelled: health and metrics, election, and the manager while elected.

    Raises:
        SettingsError: the port of health and metrics cannot be opened, or a dispatcher or `origin` cannot be used.
        KubeconfigError: the certificates in `config` cannot be used.
        AdapterError: an installed job kind cannot be used.
    """
    election = settings.leader_election
    kinds = chosen_kinds(settings)
    dispatcher = type(chosen_dispatcher(settings)).__name__  # raises if a package's cannot be used
    metrics = Metrics("leader" if election.enabled else "standalone")
    term = term or Leadership(elected=election.enabled)
    adapters: AdapterRegistry | None = None
    hook: Webhook | None = None

    def why_not_ready() -> str | None:
        if adapters is None:
            return "the manager cluster has not answered yet which kinds it serves"
        return term.why_not_ready() or (hook.why_not_ready() if hook is not None else None)

    connect = functools.partial(KubeClient, config, name="manager", hook=metrics, plugins=Authenticators())
    async with (
        connect(options=ClientOptions(limits=LISTS_UNLIMITED)) as client,
        connect(options=ELECTION) as election_client,
        serving(settings.serving, metrics, why_not_ready) as port,
        _secure_metrics(settings, client, metrics),
        granting_client(settings, config, metrics) as granting,
    ):
        log.info("serving", port=port, cluster=config.server, namespace=settings.namespace)
        log.info("dispatcher", name=dispatcher_name(settings), type=dispatcher, installed=list(installed_dispatchers()))
        await check_origin(client, _marks(settings), settings.origin)  # else a rollout would replace who leads
        served = await known_kinds(kinds, client)
        async with _webhook(settings, client, served, metrics) as hook:
            adapters = served
            beside = functools.partial(run_beside, settings, client, metrics)

            async def lead(led_until: datetime | None) -> None:
                # Each term has a new manager: caches of an earlier one are out of date.
                known, until = served, led_until
                build = await _builder(settings, client, metrics, granting)
                while await _lead_until_more_served(term, build, client, metrics, known, until, hook, beside):
                    until = utc_now()
                    known = await known_kinds(kinds, client)

            if not election.enabled:
                await lead(None)
                return
            term.elector = elector = _elector(settings, election_client)
            await term.while_told(lambda: elector.run(lambda: lead(elector.led_until)))


def _elector(settings: Settings, client: ApiClient) -> Elector:
    lease = ObjectKey(settings.namespace, settings.name)
    identity = f"{socket.gethostname()}_{uuid.uuid4()}"
    times = settings.leader_election.lease_settings()
    return Elector(client, lease, identity=identity, settings=times, clock=utc_now, fraction=random.random)


async def _builder(settings: Settings, client: ApiClient, metrics: Metrics, granting: ApiClient | None) -> Build:
    """What builds the managers of one term: they mark copies with the key that all replicas share."""
    key = await shared_key(client, _marks(settings), settings.origin)
    return functools.partial(build_manager, settings, client, metrics, key, granting=granting)


def _marks(settings: Settings) -> ObjectKey:
    return ObjectKey(settings.namespace, settings.marks_secret)


async def _lead_until_more_served(
    term: Leadership,
    build: Build,
    client: KubeClient,
    metrics: Metrics,
    known: AdapterRegistry,
    led_until: datetime | None,
    hook: Webhook | None,
    beside: Beside,
) -> bool:
    """Lead with these kinds; return whether to go on, with a new manager, as the manager cluster serves more kinds."""
    more = False
    with postponed():
        running = await with_assigned_kinds(known, client)
        async with anyio.create_task_group() as tasks:

            async def begin_anew() -> None:
                nonlocal more
                await until_more_served(known, client)
                more = True
                await term.drain()
                tasks.cancel_scope.cancel()

            tasks.start_soon(begin_anew)
            await term.lead(build(running.adapters, running.before, led_until), metrics, hook, beside)
            tasks.cancel_scope.cancel()
    return more


def _webhook(
    settings: Settings, client: ApiClient, adapters: AdapterRegistry, metrics: Metrics
) -> AbstractAsyncContextManager[Webhook | None]:
    if not settings.webhook.enabled:
        return nullcontext()
    from multikueued.webhook.run import webhook  # imports what makes certificates, which few need

    return webhook(settings, client, adapters, metrics)


def _secure_metrics(settings: Settings, client: ApiClient, metrics: Metrics) -> AbstractAsyncContextManager[int | None]:
    if not settings.serving.metrics.secure:
        return nullcontext()
    from multikueued.serving.secure_metrics import serving_securely  # imports what reads certificates, which few need

    return serving_securely(settings.serving, client.create, metrics)


def build_manager(
    settings: Settings,
    client: ApiClient,
    metrics: Metrics,
    mark_key: bytes,
    adapters: AdapterRegistry,
    before: InitialList | None = None,
    led_until: datetime | None = None,
    *,
    granting: ApiClient | None = None,
) -> Manager:
    """The library's manager with these settings.

    Args:
        settings: of the daemon.
        client: of the manager cluster.
        metrics: its hooks.
        mark_key: by which copies are marked; see `PlanSettings.mark_key`.
        adapters: the job kinds.
        before: the Workloads, if they were read just before.
        led_until: see `Elector.led_until`.
        granting: who writes ClusterPermissions; see `granting_client`.
    """
    limits = settings.worker_limits.answer_limits()
    placement, spokes = placement_options(settings), spoke_settings(settings)
    inventory = InventoryOptions(placement, metrics.placements, spokes, permissions=granting)
    return Manager(
        client,
        adapters,
        ManagerSettings(
            plan=_plan_settings(settings, mark_key),
            name=settings.manager_name,
            namespace=settings.namespace,
            gc_interval=settings.gc_interval,
            worker_limits=limits,
            quota_automation=settings.quota_automation,
            profiles=profile_settings(settings),
        ),
        _to_workers(client, limits, metrics),
        dispatcher=chosen_dispatcher(settings),
        hook=metrics,
        controller_hook=metrics,
        fraction=random.random,
        instance=socket.gethostname(),
        led_until=led_until,
        before=before or InitialList(),
        parts=[inventory.part, _mirrors(settings, client, metrics, mark_key).part],
    )


def _to_workers(client: ApiClient, limits: AnswerLimits, metrics: Metrics) -> Connect:
    """Makes the clients of workers: with the manager's they decode large answers in turns."""
    large = client.large_json if isinstance(client, KubeClient) else LargeJson()
    options, plugins = ClientOptions(limits=limits), Authenticators()
    return lambda name, config: KubeClient(
        config, name=name, options=options, hook=metrics, plugins=plugins, large_json=large
    )


def _mirrors(settings: Settings, client: ApiClient, metrics: Metrics, mark_key: bytes) -> MirrorOptions:
    """What shows the pods of runs; with that off, what takes away what is left of it."""
    options = MirrorOptions(settings, functools.partial(own_client, client, metrics), mark_key, server_version)
    if not settings.mirror_pods.logs:
        return options
    guard = functools.partial(why_unguarded, name=settings.mirrors_policy)
    return attrs.evolve(options, guard=guard, refused=metrics.mirrors.refused, shown=metrics.mirrors.shown)


def _plan_settings(settings: Settings, mark_key: bytes) -> PlanSettings:
    return PlanSettings(
        controller_name=settings.controller_name,
        origin=settings.origin,
        mark_key=mark_key,
        worker_lost_timeout=settings.worker_lost_timeout,
        pod_grace_limit=settings.pod_grace_limit,
        finished_retention=settings.retention.finished,
        failed_retention=settings.retention.failed,
        orchestrated_preemption=settings.preemption.orchestrated,
        pods_ready=settings.pods.check == "Ready",
        preemption_timeout=settings.preemption.timeout,
        dependencies={entry.config: frozenset(entry.kinds) for entry in settings.dependencies},
    )
