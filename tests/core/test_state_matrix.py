"""What happens in each state, laid out like the state matrix of the specification (core.md §4.7).

A row is what the manager's Workload says, a column what the one worker shows. A cell lists the effects in order;
`x` means none. Where a cell differs from Kueue's built-in controller, the comment after the row says why.
"""

from __future__ import annotations

import pytest

from multikueue.core.names import Json
from multikueue.core.snapshot import Worker
from tests.core.building import copy_of, decide, job_copy_of, snapshot, worker, workload
from tests.core.wording import in_words

COLUMNS = {
    "none": lambda made: worker("w1"),
    "waiting": lambda made: worker("w1", copy_of(made)),
    "admitted": lambda made: worker("w1", copy_of(made, admitted=True)),
    "running": lambda made: worker("w1", copy_of(made, admitted=True), job_copy_of(made)),
    "finished": lambda made: worker("w1", copy_of(made, admitted=True, finished="Succeeded"), _done(made)),
    "evicted": lambda made: worker("w1", copy_of(made, evicted=True), job_copy_of(made, suspended=True)),
    "changed": lambda made: worker("w1", copy_of(made, spec={"queueName": "other"}), job_copy_of(made)),
    "unreachable": lambda made: worker("w1", reachable=False, serves_kind=False),
}
"""What the worker shows; `made` is the Workload its copies were made from."""


def _done(made: Json) -> Json:
    return job_copy_of(made, status={"succeeded": 1, "conditions": [{"type": "Complete", "status": "True"}]})


x: list[str] = []
offer, create = ["nominate w1"], ["create workload on w1"]
clean_workload, clean_both = ["delete workload on w1"], ["delete job on w1", "delete workload on w1"]
admit = ["admit on w1 as Ready", "tell", "count cq w1"]
gone = ["retry: Admitting remote no longer exists"]
status, finish = ["copy job status"], ["finish Succeeded"]
back = ['retry: Workload evicted on worker cluster: "w1"', "tell"]
stop = ["stop on w1"]

OFFERED = {"nominated": ("w1",)}
ASSIGNED = {"cluster": "w1", "check": "Ready"}
EVICTED = {"evicted": "Preempted to accommodate another", "evictions": 1}

# fmt: off
MATRIX = [
    # local, facts                                     none            waiting         admitted             running     finished         evicted     changed     unreachable
    ("rejected", {"check": "Rejected"},               (x,              clean_workload, clean_workload,      clean_both, clean_both,      clean_both, clean_both, x)),
    # Kueue leaves the copies of a rejected Workload, which hold the workers' quota (§12 item 27).
    ("no quota", {"quota": False},                    (x,              clean_workload, clean_workload,      clean_both, clean_both,      clean_both, clean_both, x)),
    ("pending", {},                                   (offer + create, offer,          offer,               offer,      offer,           offer,      offer + clean_both, x)),
    ("pending, offered", OFFERED,                     (create,         x,              ["create job on w1"], admit,     admit,           x,          clean_both, x)),
    # A finished copy is admitted first and followed home in the next pass: one order for all.
    ("assigned", ASSIGNED,                            (gone,           gone,           gone,                status,     status + finish, back,       gone,       x)),
    # Kueue makes a missing job again and deletes a changed copy at once; here the manager evicts, then all goes.
    ("retrying", ASSIGNED | {"check": "Retry"},       (x,              x,              x,                   x,          x,               x,          x,          x)),
    ("evicted", EVICTED,                              (x,              clean_workload, clean_workload,      stop,       clean_both,      status,     status,     x)),
    # Kueue offers an evicted Workload again, to delete the copies moments later (§12 item 21).
    ("finished", {"finished": "Succeeded"},           (x,              clean_workload, clean_workload,      clean_both, clean_both,      clean_both, clean_both, x)),
    ("deleted", {"deleting": True},                   (x,              clean_workload, clean_workload,      clean_both, clean_both,      clean_both, clean_both, x)),
]
# fmt: on

CELLS = [
    pytest.param(facts, column, expected, id=f"{local}, copy {column}")
    for local, facts, row in MATRIX
    for column, expected in zip(COLUMNS, row, strict=True)
]


def _copies(column: str, facts: dict[str, object]) -> Worker:
    """Copies are made while quota is held, and before an eviction."""
    unspoiled = {field: value for field, value in facts.items() if field not in ("quota", "evictions", "deleting")}
    return COLUMNS[column](workload(**unspoiled))


@pytest.mark.parametrize(("facts", "column", "expected"), CELLS)
def test_each_state_has_its_effects(facts: dict[str, object], column: str, expected: list[str]) -> None:
    """One cell of the matrix."""
    seen = snapshot(workload(**facts), _copies(column, facts))
    assert in_words(seen, decide(seen)) == expected


@pytest.mark.parametrize("column", COLUMNS)
def test_a_workload_without_our_check_leaves_nothing_on_workers(column: str) -> None:
    """Whoever points a ClusterQueue away from us gets the workers' quota back."""
    seen = snapshot(workload(check=None), _copies(column, {}), check=None)
    expected = {"none": x, "waiting": clean_workload, "admitted": clean_workload, "unreachable": x}
    assert in_words(seen, decide(seen)) == expected.get(column, clean_both)


@pytest.mark.parametrize("column", COLUMNS)
def test_a_workload_whose_check_cannot_be_read_is_left_alone(column: str) -> None:
    """An AdmissionCheck deleted by mistake must not stop the jobs that run."""
    seen = snapshot(workload(cluster="w1", check="Ready"), _copies(column, {}), check=None, check_unknown=True)
    assert decide(seen).effects == ()


@pytest.mark.parametrize("column", COLUMNS)
def test_the_copies_of_a_vanished_workload_are_removed(column: str) -> None:
    """A Workload deleted while we were down leaves no job behind on any worker."""
    seen = snapshot(None, _copies(column, {}), check=None, job={})
    expected = {"none": x, "waiting": clean_workload, "admitted": clean_workload, "unreachable": x}
    assert in_words(seen, decide(seen)) == expected.get(column, clean_both)
