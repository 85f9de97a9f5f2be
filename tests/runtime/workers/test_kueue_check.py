"""What is asked of a worker about its Kueue, and what odd answers come to."""

from __future__ import annotations

from typing import Any

import anyio
import attrs
import pytest

from multikueue.core.model.kinds import DEPLOYMENT, WORKLOAD
from multikueue.core.model.names import GVK, Json, ObjectKey, Resource
from multikueue.core.model.worker_kueue import GATES, Version, WorkerKueue
from multikueue.errors import ApiError, Forbidden, NotFound, Unreachable, Unreadable
from multikueue.runtime.workers.kueue_check import CONTROLLER, INTERVAL, KueueCheck
from tests.kueue_versions import deployment_of
from tests.runtime.unasked import Unasked

OPAQUE: Json = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
OLD: Json = {"properties": {"spec": {"properties": {"podSets": {"items": OPAQUE}}}}}


@attrs.define(eq=False)
class Server(Unasked):
    """A worker's API server, as far as it is asked."""

    published: Any = attrs.field(factory=lambda: OPAQUE)
    deployment: Json | ApiError = attrs.field(factory=lambda: deployment_of((0, 19)))
    asked: int = 0

    async def schema(self, gvk: GVK) -> Json | None:
        assert gvk == WORKLOAD.gvk
        self.asked += 1
        if isinstance(self.published, ApiError):
            raise self.published
        definition: Json | None = self.published
        return definition

    async def served(self) -> None:
        raise AssertionError("it is not asked")

    async def get(self, resource: Resource, key: ObjectKey) -> Json:
        assert (resource, key) == (DEPLOYMENT, CONTROLLER)
        if isinstance(self.deployment, ApiError):
            raise self.deployment
        return self.deployment


async def known(server: Server) -> WorkerKueue:
    """What is known after one look."""
    check = KueueCheck(server, lambda: None)
    await check.look()
    return check.known


@pytest.mark.parametrize(
    ("deployment", "version"),
    [
        (deployment_of((0, 17)), (0, 17)),
        (Forbidden("no", status=403), None),
        (NotFound("no", status=404), None),
        ({"spec": {"template": {"spec": {"containers": "x"}}}}, None),
        ({"spec": {"template": {"spec": {"containers": ["x", {"name": "manager", "image": 7}]}}}}, None),
        ({"spec": 1}, None),
    ],
)
async def test_a_version_that_cannot_be_read_is_not_known(deployment: Json | ApiError, version: Version | None) -> None:
    kueue = await known(Server(deployment=deployment))
    assert kueue == WorkerKueue(version, read=True)


@pytest.mark.parametrize(
    ("published", "missing"),
    [
        (OPAQUE, set()),
        (OLD, {GATES}),
        ({"properties": {"spec": "x"}}, set()),
        ({"properties": {"spec": {"properties": 1}}}, {GATES}),
    ],
)
async def test_what_a_schema_does_not_rule_out_is_there(published: Json, missing: set[str]) -> None:
    assert GATES not in (await known(Server(published))).missing ^ missing


@pytest.mark.parametrize("published", [None, Forbidden("no", status=403), Unreadable("too much")])
async def test_without_a_schema_nothing_is_at_fault(published: ApiError | None) -> None:
    kueue = await known(Server(published))
    assert (kueue.read, kueue.lacks) == (False, ())


@pytest.mark.looptime
async def test_it_is_asked_once_if_nothing_is_missing_and_again_while_it_does_not_answer(looptime: float) -> None:
    server, changes = Server(Unreachable("down")), list[WorkerKueue]()
    check = KueueCheck(server, lambda: changes.append(check.known))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(check.run, anyio.lowlevel.checkpoint)
        await anyio.sleep(INTERVAL + 1)
        server.published = OPAQUE
        await anyio.sleep(9 * INTERVAL)
        tasks.cancel_scope.cancel()
    assert server.asked == 3
    assert changes == [WorkerKueue((0, 19), read=True)]
    assert looptime == 10 * INTERVAL + 1
