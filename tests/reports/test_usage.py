"""What jobs have used: the same function for the command, of all that is noted, and for the metric, span by span."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

from multikueue.core.dispatchers.scored.score import COST
from multikueue.core.model.conditions import timestamp
from multikueue.core.model.labels import PLACEMENTS_ANNOTATION
from multikueue.core.model.names import Json
from multikueued.commands.usage import usage_lines
from multikueued.reports.usage import Use, costs_of, usage_report, used
from tests.reports.objects import CHECK, NOW, job, stored, worker, workload

HOUR = timedelta(hours=1)
COSTS = {"worker1": "2.5"}


def running(name: str = "train", *, before: tuple[Json, ...] = (), **status: Any) -> Json:
    """A Workload that worker1 has since NOW, with 2 cores and 1Gi."""
    made = workload(stored(job(name)), cluster="worker1", checks={CHECK: "Ready"}, **status)
    assigned = [{"name": "main", "count": 1, "resourceUsage": {"cpu": "2", "memory": "1Gi"}}]
    made["status"]["admission"]["podSetAssignments"] = assigned
    if before:
        made["metadata"]["annotations"] = {PLACEMENTS_ANNOTATION: json.dumps(before)}
    return made


def place(name: str, begin: float, end: float) -> Json:
    """A placement that is over, in hours from NOW."""
    return {"worker": name, "since": timestamp(NOW + begin * HOUR), "until": timestamp(NOW + end * HOUR), "why": "x"}


def test_one_that_runs_counts_until_now_and_one_that_has_ended_until_its_end() -> None:
    report = usage_report([running(), running("done", finished="Succeeded")], COSTS, None, NOW + HOUR)

    seconds = {"cpu": 2.0 * 3600, "memory": 2.0**30 * 3600}
    assert report.uses == (Use("default", "user-queue", "worker1", "2.5", 1, seconds),)
    assert report.since == NOW


def test_earlier_workers_have_their_part() -> None:
    moved = running(before=(place("worker2", -3, -1),))

    uses = {use.worker: use for use in usage_report([moved], COSTS, None, NOW + HOUR).uses}

    assert {name: use.seconds["cpu"] / 3600 for name, use in uses.items()} == {"worker1": 2.0, "worker2": 4.0}
    assert uses["worker2"].cost == ""


def test_one_without_quota_counts_with_what_it_asks_for() -> None:
    waiting = workload(stored(job("train")), quota=False)
    waiting["metadata"]["annotations"] = {PLACEMENTS_ANNOTATION: json.dumps([place("worker2", -3, -1)])}
    waiting["status"]["resourceRequests"] = [{"name": "main", "resources": {"cpu": "500m"}}]

    (use,) = usage_report([waiting], {}, None, NOW).uses

    assert use.seconds == {"cpu": 3600.0}


def test_spans_one_after_the_other_add_up_to_the_whole() -> None:
    """So the leader's metric counts nothing twice and leaves nothing out."""
    moved = running(before=(place("worker2", -3, -1),))
    whole = usage_report([moved], COSTS, None, NOW + HOUR)
    step, parts = timedelta(minutes=17), dict[tuple[str, str], int]()
    begin = NOW - 4 * HOUR
    while begin < NOW + HOUR:
        end = min(begin + step, NOW + HOUR)
        for payer, _, amounts in used(moved, begin, end, COSTS):
            for resource, amount in amounts.items():
                parts[payer.worker, resource] = parts.get((payer.worker, resource), 0) + amount
        begin = end

    assert {key: amount / 1000 for key, amount in parts.items()} == {
        (use.worker, resource): seconds for use in whole.uses for resource, seconds in use.seconds.items()
    }


def test_filters_and_a_beginning() -> None:
    jobs = [running(before=(place("worker2", -3, -1),))]

    def workers(**chosen: Any) -> list[str]:
        return [use.worker for use in usage_report(jobs, COSTS, chosen.pop("begin", None), NOW + HOUR, **chosen).uses]

    assert workers() == ["worker1", "worker2"]
    assert workers(worker="worker2") == ["worker2"]
    assert workers(queue="user-queue") == workers(queue="cluster-queue") == ["worker1", "worker2"]
    assert workers(queue="another") == []
    assert workers(begin=NOW - HOUR) == ["worker1"]
    assert usage_report(jobs, COSTS, NOW - 2 * HOUR, NOW).since == NOW - 2 * HOUR


def test_what_an_hour_costs_stands_at_the_cluster() -> None:
    assert costs_of([worker("worker1", annotations={COST: "2.5"}), worker("worker2")]) == {
        "worker1": "2.5",
        "worker2": "",
    }


def test_as_a_table() -> None:
    report = usage_report([running()], COSTS, None, NOW + 1.5 * HOUR)

    said, heading, row = usage_lines(report, None)

    assert said == f"From {NOW:%Y-%m-%d %H:%M:%SZ} on, of the Workloads that are still there:"
    assert heading.split() == ["NAMESPACE", "QUEUE", "WORKER", "COST", "JOBS", "RESOURCE-HOURS"]
    assert row.split(None, 5) == ["default", "user-queue", "worker1", "2.5", "1", "cpu 3, memory 1.5Gi"]


def test_nothing_used_is_said() -> None:
    report = usage_report([], COSTS, None, NOW)

    assert report.since is None
    assert usage_lines(report, None, "team-a") == [
        "No worker has been used by the Workloads that are still there in namespace team-a; -A counts all."
    ]
