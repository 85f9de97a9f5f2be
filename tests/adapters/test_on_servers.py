"""Every row against API servers with the real CRDs: what is copied is accepted there and stored as it was sent.

The servers check schemas, prune unknown fields and fill in defaults as real ones do.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from multikueue.adapters import AVAILABLE, JobKind
from multikueue.core.names import Json, ObjectKey
from multikueue.core.objects import dig, with_value
from multikueue.sandbox.apiserver import ApiServer, DirectClient
from tests.adapters.kinds import NOW, OURS, STAMP, a_job, case_of, golden

CRDS = Path(__file__).parents[3] / "shared" / "crds" / "jobs"
KEY = ObjectKey("team", "mine")
NAMESPACE: Json = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}}
BUILT_IN = ("", "apps", "batch")

present = [kind for kind in AVAILABLE if kind.resource.gvk.group in BUILT_IN or CRDS.exists()]
rows = pytest.mark.parametrize("kind", present, ids=lambda kind: kind.resource.gvk.kind)


def server(name: str, kind: JobKind) -> DirectClient:
    """A cluster that serves the kind."""
    cluster = ApiServer(name)
    if kind.resource.gvk.group not in BUILT_IN:
        cluster.registry.create_object(yaml.safe_load((CRDS / f"{kind.resource.qualified}.yaml").read_text()))
    cluster.registry.create_object(NAMESPACE)
    return DirectClient(cluster)


async def submitted(manager: DirectClient, kind: JobKind) -> Json:
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


def agrees(stored: object, sent: object) -> bool:
    """Whether everything that was sent is there; a server may have filled in more."""
    if isinstance(sent, dict) and isinstance(stored, dict):
        return all(key in stored and agrees(stored[key], value) for key, value in sent.items())
    if isinstance(sent, list) and isinstance(stored, list):
        return len(sent) == len(stored) and all(agrees(*pair) for pair in zip(stored, sent, strict=True))
    return stored == sent


@rows
async def test_a_worker_takes_the_copy_and_keeps_all_of_it(kind: JobKind) -> None:
    """Neither a field that its schema does not have, nor one that only the manager's server may fill in."""
    manager, worker = server("manager", kind), server("worker", kind)
    sent = kind.copy(await submitted(manager, kind), STAMP)
    stored = await worker.create(kind.resource, sent)
    assert agrees(stored, sent)
    assert agrees(sent["spec"].get("template"), dig(golden(kind), "spec", "template")) or kind.resource.plural == "jobs"


@rows
async def test_the_manager_takes_the_status(kind: JobKind) -> None:
    """From a start to an end, where there is one; a rule of its schema or of its API would refuse it for ever."""
    manager, case = server("manager", kind), case_of(kind)
    local = await submitted(manager, kind)
    if kind.suspend is not None:
        local = await manager.merge_patch(kind.resource, KEY, with_value({}, kind.suspend, False))
    patch = kind.status_patch(local, a_job(kind, case.running), NOW)
    assert (patch is not None) == case.comes_home
    if patch is None:
        return
    local = await manager.merge_patch(kind.resource, KEY, patch, subresource="status")
    assert agrees(local["status"], case.running)
    assert kind.status_patch(local, a_job(kind, case.running), NOW) is None
    released = kind.release_patch(local)
    assert released is not None
    local = await manager.merge_patch(kind.resource, KEY, released, subresource="status")
    assert kind.release_patch(local) is None


@rows
async def test_a_server_with_the_kind_says_who_runs_it_where_the_row_looks(kind: JobKind) -> None:
    """A path that the schema does not have would be pruned, and every job be refused."""
    if kind.managed_by is not None:
        assert kind.not_delegated(await submitted(server("manager", kind), kind), OURS) is None
