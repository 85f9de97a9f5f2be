"""`pods.check: Ready` on real servers: the webhook's gate, Kueue's node selector, and who makes pods again.

kube-apiserver asks the webhook about each pod that kube-controller-manager makes, and says which changes of a gated pod
it takes. The small Kueue plays Kueue, and the sandbox's runner the nodes.
"""

from __future__ import annotations

import attrs
import pytest

from multikueue.core.model.kinds import MUTATING_WEBHOOKS
from multikueue.core.model.labels import ADMISSION_GATE, HOLDING_GATE, QUEUE_LABEL
from multikueue.core.model.names import Json, ObjectKey
from multikueue.sandbox.setting_up import LOCAL_QUEUE_NAME
from multikueued.settings.config import PodSettings, Settings
from tests.controlplane.polling import poll_until
from tests.integration.permissions import WEBHOOK_CONFIGURATION, chart_objects
from tests.integration.planes import Planes
from tests.integration.test_kinds import real_ground
from tests.integration.test_webhook import settings
from tests.kinds import held_pods
from tests.kinds.cases import cases
from tests.kinds.ground import TEMPLATE

pytestmark = [pytest.mark.real, pytest.mark.timeout(240), pytest.mark.asyncio(loop_scope="session")]

_PODS = "/api/v1/namespaces/default/pods"


def _settings() -> Settings:
    return attrs.evolve(settings(failure_policy="Fail"), pods=PodSettings(check="Ready"))


async def _asked(planes: Planes) -> None:
    """Wait until the API server asks the webhook about pods, and believes it."""
    metadata = {"name": "probe", "labels": {QUEUE_LABEL: LOCAL_QUEUE_NAME}}
    spec: Json = {**TEMPLATE["spec"], "schedulingGates": [{"name": ADMISSION_GATE}]}
    probe = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}

    async def held() -> bool:
        answer = await planes.manager.admin.send("POST", _PODS, probe, query={"dryRun": "All"})
        return answer.status < 300 and held_pods.gates(answer.body) == [ADMISSION_GATE, HOLDING_GATE]

    await poll_until(held, seconds=40, otherwise="the API server does not ask the webhook after 40 s")


async def test_pods_are_admitted_deleted_on_evictions_and_made_again_by_their_owner(planes: Planes) -> None:
    for template in ("rbac-webhook.yaml", "webhook.yaml"):
        for obj in chart_objects(template):
            await planes.manager.admin.apply(obj)
    rows = {case.name: case for case in cases() if case.name in ("pod", "podgroup", "deployment")}
    async with real_ground(planes, list(rows.values()), _settings()) as ground:
        await held_pods.give_the_manager_nodes_of_its_own(ground)
        await _asked(planes)
        for case in rows.values():
            await held_pods.runs_held(ground, case)
        await held_pods.grows_held(ground, rows["deployment"])
        await held_pods.is_deleted_on_eviction(ground, rows["deployment"], "manager")
        await held_pods.is_deleted_on_eviction(ground, rows["podgroup"], "worker")

        await ground.manager.client.delete(MUTATING_WEBHOOKS, ObjectKey("", WEBHOOK_CONFIGURATION))
        await held_pods.runs_free(ground, rows["deployment"])
