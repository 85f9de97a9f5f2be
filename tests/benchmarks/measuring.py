"""Running a scenario: the load, the wait for its end, and what was used meanwhile."""

from __future__ import annotations

import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import attrs

from multikueue.core.model.kinds import JOB
from multikueue.core.model.names import Json
from tests.benchmarks import controller, moments, objects
from tests.benchmarks.components import BACKGROUND, CONTROLLER, READS, WATCHES, Requests
from tests.benchmarks.controller import Controller
from tests.benchmarks.fleet import Fleet, ManagerKueue, fleet
from tests.benchmarks.moments import Moments
from tests.benchmarks.planes import Kind
from tests.benchmarks.scenarios import Scenario
from tests.controlplane.errors import NotReady

_ACTIVE_SECONDS = 120.0
_CLEAN_SECONDS = 20.0
_FLAP_SECONDS, _DOWN_SECONDS = 5.0, 0.5


@attrs.frozen
class Options:
    """How to measure."""

    kind: Kind = "sandbox"
    manager_kueue: ManagerKueue = "sim"
    command: str = attrs.field(factory=controller.default_command)
    timeout: float = 300.0
    """Seconds for all jobs to end."""
    worker_kueue: str = ""
    """A real Kueue for each worker, a shell command; empty: the worker simulator."""
    dispatcher: str = ""
    """Of our daemon, if `command` names another than its default."""


@attrs.define
class Measured:
    """What one run has shown."""

    scenario: Scenario
    options: Options
    moments: Moments
    seconds: float = 0.0
    """From the first job to the last copy removed."""
    requests: dict[str, Requests] = attrs.field(factory=dict)
    """By cluster."""
    controller_cpu: float = 0.0
    controller_system: float = 0.0
    """CPU seconds of the controller, and those of them in the kernel."""
    peak_memory: int = 0
    decisions: int | None = None
    """Reconciles of Workloads, each with a snapshot and a plan; None: the controller under test does not tell."""
    cpu: dict[str, float] = attrs.field(factory=dict)
    """CPU seconds of everything else."""
    complaint: str = ""
    """What did not happen in time."""
    extra: Json = attrs.field(factory=dict)
    """What only some scenarios measure."""


async def measure(scenario: Scenario, options: Options) -> Measured:
    """Run a scenario once.

    Raises:
        ControlPlaneError: something around the measurement does not work.
    """
    with tempfile.TemporaryDirectory(prefix="benchmark-controller-") as folder:
        async with (
            fleet(options.kind, scenario, options.manager_kueue) as around,
            controller.running(options.command, around.manager.kubeconfig("controller"), Path(folder)) as tested,
        ):
            await until_active(around, tested)
            if scenario.rest:
                await settled(around, rest=scenario.rest, at_most=_ACTIVE_SECONDS)
            measured = Measured(scenario, options, around.observer.moments)
            async with spending(around, tested, measured):
                await load(around, tested, measured)
                await settled(around)
            return measured


async def until_active(around: Fleet, tested: Controller) -> None:
    """Wait until the controller under test says that it can work."""

    def active() -> bool:
        tested.check()
        return around.observer.active()

    try:
        await around.observer.until(
            active, seconds=_ACTIVE_SECONDS, otherwise="the AdmissionCheck did not become Active"
        )
    except NotReady as error:
        raise NotReady(f"{error}; the end of the controller's log:\n{controller.tail(tested.log)}") from None


@asynccontextmanager
async def spending(around: Fleet, tested: Controller, measured: Measured) -> AsyncIterator[None]:
    """Note what is used and asked while the block runs."""
    requests, cpu, own, began = await around.requests(), around.cpu(), tested.usage(), time.perf_counter()
    decided = await tested.decisions()
    yield
    measured.seconds = time.perf_counter() - began
    if decided is not None and (now := await tested.decisions()) is not None:
        measured.decisions = now - decided
    spent = tested.usage()
    measured.controller_cpu, measured.peak_memory = spent.cpu - own.cpu, spent.peak_memory
    measured.controller_system = spent.system - own.system
    measured.cpu = {name: seconds - cpu[name] for name, seconds in around.cpu().items()}
    measured.requests = {name: count - requests[name] for name, count in (await around.requests()).items()}


async def settled(around: Fleet, *, rest: float = 1.0, at_most: float = 15.0) -> None:
    """Wait until the controller under test asks for nothing more: events, for one, are sent late."""
    before = -1
    with anyio.move_on_after(at_most):
        while (now := controller_writes(await around.requests())) != before:
            before = now
            await anyio.sleep(rest)


def controller_writes(requests: dict[str, Requests]) -> int:
    """How often the controller under test has written, but for leases."""
    return sum(
        count
        for asked in requests.values()
        for (component, verb, resource), count in asked.items()
        if component == CONTROLLER and verb not in READS | WATCHES and resource not in BACKGROUND
    )


async def load(around: Fleet, tested: Controller, measured: Measured) -> None:
    """Submit all jobs, and wait until they have ended and nothing of them is left; else the complaint says what is."""
    scenario, observer = measured.scenario, around.observer

    def ended() -> bool:
        tested.check()
        return observer.moments.count(moments.FINISHED) >= scenario.jobs

    async with anyio.create_task_group() as tasks:
        if scenario.trouble:
            tasks.start_soon(_trouble, around, scenario)
        await submit(around, scenario)
        try:
            await observer.until(ended, seconds=measured.options.timeout, otherwise="not all jobs have ended")
            # `flap` may be cut off at the end, `hung` never lets go of its copies
            troubled = frozenset({around.troubled} if scenario.trouble == "hung" else ())
            await observer.until(
                lambda: observer.copies(troubled) == 0, seconds=_CLEAN_SECONDS, otherwise="copies are left on workers"
            )
        except NotReady as error:
            measured.complaint = f"{error}; {observer.moments.count(moments.FINISHED)} of {scenario.jobs} ended"
        tasks.cancel_scope.cancel()


async def submit(around: Fleet, scenario: Scenario) -> None:
    """Submit all jobs, at once or at the scenario's rate."""
    limiter, seen = anyio.CapacityLimiter(scenario.submitters), around.observer.moments

    async def create(number: int) -> None:
        async with limiter:
            job = objects.job(number)
            seen.note(job["metadata"]["name"], moments.SUBMITTED, time.perf_counter())
            await around.user.create(JOB, job)

    began = anyio.current_time()
    async with anyio.create_task_group() as tasks:
        for number in range(scenario.jobs):
            if scenario.rate:
                await anyio.sleep_until(began + number / scenario.rate)
            tasks.start_soon(create, number)


async def _trouble(around: Fleet, scenario: Scenario) -> None:
    """Let the last worker hang for good, or drop its connections every 5 s."""
    assert around.proxy is not None
    if scenario.trouble == "hung":
        await around.proxy.ask(do="hang", route=around.troubled)
        return
    while True:
        await anyio.sleep(_FLAP_SECONDS)
        await around.proxy.ask(do="cut", route=around.troubled, seconds=_DOWN_SECONDS)
