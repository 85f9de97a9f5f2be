"""A sandbox whose daemon shows the pods of runs on the manager, and what answers for them there."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import anyio

from multikueue.core.model.kinds import SECRET
from multikueue.kube import KubeClient
from multikueue.sandbox import Sandbox
from multikueue.sandbox.objects import built
from multikueue.sandbox.setting_up import KUEUE_NAMESPACE
from multikueued.demo.run import config_of
from multikueued.logserver.resolving import ReadableWorkers
from multikueued.mirrors.endpoint.running import run_endpoint
from multikueued.rbac.mirrors import mirror_policy_objects
from multikueued.run.daemon import work
from multikueued.run.leadership import Leadership
from multikueued.settings.config import IntegrationSettings, RetentionSettings, ServingSettings, Settings
from multikueued.settings.sections import MirrorPodSettings
from tests.controlplane.ports import free_port


@asynccontextmanager
async def mirrored(sandbox: Sandbox, kinds: IntegrationSettings | None = None) -> AsyncIterator[Settings]:
    """While it lasts, the daemon dispatches and shows pods, with these settings, and the endpoint answers."""
    settings = Settings(
        namespace=KUEUE_NAMESPACE,
        serving=ServingSettings(bind_address="127.0.0.1", port=0),
        retention=RetentionSettings(finished=timedelta(minutes=5)),
        integrations=kinds or IntegrationSettings(),
        mirror_pods=MirrorPodSettings(logs=True, exec=True, address="127.0.0.1", port=free_port()),
    )
    manager = sandbox.manager
    await manager.client("admin").create(SECRET, built(SECRET, settings.mirrors_certificate_secret, KUEUE_NAMESPACE))
    for obj in mirror_policy_objects(settings.mirrors_policy, "multikueue"):
        manager.server.registry.create_object(obj)
    config = config_of(manager.server.kubeconfig("multikueue"))
    async with KubeClient(config, name="manager") as client, anyio.create_task_group() as tasks:
        workers = ReadableWorkers(client, KUEUE_NAMESPACE, {name: f"{name}-secret" for name in sandbox.workers})
        tasks.start_soon(work, settings, config, Leadership(elected=True))
        tasks.start_soon(run_endpoint, client, workers, settings)
        yield settings
        tasks.cancel_scope.cancel()
