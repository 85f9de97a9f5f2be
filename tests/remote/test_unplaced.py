"""Jobs that no worker has: why, and whether that is the end."""

from __future__ import annotations

import pytest

from multikueue.core.model.conditions import new_condition
from multikueue.testing import NOW
from multikueued.reading.job_lookup import ManagerJob
from multikueued.reading.pod_lookup import UnplacedJob, unplaced
from multikueued.reports.objects import ManagerObjects
from tests.remote.objects import LOCAL_JOB


@pytest.mark.parametrize(("type", "state"), [("Complete", "Finished"), ("Failed", "Failed")])
def test_a_job_that_has_ended_needs_no_workload_for_that(type: str, state: str) -> None:
    """Kueue makes none for it if somebody deletes its Workload: `logs -f` waited for ever."""
    over = {**LOCAL_JOB, "status": {"conditions": [new_condition(type, True, "x", "", now=NOW)]}}
    unplaced_job = unplaced(ManagerJob("job/train", ManagerObjects(), None, over))

    assert unplaced_job == UnplacedJob("job/train", f"it has ended ({state}), and its Workload is gone", False, True)


def test_one_that_may_still_get_a_workload_is_waited_for() -> None:
    unplaced_job = unplaced(ManagerJob("job/train", ManagerObjects(), None, LOCAL_JOB))

    assert not unplaced_job.ended
    assert unplaced_job.why == "it has no Workload (multikueue explain job/train -n default says why)"
