"""Plays the kubelet: there are no nodes, so pods stay `Pending` until a test says what became of them."""

from __future__ import annotations

from typing import Literal

from multikueue.core.model.names import Json
from tests.controlplane.api import Api

Phase = Literal["Running", "Succeeded", "Failed"]


async def list_pods(admin: Api, namespace: str, label_selector: str) -> list[Json]:
    """Return the pods that match."""
    answer = await admin.get(f"/api/v1/namespaces/{namespace}/pods", labelSelector=label_selector)
    pods: list[Json] = answer["items"]
    return pods


async def set_phase(admin: Api, namespace: str, label_selector: str, phase: Phase) -> int:
    """Let all matching pods be running, or end; return how many. A Job's are `batch.kubernetes.io/job-name=NAME`."""
    pods = await list_pods(admin, namespace, label_selector)
    ready = {"type": "Ready", "status": "True" if phase == "Running" else "False"}
    for pod in pods:
        path = f"/api/v1/namespaces/{namespace}/pods/{pod['metadata']['name']}/status"
        await admin.merge_patch(path, {"status": {"phase": phase, "conditions": [ready]}})
    return len(pods)
