"""The harness itself: what it measures of five jobs on the sandbox."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

import anyio
import attrs
import orjson
import pytest
from click.testing import CliRunner

from multikueue.core.model.names import Json
from tests.benchmarks import mirrors
from tests.benchmarks.__main__ import main
from tests.benchmarks.controller import default_command
from tests.benchmarks.idling import measure_idle
from tests.benchmarks.kinds import first
from tests.benchmarks.measuring import Options
from tests.benchmarks.mirrors import measure_mirrors
from tests.benchmarks.scaling import measure_restart
from tests.benchmarks.scenarios import SCENARIOS
from tests.benchmarks.tenants import During, measure_tenants, measure_unchecked
from tests.benchmarks.upstream import measure_upstream

pytestmark = pytest.mark.timeout(120)

_ROOT: Final = Path(__file__).parents[2]
_SECONDS: Final = 100


async def _bench(*arguments: str) -> Json:
    command = [sys.executable, "-m", "tests.benchmarks", *arguments, "--control-plane", "sandbox"]
    with anyio.fail_after(_SECONDS):
        done = await anyio.run_process(command, cwd=_ROOT, check=False)
    assert done.returncode == 0, done.stderr.decode()
    assert "created → Ready" in done.stderr.decode()
    result: Json = orjson.loads(done.stdout)
    return result


async def test_a_burst_is_measured_from_the_first_job_to_the_last_copy(tmp_path: Path) -> None:
    """Rates, latencies, requests, CPU and memory of our own daemon, started as a command."""
    file = tmp_path / "result.json"
    result = await _bench("burst", "--count", "5", "--output", str(file))
    assert orjson.loads(file.read_bytes()) == result
    assert (result["jobs"], result["ready"], result["finished"]) == (5, 5, 5)
    assert result["rate_per_s"] > 0
    assert result["controller_cpu_ms_per_workload"] > 0
    assert result["controller_peak_memory_mb"] > 10
    for latency in result["latency_ms"].values():
        assert latency["p50"] <= latency["p95"] <= latency["p99"] <= latency["max"]
    assert result["latency_ms"]["created_ready"]["p50"] > 0
    # 3 Workloads and a job are created, and deleted again. What is read beside them is the first look at a worker, if
    # that falls in these seconds, and a probe or two: that nothing is read for a job is counted on the virtual clock
    # (tests/runtime/test_counts.py).
    assert 8 <= result["worker_requests_per_workload"] - result["worker_reads_per_workload"] < 9
    assert 0 < result["manager_requests_per_workload"] < 10
    assert 5 <= result["decisions_per_workload"] < 20
    assert set(result["machine"]["versions"]) >= {"multikueue", "aiohttp"}
    assert result["requests_of_others"]["user on manager"] == 5


async def test_a_restart_over_what_runs_is_measured() -> None:
    """The second daemon is measured, not the first, which has ended."""
    scenario = SCENARIOS["scale"].changed(count=3)
    measured = await measure_restart(scenario, Options(), quiet=0.5, idle=0.5)
    assert measured.complaint == ""
    scale = measured.extra["scale"]
    assert scale["running"] == 3
    assert 0 < scale["restart_to_manager_read_s"] < scale["restart_to_first_ready_s"]
    assert scale["submitted_to_first_ready_s"] < scale["restart_to_first_ready_s"]
    assert scale["restart_to_first_ready_s"] <= scale["restart_to_synced_s"] < _SECONDS
    assert scale["memory_mb"] > 10
    assert scale["idle_cpu_percent"] >= 0
    assert sum(scale["lists"]["worker1"].values()) > 0


async def test_connections_to_workers_without_jobs_are_counted_and_the_next_start_is_timed() -> None:
    """Three at most, once those that nothing uses are closed; here they are counted at once."""
    kinds = 20
    options = Options(command=default_command(kinds=kinds))
    scenario = SCENARIOS["idle"].changed(workers=2, rtt=20, kinds=kinds)
    measured = await measure_idle(scenario, options, rest=0.5, busy=0.5, quiet=0.5)
    assert measured.complaint == ""
    idle = measured.extra["idle"]
    assert idle["connections_per_worker"] >= 1
    assert idle["memory_mb"] > 10
    assert 0 < idle["start_to_first_ready_s"] < _SECONDS
    served = {kind.resource.qualified for kind in first(kinds)}
    assert len(served) == kinds
    assert served <= set(idle["listed_on_worker1"])


@pytest.mark.timeout(240)  # three fleets, one after the other
async def test_two_tenants_are_measured_alone_beside_each_other_and_after_a_restart() -> None:
    """The attacker's copies are there at the restart, and nothing of them at the end."""
    scenario = SCENARIOS["tenants"].changed(count=4, attackers=2)
    measured = await measure_tenants(scenario, Options(), During(attack=0.5, rest=0.5), unchecked=False)
    assert measured.complaint == ""
    tenants = measured.extra["tenants"]
    for fleet, copies in (("alone", 0), ("beside", 4), ("restarted", 4)):
        assert (tenants[fleet]["copies_of_attacker"], tenants[fleet]["workers_readable"]) == (copies, 2)
        assert tenants[fleet]["ready"] == 4
        assert tenants[fleet]["peak_memory_mb"] > 10
        assert tenants[fleet]["controller_cpu_s"] > 0
        assert 0 < tenants[fleet]["small_read_ms"]["p50"] <= tenants[fleet]["small_read_ms"]["p99"]
    assert tenants["restarted"]["gone_s"] < _SECONDS
    assert tenants["p99_ratio"] > 0
    assert tenants["p99_ratio_restarted"] > 0


async def test_a_tenant_whose_jobs_somebody_else_copies_is_measured() -> None:
    """Of three jobs two are copied to two workers each: they have no check, and the controller makes no copy."""
    scenario = SCENARIOS["tenants"].changed(count=2, attackers=3)
    shown = await measure_unchecked(scenario, Options(), During(attack=0.5, rest=0.5), copies=4)
    assert shown.measured.complaint == ""
    assert (shown.numbers["ready"], shown.numbers["copies_of_attacker"]) == (2, 4)


@pytest.mark.timeout(240)  # four fleets, one after the other
async def test_what_mirrors_cost_is_measured_off_and_on() -> None:
    """Each pod is made, written twice or thrice, and deleted; the followers get their lines."""
    scenario = attrs.evolve(SCENARIOS["mirrors"].changed(count=3, workers=1, mirrored=4), interval=1.0)
    measured = await measure_mirrors(
        scenario, Options(command=default_command(mirrors=True)), mirrors.During(followed=1.0)
    )
    assert measured.complaint == ""
    cost = measured.extra["mirrors"]
    assert [cost["burst"][name]["mirrored"] for name in ("off", "on")] == [0, 3]
    assert [cost["many"][name]["pods"] for name in ("off", "on")] == [4, 4]
    assert (cost["not_mirrored"], cost["many"]["on"]["mirrored"]) == (0, 4)
    assert cost["burst"]["off"]["requests_per_pod"] == 0
    assert 3 <= cost["burst"]["on"]["requests_per_pod"] <= 6
    assert cost["p99_ratio"] > 0
    assert cost["many"]["on"]["all_mirrored_s"] < _SECONDS
    assert 0 < cost["followers"]["cpu_percent"] < 100
    assert cost["followers"]["kb_per_s"] > 10


async def test_kueues_own_benchmark_has_its_four_numbers() -> None:
    """With simulators in the place of Kueue, which the command refuses."""
    measured = await measure_upstream(SCENARIOS["upstream"].changed(count=5, workers=2), Options())
    assert measured.complaint == ""
    numbers = measured.extra["upstream"]
    assert numbers["admitted_per_s"] > 0
    assert 0 < numbers["quota_p95_ms"] <= numbers["admitted_p95_ms"]
    assert set(numbers["spread"]) == {"worker1", "worker2"}
    assert sum(numbers["spread"].values()) == 5


@pytest.mark.parametrize(
    "lacks", ["--control-plane=sandbox", "--manager-kueue=sim", "--controller=", "--worker-kueue="]
)
def test_kueues_own_benchmark_needs_a_real_kueue_on_all_sides(lacks: str) -> None:
    """One line says so, and nothing is measured."""
    real = ["--control-plane=real", "--manager-kueue=none", "--controller=kueue", "--worker-kueue=kueue"]
    done = CliRunner().invoke(main, ["upstream", *real, lacks])
    assert done.exit_code == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("Error: nothing is measured: ")


async def test_a_controller_that_ends_is_reported_with_the_end_of_its_log() -> None:
    """Whatever the command is: it is a shell's."""
    command = [sys.executable, "-m", "tests.benchmarks", "burst", "--control-plane", "sandbox"]
    with anyio.fail_after(_SECONDS):
        done = await anyio.run_process(
            [*command, "--controller", "echo $KUBECONFIG; echo no luck; exit 3"], cwd=_ROOT, check=False
        )
    said = done.stderr.decode()
    assert done.returncode == 1
    assert said.startswith("Error: the controller under test exited with code 3")
    assert "manager.kubeconfig\nno luck" in said
