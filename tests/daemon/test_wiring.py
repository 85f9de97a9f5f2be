"""The term of a leader: what readiness waits for, and how it ends."""

from __future__ import annotations

import anyio
import attrs
import orjson
import pytest
from structlog.testing import capture_logs

from multikueue.adapters.declaration import Declaration
from multikueue.core.model.kinds import CUSTOM_RESOURCE_DEFINITION
from multikueue.core.model.names import ObjectKey
from multikueue.kube import parse_worker_kubeconfig
from multikueue.sandbox import Sandbox
from multikueue.sandbox.apiserver import ApiServer
from multikueue.sandbox.kinds import BATCH_JOB, definition
from multikueued import kinds
from multikueued.config import LeaderElectionSettings, ObjectName, Port, ServingSettings, Settings
from multikueued.wiring import Term, work
from tests.daemon.test_declared_kinds import BUS, QUICK, TEMPLATE
from tests.daemon.test_running import eventually

ALONE = Settings(
    leader_election=LeaderElectionSettings(enabled=False),
    serving=ServingSettings(bind_address="127.0.0.1", port=Port(0)),
)


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


async def test_a_kind_whose_definition_is_installed_later_joins_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """Until then nothing is watched or told about it, neither on the manager nor on workers; a job of it waits."""
    monkeypatch.setattr(kinds, "LOOK_AGAIN", 0.2)
    kind = Declaration(name="Bus.v1.example.com")
    settings = attrs.evolve(ALONE, namespace=ObjectName("kueue-system"), external_frameworks=(kind,))
    async with Sandbox(workers=1, kinds=[BATCH_JOB, BUS], options=QUICK) as sandbox, anyio.create_task_group() as tasks:
        manager = sandbox.manager.client("admin")
        await manager.delete(CUSTOM_RESOURCE_DEFINITION, ObjectKey("", "busses.example.com"))
        config = parse_worker_kubeconfig(orjson.dumps(sandbox.manager.server.kubeconfig("multikueue")))
        term = Term(elected=False)
        with capture_logs() as logs:
            tasks.start_soon(work, settings, config, term)

            async def works() -> bool:
                return term.working

            await eventually(works)
            first = term.manager
            assert first is not None
            assert BUS.resource.gvk not in first.cluster.jobs
            known = [worker.known for worker in first.workers if worker.known is not None]
            assert not any(BUS.resource.gvk in informers.jobs for informers in known)
            await manager.create(CUSTOM_RESOURCE_DEFINITION, definition(BUS))
            await manager.create(BUS.resource, BUS.example("line-1", TEMPLATE, queue="user-queue"))

            async def ended() -> bool:
                return BUS.ending(await manager.get(BUS.resource, ObjectKey("default", "line-1"))) is not None

            await eventually(ended)
        assert term.manager is not first
        tasks.cancel_scope.cancel()

    (told,) = [line for line in logs if line["event"] == "job kinds that the manager does not serve"]
    assert told["kinds"] == ["buses.example.com"], "the usual plural, as nobody could be asked"
