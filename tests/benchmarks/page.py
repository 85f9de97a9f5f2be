"""The page of a large fleet in a browser: how soon it shows something, and what keeping it open costs.

`python -m tests.benchmarks.page docs/results/page.json` measures 20,000 jobs on 100 workers in Debian's Chromium. The
API and the page are served by a process of their own; the manager is a sandbox, and what workers have is published as
the daemon does. The browser runs on the same machine.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import anyio
import orjson

from multikueue.core.inventory.names import MAX_CLUSTERS
from multikueue.core.model.conditions import timestamp
from multikueue.core.model.kinds import (
    ADMISSION_CHECK,
    CLUSTER_QUEUE,
    CONFIG_MAP,
    LOCAL_QUEUE,
    MULTIKUEUE_CLUSTER,
    MULTIKUEUE_CONFIG,
    NAMESPACE,
    RESOURCE_FLAVOR,
    WORKLOAD,
)
from multikueue.core.model.names import Json, ObjectKey
from multikueue.kube import parse_worker_kubeconfig
from multikueue.runtime.loop import utc_now
from multikueue.sandbox import setting_up
from multikueue.sandbox.apiserver import ApiServer, DirectClient
from multikueue.sandbox.kinds import BATCH_JOB, define
from multikueue.testing import job, stored, workload
from multikueued.dashboard.command import dashboard_of
from multikueued.reading.asked import ReportTarget
from multikueued.reports.published import Published, config_map, written
from multikueued.reports.worker_facts import WorkerFacts
from multikueued.reports.worker_queues import QueuesOnWorker
from tests.benchmarks.answering import Answer, nothing_to_ask, run
from tests.benchmarks.children import child
from tests.benchmarks.machine import machine
from tests.benchmarks.usage import of_processes
from tests.runtime.fleet import CRDS

JOBS, WORKERS, NAMESPACES = 20_000, 100, 20
OPEN: Final = 30.0
"""Seconds for which a view is kept open, to see what that costs."""
IDLE: Final = 20.0
playwright: Any = import_module("playwright.async_api")
"""Where types are checked it is not installed."""


async def measured(jobs: int = JOBS, workers: int = WORKERS, seconds: float = OPEN) -> Json:
    """What the page costs."""
    async with ApiServer("manager", tokens={"t": "admin"}) as server:
        define(server.registry, (BATCH_JOB,), CRDS)
        await _filled(DirectClient(server), jobs, workers)
        async with (
            child("tests.benchmarks.page", {"kubeconfig": server.kubeconfig("admin")}, seconds=120) as api,
            playwright.async_playwright() as driver,
        ):
            browser = await driver.chromium.launch(
                executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
            )
            page = await browser.new_page(viewport={"width": 1400, "height": 900})
            page.set_default_timeout(60_000)
            await page.goto(api.ready["address"])
            await page.locator(".tile").first.wait_for()  # the browser itself is warm
            views = {
                name: await _view(page, api.pid, route, shown, seconds)
                for name, (route, shown) in {
                    "overview": ("#/overview", ".tile"),
                    "fleet": ("#/fleet", "table"),
                    "time": ("#/time?seconds=3600", "svg.time rect"),
                    "jobs": ("#/jobs", "table.two"),
                }.items()
            }
            await browser.close()
    return {"jobs": jobs, "workers": workers, "seconds": seconds, "views": views, "machine": machine()}


async def _view(page: Any, server: int, route: str, shown: str, seconds: float) -> Json:
    """Load the page anew at a route: when it shows something, and what it costs while it is kept open."""
    sizes: list[int] = []

    async def count(answer: Any) -> None:
        if "/apis/" in answer.url and "watch=true" not in answer.url:
            with suppress(playwright.Error):  # of the view before
                sizes.append(len(await answer.body()))

    await page.evaluate("route => { location.hash = route; }", route)
    await page.locator(shown).first.wait_for()
    await page.goto("about:blank")
    await anyio.sleep(IDLE)  # until no answer is kept any more
    page.on("response", count)
    began = anyio.current_time()
    await page.go_back()
    await page.locator(shown).first.wait_for()
    first = anyio.current_time() - began
    if route == "#/jobs":
        await page.get_by_text(f"{JOBS} jobs").wait_for()
    whole = anyio.current_time() - began
    before, loaded = of_processes([server]), sum(sizes)
    sizes.clear()
    await anyio.sleep(seconds)
    page.remove_listener("response", count)
    cost = of_processes([server]).cpu - before.cpu
    return {
        "first_picture_ms": round(1000 * first),
        "all_of_it_ms": round(1000 * whole),
        "kb_at_first": round(loaded / 1000, 1),
        "refreshes": len(sizes),
        "kb_per_refresh": round(sum(sizes) / 1000 / len(sizes), 1) if sizes else 0,
        "server_cpu_percent_of_a_core": round(100 * cost / seconds, 1),
    }


async def _filled(admin: DirectClient, jobs: int, workers: int) -> None:
    """Queues of `MAX_CLUSTERS` workers each; half of the jobs ended within the last hours."""
    names = [f"worker-{number:03}" for number in range(workers)]
    await admin.create(NAMESPACE, setting_up.namespace(setting_up.KUEUE_NAMESPACE))
    await admin.create(RESOURCE_FLAVOR, setting_up.resource_flavor())
    quota = {"cpu": "400", "memory": "1600Gi", "nvidia.com/gpu": "64"}
    pools = [names[begin : begin + MAX_CLUSTERS] for begin in range(0, workers, MAX_CLUSTERS)]
    for number, pool in enumerate(pools):
        name = f"pool-{number}"
        await admin.create(MULTIKUEUE_CONFIG, {**setting_up.config(pool), "metadata": {"name": name}})
        await admin.create(ADMISSION_CHECK, setting_up.admission_check(name=name, named=name))
        await admin.create(CLUSTER_QUEUE, setting_up.cluster_queue(quota, [name], name))
    for name in names:
        await admin.create(MULTIKUEUE_CLUSTER, setting_up.cluster(name))
        active = _condition("Active", 9000)
        key = ObjectKey("", name)
        await admin.merge_patch(MULTIKUEUE_CLUSTER, key, {"status": {"conditions": [active]}}, subresource="status")
    for number in range(NAMESPACES):
        metadata = {"name": f"team-{number}"}
        await admin.create(NAMESPACE, {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
        await admin.create(LOCAL_QUEUE, setting_up.local_queue(f"team-{number}", of=f"pool-{number % len(pools)}"))
    queue = setting_up.cluster_queue(quota, name="cq")
    queue["status"] = {"flavorsUsage": [{"name": setting_up.FLAVOR, "resources": [{"name": "cpu", "total": "300"}]}]}
    local = {ObjectKey(f"team-{number}", "user-queue"): "cq" for number in range(NAMESPACES)}
    facts = {name: WorkerFacts(name, queues=QueuesOnWorker(local, {"cq": queue})) for name in names}
    documents = {
        name: written(Published(worker_facts, quota_at=utc_now()), 8192) for name, worker_facts in facts.items()
    }
    await admin.create(CONFIG_MAP, config_map(setting_up.KUEUE_NAMESPACE, "multikueue-findings", documents))
    for number in range(jobs):
        await _add(admin, number, pools)


async def _add(admin: DirectClient, number: int, pools: list[list[str]]) -> None:
    namespace, pool = f"team-{number % NAMESPACES}", number % NAMESPACES % len(pools)
    made = workload(stored(job(f"train-{number}", namespace=namespace)), quota=False)
    made["metadata"]["name"] = f"job-{number}"
    for field in ("uid", "resourceVersion", "creationTimestamp"):
        made["metadata"].pop(field, None)
    made.pop("status", None)
    key = ObjectKey.of(await admin.create(WORKLOAD, made))
    if number % 4 == 3:
        return  # it waits for quota
    worker = pools[pool][number % len(pools[pool])]
    begin = 20 + number % 7000
    usage = {"name": "main", "flavors": {"cpu": setting_up.FLAVOR}, "resourceUsage": {"cpu": "1"}, "count": 1}
    conditions = [_condition("QuotaReserved", begin + 5), _condition("Admitted", begin)]
    if number % 4:
        conditions.append(_condition("Finished", begin // 2, "Failed" if number % 40 == 1 else "Succeeded"))
    status = {
        "admission": {"clusterQueue": f"pool-{pool}", "podSetAssignments": [usage]},
        "clusterName": worker,
        "conditions": conditions,
        "admissionChecks": [
            {"name": f"pool-{pool}", "state": "Ready", "message": f"{worker} has it", "lastTransitionTime": _ago(begin)}
        ],
    }
    await admin.merge_patch(WORKLOAD, key, {"status": status}, subresource="status")


def _condition(kind: str, ago: float, reason: str = "") -> Json:
    return {
        "type": kind,
        "status": "True",
        "reason": reason or kind,
        "message": "told",
        "lastTransitionTime": _ago(ago),
    }


def _ago(seconds: float) -> str:
    return timestamp(utc_now() - timedelta(seconds=seconds))


@asynccontextmanager
async def serving(config: Json) -> AsyncIterator[tuple[Json, Answer]]:
    """The page with its API: a process of its own."""
    manager: Any = parse_worker_kubeconfig(orjson.dumps(config["kubeconfig"]))
    target = ReportTarget(manager, "default", setting_up.KUEUE_NAMESPACE)
    async with dashboard_of(target) as local:
        yield {"address": local.address}, nothing_to_ask


def main(arguments: list[str]) -> None:
    """Measure, if there is a file for the result; else serve."""
    if not arguments:
        run(serving)
        return
    result = anyio.run(measured)
    Path(arguments[0]).write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
