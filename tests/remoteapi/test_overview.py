"""The fleet at one look, made of jobs as the API shows them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import attrs

from multikueue.core.model.conditions import timestamp
from multikueue.core.model.names import Json
from multikueue.testing import NOW, job, stored, workload
from multikueued.remoteapi.overview import BARS, TROUBLED, counted, overview, timeline, waits
from multikueued.remoteapi.shares import Share, shares_of, use_of_fleet
from multikueued.reports.objects import ManagerObjects
from multikueued.reports.quotas import FlavorQuota, WorkerQuota
from multikueued.reports.workers import WorkerReport, worker_reports


def at(minutes: float) -> str:
    return timestamp(NOW + timedelta(minutes=minutes))


def made(name: str, state: str, namespace: str = "team-a", created: float = -30, **status: Any) -> Json:
    """A job as the API shows it; times in minutes from now."""
    metadata = {"name": f"job.{name}", "namespace": namespace, "creationTimestamp": at(created)}
    return {"metadata": metadata, "status": {"job": f"job/{name}", "state": state, "since": at(-1), **status}}


def shown(*jobs: Json) -> Json:
    return overview(jobs, NOW, (), use=(), history={})


def test_jobs_are_counted_by_what_becomes_of_them() -> None:
    jobs = [
        *(made(state, state) for state in ("Running", "Starting", "Lost", "Queued", "Offered", "Retrying", "Waiting")),
        *(made(state, state) for state in ("Finished", "Inactive", "Rejected", "Stopping", "Local")),
        made("failed", "Failed", "team-b"),
        made("long-ago", "Failed", "team-b", since=at(-61)),
    ]

    assert counted(jobs, NOW) == {"": (3, 3, 1, 1), "team-a": (3, 3, 1, 0), "team-b": (0, 0, 0, 1)}
    assert shown(*jobs)["jobs"] == {
        "running": 3,
        "waiting": 3,
        "held": 1,
        "failedLastHour": 1,
        "endedLastHour": 2,
    }


def test_jobs_that_need_somebody_come_by_how_pressing_they_are_and_are_bounded() -> None:
    jobs = [
        *(made(f"failed-{number}", "Failed", since=at(-number)) for number in range(1, 20)),
        made("lost", "Lost"),
        made("never", "Rejected", reason="a webhook"),
        made("old", "Failed", since=at(-90)),
    ]
    overview_shown = shown(*jobs)

    names = [entry["job"] for entry in overview_shown["troubled"]]
    assert names[:4] == ["job/never", "job/lost", "job/failed-1", "job/failed-2"]
    assert (len(names), overview_shown["troubledInAll"]) == (TROUBLED, 21)
    assert overview_shown["troubled"][0]["reason"] == "a webhook"


def test_waiting_times_are_of_those_that_got_a_worker_in_the_last_hour() -> None:
    started = [
        made(f"j{number}", "Running", created=-50, clusterQueue="cq", placements=[{"since": at(-50 + number)}])
        for number in range(1, 11)
    ]
    earlier = made("early", "Running", created=-200, clusterQueue="cq", placements=[{"since": at(-61)}])
    waiting = made("later", "Waiting", created=-7, clusterQueue="cq")
    other = made("other", "Queued", created=-3, clusterQueue="other")

    assert waits([*started, earlier, waiting, other], NOW) == [
        {"queue": "cq", "started": 10, "waiting": 1, "p50": 300.0, "p90": 540.0, "oldest": at(-7)},
        {"queue": "other", "started": 0, "waiting": 1, "oldest": at(-3)},
    ]


def test_a_picture_of_time_has_the_jobs_of_its_span_those_that_moved_first() -> None:
    moved = made(
        "moved",
        "Running",
        created=-90,
        placements=[
            {"cluster": "w1", "since": at(-80), "until": at(-70), "reason": ""},
            {"cluster": "w2", "since": at(-60), "until": "", "reason": ""},
        ],
    )
    here = made("here", "Running", created=-5, placements=[{"cluster": "w1", "since": at(-4)}])
    over = made("over", "Finished", created=-300, since=at(-200), placements=[{"cluster": "w1", "since": at(-299)}])
    later = made("later", "Queued", created=10)
    queued = made("queued", "Queued", created=-1, clusterQueue="cq")
    every = [queued, here, over, later, moved]
    begin = NOW - timedelta(hours=1)

    def names(**asked: str) -> list[str]:
        return [entry["job"] for entry in timeline(every, begin, NOW, **asked)["jobs"]]

    assert names() == ["job/moved", "job/here", "job/queued"]
    assert names(worker="w2") == ["job/moved"]
    assert names(queue="cq") == ["job/queued"]
    assert timeline(every, begin, NOW)["jobs"][0]["placements"][1] == {"cluster": "w2", "since": at(-60)}
    many = [made(f"j{number}", "Queued") for number in range(BARS + 9)]
    assert (len(timeline(many, begin, NOW)["jobs"]), timeline(many, begin, NOW)["inAll"]) == (BARS, BARS + 9)


def held(name: str, worker: str, cpu: str, *, since: float, ended: float | None = None) -> Json:
    """A Workload of the manager with that much of a worker."""
    made = workload(stored(job(name)))
    usage = {"name": "main", "flavors": {"cpu": "default"}, "resourceUsage": {"cpu": cpu}, "count": 1}
    times = {"QuotaReserved": since, "Admitted": since, "Finished": ended}
    conditions = [
        {"type": kind, "status": "True", "reason": kind, "lastTransitionTime": at(minutes)}
        for kind, minutes in times.items()
        if minutes is not None
    ]
    admission = {"clusterQueue": "cq", "podSetAssignments": [usage]}
    return {**made, "status": {"clusterName": worker, "admission": admission, "conditions": conditions}}


def of_worker(name: str, used: str, total: str, flavor: str = "spot") -> WorkerReport:
    (report,) = worker_reports(ManagerObjects(clusters=({"metadata": {"name": name}},)), ())
    quota = WorkerQuota({"cpu": used}, {"cpu": total}, (FlavorQuota(flavor, "cpu", used, total),), NOW)
    return attrs.evolve(report, quota=quota)


def test_ours_is_as_of_now_and_others_as_of_the_last_read() -> None:
    """What was ours when the daemon read is not taken for others', though it has ended since, or the manager knew of it
    a moment later."""
    listed = [
        held("long", "w1", "1", since=-60),
        held("ended-since", "w1", "2", since=-60, ended=5),
        held("ended-before", "w1", "16", since=-60, ended=-5),
        held("soon", "w1", "250m", since=0.1),
        held("new", "w1", "250m", since=3),
        held("elsewhere", "w2", "8", since=-60),
    ]
    shares = shares_of([of_worker("w1", used="7", total="20")], listed)

    assert shares == {"w1": {("cpu", "spot"): Share(20_000, ours=1_500, others=3_750, workers=1, read_at=NOW)}}
    assert use_of_fleet([*shares.values(), *shares.values()]) == [
        {
            "resource": "cpu",
            "flavor": "spot",
            "workers": 2,
            "ours": "3",
            "others": "7500m",
            "total": "40",
            "shares": [0.075, 0.1875],
            "readAt": timestamp(NOW),
        }
    ]


def test_of_a_worker_with_several_flavors_ours_are_those_of_the_same_name() -> None:
    flavor_quota = of_worker("w1", used="3", total="8", flavor="default")
    more = (*flavor_quota.quota.flavors, FlavorQuota("spot", "cpu", "1", "4"))
    shares = shares_of(
        [attrs.evolve(flavor_quota, quota=attrs.evolve(flavor_quota.quota, flavors=more))],
        [held("a", "w1", "2", since=-1)],
    )

    assert {flavor: (share.ours, share.others) for (_, flavor), share in shares["w1"].items()} == {
        "default": (2_000, 1_000),
        "spot": (0, 1_000),
    }
