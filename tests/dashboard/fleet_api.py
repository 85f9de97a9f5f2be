"""An API to look at: jobs in memory, what is made of them, and a switch that takes it away."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import attrs
import orjson
from aiohttp import web

from multikueue.core.model.names import Json
from multikueue.errors import Forbidden, NotFound, Unreachable
from multikueued.page.port import API
from multikueued.remoteapi.history import History
from multikueued.remoteapi.job_page import JobChoice, job_page
from multikueued.remoteapi.overview import counted, overview, timeline
from multikueued.reports.remedies.remedy import Finding

NOW = datetime(2026, 11, 25, 10, 30, tzinfo=UTC)
HOSTILE = "<img src=x onerror=window.hacked=1>"


def job(name: str, namespace: str = "team-a", state: str = "Running", **status: Any) -> Json:
    metadata = {"name": f"job.{name}", "namespace": namespace, "resourceVersion": "5"}
    metadata["creationTimestamp"] = "2026-11-25T10:00:00Z"
    what: Json = {
        "job": f"job/{name}",
        "state": state,
        "cluster": "w1",
        "queue": "lq",
        "clusterQueue": "cq",
        "since": "2026-11-25T10:05:00Z",
        "reason": "It runs",
    }
    if status.get("cluster", "w1"):
        what["placements"] = [{"cluster": status.get("cluster", "w1"), "since": "2026-11-25T10:05:00Z"}]
    return {"metadata": metadata, "status": {**what, **status}}


USE: Json = {
    "resource": "nvidia.com/gpu",
    "flavor": "a100",
    "workers": 1,
    "ours": "4",
    "others": "2",
    "total": "8",
    "shares": [0.5, 0.25],
    "readAt": "2026-11-25T10:29:00Z",
}
LOST = Finding("worker-not-connected", "w2", "w2 cannot be reached", "no route", "look at it: multikueue doctor w2")
FLEET: Json = {
    "workers": [
        {
            "name": "w1",
            "reachable": True,
            "since": "2026-11-25T08:00:00Z",
            "kueueVersion": "v0.20.0",
            "running": 2,
            "quota": [
                {
                    "resource": "nvidia.com/gpu",
                    "used": "6",
                    "nominal": "8",
                    "flavors": [{"name": "a100", "used": "6", "nominal": "8", "ours": "4", "others": "2"}],
                }
            ],
            "ownBacklog": 3,
            "othersBacklog": 1,
            "readAt": "2026-11-25T11:00:00Z",
            "cost": "2.5",
        },
        {"name": "w0", "reachable": True},
        {"name": "w2", "reachable": False, "reason": "cannot be reached"},
    ],
    "queues": [{"name": "cq", "waiting": 4, "oldestWaiting": "2026-11-25T09:00:00Z", "endedLastHour": 12}],
    "moves": [
        {
            "namespace": "team-a",
            "job": "job/train",
            "from": "w2",
            "to": "w1",
            "at": "2026-11-25T10:30:00Z",
            "reason": "lost",
        }
    ],
}


@attrs.define(eq=False)
class FleetApi:
    """Implements `multikueued.page.port.Source`."""

    jobs: dict[tuple[str, str], Json] = attrs.field(factory=dict)
    readable: tuple[str, ...] = ("team-a",)
    sees_fleet: bool = True
    reads_all: bool = False
    places: list[Json] = attrs.field(factory=list)
    serves_sums: bool = True
    words: str = "admitted by the worker"
    """What others have written."""
    away: bool = False
    asked: list[str] = attrs.field(factory=list)

    def put(self, job: Json) -> None:
        self.jobs[job["metadata"]["namespace"], job["metadata"]["name"]] = job

    def add_to(self, application: web.Application) -> None:
        application.router.add_get(f"{API}{{rest:.*}}", self.answer, allow_head=False)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(request.path_qs)
        if self.away:
            raise Unreachable("it does not answer")
        match request.path.split("/")[4:]:
            case ["fleet"]:
                if not self.sees_fleet:
                    raise Forbidden("you may not see the fleet", status=403)
                workers = [*FLEET["workers"], {"name": "w3", "reachable": True, "cordoned": True, "reason": self.words}]
                return self._json({"status": {**FLEET, "workers": workers}})
            case ["remotenamespaces"]:
                return self._json({"items": [{"metadata": {"name": name}} for name in self.readable]})
            case ["namespaces", namespace, "remotejobs", name, *part]:
                if namespace not in self.readable:
                    raise Forbidden(f"you may not read {namespace}", status=403)
                if (namespace, name) not in self.jobs:
                    raise NotFound("there is no such job", status=404)
                return self._part(self.jobs[namespace, name], part)
            case [*place, "overview" | "timeline" | "places" | "jobpage" as what] if self.serves_sums:
                return self._whole(place[1] if place else "", what, request)
        raise NotFound("there is no such path", status=404)

    def _whole(self, namespace: str, what: str, request: web.Request) -> web.Response:
        """What is made of all jobs of a namespace, or of all."""
        sees_all = self.sees_fleet if what == "overview" else self.reads_all or what == "jobpage"
        if not (namespace in self.readable if namespace else sees_all):
            raise Forbidden("you may not read that", status=403)
        match what:
            case "overview":
                return self._overview(namespace)
            case "timeline":
                return self._timeline(namespace, request)
            case "jobpage":
                return self._job_page(namespace, request)
        return self._json({"items": self.places})

    def _job_page(self, namespace: str, request: web.Request) -> web.Response:
        jobs = [
            job
            for (place, _), job in self.jobs.items()
            if (namespace in ("", place) and (self.reads_all or place in self.readable))
        ]
        choice = JobChoice.read(request.query)
        places = {(place["namespace"], place["name"]): place for place in self.places if choice.queue}
        status = job_page(jobs, choice, places) | {"leftOut": 0, "every": 0.5}
        seen = str(hash(orjson.dumps(status)))
        return self._json({"seen": seen} | ({"status": status} if request.query.get("seen") != seen else {}))

    def _overview(self, namespace: str) -> web.Response:
        jobs = [job for (place, _), job in self.jobs.items() if namespace in ("", place)]
        history = History()
        for minute in range(3):
            history.note(NOW + timedelta(minutes=minute), counted(jobs, NOW))
        findings = [] if namespace else [attrs.evolve(LOST, told=self.words)]
        use = [] if namespace else [USE]
        made = overview(jobs, NOW, findings, use=use, history=history.of(namespace))
        return self._json({"status": made | {"every": 0.5}})

    def _timeline(self, namespace: str, request: web.Request) -> web.Response:
        jobs = [job for (place, _), job in self.jobs.items() if namespace in ("", place)]
        seconds, until = float(request.query.get("seconds", 3600)), request.query.get("until")
        end = min(NOW, datetime.fromtimestamp(float(until), NOW.tzinfo)) if until else NOW
        chosen = request.query.get("worker", ""), request.query.get("queue", "")
        return self._json({"status": timeline(jobs, end - timedelta(seconds=seconds), end, *chosen) | {"every": 0.5}})

    def _part(self, job: Json, part: list[str]) -> web.StreamResponse:
        match part:
            case ["explain"]:
                return self._json({"summary": "It runs on w1.", "next": [{"text": "it ends"}], "findings": []})
            case ["events"]:
                event = {"type": "Normal", "reason": "Admitted", "note": self.words, "last": "2026-11-25T10:05:00Z"}
                return self._json({"items": [event]})
            case ["log"]:
                return web.Response(text=f"first line\n{self.words}\n")
        return self._json(job)

    @staticmethod
    def _json(body: Json) -> web.Response:
        return web.Response(body=orjson.dumps(body), content_type="application/json")


def many(count: int) -> Iterator[Json]:
    """Jobs in all states."""
    states = ("Queued", "Running", "Finished", "Failed", "Offered")
    for number in range(count):
        yield job(f"train-{number:05}", state=states[number % len(states)])
