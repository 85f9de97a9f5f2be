"""Removals that one daemon begins and another goes on with: for some kinds, each reason with a job of its own."""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Final

import anyio
import attrs

from multikueue.core.model.kinds import JOB, WORKLOAD
from multikueue.core.model.labels import RETRIABLE_ANNOTATION
from multikueue.core.model.names import Resource
from multikueue.core.model.objects import uid
from multikueue.core.model.workloads import is_evicted
from multikueue.sandbox.jobs.deciding import TRAP_ANNOTATION
from multikueue.sandbox.kinds.pods import POD_RESOURCE
from tests.kinds import endings
from tests.kinds.cases import Case, cases
from tests.kinds.endings import Ending
from tests.kinds.ground import Ground
from tests.kinds.runs import Life

KINDS: Final = ("job", "jobset", "podgroup")
TRAP: Final = 15.0
"""Seconds for which pods go on after SIGTERM: a daemon is gone, and another there, before that."""
FINALIZER: Final = "example.com/slow"


async def _nothing(ending: Ending) -> None:
    """It runs on."""
    del ending


async def _deactivated(ending: Ending) -> None:
    await ending.activate(False)


async def _held(ending: Ending) -> None:
    """Deleted on the manager, while a finalizer of somebody's holds its copies."""
    worker, kind = ending.ground.workers[ending.worker], ending.case.kind
    held = ending.ground.jobs(worker, kind, ending.name)
    await endings.change_finalizers(worker, kind, held, lambda those: [*those, FINALIZER])
    await endings.deleted(ending)


REASONS: Final[Mapping[str, Callable[[Ending], Awaitable[None]]]] = {
    "runs": _nothing,
    "evicted": endings.evicted_on_the_manager,
    "displaced": endings.evicted_by_its_worker,
    "deactivated": _deactivated,
    "moved": endings.moved,
    "deleted": endings.deleted,
    "held": _held,
}
GONE: Final = ("deleted", "held")
"""Nothing runs again."""


def rows() -> list[Case]:
    """The kinds."""
    return [case for case in cases() if case.name in KINDS]


def resources() -> list[Resource]:
    """What a daemon finds of another: Workloads, jobs and pods."""
    return list(dict.fromkeys((WORKLOAD, JOB, POD_RESOURCE, *(case.kind.resource for case in rows()))))


def name_of(case: Case, reason: str) -> str:
    """The job's."""
    return f"{case.name}-{reason}"


async def begin(ground: Ground, case: Case) -> None:
    """Have a job run for each reason, and begin to take it away."""
    for reason in REASONS:
        noted = {TRAP_ANNOTATION: f"{TRAP:g}s", RETRIABLE_ANNOTATION: "true"}  # else Kueue finishes groups that end
        await ground.submit(case.kind, name_of(case, reason), duration="1h", annotations=noted)
    for reason in REASONS:
        name = name_of(case, reason)
        await ground.running(case.kind, name)
        await ground.until(partial(endings.have_pods, ground, name), partial(ground.story, case.kind, name))
    for reason, act in REASONS.items():
        name = name_of(case, reason)
        worker = await ground.running(case.kind, name)
        await act(Ending(ground, case, name, ground.jobs(ground.manager, case.kind, name), worker))


async def finish(ground: Ground, case: Case) -> dict[str, str]:
    """Wait until each has gone, or runs again; and nothing is left of what is gone. Returns what went wrong, by job."""
    before = {uid(life.last) for life in ground.runs.named(name_of(case, "runs")) if life.resource == POD_RESOURCE}
    await Ending(ground, case, name_of(case, "deactivated"), [], "").activate(True)
    wrong: dict[str, str] = {}

    async def goes(reason: str) -> None:
        try:
            await _finish(ground, case, reason)
        except AssertionError as error:
            wrong[name_of(case, reason)] = str(error)

    async with anyio.create_task_group() as tasks:
        for reason in REASONS:
            tasks.start_soon(goes, reason)
    assert {uid(pod.last) for pod in _pods(ground, name_of(case, "runs"))} == before, "it was stopped, or runs twice"
    return wrong


def _pods(ground: Ground, name: str) -> list[Life]:
    """Those that have not ended."""
    return [run for run in ground.runs.named(name) if run.resource == POD_RESOURCE and run.ended is None]


async def _finish(ground: Ground, case: Case, reason: str) -> None:
    name, kind = name_of(case, reason), case.kind

    def runs() -> bool:
        pods, workloads = _pods(ground, name), ground.workloads_of(kind, name)
        return bool(pods and workloads) and all(pod.runs for pod in pods) and not any(map(is_evicted, workloads))

    if reason not in GONE:
        await ground.until(runs, partial(ground.story, kind, name))
        await ground.running(kind, name)
        return
    await ground.until(lambda: not _pods(ground, name), partial(ground.story, kind, name))
    for worker in ground.workers.values():
        held = ground.jobs(worker, kind, name)
        await endings.change_finalizers(
            worker, kind, held, lambda those: [finalizer for finalizer in those if finalizer != FINALIZER]
        )
    await ground.cleaned(kind, name)


@attrs.frozen
class Overlap:
    """A run that began while pods of another were there."""

    name: str
    seconds: float

    def __str__(self) -> str:
        return f"{self.name} began {self.seconds:.1f} s before the last pod of its earlier run was gone"


def overlaps(ground: Ground, case: Case) -> list[Overlap]:
    """Of all runs that there were."""
    overlapping = []
    for name, runs in ground.runs.of(f"{case.name}-").items():
        for earlier, later in itertools.pairwise(runs):
            if later.began < earlier.ended:
                overlapping.append(Overlap(name, earlier.ended - later.began))
    return overlapping
