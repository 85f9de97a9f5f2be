"""Many who watch jobs through our API: its memory, its CPU, and how many events a change costs.

`python -m tests.benchmarks.watchers docs/results/watchers.json` measures 100 watchers of 5,000 jobs in ten namespaces.
The handlers run in a process of their own, over HTTP and without access reviews; the manager is a sandbox.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import aiohttp
import anyio
import anyio.abc
import attrs
import orjson
from aiohttp import web

from multikueue.core.model.kinds import JOB, NAMESPACE, WORKLOAD
from multikueue.core.model.names import Json, ObjectKey
from multikueue.kube import KubeClient, parse_worker_kubeconfig
from multikueue.runtime.loop import utc_now
from multikueue.sandbox.apiserver import ApiServer, DirectClient
from multikueue.sandbox.kinds import BATCH_JOB, define
from multikueue.sandbox.setting_up import CHECK, connect_workers, set_up_queues
from multikueue.testing import job, workload
from multikueued.api_server.running import WHOLE
from multikueued.dashboard.command import OwnRights
from multikueued.logserver.access import Slots
from multikueued.reading.manager_lists import read_findings
from multikueued.reading.pod_lookup import JobLocator
from multikueued.remoteapi.handlers import BASE, JobHandlers
from multikueued.remoteapi.manager_view import ManagerView
from multikueued.reports.typenames import JobName
from multikueued.serving.gate import Limits
from multikueued.serving.port import listening
from tests.benchmarks.answering import Answer, nothing_to_ask, run
from tests.benchmarks.children import child
from tests.benchmarks.machine import machine
from tests.benchmarks.usage import of_processes
from tests.runtime.fleet import CRDS, kubeconfig

JOBS, WATCHERS, NAMESPACES, CHANGES = 5_000, 100, 10, 2_000
SETTLE = 60.0


@attrs.define(eq=False)
class Watchers:
    """Who watches: how many events each has got."""

    url: str
    got: dict[int, int] = attrs.field(factory=dict)
    latest: anyio.Event = attrs.field(factory=anyio.Event)

    async def follow(
        self, session: aiohttp.ClientSession, number: int, namespace: str, *, task_status: anyio.abc.TaskStatus[None]
    ) -> None:
        """List once, then count events until cancelled."""
        path = f"{self.url}{BASE}/namespaces/{namespace}/remotejobs"
        async with session.get(path) as answer:
            version = (await answer.json())["metadata"]["resourceVersion"]
        self.got[number] = 0
        async with session.get(path, params={"watch": "true", "resourceVersion": version}) as answer:
            task_status.started()
            async for line in answer.content:
                self.got[number] += bool(line.strip())
                self.latest.set()

    async def until(self, events: int) -> bool:
        """Wait until they have got so many, and for half a second in which no more comes; whether that came."""
        with anyio.move_on_after(SETTLE):
            while sum(self.got.values()) < events:
                self.latest = anyio.Event()
                await self.latest.wait()
            while True:
                self.latest = anyio.Event()
                with anyio.move_on_after(0.5) as quiet:
                    await self.latest.wait()
                if quiet.cancelled_caught:
                    return True
        return False


async def measured(
    jobs: int = JOBS, watchers: int = WATCHERS, namespaces: int = NAMESPACES, changes: int = CHANGES
) -> Json:
    """What it costs."""
    async with (
        ApiServer("manager", tokens={"t": "admin"}) as server,
        child("tests.benchmarks.watchers", {"kubeconfig": (await _filled(server, jobs, namespaces))}) as api,
        aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0), timeout=aiohttp.ClientTimeout(), read_bufsize=1 << 20
        ) as session,
        anyio.create_task_group() as tasks,
    ):
        following = Watchers(f"http://127.0.0.1:{api.ready['port']}")
        before = of_processes([api.pid])
        for number in range(watchers):
            await tasks.start(following.follow, session, number, _namespace(number % namespaces))
        watched, admin, began = of_processes([api.pid]), DirectClient(server), anyio.current_time()
        for number in range(changes):
            await _change(admin, number % jobs, namespaces, number // jobs)
        per_change = watchers / namespaces
        complete = await following.until(int(changes * per_change))
        after, seconds = of_processes([api.pid]), anyio.current_time() - began
        tasks.cancel_scope.cancel()
    events = sum(following.got.values())
    return {
        "jobs": jobs,
        "watchers": watchers,
        "namespaces": namespaces,
        "changes": changes,
        "complete": complete,
        "events": events,
        "events_per_change_and_watcher": round(events / changes / per_change, 3),
        "seconds": round(seconds, 1),
        "cpu_ms_per_change": round(1000 * (after.cpu - watched.cpu) / changes, 2),
        "cpu_ms_per_watcher_to_begin": round(1000 * (watched.cpu - before.cpu) / watchers, 1),
        "memory_mib_without_watchers": round(before.memory / (1 << 20)),
        "peak_memory_mib": round(after.peak_memory / (1 << 20)),
        "machine": machine(),
    }


async def _filled(server: ApiServer, jobs: int, namespaces: int) -> Json:
    define(server.registry, (BATCH_JOB,), CRDS)
    admin = DirectClient(server)
    await set_up_queues(admin, {"cpu": "4"}, [CHECK])
    await connect_workers(admin, {"worker1": kubeconfig("worker1")})
    for number in range(namespaces):
        metadata = {"name": _namespace(number)}
        await admin.create(NAMESPACE, {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    for number in range(jobs):
        made = workload(await admin.create(JOB, job(f"train-{number}", namespace=_namespace(number % namespaces))))
        made["metadata"]["name"] = f"job-{number}"
        for field in ("uid", "resourceVersion"):
            made["metadata"].pop(field)
        status = made.pop("status")
        key = ObjectKey.of(await admin.create(WORKLOAD, made))
        await admin.merge_patch(WORKLOAD, key, {"status": status}, subresource="status")
    admins: Json = server.kubeconfig("admin")
    return admins


def _namespace(number: int) -> str:
    return f"team-{number}"


async def _change(admin: DirectClient, number: int, namespaces: int, turn: int) -> None:
    """What the check of one Workload says changes."""
    key = ObjectKey(_namespace(number % namespaces), f"job-{number}")
    state = {
        "name": CHECK,
        "state": "Pending",
        "message": f"{number}, {turn}",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    await admin.merge_patch(WORKLOAD, key, {"status": {"admissionChecks": [state]}}, subresource="status")


@asynccontextmanager
async def serving(config: Json) -> AsyncIterator[tuple[Json, Answer]]:
    """The API over HTTP, for everybody: a process of its own."""
    manager = parse_worker_kubeconfig(orjson.dumps(config["kubeconfig"]))
    async with KubeClient(manager, name="manager", options=WHOLE) as client, anyio.create_task_group() as tasks:
        view = ManagerView(client, utc_now, partial(read_findings, client, "kueue-system"), "kueue-system")
        places = Slots(1 << 16, 1 << 16)
        handlers = JobHandlers(view, client, OwnRights(), _nowhere, places, places, places)
        await tasks.start(view.run)
        application = web.Application()
        handlers.add_to(application)
        limits = Limits(connections=1_000)
        async with listening(application, "127.0.0.1", 0, settings="benchmark", limits=limits, streams=True) as port:
            yield {"port": port}, nothing_to_ask
        tasks.cancel_scope.cancel()


def _nowhere(name: JobName, namespace: str) -> JobLocator:
    raise NotImplementedError("nobody asks for pods")


def main(arguments: list[str]) -> None:
    """Measure, if there is a file for the result; else serve."""
    if not arguments:
        run(serving)
        return
    result = anyio.run(measured)
    Path(arguments[0]).write_text(json.dumps(result, indent=2) + "\n")
    assert math.isclose(result["events_per_change_and_watcher"], 1.0), result


if __name__ == "__main__":
    main(sys.argv[1:])
