"""No wait is without a word: a Pending check that says nothing is told what it waits for."""

from __future__ import annotations

from typing import Any

import pytest

from multikueue.core.dispatchers.dispatcher import AllAtOnce, External
from multikueue.core.model.names import Json
from tests.core.building import CHECK, copy_of, snapshot, worker, workload
from tests.core.door import ApplyStatus, Connecting, Lost, Snapshot, Syncing, Unserved, Unusable, decide, only


def silent(**facts: Any) -> Json:
    """A Workload whose check says nothing."""
    local = workload(**facts)
    local["status"]["admissionChecks"][0]["message"] = ""
    return local


def said(seen: Snapshot, *, external: bool = False) -> str:
    """What the check says after the one write of a decision."""
    write = only(ApplyStatus, decide(seen, External() if external else AllAtOnce()).effects)
    (entry,) = [check for check in write.object["status"]["admissionChecks"] if check["name"] == CHECK]
    assert entry["state"] == "Pending"
    return str(entry["message"])


def test_it_is_said_with_the_nomination() -> None:
    """The same write: no request more."""
    assert said(snapshot(silent(), worker("w1"), worker("w2"))) == "Offered to w1, w2"


@pytest.mark.parametrize(
    ("facts", "why"),
    [
        ({"reach": Connecting()}, "connecting"),
        ({"reach": Lost()}, "unreachable"),
        ({"kind": Syncing()}, "its jobs are being read"),
        ({"kind": Unserved()}, "does not serve the job's kind"),
        ({"kind": Unusable("no managedBy")}, "no managedBy"),
    ],
    ids=["connecting", "lost", "syncing", "unserved", "unusable"],
)
def test_without_a_worker_each_says_why(facts: Json, why: str) -> None:
    assert said(snapshot(silent(), worker("w1", **facts))) == f"Offered to no worker cluster — w1: {why}"


@pytest.mark.parametrize("kind", [Syncing(), Unserved()], ids=["syncing", "unserved"])
def test_one_that_is_being_connected_to_says_no_more(kind: Syncing | Unserved) -> None:
    """It may run an earlier attempt, but a time until which would be another in each decision."""
    local = silent(evictions=1)
    assert said(snapshot(local, worker("w1", reach=Connecting(), kind=kind))).endswith(" — w1: connecting")


def test_without_any_worker_that_is_said() -> None:
    assert said(snapshot(silent())) == "Offered to no worker cluster: the MultiKueueConfig lists none that is known"


def test_another_controller_that_nominates_nobody_is_waited_for() -> None:
    assert (
        said(snapshot(silent(), worker("w1")), external=True) == "Offered to no worker cluster — w1: not nominated yet"
    )


@pytest.mark.parametrize(
    ("local", "facts", "head"),
    [
        (silent(other_checks={"other": "Pending"}), {}, "Waiting for the other admission checks"),
        (silent(), {"job": {}}, "Waiting for its job to be seen"),
        (silent(index="1"), {"siblings": (workload(name="a", index="0"),)}, "Waiting for the other parts of its group"),
        (silent(cluster="w1", elastic=True, replaces="older"), {}, 'Waiting for worker cluster "w1" — w1: unreachable'),
    ],
    ids=["other checks", "job unknown", "group", "slice"],
)
def test_each_other_wait_has_its_words(local: Json, facts: Json, head: str) -> None:
    assert said(snapshot(local, worker("w1", reach=Lost()), **facts)) == head


def test_what_is_said_already_is_not_written_again() -> None:
    local = workload(nominated=("w1",))
    assert decide(snapshot(local, worker("w1", copy_of(local)))).effects == ()
