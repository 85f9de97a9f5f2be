"""Everything around the controller under test: planes, proxies, simulators and the observer, started and connected."""

from __future__ import annotations

import os
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import anyio
import anyio.abc
import attrs

from multikueue.core.model.conditions import new_condition
from multikueue.core.model.kinds import CLUSTER_QUEUE
from multikueue.core.model.names import Json, ObjectKey
from multikueue.kube import KubeClient
from multikueue.protocols import ApiClient
from multikueue.sandbox.setting_up import CHECK, CLUSTER_QUEUE_NAME, connect_workers, set_up_queues
from tests.benchmarks import controller, planes, usage
from tests.benchmarks.acting import client, now
from tests.benchmarks.children import START_SECONDS, Child, child
from tests.benchmarks.components import CONTROLLER, MANAGER_KUEUE, OBSERVER, USER, WORKER_SIMULATOR, Requests
from tests.benchmarks.controller import Controller
from tests.benchmarks.observer import Observer
from tests.benchmarks.planes import Kind, Plane
from tests.benchmarks.preloading import Preload
from tests.benchmarks.scenarios import Scenario

ManagerKueue = Literal["none", "sim"]

_QUOTA = {"cpu": "1000000", "memory": "1000Ti"}
_LISTED_PER_SECOND = 150.0
"""Workloads of which a simulator may need a second to read them, before it is ready."""


@attrs.frozen(eq=False)
class Fleet:
    """What a benchmark runs on."""

    manager: Plane
    workers: list[Plane]
    ports: frozenset[int]
    """Under which the controller reaches the workers."""
    user: KubeClient
    observer: Observer
    proxy: Child | None
    children: Mapping[str, Child]
    kueues: Mapping[str, Controller]
    """Real Kueues, by worker."""
    tasks: anyio.abc.TaskGroup

    @property
    def troubled(self) -> str:
        """The worker that things go wrong with."""
        return self.workers[-1].name

    async def requests(self) -> dict[str, Requests]:
        """The requests so far, by cluster."""
        return {plane.name: await plane.requests() for plane in (self.manager, *self.workers)}

    def cpu(self) -> dict[str, float]:
        """CPU seconds so far of all that is not the controller."""
        seconds = {"harness": usage.of_processes([os.getpid()]).cpu}
        for name, part in self.children.items():
            seconds[name] = usage.of_processes([part.pid]).cpu
        if self.kueues:
            seconds["workers' Kueues"] = sum(kueue.usage().cpu for kueue in self.kueues.values())
        for role, members in (("manager", [self.manager]), ("workers", self.workers)):
            for process in self.manager.pids():
                pids = [plane.pids()[process] for plane in members if process in plane.pids()]
                seconds[f"{role} {process}"] = usage.of_processes(pids).cpu
        return seconds


@asynccontextmanager
async def fleet(
    kind: Kind, scenario: Scenario, manager_kueue: ManagerKueue, worker_kueue: str = ""
) -> AsyncIterator[Fleet]:
    """Start everything but the controller under test and the simulators; see `Fleet.simulate`."""
    async with AsyncExitStack() as stack:
        manager, workers = await stack.enter_async_context(planes.started(kind, scenario.workers, scenario.kinds))
        everything = [manager, *workers]
        observing = {
            plane.name: await stack.enter_async_context(client(plane.name, plane.kubeconfig(OBSERVER)))
            for plane in everything
        }
        proxy, kubeconfigs = await _proxied(stack, scenario, workers)
        await set_up_queues(observing[manager.name], _QUOTA, [CHECK])
        for plane in workers:
            await set_up_queues(observing[plane.name], _QUOTA)
            await _activate(observing[plane.name])
        await connect_workers(observing[manager.name], kubeconfigs)
        user = await stack.enter_async_context(client(manager.name, manager.kubeconfig(USER), connections=32))
        if scenario.preloaded:
            followed = {plane.name: observing[plane.name] for plane in workers}
            preload = Preload(observing[manager.name], followed, everything)
            await preload.create(scenario.preloaded)
        children = {} if proxy is None else {"proxy": proxy}
        if worker_kueue:
            kueues = {plane.name: await stack.enter_async_context(_kueue(worker_kueue, plane)) for plane in workers}
        else:
            kueues, children["worker simulator"] = {}, await _worker_simulator(stack, scenario, workers)
        if manager_kueue == "sim":
            children["manager's Kueue"] = await _manager_simulator(stack, scenario, manager)
        tasks = await stack.enter_async_context(anyio.create_task_group())
        stack.callback(tasks.cancel_scope.cancel)
        observer = Observer(observing[manager.name], {plane.name: observing[plane.name] for plane in workers})
        await observer.start(tasks)
        ports = frozenset(urlsplit(_cluster(kubeconfig)["server"]).port or 443 for kubeconfig in kubeconfigs.values())
        yield Fleet(manager, workers, ports, user, observer, proxy, children, kueues, tasks)


async def _activate(worker: ApiClient) -> None:
    """Say that its ClusterQueue admits, as its Kueue would: a dispatcher may ask."""
    active = new_condition("Active", status=True, reason="Ready", message="Can admit new workloads", now=now())
    patch = {"status": {"conditions": [active]}}
    await worker.merge_patch(CLUSTER_QUEUE, ObjectKey("", CLUSTER_QUEUE_NAME), patch, subresource="status")


@asynccontextmanager
async def _kueue(command: str, worker: Plane) -> AsyncIterator[Controller]:
    """A real Kueue, told which worker it is for."""
    with tempfile.TemporaryDirectory(prefix="benchmark-kueue-") as folder:
        config = worker.kubeconfig(WORKER_SIMULATOR)
        async with controller.running(command, config, Path(folder), WORKER=worker.name) as kueue:
            yield kueue


async def _worker_simulator(stack: AsyncExitStack, scenario: Scenario, workers: list[Plane]) -> Child:
    life = {
        "changes": scenario.changes,
        "interval": scenario.interval,
        "finish": scenario.ends,
        "pods": scenario.pods,
    }
    config = {"kubeconfigs": {plane.name: plane.kubeconfig(WORKER_SIMULATOR) for plane in workers}, **life}
    return await stack.enter_async_context(
        child("tests.benchmarks.worker_simulator", config, seconds=_start_seconds(scenario))
    )


async def _manager_simulator(stack: AsyncExitStack, scenario: Scenario, manager: Plane) -> Child:
    config = {"kubeconfig": manager.kubeconfig(MANAGER_KUEUE)}
    return await stack.enter_async_context(
        child("tests.benchmarks.manager_simulator", config, seconds=_start_seconds(scenario))
    )


def _start_seconds(scenario: Scenario) -> float:
    return START_SECONDS + scenario.preloaded / _LISTED_PER_SECOND


async def _proxied(
    stack: AsyncExitStack, scenario: Scenario, workers: list[Plane]
) -> tuple[Child | None, dict[str, Json]]:
    """The kubeconfigs for the controller; only workers that are far away or in trouble are behind a proxy."""
    kubeconfigs = {plane.name: plane.kubeconfig(CONTROLLER) for plane in workers}
    behind = list(kubeconfigs) if scenario.rtt else [workers[-1].name] if scenario.trouble else []
    if not behind:
        return None, kubeconfigs
    addresses = {name: urlsplit(_cluster(kubeconfigs[name])["server"]) for name in behind}
    routes = {name: {"host": address.hostname, "port": address.port} for name, address in addresses.items()}
    config = {"routes": routes, "delay": scenario.rtt / 2000}
    proxy = await stack.enter_async_context(child("tests.benchmarks.proxy", config))
    for name in behind:
        _cluster(kubeconfigs[name])["server"] = f"https://127.0.0.1:{proxy.ready['ports'][name]}"
    return proxy, kubeconfigs


def _cluster(kubeconfig: Json) -> Json:
    cluster: Json = kubeconfig["clusters"][0]["cluster"]
    return cluster
