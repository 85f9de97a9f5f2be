"""What must hold for a row on API servers, whoever runs them."""

from __future__ import annotations

import yaml

from multikueue.adapters import JobKind
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import with_value
from multikueue.protocols import ApiClient
from multikueue.testing import contains
from tests.adapters.kinds import NOW, STAMP, a_job, case_of
from tests.data.files import JOB_CRDS

KEY = ObjectKey("team", "mine")
NAMESPACE: Json = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}}
BUILT_IN = ("", "apps", "batch")
"""Groups whose kinds an API server has by itself."""


def definition(kind: JobKind) -> Json:
    """The kind's own CustomResourceDefinition."""
    definition: Json = yaml.safe_load((JOB_CRDS / f"{kind.resource.qualified}.yaml").read_text())
    return definition


async def submitted(manager: ApiClient, kind: JobKind) -> Json:
    """The job as the manager's server has stored it. What that server makes up by itself is not sent to it."""
    sent = a_job(kind)
    for field in ("uid", "resourceVersion", "generation", "ownerReferences", "finalizers"):
        sent["metadata"].pop(field)
    if kind.resource.gvk.kind == "Job":
        sent["spec"].pop("selector")
        sent["spec"]["template"]["metadata"]["labels"] = {"app": "x"}
    if kind.resource.gvk.kind == "Pod":
        for field in ("priority", "preemptionPolicy", "priorityClassName"):
            sent["spec"].pop(field)
    return await manager.create(kind.resource, sent)


async def a_worker_takes_the_copy(manager: ApiClient, worker: ApiClient, kind: JobKind) -> None:
    """And keeps all of it: neither a field that its schema lacks, nor one that only another server may fill in."""
    sent = kind.copy(await submitted(manager, kind), STAMP)
    stored = await worker.create(kind.resource, sent)
    assert contains(stored, sent)


async def the_manager_takes_the_status(manager: ApiClient, kind: JobKind, local: Json) -> None:
    """Running, stopped and, where there is one, the end: a rule of its schema or API would refuse it for ever."""
    case = case_of(kind)
    if kind.copies.suspend is not None:
        local = await manager.merge_patch(kind.resource, KEY, with_value({}, kind.copies.suspend, False))
    patch = kind.status_patch(local, a_job(kind, case.running), NOW)
    assert (patch is not None) == case.shown
    if patch is None:
        return
    local = await manager.merge_patch(kind.resource, KEY, patch, subresource="status")
    assert contains(local["status"], case.running)
    left = kind.status_patch(local, a_job(kind, case.running), NOW)
    assert left is None, f"{kind.resource}: {left}"
    released = kind.release_patch(local)
    assert released is not None
    local = await manager.merge_patch(kind.resource, KEY, released, subresource="status")
    assert kind.release_patch(local) is None
