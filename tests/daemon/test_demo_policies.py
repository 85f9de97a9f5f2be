"""`multikueue demo --policy`: the same jobs with each dispatcher, and a table of what was counted."""

from __future__ import annotations

import io
import random

import orjson
import pytest
from rich.console import Console

from multikueue.sandbox.kinds import BATCH_JOB
from multikueued.demo.jobs import drawn_jobs
from multikueued.demo.policies import PolicyRun, table, timed
from tests.daemon.test_demo import refused, run


@pytest.mark.timeout(90)
def test_both_run_all_jobs_and_the_scored_one_writes_less_and_admits_nothing_in_vain() -> None:
    done = run("--policy", "--jobs", "8", "--workers", "3", "--json")

    assert done.returncode == 0, done.stderr
    everywhere, scored = orjson.loads(done.stdout.splitlines()[-1])["policies"]
    assert (everywhere["policy"], scored["policy"]) == ("AllAtOnce", "scored")
    assert (everywhere["finished"], scored["finished"]) == (8, 8)
    assert (everywhere["offers"], scored["offers"], scored["lost"]) == (24, 8, 0)
    assert scored["requests"] < everywhere["requests"]
    assert sum(scored["placements"].values()) == 8
    assert all(0 < one["wait_mean"] <= one["wait_longest"] and one["cost"] > 0 for one in (everywhere, scored))
    assert "writes to workers" in done.stderr


def test_the_jobs_are_the_same_and_run_for_the_same_time() -> None:
    first, second = (timed(drawn_jobs([BATCH_JOB], 5, random.Random(7)), 7) for _ in range(2))
    assert [job.objects for job in first] == [job.objects for job in second]


def test_the_table_has_a_column_for_each() -> None:
    made = PolicyRun("a policy", 20, 19, 100, 40, 3, 0.5, 1.25, 70.4, {"worker1": 12, "worker2": 8})
    console = Console(file=io.StringIO(), width=80)
    console.print(table([made, made]))
    assert isinstance(console.file, io.StringIO)
    text = console.file.getvalue()
    assert text.count("19 of 20") == text.count("100, 5.0 a job") == text.count("1.25 s") == 2
    assert "ran on worker2 (price 1)" in text


@pytest.mark.parametrize(("option", "value"), [("--ocm", ""), ("--break", "worker1"), ("--port", "9000")])
def test_options_that_have_no_place_beside_it_are_refused_in_one_line(option: str, value: str) -> None:
    told = refused("--policy", option, *([value] if value else []))
    assert "--policy" in told or "--ocm" in told
