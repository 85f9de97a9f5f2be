"""Where the manager is a worker, too: the ClusterQueues in which a copy would fight its original for quota."""

from __future__ import annotations

import pytest

from multikueue.core.config.own_queues import unfit
from multikueue.core.model.names import Json


def queue(name: str, cohort: str = "", check: str = "", field: str = "cohortName") -> Json:
    checks = {"admissionChecksStrategy": {"admissionChecks": [{"name": check}]}} if check else {}
    return {"metadata": {"name": name}, "spec": {field: cohort, **checks}}


def cohort(name: str, parent: str) -> Json:
    return {"metadata": {"name": name}, "spec": {"parentName": parent}}


@pytest.mark.parametrize(
    ("pool", "cohorts", "words"),
    [
        (queue("pool"), [], ""),
        (queue("pool", check="theirs"), [], ""),
        (queue("pool", "other"), [], ""),
        (queue("pool", check="ours"), [], 'has AdmissionCheck "ours"'),
        (queue("pool", "here"), [], 'shares cohort "here" with ClusterQueue "tenant"'),
        (queue("pool", "here", field="cohort"), [], 'shares cohort "here"'),
        (queue("pool", "b"), [cohort("b", "root"), cohort("here", "root")], 'shares cohort "root"'),
        (queue("pool", "b"), [cohort("b", "c"), cohort("c", "b")], ""),
    ],
)
def test_a_queue_for_copies_has_no_check_of_ours_and_nothing_in_common_with_one(
    pool: Json, cohorts: list[Json], words: str
) -> None:
    whys = unfit([pool, queue("tenant", "here", "ours")], cohorts, {"ours"})
    assert words in whys.get("pool", "")
    assert bool(words) is ("pool" in whys)
