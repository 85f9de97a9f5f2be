"""The term of a leader: what readiness waits for, what costs it the Lease and what does not, and how it ends."""

from __future__ import annotations

from datetime import timedelta

import anyio
import orjson

from multikueue import ClientOptions
from multikueue.core.model.kinds import JOB, LEASE
from multikueue.kube import parse_worker_kubeconfig
from multikueue.sandbox import Sandbox
from multikueue.sandbox.apiserver import ApiServer, Hang, Match
from multikueued.config import LeaderElectionSettings, ObjectName, Port, ServingSettings, Settings
from multikueued.wiring import Term, work
from tests.controlplane.polling import poll_until
from tests.daemon.test_running import LEASE_KEY, delegated_job

ANY_PORT = ServingSettings(bind_address="127.0.0.1", port=Port(0))
ALONE = Settings(leader_election=LeaderElectionSettings(enabled=False), serving=ANY_PORT)
CONNECTIONS = ClientOptions().connections

OUR_WRITES = Match(user="multikueue", verbs=("patch",), resource="workloads")


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


async def test_writes_that_hang_do_not_cost_the_lease() -> None:
    """The Lease waited for a connection behind our own writes: the leader lost it every 10 s although it was served."""
    election = LeaderElectionSettings(
        lease_duration=timedelta(seconds=9), renew_deadline=timedelta(seconds=8), retry_period=timedelta(seconds=0.1)
    )
    term = Term(elected=True)
    async with Sandbox(workers=1) as sandbox, anyio.create_task_group() as tasks:
        admin = sandbox.manager.client("admin")
        for number in range(CONNECTIONS + 8):
            job = delegated_job(f"job{number}", "user-queue")
            job["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "10m"}}
            await admin.create(JOB, job)
        hung = sandbox.manager.server.faults.add(Hang(), on=OUR_WRITES)
        config = parse_worker_kubeconfig(orjson.dumps(sandbox.manager.server.kubeconfig("multikueue")))
        settings = Settings(namespace=ObjectName(LEASE_KEY.namespace), leader_election=election, serving=ANY_PORT)
        tasks.start_soon(work, settings, config, term)

        async def renewed() -> str:
            return str((await admin.get(LEASE, LEASE_KEY))["spec"]["renewTime"])

        async def all_connections_wait() -> bool:
            return hung.hits >= CONNECTIONS

        await poll_until(all_connections_wait, seconds=15, otherwise="the writes do not hang")
        leader, times = term.manager, {await renewed()}

        async def renewed_again_or_lost() -> bool:
            times.add(await renewed())
            return len(times) == 5 or term.manager is not leader

        await poll_until(renewed_again_or_lost, seconds=15, otherwise="the Lease is neither renewed nor lost")
        assert leader is not None
        assert term.manager is leader
        tasks.cancel_scope.cancel()
