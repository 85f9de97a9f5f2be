"""`mirrors`: what it costs to show the pods of runs on the manager.

A burst of jobs whose workers make a pod of each, with mirrors off and then on; so many pods at once that run on, also
off and on: how soon all are shown, and what memory they take; and followers of logs, see `followers`.
"""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Final

import anyio
import attrs

from multikueue.core.model.kinds import POD
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import annotations_of, dig, uid
from multikueue.kube import Informer, KubeClient
from multikueued.mirror_names import MIRROR, PROOF, WORKER_POD_UID
from multikueued.mirrors.mirror import RUNS_POD
from multikueued.mirrors.node import NODE
from multikueued.rbac.mirrors import mirror_policy_objects
from multikueued.rbac.policies import POLICY, TAKING
from multikueued.settings.config import Settings
from tests.benchmarks import controller, moments
from tests.benchmarks.components import CONTROLLER, READS, WATCHES
from tests.benchmarks.controller import Controller
from tests.benchmarks.fleet import Fleet, fleet
from tests.benchmarks.followers import measure_followers
from tests.benchmarks.measuring import Measured, Options, load, settled, spending, submit, until_active
from tests.benchmarks.moments import quantiles
from tests.benchmarks.scenarios import Scenario
from tests.controlplane.errors import NotReady
from tests.controlplane.polling import poll_until

_OF_A_JOB: Final = 100
"""Pods of each job in the second part: `mirrorPods.maxPodsPerJob`."""
_REST: Final = 3.0
"""Seconds without a write of the controller: then it has settled."""
_SETTLED: Final = 60.0
"""The same at most."""
_ACCOUNTS: Final = {"sandbox": CONTROLLER, "real": f"system:serviceaccount:default:{CONTROLLER}"}
"""What the controller is to the manager, by kind of control plane."""
_LOOK: Final = 0.2


@attrs.define(eq=False)
class Shown:
    """When pods on workers, and mirrors with their first status, were seen."""

    pods: dict[str, float] = attrs.field(factory=dict)
    """By UID."""
    mirrors: dict[str, float] = attrs.field(factory=dict)
    """By the UID of the worker's pod."""

    @property
    def both(self) -> list[str]:
        """Pods that were mirrored."""
        return [pod for pod in self.pods if pod in self.mirrors]

    def pod(self, _key: ObjectKey, _old: Json | None, new: Json | None) -> None:
        """A pod of a worker has changed."""
        if new is not None:
            self.pods.setdefault(uid(new), time.perf_counter())

    def mirror(self, _key: ObjectKey, _old: Json | None, new: Json | None) -> None:
        """A pod of the manager has changed."""
        if new is not None and annotations_of(new).get(PROOF) and dig(new, "status", "phase"):
            self.mirrors.setdefault(annotations_of(new).get(WORKER_POD_UID) or "", time.perf_counter())

    def numbers(self) -> Json:
        """How many, and how soon."""
        both = self.both
        return {
            "pods": len(self.pods),
            "mirrored": len(both),
            "pod_mirrored_ms": quantiles(self.mirrors[pod] - self.pods[pod] for pod in both),
        }


@attrs.frozen
class During:
    """How long things take."""

    followed: float = 30.0
    """Seconds for which the CPU of who answers the followers is measured."""


async def measure_mirrors(scenario: Scenario, options: Options, during: During = During()) -> Measured:
    """Run both parts with mirrors off and on, then the followers. What is told of jobs is of the burst with mirrors on.

    Args:
        scenario: how many jobs, and pods.
        options: of the run; its command shows pods.
        during: how long the followers follow.

    Raises:
        ControlPlaneError: something around the measurement does not work.
    """
    off = attrs.evolve(options, command=controller.default_command(dispatcher=options.dispatcher))
    many = attrs.evolve(
        scenario, count=math.ceil(scenario.mirrored / _OF_A_JOB), pods=min(_OF_A_JOB, scenario.mirrored), endless=True
    )
    numbers: Json = {"burst": {}, "many": {}}
    complaints = list[str]()
    for name, chosen, on in (("off", off, False), ("on", options, True)):
        measured, numbers["burst"][name] = await _burst(scenario, chosen, on=on)
        complaints += [f"burst, {name}: {measured.complaint}"] * bool(measured.complaint)
    for name, chosen, on in (("off", off, False), ("on", options, True)):
        numbers["many"][name] = await _many(many, chosen, on=on)
        complaints += [f"many, {name}: {why}" for why in filter(None, (numbers["many"][name].pop("complaint"),))]
    numbers["followers"] = await measure_followers(during.followed)
    measured.complaint = "; ".join(complaints)
    measured.extra["mirrors"] = numbers | _compared(numbers, scenario.mirrored)
    return measured


def _compared(numbers: Json, pods: int) -> Json:
    burst, many = numbers["burst"], numbers["many"]
    ready = [burst[name]["created_ready_ms"] for name in ("on", "off")]
    held = [many[name]["memory_mb"] for name in ("on", "off")]
    return {
        **{f"{rank}_ratio": round(ready[0][rank] / ready[1][rank], 3) for rank in ("p50", "p99") if all(ready)},
        "not_mirrored": burst["on"]["pods"] - burst["on"]["mirrored"],
        "memory_mb_per_1000": round((held[0] - held[1]) / pods * 1000, 2),
    }


async def _burst(scenario: Scenario, options: Options, *, on: bool) -> tuple[Measured, Json]:
    async with _running(scenario, options, on=on) as (around, tested, shown):
        measured = Measured(scenario, options, around.observer.moments)
        async with spending(around, tested, measured):
            await load(around, tested, measured)
            await settled(around, rest=_REST)
        seen = measured.moments
        asked = _asked(measured)
        return measured, {
            "ready": seen.count(moments.READY),
            "created_ready_ms": quantiles(seconds for _, seconds in seen.latencies("created_ready")),
            **shown.numbers(),
            "requests_per_pod": round(sum(asked.values()) / max(1, len(shown.pods)), 2),
            "requests": asked,
            "controller_cpu_s": round(measured.controller_cpu, 2),
            "peak_memory_mb": round(measured.peak_memory / 1e6, 1),
        }


def _asked(measured: Measured) -> Json:
    """What the controller has asked of the manager about pods, by verb; but for watches, and what these begin with."""
    manager = measured.requests["manager"]
    verbs = {verb for _, verb, _ in manager} - READS - WATCHES
    return {
        verb: count
        for verb in sorted(verbs)
        if (
            count := sum(n for (who, how, what), n in manager.items() if (who, how, what) == (CONTROLLER, verb, "pods"))
        )
    }


async def _many(scenario: Scenario, options: Options, *, on: bool) -> Json:
    wanted = scenario.count * scenario.pods
    async with _running(scenario, options, on=on) as (around, tested, shown):
        measured = Measured(scenario, options, around.observer.moments)
        complaint = ""
        async with spending(around, tested, measured):
            await submit(around, scenario)
            try:
                await _until(shown, tested, wanted, options.timeout, on=on)
            except NotReady as error:
                complaint = str(error)
            await settled(around, rest=_REST, at_most=_SETTLED)
        began, made = min(shown.pods.values(), default=0.0), max(shown.pods.values(), default=0.0)
        return {
            **shown.numbers(),
            "pods_made_s": round(made - began, 2),
            "all_mirrored_s": round(max(shown.mirrors.values(), default=began) - began, 2),
            "memory_mb": round(tested.usage().memory / 1e6, 1),
            "controller_cpu_s": round(measured.controller_cpu, 2),
            "manager_cpu_s": round(
                sum(spent for name, spent in measured.cpu.items() if name.startswith("manager ")), 2
            ),
            "complaint": complaint,
        }


async def _has_nodes(manager: KubeClient, workers: int) -> bool:
    return len((await manager.list(NODE)).items) >= workers


async def _until(shown: Shown, tested: Controller, wanted: int, seconds: float, *, on: bool) -> None:
    with anyio.move_on_after(seconds):
        while len(shown.both if on else shown.pods) < wanted:
            tested.check()
            await anyio.sleep(_LOOK)
        return
    raise NotReady(
        f"{len(shown.pods)} of {wanted} pods were made, {len(shown.both)} are mirrored (after {seconds:g} s)"
    )


@asynccontextmanager
async def _running(scenario: Scenario, options: Options, *, on: bool) -> AsyncIterator[tuple[Fleet, Controller, Shown]]:
    """A fleet whose manager has the policy that mirrors need, and the controller, settled."""
    with tempfile.TemporaryDirectory(prefix="benchmark-controller-") as folder:
        async with fleet(options.kind, scenario, options.manager_kueue) as around:
            manager, shown = around.observer.manager, Shown()
            objects = mirror_policy_objects(Settings().mirrors_policy, _ACCOUNTS[options.kind])
            for resource, obj in zip((POLICY, TAKING), objects, strict=True):
                await manager.create(resource, obj)
            watched = [Informer(manager, POD, label_selector=MIRROR, on_change=shown.mirror)]
            for worker in around.observer.workers.values():
                watched.append(Informer(worker, POD, label_selector=f"{RUNS_POD}=true", on_change=shown.pod))
            for informer in watched:
                around.tasks.start_soon(informer.run)
                await informer.wait_synced()
            config = around.manager.kubeconfig(CONTROLLER)
            async with controller.running(options.command, config, Path(folder)) as tested:
                await until_active(around, tested)
                if on:
                    await poll_until(
                        partial(_has_nodes, manager, scenario.workers),
                        seconds=options.timeout,
                        otherwise="mirrors did not begin",
                    )
                await settled(around, rest=_REST, at_most=_SETTLED)
                yield around, tested, shown
