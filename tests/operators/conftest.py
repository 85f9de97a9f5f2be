"""The control planes that serve the kinds of all controllers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path

import aiohttp
import anyio
import pytest
import pytest_asyncio

from tests.controlplane.errors import RequestFailed
from tests.controlplane.fixtures import clusters
from tests.controlplane.interface import Cluster, ClusterFactory
from tests.integration.clearing import as_at_first
from tests.integration.planes import Planes, started
from tests.operators.cases import definitions
from tests.operators.results import RESULTS, Done, commit
from tests.operators.table import Operator

__all__ = ["clusters"]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let the command line say how much there is to do."""
    parser.addoption("--jobs", type=int, default=300, help="how many Jobs tests/operators/load runs")
    parser.addoption(
        "--result", type=Path, help="the file to write how it went into, such as docs/results/operators.json"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Note which commit a result is of."""
    if config.getoption("--result", default=None) is not None:
        RESULTS.commit = commit()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let the load go beside all others, with control planes of its own; those share theirs, and ports of the machine.

    Before xdist's own hook, which reads these marks.
    """
    for item in items:
        if item.get_closest_marker("operators") is not None:
            group = "load" if Path(__file__).with_name("load") in item.path.parents else "kinds"
            item.add_marker(pytest.mark.xdist_group(group))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note how each test ended; one that did not begin has ended so, too."""
    if report.when == "call" or (report.when == "setup" and not report.passed):
        RESULTS.tests.append(Done(report.nodeid.removeprefix("tests/operators/"), report.outcome, report.duration))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the file that was asked for."""
    file = session.config.getoption("--result", default=None)
    if file is not None:
        RESULTS.write(file)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def shared_planes(clusters: ClusterFactory, request: pytest.FixtureRequest) -> AsyncIterator[Planes]:
    """One manager and two workers for all tests, with the kinds of the controllers that their modules or rows name.

    A test of an older version establishes its definitions itself, for as long as it needs them.
    """
    wanted = [value for item in request.session.items for value in _named(item) if isinstance(value, Operator)]
    async with started(clusters, definitions(operator for operator in wanted if not operator.older)) as running:
        yield running


def _named(item: pytest.Item) -> Iterator[object]:
    """What a test's module names, and what its row of parameters holds."""
    if isinstance(item, pytest.Function):
        yield from vars(item.module).values()
        if hasattr(item, "callspec"):
            yield from item.callspec.params.values()


@pytest_asyncio.fixture(loop_scope="session")
async def planes(shared_planes: Planes) -> Planes:
    """One manager and two workers, as they were at first, whatever ran before and however it ended."""
    async with anyio.create_task_group() as tasks:
        for plane in shared_planes.all:
            tasks.start_soon(_without_kubelets, plane)
        await as_at_first(shared_planes)
        tasks.cancel_scope.cancel()
    return shared_planes


async def _without_kubelets(plane: Cluster) -> None:
    """Remove deleted pods for kubelets that do not run any more, until cancelled."""
    while True:
        with suppress(aiohttp.ClientError, RequestFailed, TimeoutError):
            await plane.admin.call("DELETE", "/api/v1/namespaces/default/pods", {"gracePeriodSeconds": 0})
        await anyio.sleep(0.5)
