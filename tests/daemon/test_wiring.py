"""The term of a leader: what readiness waits for, and how it ends."""

from __future__ import annotations

import anyio
import orjson

from multikueue.kube import parse_worker_kubeconfig
from multikueue.sandbox.apiserver import ApiServer
from multikueued.config import LeaderElectionSettings, Port, ServingSettings, Settings
from multikueued.wiring import Term, work

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
