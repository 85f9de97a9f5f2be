"""Traces of others: read as they are, or refused with the line."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.dispatch.__main__ import main
from tests.dispatch.load import Flavor
from tests.dispatch.traces import BadTrace, read_jobs, read_workers

JOBS = "submit_s,tenant,gpus,cpus,runtime_s,kind,region,model,priority\n"
NODES = "worker,model,gpus,cpus,region,cost,speed\n"


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_jobs_are_ordered_and_begin_at_0(tmp_path: Path) -> None:
    path = written(tmp_path, "jobs.csv", JOBS + "130,b,8,,60,PyTorchJob,eu,a100,5\n\n100,a,,4,30.5\n")

    first, second = read_jobs(path)

    assert (first.submit, first.tenant, first.request, first.runtime, first.kind) == (0, "a", (0, 4), 30.5, "Job")
    assert (second.submit, second.request, second.model, second.region, second.priority) == (
        30,
        (8, 0),
        "a100",
        "eu",
        5,
    )


def test_a_byte_order_mark_and_other_line_ends_are_no_fault(tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    path.write_bytes(b"\xef\xbb\xbf" + (JOBS + "0,a,1,,0\n").replace("\n", "\r\n").encode())

    assert [job.runtime for job in read_jobs(path)] == [0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("submit_s,tenant,gpus,cpus\n", "jobs.csv:1: the column runtime_s is missing"),
        (JOBS.replace("kind", "knid"), 'jobs.csv:1: the column "knid" is not known'),
        (JOBS + "0,a,1,,60\n0,a,one,,60\n", 'jobs.csv:3: gpus is "one": it must be a number, 0 at least'),
        (JOBS + "0,a,1.5,,60\n", 'jobs.csv:2: gpus is "1.5": it must be a whole number'),
        (JOBS + "0,a,1,,nan\n", 'jobs.csv:2: runtime_s is "nan"'),
        (JOBS + "0,a,1,,-1\n", 'jobs.csv:2: runtime_s is "-1"'),
        (JOBS + "0,a,1,,1e300\n", 'jobs.csv:2: runtime_s is "1e300": it must be 2147483648 at most'),
        (JOBS + "0,,1,,60\n", "jobs.csv:2: tenant is missing"),
        (JOBS + "0,a,,,60\n", "jobs.csv:2: neither gpus nor cpus is above 0"),
        (JOBS + "0,a,1,,60,,,,,9\n", "jobs.csv:2: it has 10 columns"),
        (JOBS, "jobs.csv: it has no jobs"),
    ],
)
def test_a_bad_line_of_jobs_is_refused_with_its_number(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(BadTrace) as refused:
        read_jobs(written(tmp_path, "jobs.csv", text))

    assert message in str(refused.value)


def test_nodes_become_workers_with_a_flavor_for_each_model(tmp_path: Path) -> None:
    path = written(tmp_path, "nodes.csv", NODES + "w1,a100,8,96,eu,2\nw1,t4,4,32,eu,2\nw1,a100,8,96,eu,2\nw2,,,64\n")

    first, second = read_workers(path, {"a100": 1.5, "t4": 0.5, "cpu": 1.0}.__getitem__)

    assert first.flavors == (Flavor("a100", 16, 192, 1.5), Flavor("t4", 4, 32, 0.5))
    assert (first.region, first.cost) == ("eu", 2)
    assert second.flavors == (Flavor("cpu", 0, 64, 1.0),)


def test_nodes_of_a_worker_that_contradict_each_other_are_refused(tmp_path: Path) -> None:
    path = written(tmp_path, "nodes.csv", NODES + "w1,a100,8,96,eu\nw1,a100,8,96,us\n")

    with pytest.raises(BadTrace, match=r'nodes.csv:3: region is "us", and another one before: eu'):
        read_workers(path, lambda _: 1.0)


def test_swf_is_read_as_it_is(tmp_path: Path) -> None:
    line = "{} {} 3 {} {} -1 -1 {} -1 -1 1 7 1 -1 1 -1 -1 -1\n"
    text = "; Computer: X\n" + line.format(1, 50, 600, 16, 16) + line.format(2, 60, 0, -1, 8)  # the second never ran

    (job,) = read_jobs(written(tmp_path, "log.swf", text))

    assert (job.name, job.tenant, job.request, job.runtime, job.submit) == ("job-1", "user-7", (0, 16), 600, 0)
    with pytest.raises(BadTrace, match=r"log.swf:1: it has 3 fields, and SWF has 18"):
        read_jobs(written(tmp_path, "log.swf", "1 2 3\n"))


def test_the_command_tells_what_no_worker_could_ever_hold(tmp_path: Path) -> None:
    jobs = written(tmp_path, "jobs.csv", JOBS + "0,a,9,,60\n")
    nodes = written(tmp_path, "nodes.csv", NODES + "w1,a100,8,96\n")

    result = CliRunner().invoke(main, ["--trace", str(jobs), "--nodes", str(nodes)])

    assert (result.exit_code, "Error: no worker could ever hold any of the 1 jobs" in result.output) == (1, True)


def test_the_command_tells_a_bad_line(tmp_path: Path) -> None:
    path = written(tmp_path, "jobs.csv", JOBS + "x,a,1,,60\n")

    result = CliRunner().invoke(main, ["--trace", str(path)])

    assert result.exit_code == 1
    assert 'Error: jobs.csv:2: submit_s is "x"' in result.output
