"""The term of a leader: what readiness waits for, and how it ends."""

from __future__ import annotations

import gc
from datetime import UTC, datetime

import anyio
import attrs
import orjson
import pytest
import structlog
from structlog.testing import capture_logs

from multikueue.adapters.declaration import Declaration
from multikueue.core.model.kinds import CUSTOM_RESOURCE_DEFINITION, LEASE
from multikueue.core.model.names import GVK, Json, ObjectKey, Resource
from multikueue.kube import parse_worker_kubeconfig
from multikueue.runtime.manager import Manager
from multikueue.sandbox import RunnerOptions, Sandbox, SandboxKind, SandboxOptions
from multikueue.sandbox.apiserver import ApiServer, DirectClient, Match, Refuse
from multikueue.sandbox.kinds import BATCH_JOB, definition
from multikueue.testing import until
from multikueue.testing.waiting import background
from multikueued.exits import known_error
from multikueued.remote.shared_key import shared_key
from multikueued.run import daemon, kinds, leadership
from multikueued.run.daemon import work
from multikueued.run.leadership import Leadership
from multikueued.settings.config import LeaderElectionSettings, ServingSettings, Settings
from tests.runtime import fleet

QUICK = SandboxOptions(runner=RunnerOptions(mean=0.2, minimum=0.1, maximum=0.3))
BUS = SandboxKind(resource=Resource(GVK("example.com", "v1", "Bus"), "busses"))
"""A kind whose plural nobody would guess."""
TEMPLATE: Json = {
    "spec": {
        "restartPolicy": "Never",
        "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}],
    }
}

ALONE = Settings(
    leader_election=LeaderElectionSettings(enabled=False),
    serving=ServingSettings(bind_address="127.0.0.1", port=0),
)


async def test_a_term_begins_with_what_the_lease_says_of_the_one_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """How long nobody led does not count for lost workers, so the manager is told."""
    logged: list[object] = []

    def build(*arguments: object, **_: object) -> Manager:
        logged.append(arguments[-1])
        raise ZeroDivisionError

    monkeypatch.setattr(daemon, "build_manager", build)
    settings = attrs.evolve(ALONE, namespace="default", leader_election=LeaderElectionSettings())
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
    assert logged == [datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)]


async def test_with_another_origin_than_before_it_ends_before_it_is_a_candidate() -> None:
    """So a rollout leaves the replica that leads where it is: a candidate counts as ready."""
    settings = attrs.evolve(ALONE, namespace="default", leader_election=LeaderElectionSettings())
    server = fleet.server("manager")
    marks = ObjectKey("default", settings.marks_secret)
    await shared_key(DirectClient(server), marks, "the one before")
    async with server:
        with pytest.raises(ExceptionGroup) as caught:
            await work(settings, parse_worker_kubeconfig(orjson.dumps(server.kubeconfig())))
    assert "origin: it was 'the one before' so far" in str(known_error(caught.value))
    assert not (await DirectClient(server).list(LEASE)).items


async def test_without_permission_for_leases_it_is_not_ready_and_says_so_each_minute(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(leadership, "SOON", 0.01)
    monkeypatch.setattr(leadership, "AGAIN", 0.1)
    monkeypatch.setattr(leadership, "log", structlog.get_logger())  # one that no earlier test has bound
    settings = attrs.evolve(ALONE, namespace="default", leader_election=LeaderElectionSettings())
    term = Leadership(elected=True)
    async with ApiServer("manager", tokens={"t": "admin"}) as server:
        server.faults.add(Refuse(403), on=Match(resource="leases.coordination.k8s.io"))
        config = parse_worker_kubeconfig(orjson.dumps(server.kubeconfig()))
        with capture_logs() as lines:
            async with background() as tasks:
                tasks.start_soon(work, settings, config, term)

                async def told_twice() -> bool:
                    return [line["event"] for line in lines].count("nothing is dispatched") > 1

                await until(told_twice)
                why = term.why_not_ready()

    assert why is not None
    assert "leases" in why
    assert why.endswith("grant what multikueue rbac manager prints")
    (advice,) = {line["advice"] for line in lines if line["event"] == "nothing is dispatched"}
    assert advice == "grant what multikueue rbac manager prints"


async def test_without_kueue_readiness_names_what_is_missing_and_stopping_takes_no_time() -> None:
    """Nothing is under way before everything has been read."""
    missing = ", ".join(
        f"{plural}.kueue.x-k8s.io"
        for plural in ("workloads", "admissionchecks", "multikueueconfigs", "multikueueclusters")
    )
    term = Leadership(elected=False)
    async with ApiServer("manager", tokens={"t": "admin"}) as server, background() as tasks:
        config = parse_worker_kubeconfig(orjson.dumps(server.kubeconfig()))
        tasks.start_soon(work, ALONE, config, term)
        with anyio.fail_after(15):
            while True:
                if term.why_not_ready() == f"the manager cluster's objects are not all read yet: {missing}":
                    break
                await anyio.sleep(0.01)
        assert not gc.isenabled()  # see `postponed`
        with anyio.fail_after(1):
            await term.drain()


async def test_a_kind_whose_definition_is_installed_later_joins_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """Until then nothing is watched or told about it, neither on the manager nor on workers; a job of it waits."""
    monkeypatch.setattr(kinds, "LOOK_AGAIN", 0.2)
    kind = Declaration(name="Bus.v1.example.com")
    monkeypatch.setattr("multikueued.run.kinds.log", structlog.get_logger())  # one that no earlier test has bound
    settings = attrs.evolve(ALONE, namespace="kueue-system", external_frameworks=(kind,))
    async with Sandbox(workers=1, kinds=[BATCH_JOB, BUS], options=QUICK) as sandbox, background() as tasks:
        manager = sandbox.manager.client("admin")
        await manager.delete(CUSTOM_RESOURCE_DEFINITION, ObjectKey("", "busses.example.com"))
        config = parse_worker_kubeconfig(orjson.dumps(sandbox.manager.server.kubeconfig("multikueue")))
        term = Leadership(elected=False)
        with capture_logs() as logs:
            tasks.start_soon(work, settings, config, term)

            async def works() -> bool:
                return term.working

            await until(works)
            first = term.manager
            assert first is not None
            assert gc.isenabled()
            assert BUS.resource.gvk not in first.cluster.jobs
            known = [worker.known for worker in first.workers if worker.known is not None]
            assert not any(BUS.resource.gvk in informers.jobs for informers in known)
            await manager.create(CUSTOM_RESOURCE_DEFINITION, definition(BUS))
            await manager.create(BUS.resource, BUS.example("line-1", TEMPLATE, queue="user-queue"))

            async def ended() -> bool:
                return BUS.ending(await manager.get(BUS.resource, ObjectKey("default", "line-1"))) is not None

            await until(ended)
        assert term.manager is not first

    (line,) = [line for line in logs if line["event"] == "job kinds that the manager does not serve"]
    assert line["kinds"] == ["buses.example.com"], "the usual plural, as nobody could be asked"
    assert [line["kinds"][1:] for line in logs if line["event"] == "job kinds"] == [[], ["busses.example.com"]]
