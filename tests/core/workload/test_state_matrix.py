"""What happens in each state, laid out like the state matrix of the specification (core.md §4.7).

A row is what the manager's Workload says, a column what the one worker shows. A cell lists the effects in order;
`x` means none. Numbers in comments are the weaknesses of Kueue's built-in controller that the row does not have
(core.md §12). What needs more than one Workload or time is tried in test_slices, test_groups and test_finishing.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from multikueue.core.model.names import Json
from tests.core.building import WorkloadFacts, copy_of, job_copy_of, snapshot, worker, workload
from tests.core.door import Lost, Worker, decide
from tests.core.wording import words

COLUMNS: dict[str, Callable[[Json], Worker]] = {
    "none": lambda made: worker("w1"),
    "waiting": lambda made: worker("w1", copy_of(made)),
    "admitted": lambda made: worker("w1", copy_of(made, admitted=True)),
    "running": lambda made: worker("w1", copy_of(made, admitted=True), job_copy_of(made)),
    "finished": lambda made: worker("w1", copy_of(made, admitted=True, finished="Succeeded"), _done(made)),
    "evicted": lambda made: worker("w1", copy_of(made, evicted=True), job_copy_of(made, suspended=True)),
    "changed": lambda made: worker("w1", copy_of(made, spec={"queueName": "other"}), job_copy_of(made)),
    "out of sync": lambda made: worker("w1", copy_of(made, admitted=True, finished="OutOfSync"), job_copy_of(made)),
    "ended, no wl": lambda made: worker("w1", None, _done(made)),
    "job only": lambda made: worker("w1", None, job_copy_of(made)),
    "unreachable": lambda made: worker("w1", reach=Lost()),
}
"""What the worker shows; `made` is the Workload its copies were made from."""


def _done(made: Json) -> Json:
    return job_copy_of(made, status={"succeeded": 1, "conditions": [{"type": "Complete", "status": "True"}]})


x: list[str] = []
offer, make = ["nominate w1"], ["create workload on w1"]
drop, job_, both = ["delete workload on w1"], ["delete job on w1"], ["delete job on w1", "delete workload on w1"]
start, record = ["create job on w1"], ["record w1"]
admit = ["admit on w1 as Ready", "tell", "count cq w1"]
gone, back = ["retry: Admitting remote no longer exists"], ['retry: Workload evicted on worker cluster: "w1"', "tell"]
status, renew = ["copy job status"], offer + job_
stop = ["stop on w1", "delete job on w1 unless it is stopped"]
sync = ['retry: Remote workload on worker cluster "w1" is out of sync with its user job, resetting for re-dispatch']
sync += ["warn"]
lost = status + gone

LOCAL: dict[str, WorkloadFacts] = {
    "rejected": {"check": "Rejected"},
    "no quota": {"quota": False},
    "pending": {"said": "Offered to no worker cluster"},
    "offered": {"nominated": ("w1",)},
    "assigned": {"cluster": "w1", "check": "Ready"},
    "recorded": {"cluster": "w1"},
    "retrying": {"cluster": "w1", "check": "Retry"},
    "evicted": {"evicted": "Preempted to accommodate another", "evictions": 1},
    "finished": {"finished": "Succeeded"},
    "deleted": {"deleting": True},
    "replaced": {"finished": "WorkloadSliceReplaced", "cluster": "w1", "check": "Ready", "elastic": True},
    "new slice": {"quota": False, "elastic": True, "replaces": "older"},
    "its place": {"cluster": "w1", "elastic": True, "replaces": "older"},
}
"""What the manager's Workload says. `its place`: the slice has quota."""

# fmt: off
MATRIX = (
    # local       none          waiting admitted running finished evicted changed out of sync ended  job    unreachable
    ("rejected",  (x,            drop,  drop,    stop,   both,    job_,   job_,   job_,       job_,  job_,  x)),  # (27)
    ("no quota",  (x,            drop,  drop,    stop, status, job_, job_, job_,       status, job_,  x)),  # D22
    ("pending",   (offer + make, offer, offer,   offer,  offer,   offer,  renew,  offer,      offer, offer + job_, x)),
    ("offered",   (make,         x,     record,  admit,  admit,   x,      job_,   admit,      admit, job_,  x)),  # (19)
    ("assigned",  (gone,  gone, x,     status,         status, status + back, lost, status + sync, status, lost, x)),
    ("recorded",  (gone,  gone, start, admit + status, admit,  status + back, lost, lost,          status, lost, x)),
    ("retrying",  (x,            x,     x,       x,      x,       x,      x,      x,          x,     x,     x)),
    ("evicted",   (x,            drop,  drop,    stop,   status,  job_,   job_,   job_,       status, job_,  x)),
    ("finished",  (x,            drop,  drop,    stop,   status,  job_,   job_,   job_,       status, job_, x)),
    ("deleted",   (x,            drop,  drop,    stop,   status,  job_,   job_,   job_,       status, job_, x)),
    ("replaced",  (x,            drop,  drop,    x,      x,       x,      x,      x,          x,     x,     x)),
    ("new slice", (x,            drop,  drop,    stop, status, job_, job_, job_,       status, job_,  x)),
    ("its place", (make,         x,     start,   admit + status, admit,  x, drop, lost,       status, make, x)),
)
# fmt: on

CELLS = [
    pytest.param(LOCAL[local], column, expected, id=f"{local}, copy {column}")
    for local, row in MATRIX
    for column, expected in zip(COLUMNS, row, strict=True)
]


def _copies(column: str, facts: WorkloadFacts) -> Worker:
    """Copies were made while quota was held and before any eviction."""
    before: WorkloadFacts = {**facts, "quota": True, "evictions": 0, "deleting": False}
    return COLUMNS[column](workload(**before))


@pytest.mark.parametrize(("facts", "column", "expected"), CELLS)
def test_each_state_has_its_effects(facts: WorkloadFacts, column: str, expected: list[str]) -> None:
    """One cell of the matrix."""
    assert words(snapshot(workload(**facts), _copies(column, facts))) == expected


@pytest.mark.parametrize("column", COLUMNS)
def test_a_workload_without_our_check_leaves_nothing_on_workers(column: str) -> None:
    """Whoever points a ClusterQueue away from us gets the workers' quota back."""
    seen = snapshot(workload(check=None), _copies(column, {}), check=None)
    expected = {"none": x, "waiting": drop, "admitted": drop, "ended, no wl": job_, "job only": job_, "unreachable": x}
    expected |= {"running": stop, "finished": both}
    assert words(seen) == expected.get(column, job_)


@pytest.mark.parametrize("column", COLUMNS)
def test_a_workload_whose_check_cannot_be_read_is_left_alone(column: str) -> None:
    """An AdmissionCheck deleted by mistake must not stop the jobs that run."""
    seen = snapshot(workload(cluster="w1", check="Ready"), _copies(column, {}), check=None, check_unknown=True)
    assert decide(seen).effects == ()


@pytest.mark.parametrize("column", COLUMNS)
def test_the_copies_of_a_vanished_workload_are_removed(column: str) -> None:
    """A Workload deleted while we were down leaves no job behind on any worker."""
    seen = snapshot(None, _copies(column, {}), check=None, job={})
    expected = {"none": x, "waiting": drop, "admitted": drop, "ended, no wl": job_, "job only": job_, "unreachable": x}
    expected |= {"running": stop, "finished": both}
    assert words(seen) == expected.get(column, job_)
