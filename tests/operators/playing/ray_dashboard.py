"""Plays what KubeRay asks inside the pods of one cluster: Ray's dashboard, its Serve API, and Serve's health.

KubeRay asks for them by the name of the head's Service. This answers as its HTTP proxy. What it says follows from the
pods: a Ray job runs as long as the pod that submitted it does.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import attrs
from aiohttp import web

from multikueue.core.model.conditions import parse_timestamp
from multikueue.core.model.names import GVK, Json, Resource
from multikueue.core.model.objects import dig, labels_of
from tests.integration.view import POD
from tests.kinds.ground import Cluster

RAY_JOB: Final = Resource(GVK("ray.io", "v1", "RayJob"), "rayjobs")
_JOB_LABEL: Final = "batch.kubernetes.io/job-name"
_STATES: Final = {"Running": "RUNNING", "Succeeded": "SUCCEEDED", "Failed": "FAILED"}
_ORDER: Final = ("Succeeded", "Failed", "Running")
_MESSAGES: Final = {
    "Succeeded": "Job finished successfully.",
    "Failed": "Job entrypoint command failed with exit code 1",
    "Running": "Job is currently running.",
}


@attrs.define(eq=False)
class RayDashboard:
    """The dashboards of all Ray clusters of one cluster."""

    cluster: Cluster
    applications: dict[str, Json] = attrs.field(factory=dict, init=False)
    """What was last deployed, by the host that was asked."""

    @asynccontextmanager
    async def served(self) -> AsyncIterator[str]:
        """Answer until the end; the address is what KubeRay has as its proxy."""
        app = web.Application()
        app.router.add_get("/api/jobs/{id}", self._job)
        app.router.add_post("/api/jobs/{id}/stop", self._stop)
        app.router.add_get("/api/serve/applications/", self._serving)
        app.router.add_put("/api/serve/applications/", self._deploy)
        app.router.add_get("/-/healthz", self._healthy)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        try:
            site = web.TCPSite(runner, "127.0.0.1", 0)
            await site.start()
            yield f"http://127.0.0.1:{runner.addresses[0][1]}"
        finally:
            await runner.cleanup()

    def job(self, number: str) -> Json | None:
        """What Ray tells of a submitted job; None while nobody has submitted it."""
        jobs = [obj for (kind, _), obj in self.cluster.now.items() if kind == RAY_JOB]
        named = [job for job in jobs if dig(job, "status", "jobId") == number]
        pods = [
            pod
            for (kind, _), pod in self.cluster.now.items()
            if kind == POD and named and labels_of(pod).get(_JOB_LABEL) == named[0]["metadata"]["name"]
        ]
        pod = next((pod for phase in _ORDER for pod in pods if dig(pod, "status", "phase") == phase), None)
        if pod is None:
            return None
        phase = pod["status"]["phase"]
        answer = {"submission_id": number, "status": _STATES[phase], "message": _MESSAGES[phase]}
        return {**answer, **_times(pod)}

    async def _job(self, request: web.Request) -> web.Response:
        answer = self.job(request.match_info["id"])
        return web.Response(status=404) if answer is None else web.json_response(answer)

    async def _stop(self, request: web.Request) -> web.Response:
        del request
        return web.json_response({"stopped": True})

    async def _serving(self, request: web.Request) -> web.Response:
        deployed: Any = self.applications.get(request.host, {})
        applications = {
            application["name"]: _running(application) for application in deployed.get("applications") or ()
        }
        return web.json_response({"applications": applications})

    async def _deploy(self, request: web.Request) -> web.Response:
        self.applications[request.host] = await request.json()
        return web.Response()

    async def _healthy(self, request: web.Request) -> web.Response:
        del request
        return web.Response(text="success")


def _times(pod: Json) -> Json:
    """When a pod's container started and ended, in milliseconds."""
    state = pod["status"]["containerStatuses"][0]["state"]
    times = {**state.get("running", {}), **state.get("terminated", {})}
    names = {"start_time": "startedAt", "end_time": "finishedAt"}
    moments = {name: parse_timestamp(times.get(field)) for name, field in names.items()}
    return {name: int(moment.timestamp() * 1000) for name, moment in moments.items() if moment is not None}


def _running(application: Json) -> Json:
    deployment = {"name": "main", "status": "HEALTHY", "message": ""}
    return {"name": application["name"], "status": "RUNNING", "message": "", "deployments": {"main": deployment}}
