"""A program's own manager, tested with clusters in memory: the guide's test, on virtual time."""

from __future__ import annotations

from typing import Any, NoReturn

import pytest

from multikueue import BUILTIN, AdapterRegistry, ClusterConfig, Manager, ManagerSettings, NotSent, PlanSettings
from multikueue.testing import InMemoryCluster, LoopClock, job, running, until
from tests.docs.blocks import ROOT, blocks


def unreachable(name: str, _config: ClusterConfig) -> NoReturn:
    """As what connects to a worker may."""
    raise NotSent(name)


(TEST,) = (text for text in blocks(ROOT / "docs" / "guides" / "embed.md", "python") if "InMemoryCluster" in text)


@pytest.mark.looptime
async def test_the_guides_test_takes_no_time(looptime: Any) -> None:
    shown: dict[str, Any] = {}
    exec(
        "from multikueue import AdapterRegistry, Manager, ManagerSettings\n" + TEST.partition("\nanyio.run(")[0], shown
    )
    await shown["test_a_job_runs_on_the_worker_that_has_room"]()
    assert looptime < 30


@pytest.mark.looptime
async def test_a_manager_runs_once() -> None:
    """The second time it did nothing, without a word; twice at once it worked against itself."""
    manager = Manager(InMemoryCluster().client(), AdapterRegistry(BUILTIN), ManagerSettings(), unreachable)
    async with running(manager.run):
        await until(lambda: manager.ready)
    with pytest.raises(RuntimeError, match="a Manager runs once"):
        await manager.run()


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (PlanSettings, {"worker_lost_timeout": 900}),
        (PlanSettings, {"failed_retention": 3600.0}),
        (PlanSettings, {"mark_key": "secret"}),
        (ManagerSettings, {"gc_interval": 60}),
        (ManagerSettings, {"plan": {}}),
    ],
)
def test_settings_of_a_wrong_type_are_refused_by_name(settings: Any, said: dict[str, Any]) -> None:
    """Seconds instead of a timedelta ended each decision, with an error that names neither."""
    with pytest.raises(TypeError, match=f"'{next(iter(said))}' must be"):
        settings(**said)


@pytest.fixture
def cluster() -> InMemoryCluster:
    return InMemoryCluster()


@pytest.mark.looptime
async def test_a_cluster_is_made_where_no_loop_runs_too(cluster: InMemoryCluster) -> None:
    """As fixtures are, and modules."""
    (made,) = await cluster.put(job())
    assert made["metadata"]["creationTimestamp"] >= f"{LoopClock().start:%Y-%m-%dT%H:%M:%SZ}"
