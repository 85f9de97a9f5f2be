"""The webhook for every kind, with the kinds' own definitions where they are beside the checkout."""

from __future__ import annotations

import attrs
import pytest

from multikueue.adapters import AdapterRegistry
from multikueue.core.model.labels import CONTROLLER_NAME
from multikueue.core.model.names import Json
from multikueue.core.model.objects import with_value
from multikueue.kube import KubeClient
from multikueue.sandbox.setting_up import (
    CHECK,
    LOCAL_QUEUE_NAME,
    connect_workers,
    set_up_queues,
)
from multikueue.testing import running
from multikueued.settings.config import WebhookSettings
from multikueued.webhook.run import webhook
from tests.controlplane.crds import establish
from tests.controlplane.interface import Cluster
from tests.controlplane.polling import poll_until
from tests.controlplane.ports import free_port
from tests.integration.daemon import SETTINGS
from tests.integration.fleet import TWICE
from tests.integration.planes import Planes, connection
from tests.kinds.cases import Case, cases, definitions
from tests.kinds.ground import TEMPLATE

pytestmark = [pytest.mark.real, pytest.mark.timeout(240), pytest.mark.asyncio(loop_scope="session")]

_NAME = "multikueue-every-kind"


async def shown(manager: Cluster, case: Case, job: Json) -> str | None:
    """Why the job would not be delegated, as the API server would store it; None if it would."""
    resource = case.adapter.resource
    path = f"/apis/{resource.gvk.api_version}/namespaces/default/{resource.plural}"
    stored = await manager.admin.call("POST", path, job, query={"dryRun": "All"})
    return case.adapter.not_delegated(stored, CONTROLLER_NAME)


async def test_every_kind_that_can_be_delegated_is(planes: Planes) -> None:
    """Whatever its API fills in by itself: TrainJob's names its own controller before anybody else is asked."""
    manager, rows = planes.manager, [case for case in cases() if case.adapter.delegation.path is not None]
    await establish(manager.admin, definitions(rows))
    port = free_port()
    chosen = WebhookSettings(
        enabled=True,
        bind_address="127.0.0.1",
        port=port,
        url=f"https://127.0.0.1:{port}",
        service_name=_NAME,
        configuration_name=_NAME,
    )
    adapters = AdapterRegistry(case.adapter for case in rows)
    async with KubeClient(connection(manager.kubeconfig()), name="manager") as client:
        await set_up_queues(client, TWICE, [CHECK])
        await connect_workers(client, planes.worker_kubeconfigs())
        async with (
            webhook(attrs.evolve(SETTINGS, webhook=chosen), client, adapters) as hook,
            running(hook.registrar.run),
        ):
            await _asked(manager, rows)
            refused = {}
            for case in rows:
                plain = case.kind.example("asked", TEMPLATE, queue=LOCAL_QUEUE_NAME, delegated=False)
                own, path = case.adapter.delegation.own_controller, case.adapter.delegation.path or ()
                jobs = (plain, with_value(plain, path, own)) if own else (plain,)
                refused[case.name] = [await shown(manager, case, job) for job in jobs]
                elsewhere = case.kind.example("not-asked", TEMPLATE, queue="no-such-queue", delegated=False)
                assert await shown(manager, case, elsewhere) is not None, case.name

    assert {name: why for name, why in refused.items() if any(why)} == {}
    assert {"job", "trainjob", "mpijob", "rayjob", "workflow"} <= refused.keys()


async def _asked(manager: Cluster, rows: list[Case]) -> None:
    """Wait until the API server asks the webhook, and believes it."""
    case = next(case for case in rows if case.name == "job")
    probe = case.kind.example("probe", TEMPLATE, queue=LOCAL_QUEUE_NAME, delegated=False)

    async def delegated() -> bool:
        return await shown(manager, case, probe) is None

    await poll_until(delegated, seconds=40, otherwise="the API server does not ask the webhook after 40 s")
