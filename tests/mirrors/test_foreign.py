"""Pods of others on our Nodes: all of them end, however many there are."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from multikueue.core.model.kinds import POD
from multikueue.core.model.names import Json
from multikueue.core.model.objects import dig, name_of
from multikueue.kube import KubeClient
from multikueue.sandbox import Sandbox
from multikueued.demo.run import config_of
from multikueued.mirrors import foreign
from multikueued.mirrors.foreign import end_foreign


def a_pod(name: str, node: str = "multikueue-worker1") -> Json:
    spec = {"nodeName": node, "containers": [{"name": "c", "image": "i"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "default", "name": name}, "spec": spec}


@pytest.mark.timeout(60)
async def test_those_that_have_ended_keep_no_other_from_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """They stay until somebody deletes them, before the others in each list."""
    monkeypatch.setattr(foreign, "AT_ONCE", 2)
    async with Sandbox(workers=1) as sandbox:
        admin, config = sandbox.manager.client("admin"), config_of(sandbox.manager.server.kubeconfig("multikueue"))
        for number in range(7):
            await admin.create(POD, a_pod(f"theirs-{number}"))
        await admin.create(POD, a_pod("elsewhere", "node-1"))
        async with KubeClient(config, name="manager") as client:
            with capture_logs() as logs:
                await end_foreign(client, "worker1", "multikueue")
                await end_foreign(client, "worker1", "multikueue")
        reasons = {name_of(pod): dig(pod, "status", "reason") for pod in (await admin.list(POD)).items}
    assert reasons.pop("elsewhere") is None
    assert set(reasons.values()) == {"NotDelegated"}
    said = [
        (line["node"], line["pods"]) for line in logs if line["event"] == "pods of others on a Node of ours have ended"
    ]
    assert said == [("multikueue-worker1", 7)]
