"""`python -m tests.benchmarks.mirror_endpoint`: who answers for mirrors, in a process of its own. Its manager is
played: it is asked once for each stream."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio

from multikueue.core.model.names import Json, ObjectKey
from multikueued.mirrors.endpoint.callers import KubeletTls, NodeRights
from multikueued.mirrors.endpoint.places import Places
from multikueued.mirrors.endpoint.relay import Relay
from multikueued.mirrors.endpoint.serving import EndpointPort
from tests.benchmarks.answering import Answer, nothing_to_ask, run
from tests.integration.planes import connection
from tests.mirrors.endpoint.test_relay import Manager, mirror
from tests.mirrors.endpoint.worker import HOST, PlayedWorkers


@asynccontextmanager
async def mirror_endpoint(config: Json) -> AsyncIterator[tuple[Json, Answer]]:
    """Answer for one mirror of a pod of `config["worker"]`."""
    manager, tls, ports, opened = Manager(mirror()), KubeletTls(), list[int](), anyio.Event()
    workers = PlayedWorkers({"w1": connection(config["worker"])})
    relay = Relay(manager, ObjectKey("ns", "key"), NodeRights(manager.create), workers, Places(), False)  # type: ignore[arg-type]
    tls.take({"data": {"client-ca-file": config["callers"]}})
    tls.load(config["certificate"], config["key"])

    def on_open(port: int) -> None:
        ports.append(port)
        opened.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(EndpointPort(relay, tls, HOST, 0, on_open, drain=0.0).run)
        await opened.wait()
        yield {"port": ports[0]}, nothing_to_ask
        tasks.cancel_scope.cancel()


if __name__ == "__main__":
    run(mirror_endpoint)
