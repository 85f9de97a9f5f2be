"""How long what runs on a worker usually runs: by what the manager has seen, or Kueue's own limit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest.mock import Mock

import pytest

from multikueue.core.dispatchers.scored import kueue_objects
from multikueue.core.dispatchers.scored.facts import USUAL
from multikueue.core.dispatchers.scored.run_times import Ended, RunTimes, size
from multikueue.core.model.names import Json, ObjectKey
from multikueue.runtime.workers.running_copies import RunningCopies
from tests.core.building import workload

ASSIGNED = {"name": "main", "count": 1, "flavors": {"cpu": "theirs"}, "resourceUsage": {"cpu": "2"}}
LOCAL = workload(assignments=[ASSIGNED])


def copy(**spec: Any) -> Json:
    made = workload(assignments=[ASSIGNED])
    made["metadata"] |= {"resourceVersion": "1", "uid": "copy"}
    return {**made, "spec": {**made["spec"], **spec}}


def copies(known: Callable[[ObjectKey], Json | None], *run_times: float) -> RunningCopies:
    seen, needs = RunTimes(), kueue_objects.request(LOCAL)
    assert needs is not None
    for one in run_times:
        seen.add(Ended("cq", size(needs.total), one))
    return RunningCopies(known, seen)


@pytest.mark.parametrize(
    ("spec", "run_times", "usual"),
    [({}, (), USUAL), ({}, (60.0, 90.0, 600.0), 90.0), ({"maximumExecutionTimeSeconds": 300}, (60.0,), 300.0)],
)
def test_it_runs_as_long_as_those_of_its_queue_and_size_or_as_it_may(
    spec: Json, run_times: tuple[float, ...], usual: float
) -> None:
    found = copies({ObjectKey.of(LOCAL): LOCAL}.get, *run_times)

    assert [one.usual for one in found.of([copy(**spec)])] == [usual]


def test_of_one_that_the_manager_does_not_know_nobody_knows_how_long_it_runs() -> None:
    assert [one.usual for one in copies(lambda _: None, 60.0).of([copy()])] == [USUAL]


def test_a_copy_is_read_once_for_each_of_its_versions() -> None:
    looked = Mock(return_value=LOCAL)
    found = copies(looked, 60.0)
    for version in ("1", "1", "2"):
        shown = copy()
        shown["metadata"]["resourceVersion"] = version
        found = found.again()
        assert len([*found.of([shown])]) == 1

    assert looked.call_count == 2
