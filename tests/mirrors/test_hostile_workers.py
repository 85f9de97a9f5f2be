"""What a worker's API server may say of pods and of what makes them: it costs nobody else's mirrors anything."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from structlog.testing import capture_logs

from multikueue.core.model.kinds import JOB, POD
from multikueue.core.model.names import ClusterName, Json, ObjectKey, Resource
from multikueue.core.model.objects import controller_of, dig, name_of
from multikueue.core.model.shape import pod_flaw
from multikueue.kube import ClusterConfig
from multikueue.protocols import ApiClient
from multikueue.sandbox.apiserver import DirectClient
from multikueue.testing import until
from multikueued.mirrors.mirror import LARGEST
from tests.examples import shared
from tests.mirrors.objects import a_pod, shown, worker_pod
from tests.mirrors.showing import LONG, Shown, prepared
from tests.runtime.fleet import Fleet
from tests.runtime.odd_objects import OddClient, OddObjects

Spoil = Callable[[Json], None]


def put(value: Any, *path: str) -> Spoil:
    """Has an object say something else there."""

    def spoil(obj: Json) -> None:
        for step in path[:-1]:
            obj = obj.setdefault(step, {})
        obj[path[-1]] = value

    return spoil


def main(**fields: Any) -> Spoil:
    """Has the first container say something else."""
    return lambda pod: pod["spec"]["containers"][0].update(fields)


def nested(depth: int) -> Json:
    value: Json = {}
    for _ in range(depth):
        value = {"x": value}
    return value


def _controller(pod: Json) -> None:
    reference = controller_of(pod)
    assert reference is not None
    reference["more"] = nested(2_000)


ODD = {
    "conditions that are texts": put(["Ready", None], "status", "conditions"),
    "containers that are a text": put("main", "spec", "containers"),
    "a status that nests deep": put(nested(600), "status", "more"),
    "a list for a status": put([{}], "status"),
    "a text for a status": put("Running", "status"),
    "a map of conditions": put({"Ready": "True"}, "status", "conditions"),
    "a condition of a list": put([{"type": ["Ready"]}], "status", "conditions"),
    "a list for a phase": put(["Running"], "status", "phase"),
    "a container that is a list": put([["main"]], "spec", "containers"),
    "no containers": put(None, "spec", "containers"),
    "init containers that are a map": put({"main": {}}, "spec", "initContainers"),
    "a text for a spec": put("x", "spec"),
    "ports that are a map": main(ports={"http": 80}),
    "ports that are numbers": main(ports=[80]),
    "a command that is a map": main(command={"a": "b"}),
    "a status that nests deeper than Python": put(nested(20_000), "status", "more"),
    "a controller that nests deep": _controller,
    "owners that are texts": put(["Job"], "metadata", "ownerReferences"),
    "annotations that are numbers": put({"kubectl.kubernetes.io/default-container": 1}, "metadata", "annotations"),
}
"""What no API server of Kubernetes says: whoever runs the worker decides what it answers."""
ODD_STATUSES: dict[str, Json] = {
    "a map of container statuses": {"containerStatuses": {"main": {"ready": True}}},
    "numbers below zero": {"containerStatuses": [{"name": "main", "ready": True, "restartCount": -7}]},
    "numbers beyond 32 bits": {"containerStatuses": [{"name": "main", "restartCount": 1 << 62}]},
    "a container that is not there": {"containerStatuses": [{"name": "other", "image": "", "imageID": ""}]},
    "a condition that nobody knows": {"conditions": [{"type": "example.com/Odd", "status": "Perhaps"}]},
    "two conditions of one type": {"conditions": [{"type": "Ready", "status": s} for s in ("True", "False")]},
    "a phase that nobody knows": {"phase": "Dreaming"},
    "a message with bytes that nobody sees": {"message": "a\0b\x1b[31mc\u202ed"},
    "a time that is none": {"startTime": "yesterday"},
    "fields that nobody knows": {"example": {"a": [1, None]}, "startTime": None},
    "a large message": {"message": "x" * (LARGEST - 8_000)},
}
"""Statuses that the manager's API server has to take or to refuse."""


class OddReads(OddClient):
    """A client that shows them so when they are asked for by name, too."""

    async def get(self, resource: Resource, key: ObjectKey) -> Json:
        """See `Reader`."""
        return self.odd.shown(resource, await super().get(resource, key))[0]


@asynccontextmanager
async def two_runs() -> AsyncIterator[tuple[Shown, OddObjects, Callable[[], Any]]]:
    """A fleet with a run `odd` and a run `sound`, what makes objects of their worker odd, and what runs a manager."""
    shown = await prepared(await Fleet.connected("worker1"))
    fleet = shown.fleet
    odd = OddObjects(fleet.workers["worker1"])

    @asynccontextmanager
    async def connect(name: ClusterName, config: ClusterConfig) -> AsyncIterator[ApiClient]:
        del name, config
        yield OddReads(odd, user="multikueue")

    async with fleet.kueues(LONG):
        with capture_logs() as logs:
            yield shown, odd, lambda: fleet.dispatching(shown.manager(connect=connect))
    assert [line for line in logs if line["log_level"] == "error"] == []


async def the_other_goes_on(shown: Shown, message: str) -> None:
    """The sound run's mirror follows its pod."""
    (pod,) = [pod for pod in await shown.pods() if name_of(pod).startswith("sound")]
    await shown.write(pod, message=message)

    async def said() -> bool:
        return any(dig(mirror, "status", "message") == message for mirror in await shown.mirrors())

    await until(said, 15)


@pytest.mark.looptime
@pytest.mark.parametrize("name", shared(ODD, first=4))
async def test_an_odd_pod_keeps_no_other_from_being_shown(name: str) -> None:
    """While we look, and for who starts then."""
    async with two_runs() as (shown, odd, managed):
        async with managed():
            await shown.fleet.submit("odd")
            await shown.fleet.submit("sound")
            await shown.count(2)
            (pod,) = [name_of(pod) for pod in await shown.pods() if name_of(pod).startswith("odd")]
            await odd.spoil(POD, pod, ODD[name])
            await the_other_goes_on(shown, "one")
            await anyio.sleep(100)
        async with managed():
            await the_other_goes_on(shown, "two")
            await odd.mend(POD, pod)
            await shown.count(2)


@pytest.mark.looptime
@pytest.mark.parametrize("name", shared(ODD_STATUSES, first=3))
async def test_an_odd_status_costs_few_requests_and_the_proof_is_written(name: str) -> None:
    async with two_runs() as (shown, odd, managed):
        odd.spoilt["Pod", "odd"] = lambda pod: pod["status"].update(ODD_STATUSES[name])
        async with managed():
            job = await _running(shown)
            await DirectClient(shown.fleet.workers["worker1"]).create(POD, a_pod("odd", job))
            await shown.count(2)
            await anyio.sleep(10)
            before = shown.writes("patch")
            await anyio.sleep(600)
            assert shown.writes("patch") <= before + 1
            await the_other_goes_on(shown, "on")


async def _running(shown: Shown) -> Json:
    await shown.fleet.submit("sound")
    await shown.count(1)
    return await DirectClient(shown.fleet.workers["worker1"]).get(JOB, ObjectKey("default", "sound"))


@pytest.mark.looptime
@pytest.mark.parametrize(
    "how",
    [
        put("x", "metadata", "ownerReferences"),
        put([["x"]], "metadata", "ownerReferences"),
        put([{"controller": True, "kind": ["Job"], "name": 1}], "metadata", "ownerReferences"),
        put(
            [{"controller": True, "apiVersion": "batch/v1", "kind": "Job", "name": "../.."}],
            "metadata",
            "ownerReferences",
        ),
    ],
    ids=("text", "lists", "no texts", "a path"),
)
async def test_what_stands_in_between_may_be_odd(how: Spoil) -> None:
    async with two_runs() as (shown, odd, managed):
        odd.spoilt["Job", "between"] = how
        async with managed():
            await _running(shown)
            worker = DirectClient(shown.fleet.workers["worker1"])
            spec = {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}
            made: Json = {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "metadata": {"namespace": "default", "name": "between"},
            }
            between = await worker.create(JOB, {**made, "spec": {**spec, "suspend": True}})
            await worker.create(POD, a_pod("below", between))
            await anyio.sleep(100)
            await the_other_goes_on(shown, "on")
            assert len(await shown.mirrors()) == 1


@pytest.mark.parametrize("how", ODD.values(), ids=ODD.keys())
def test_no_more_is_kept_of_a_pod_than_its_bound(how: Spoil) -> None:
    pod = worker_pod()
    how(pod)
    if not pod_flaw(pod):
        assert len(repr(shown(pod))) <= 2 * LARGEST
