"""The term of a leader: what readiness waits for, and how it ends."""

from __future__ import annotations

from datetime import UTC, datetime

import anyio
import attrs
import orjson
import pytest

from multikueue.core.model.kinds import LEASE
from multikueue.core.model.names import Json
from multikueue.kube import parse_worker_kubeconfig
from multikueue.runtime.manager import Manager
from multikueue.sandbox.apiserver import ApiServer, DirectClient
from multikueued import wiring
from multikueued.config import LeaderElectionSettings, ObjectName, Port, ServingSettings, Settings
from multikueued.wiring import Term, work
from tests.runtime import fleet

ALONE = Settings(
    leader_election=LeaderElectionSettings(enabled=False),
    serving=ServingSettings(bind_address="127.0.0.1", port=Port(0)),
)


async def test_a_term_begins_with_what_the_lease_says_of_the_one_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """How long nobody led does not count for lost workers, so the manager is told."""
    told: list[object] = []

    def build(*arguments: object) -> Manager:
        told.append(arguments[-1])
        raise ZeroDivisionError

    monkeypatch.setattr(wiring, "build_manager", build)
    settings = attrs.evolve(ALONE, namespace=ObjectName("default"), leader_election=LeaderElectionSettings())
    renewed = "2026-01-02T03:04:05.000000Z"
    lease: Json = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"namespace": "default", "name": "multikueue"},
        "spec": {"holderIdentity": "", "leaseDurationSeconds": 15, "renewTime": renewed},
    }
    server = fleet.server("manager")
    await DirectClient(server).create(LEASE, lease)
    async with server:
        config = parse_worker_kubeconfig(orjson.dumps(server.kubeconfig()))
        with pytest.raises(ExceptionGroup):
            await work(settings, config)
    assert told == [datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)]


async def test_without_kueue_readiness_names_what_is_missing_and_stopping_takes_no_time() -> None:
    """Nothing is under way before everything has been read."""
    missing = ", ".join(
        f"{plural}.kueue.x-k8s.io"
        for plural in ("workloads", "admissionchecks", "multikueueconfigs", "multikueueclusters")
    )
    term = Term(elected=False)
    async with ApiServer("manager", tokens={"t": "admin"}) as server, anyio.create_task_group() as tasks:
        config = parse_worker_kubeconfig(orjson.dumps(server.kubeconfig()))
        tasks.start_soon(work, ALONE, config, term)
        with anyio.fail_after(15):
            while True:
                if term.why_not_ready() == f"the manager cluster's objects are not all read yet: {missing}":
                    break
                await anyio.sleep(0.01)
        with anyio.fail_after(1):
            await term.drain()
        tasks.cancel_scope.cancel()
