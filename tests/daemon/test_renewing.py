"""What costs a leader the Lease, and what does not."""

from __future__ import annotations

from datetime import timedelta

import anyio
import orjson
import pytest

from multikueue import ClientOptions
from multikueue.core.model.kinds import JOB, LEASE, LOCAL_QUEUE, NAMESPACE
from multikueue.kube import parse_worker_kubeconfig
from multikueue.sandbox import Sandbox
from multikueue.sandbox.apiserver import Hang, Match
from multikueue.sandbox.setting_up import local_queue, namespace
from multikueue.testing import job
from multikueued.run.daemon import work
from multikueued.run.leadership import Leadership
from multikueued.settings.config import LeaderElectionSettings, ServingSettings, Settings
from tests.controlplane.polling import poll_until
from tests.daemon.test_running import LEASE_KEY

ANY_PORT = ServingSettings(bind_address="127.0.0.1", port=0)
CONNECTIONS = ClientOptions().connections

OUR_WRITES = Match(user="multikueue", verbs=("patch",), resource="workloads")


@pytest.mark.gate
async def test_writes_that_hang_do_not_cost_the_lease() -> None:
    """The Lease waited for a connection behind our own writes: the leader lost it every 10 s although it was served."""
    election = LeaderElectionSettings(lease_duration=timedelta(seconds=6), renew_deadline=timedelta(seconds=5))
    term = Leadership(elected=True)
    async with Sandbox(workers=1) as sandbox, anyio.create_task_group() as tasks:
        admin = sandbox.manager.client("admin")
        others = [f"other{number}" for number in range(7)]
        for name in others:
            await admin.create(NAMESPACE, namespace(name))
            await admin.create(LOCAL_QUEUE, local_queue(name))
        for place in ("default", *others):  # each has three quarters of what the others leave of what is reconciled
            for number in range(CONNECTIONS + 8):
                await admin.create(JOB, job(f"job{number}", namespace=place, cpu="10m"))
        hung = sandbox.manager.server.faults.add(Hang(), on=OUR_WRITES)
        config = parse_worker_kubeconfig(orjson.dumps(sandbox.manager.server.kubeconfig("multikueue")))
        settings = Settings(namespace=LEASE_KEY.namespace, leader_election=election, serving=ANY_PORT)
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
