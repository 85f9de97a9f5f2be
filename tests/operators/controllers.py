"""Starts controllers as their Deployments do: the program, its settings, and its webhooks registered where it has some.

They act as the administrator of their cluster: what a chart lets them do is not what is tested here.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

import aiohttp
import anyio
import yaml

from tests.controlplane.ports import free_port
from tests.controlplane.processes import ChildProcess
from tests.operators.starts.configuration import configuration
from tests.operators.starts.lws import lws
from tests.operators.starts.start import NAMESPACE, Place, Start, certified
from tests.operators.starts.trainer import trainer
from tests.operators.starts.training import training
from tests.operators.starts.webhooks import in_force, registered, withdrawn
from tests.operators.table import (
    APPWRAPPER,
    ARGO,
    JOBSET,
    KUBERAY,
    LWS,
    MPI,
    OLD_KUBERAY,
    TEKTON,
    TRAINER,
    TRAINING,
    Operator,
)
from tests.operators.workflows.starting_argo import argo
from tests.operators.workflows.starting_tekton import tekton

_READY_SECONDS: Final = 60.0
_LOOK_SECONDS: Final = 0.5
_MPIS_PORT: Final = 8080
"""Where the MPI operator serves its health, in every version: so a machine can run one of them at a time."""


async def _jobset(place: Place) -> Start:
    authority, port, health = certified(place.folder), free_port(), f"127.0.0.1:{place.health}"
    parts = {"internalCertManagement": {"enable": False}, "webhook": {"certDir": str(place.folder)}}
    file = configuration(place, "config.jobset.x-k8s.io/v1alpha1", port, health, parts)
    return Start(
        arguments=(f"--config={file}",),
        health=f"http://{health}/readyz",
        webhooks=registered(JOBSET, f"https://127.0.0.1:{port}", authority),
    )


async def _kuberay(place: Place) -> Start:
    health = f"127.0.0.1:{place.health}"
    arguments = ("--metrics-addr=0", f"--health-probe-bind-address={health}", "--enable-leader-election=false")
    # Ray's dashboard is asked by a service's name, which nobody resolves here: Go's client leaves that to a proxy.
    return Start(arguments=arguments, health=f"http://{health}/readyz", environment={"HTTP_PROXY": place.proxy})


async def _mpi(place: Place) -> Start:
    return Start(
        arguments=(f"--lock-namespace={NAMESPACE}", "--kube-api-qps=100", "--kube-api-burst=100"),
        health=f"http://127.0.0.1:{_MPIS_PORT}/healthz",
    )


async def _appwrapper(place: Place) -> Start:
    health, minute = f"127.0.0.1:{place.health}", 60 * 10**9
    faults = {"retryLimit": 0, "failureGracePeriod": minute // 60}
    settings = {
        "appwrapper": {"autopilot": {"monitorNodes": False, "injectAntiAffinities": False}, "faultTolerance": faults},
        "controllerManager": {"metrics": {"bindAddress": "0"}, "health": {"bindAddress": health}},
        "webhooksEnabled": False,
    }
    metadata = {"name": "appwrapper-operator-config", "namespace": NAMESPACE}
    data = {"config.yaml": yaml.safe_dump(settings)}
    await place.cluster.admin.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
    # Not `readyz`: who asks that starts a server for its webhooks, which wants certificates.
    return Start(arguments=(), health=f"http://{health}/healthz", environment={"NAMESPACE": NAMESPACE})


_STARTS: Final[Mapping[str, Callable[[Place], Awaitable[Start]]]] = {
    JOBSET.name: _jobset,
    KUBERAY.name: _kuberay,
    OLD_KUBERAY.name: _kuberay,
    MPI.name: _mpi,
    APPWRAPPER.name: _appwrapper,
    LWS.name: lws,
    TRAINING.name: training,
    TRAINER.name: trainer,
    TEKTON.name: tekton,
    ARGO.name: argo,
}


@asynccontextmanager
async def running(operator: Operator, place: Place) -> AsyncIterator[ChildProcess]:
    """Run a controller beside a cluster; one that ends is started again, as its Deployment would.

    Raises:
        BinariesMissing: it is not built.
        ProcessEnded: it exits at once.
        NotReady: it does not become ready.
    """
    program = operator.program()
    kubeconfig = place.kubeconfig()
    start = await _STARTS[operator.name](place)
    async with AsyncExitStack() as stack:
        processes = []
        for each_start in (start, *start.beside):
            path = program.with_name(each_start.program) if each_start.program else program
            command = _command(path, kubeconfig, each_start)
            process = ChildProcess(f"{path.name} of {place.cluster.name}", place.folder / f"{path.name}.log")
            stack.push_async_callback(process.kill)
            await process.start(command)
            await _ready(process, each_start)
            processes.append((process, command))
        stack.push_async_callback(withdrawn, place.cluster, start.webhooks)
        for webhook in start.webhooks:
            await place.cluster.admin.apply(webhook)
        await in_force(place.cluster, start.webhooks)
        tasks = await stack.enter_async_context(anyio.create_task_group())
        stack.callback(tasks.cancel_scope.cancel)
        for process, command in processes:
            tasks.start_soon(_kept, process, command)
        yield processes[0][0]


def _command(program: Path, kubeconfig: Path, start: Start) -> list[str]:
    """The program with its arguments, in the environment that it needs."""
    variables = {"KUBECONFIG": str(kubeconfig), "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1", **start.environment}
    return ["/usr/bin/env", *(f"{name}={value}" for name, value in variables.items()), str(program), *start.arguments]


async def _ready(process: ChildProcess, start: Start) -> None:
    async with aiohttp.ClientSession() as session:

        async def ready() -> bool:
            try:
                async with session.get(start.health) as answer:
                    return answer.status == 200 and await _listens(start.webhooks_port)
            except aiohttp.ClientError:
                return False

        await process.wait_until(ready, seconds=_READY_SECONDS)


async def _listens(port: int) -> bool:
    """Whether a server answers at a port of this machine; also if none is wanted."""
    if not port:
        return True
    try:
        stream = await anyio.connect_tcp("127.0.0.1", port)
    except OSError:
        return False
    await stream.aclose()
    return True


async def _kept(process: ChildProcess, command: list[str]) -> None:
    """Start it again whenever it has ended: one that loses its Lease ends."""
    while True:
        await anyio.sleep(_LOOK_SECONDS)
        if not process.running:
            await process.start(command)
