"""What our applies hold: everything Kueue owns, as it was read, and our change."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest

from multikueue.core.model.labels import MAX_CONDITION_MESSAGE
from multikueue.core.model.names import Json
from multikueue.core.model.status_apply import admission_status, check_entry, check_status, with_check
from multikueue.core.model.workloads import CheckState
from tests.core.building import CHECK, RESERVED_AT, condition, workload
from tests.core.door import NOW
from tests.core.recorded import Recorded, recorded

WORKLOADS = recorded("workloads")


def missing(owned: Json, body: Any, path: str = "") -> Iterator[str]:
    """Paths of a managedFields tree that an object lacks: an apply of it would delete them."""
    for key, below in owned.items():
        if key == ".":
            continue
        if key.startswith("k:"):
            wanted = json.loads(key[2:])
            part = next((item for item in body if all(item.get(k) == v for k, v in wanted.items())), None)
        else:
            part = body.get(key[2:])
        if part is None:
            yield path + key
        else:
            yield from missing(below, part, f"{path}{key}/")


@pytest.mark.parametrize("seen", WORKLOADS, ids=str)
def test_an_apply_as_kueue_takes_nothing_from_a_real_workload(seen: Recorded) -> None:
    """Whatever Kueue's core owned at any step of a real run is in the body of our next apply."""
    body = admission_status(seen.object, {})
    assert list(missing(seen.owned_by_kueue, body["status"])) == []
    for field, value in body["status"].items():
        assert value == seen.object["status"].get(field) or field in ("conditions", "resourceRequests")
    assert body["metadata"]["resourceVersion"] == seen.object["metadata"]["resourceVersion"]


@pytest.mark.parametrize("seen", [workload for workload in WORKLOADS if workload.side == "manager"], ids=str)
def test_turning_the_check_ready_takes_nothing_else_from_a_real_workload(seen: Recorded) -> None:
    """Quota, conditions and the check itself survive; only nominations go."""
    entry = check_entry(seen.object, "mk", CheckState.READY, "admitted", NOW)
    changes = {"admissionChecks": with_check(seen.object, entry), "clusterName": "w1", "nominatedClusterNames": None}
    body = admission_status(seen.object, changes)
    assert set(missing(seen.owned_by_kueue, body["status"])) <= {"f:nominatedClusterNames"}


def test_fields_kueue_owns_are_carried_and_others_are_not() -> None:
    """Reclaimable pods have another owner: in our body they would become Kueue's as well."""
    seen = workload(nominated=("w1",), evictions=2)
    owned = {
        "accumulatedPastExecutionTimeSeconds": 5,
        "unhealthyNodes": [{"name": "n1"}],
        "preemptionGates": [{"name": "g", "position": "Open"}],
        "requeueState": {"count": 1},
    }
    seen["status"] |= {**owned, "reclaimablePods": [{"name": "main", "count": 1}]}
    seen["status"]["conditions"].append(condition("SomebodyElses"))
    body = admission_status(seen, {})["status"]
    assert {field: body[field] for field in owned} == owned
    assert body["schedulingStats"] == seen["status"]["schedulingStats"]
    assert "reclaimablePods" not in body
    assert [entry["type"] for entry in body["conditions"]] == ["QuotaReserved"]


def test_resource_requests_are_kueues_way() -> None:
    """Empty once quota is reserved, echoed before."""
    requests = [{"name": "main", "resources": {"cpu": "1"}}]
    seen = workload()
    seen["status"]["resourceRequests"] = requests
    assert admission_status(seen, {})["status"]["resourceRequests"] == []
    waiting = workload(quota=False)
    assert "resourceRequests" not in admission_status(waiting, {})["status"]
    waiting["status"]["resourceRequests"] = requests
    assert admission_status(waiting, {})["status"]["resourceRequests"] == requests


@pytest.mark.parametrize("state", [{}, {"count": None}], ids=["empty", "null"])
def test_an_empty_requeue_state_is_left_out(state: Json) -> None:
    """Kueue sends it only with a count or a time."""
    seen = workload()
    seen["status"]["requeueState"] = state
    assert "requeueState" not in admission_status(seen, {})["status"]


def test_a_change_to_none_takes_a_field_away() -> None:
    """Left out of an apply, a field its manager owned is deleted."""
    body = admission_status(workload(nominated=("w1",)), {"nominatedClusterNames": None})
    assert "nominatedClusterNames" not in body["status"]


def test_building_a_body_changes_nothing_that_was_read() -> None:
    """Caches hand out their own objects."""
    seen = workload(nominated=("w1",), other_checks={"budget": "Ready"})
    before = copy.deepcopy(seen)
    admission_status(
        seen, {"clusterName": "w1", "admissionChecks": with_check(seen, {"name": CHECK, "state": "Ready"})}
    )
    assert seen == before


class TestCheckEntry:
    def test_the_transition_time_moves_with_the_state_only(self) -> None:
        """Users read from it since when the check is in its state."""
        seen = workload(check="Ready")
        assert check_entry(seen, CHECK, CheckState.READY, "m", NOW)["lastTransitionTime"] == RESERVED_AT
        assert check_entry(seen, CHECK, CheckState.RETRY, "m", NOW)["lastTransitionTime"] == "2026-11-21T12:00:00Z"

    def test_kueues_retry_count_stays_and_what_belongs_to_a_state_goes(self) -> None:
        """podSetUpdates and requeueAfterSeconds are part of one verdict, the count is not."""
        seen = workload()
        extra = {"retryCount": 3, "podSetUpdates": [{"name": "main"}], "requeueAfterSeconds": 9}
        seen["status"]["admissionChecks"][0] |= extra
        entry = check_entry(seen, CHECK, CheckState.READY, "m", NOW)
        assert entry.keys() == {"name", "state", "message", "lastTransitionTime", "retryCount"}

    def test_a_check_without_times_gets_one(self) -> None:
        """The API demands a transition time."""
        seen = workload(check=None)
        assert check_entry(seen, CHECK, CheckState.PENDING, "m", NOW) == {
            "name": CHECK,
            "state": "Pending",
            "message": "m",
            "lastTransitionTime": "2026-11-21T12:00:00Z",
        }

    def test_a_long_message_is_cut(self) -> None:
        """The API refuses longer ones, and the write would never succeed."""
        entry = check_entry(workload(), CHECK, CheckState.RETRY, "x" * 40_000, NOW)
        assert len(entry["message"]) == MAX_CONDITION_MESSAGE
        assert entry["message"].endswith(" ...")

    def test_alone_it_is_all_there_is(self) -> None:
        """An apply under our own manager name has no other checks."""
        seen = workload(other_checks={"budget": "Ready"})
        entry = check_entry(seen, CHECK, CheckState.REJECTED, "no", NOW)
        body = check_status(seen, entry)
        assert body["status"] == {"admissionChecks": [entry]}
        assert body["metadata"] == {
            "name": "job-train-1a2b3",
            "namespace": "team",
            "uid": "uid-local",
            "resourceVersion": "rv-uid-local",
        }

    def test_the_other_checks_keep_their_places(self) -> None:
        """A list-map is compared by order in places."""
        seen = workload(other_checks={"budget": "Ready"})
        listed = with_check(seen, {"name": CHECK, "state": "Ready"})
        assert [(entry["name"], entry["state"]) for entry in listed] == [("mk", "Ready"), ("budget", "Ready")]
