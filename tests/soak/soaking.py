"""One soak: hours of churn on virtual time, and a sample at the end of each."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import ExitStack, contextmanager
from typing import Any, Final
from unittest import mock

import anyio
import attrs
import structlog

from multikueue.core.model import copies
from multikueue.core.model.workload_facts import COPIES, WORKLOADS
from multikueue.kube.informers import shared_parts
from multikueued.metrics.hooks import Metrics
from tests.simulation.virtual_time import run_on_virtual_time
from tests.soak.churn import Churn
from tests.soak.fleet import build_daemon, build_world, fill_series
from tests.soak.sampling import sample

SHARED_BYTES: Final = 4 << 10
"""The bound of what each informer knows of equal parts. The real one takes days to be reached by so few jobs, and looks
like a leak until then."""
KNOWN_VERSIONS: Final = 16
"""As many objects have what was read of them kept, for the same reason."""
FILLED_AFTER: Final = 48
"""Hours after which all kinds of requests have been made."""


@attrs.frozen
class Soak:
    """What became of one."""

    samples: tuple[dict[str, float], ...]
    """A sample for each hour."""
    left_over: tuple[str, ...]
    """What users deleted and was still there at the end of the hour after. (A worker that is removed while it cannot be
    reached keeps what it has, until the same server is connected again.)"""
    errors: tuple[str, ...]
    """Exceptions that were logged with a stack: bugs."""
    requests: int
    """How many the daemon sent."""


def soak(
    hours: int, *, seed: int = 1, jobs_per_hour: int = 6, on_hour: Callable[[int, dict[str, float]], None] | None = None
) -> Soak:
    """Run a fleet for so many virtual hours.

    Args:
        hours: at least 2.
        seed: of what happens.
        jobs_per_hour: how many are submitted.
        on_hour: called with each hour and its sample.
    """
    with ExitStack() as bounds:
        bounds.enter_context(mock.patch.object(shared_parts, "KEPT_BYTES", SHARED_BYTES))
        for known in (COPIES, WORKLOADS, copies._DIGESTS, copies._SHAPES):
            bounds.enter_context(mock.patch.object(known, "size", KNOWN_VERSIONS))
        errors = bounds.enter_context(_errors())
        return run_on_virtual_time(_soak, hours, seed, jobs_per_hour, on_hour, errors)


async def _soak(
    hours: int,
    seed: int,
    jobs_per_hour: int,
    on_hour: Callable[[int, dict[str, float]], None] | None,
    errors: list[str],
) -> Soak:
    world, metrics = build_world(seed), Metrics("standalone")
    daemon = build_daemon(world, metrics)
    churn = Churn(world, jobs_per_hour, random.Random(f"churn/{seed}"))
    samples: list[dict[str, float]] = []
    left, remaining = list[str](), set[str]()
    async with anyio.create_task_group() as tasks:
        await tasks.start(world.run)
        await tasks.start(daemon.run)
        metrics.began(daemon.statistics, daemon.cluster.worker_statuses)
        await churn.start()
        for hour in range(1, hours + 1):
            await churn.run_hour()
            left_over = churn.left_over()
            if hour == FILLED_AFTER:
                fill_series(metrics)
            left += [f"hour {hour}: {obj}" for obj in left_over if obj in remaining]
            remaining = set(left_over)
            samples.append(sample(daemon, metrics))
            if on_hour is not None:
                on_hour(hour, samples[-1])
        tasks.cancel_scope.cancel()
    requests = sum(place.link.requests.total() for place in world.clusters)
    return Soak(tuple(samples), tuple(left), tuple(errors), requests)


@contextmanager
def _errors() -> Iterator[list[str]]:
    """Collect what is logged with a stack."""
    errors: list[str] = []

    def capture(logger: Any, name: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        del logger, name
        if "exception" in event:
            errors.append(str(event["exception"]))
        raise structlog.DropEvent

    structlog.configure(processors=[structlog.processors.format_exc_info, capture], cache_logger_on_first_use=False)
    try:
        yield errors
    finally:
        structlog.reset_defaults()
