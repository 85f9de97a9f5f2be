"""A worker whose definition of a declared kind is older than the manager's."""

from __future__ import annotations

import copy

import anyio
import anyio.lowlevel
import attrs
import pytest

from multikueue.adapters import BUILTIN
from multikueue.adapters.declaration import Declaration
from multikueue.adapters.declared import declared_kind
from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.errors import ApiError, Forbidden, NotFound, Unreachable
from multikueue.runtime.workers.crd_checks import INTERVAL, CRDCheck, crd_checks
from tests.runtime.unasked import Unasked

WIDGET = declared_kind(
    Declaration(
        name="Widget.v1.example.com",
        suspend_path=".spec.paused",
        forwarded_paths=(".metadata.labels", ".spec.priority"),
        status_paths=(".status.phase",),
    ),
    "externalFrameworks[0]",
)
FULL: Json = {
    "spec": {
        "versions": [
            {
                "name": "v1",
                "schema": {
                    "openAPIV3Schema": {
                        "properties": {
                            "spec": {"properties": {"paused": {"type": "boolean"}, "priority": {"type": "integer"}}}
                        }
                    }
                },
            }
        ]
    }
}


def without(*fields: str) -> Json:
    definition = copy.deepcopy(FULL)
    spec = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    for field in fields:
        del spec[field]
    return definition


@attrs.define(eq=False)
class Server(Unasked):
    """A worker's API server, as far as it is asked."""

    answer: Json | ApiError
    asked: int = 0

    async def get(self, resource: Resource, key: ObjectKey) -> Json:
        assert (resource.plural, key.name) == ("customresourcedefinitions", "widgets.example.com")
        self.asked += 1
        if isinstance(self.answer, ApiError):
            raise self.answer
        return self.answer


async def test_what_a_copy_needs_must_be_there() -> None:
    """Without the field that holds it back it would run before the worker's Kueue lets it."""
    changes: list[None] = []
    crd_check = CRDCheck(Server(without("paused", "priority")), WIDGET, lambda: changes.append(None))
    await crd_check.look()

    assert crd_check.flaw == (
        "its CustomResourceDefinition has no field .spec.paused (externalFrameworks[0].suspendPath), "
        ".spec.priority (externalFrameworks[0].forwardedPaths[1]) in version v1"
    )
    assert len(changes) == 1


@pytest.mark.parametrize("answer", [FULL, Forbidden("no", status=403), Unreachable("down")])
async def test_without_evidence_nothing_is_wrong(answer: Json | ApiError) -> None:
    """`managedBy` is not asked for: a copy does not say who runs it."""
    crd_check = CRDCheck(Server(answer), WIDGET, lambda: pytest.fail("nothing changed"))
    await crd_check.look()
    assert crd_check.flaw == ""


@pytest.mark.looptime
async def test_an_upgrade_is_noticed(looptime: float) -> None:
    """Nobody needs to restart anything for it; and once all is well nobody asks again."""
    server = Server(without("paused"))
    changes: list[str] = []
    crd_check = CRDCheck(server, WIDGET, lambda: changes.append(crd_check.flaw))
    await crd_check.look()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(crd_check.run, anyio.sleep_forever)
        await anyio.sleep(INTERVAL + 1)
        server.answer = Unreachable("upgrading")
        await anyio.sleep(INTERVAL)
        assert crd_check.flaw, "what is known stays until something else is known"
        server.answer = FULL

    assert changes == [changes[0], ""]
    assert server.asked == 4
    assert looptime == 3 * INTERVAL


@pytest.mark.looptime
async def test_a_definition_that_is_installed_later_is_looked_at(looptime: float) -> None:
    """As soon as the worker serves the kind, not minutes after it: a copy may be made there any moment."""
    server = Server(NotFound("no", status=404))
    crd_check = CRDCheck(server, WIDGET, lambda: None)
    served = anyio.Event()
    await crd_check.look()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(crd_check.run, served.wait)
        await anyio.sleep(7 * INTERVAL)
        assert server.asked == 1, "until it is there, the watch of its jobs asks often enough"
        server.answer = without("paused")
        served.set()
        await anyio.sleep(1)
        assert ".spec.paused" in crd_check.flaw
        tasks.cancel_scope.cancel()
    assert looptime == 7 * INTERVAL + 1


async def test_a_kind_without_a_definition_is_never_at_fault() -> None:
    """Kinds of Kubernetes itself, and those of an API server of its own, have none."""
    server = Server(NotFound("no", status=404))
    crd_check = CRDCheck(server, WIDGET, lambda: pytest.fail("nothing changed"))
    await crd_check.look()
    await crd_check.run(anyio.lowlevel.checkpoint)
    assert (crd_check.flaw, server.asked) == ("", 2)


@pytest.mark.looptime
@pytest.mark.parametrize("answer", [NotFound("no", status=404), Forbidden("no", status=403)])
async def test_who_once_lacked_something_is_asked_until_it_does_not(answer: ApiError, looptime: float) -> None:
    """Whoever replaces a definition removes the old one first: that moment must not be the last look."""
    server = Server(without("paused"))
    crd_check = CRDCheck(server, WIDGET, lambda: None)
    await crd_check.look()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(crd_check.run, anyio.sleep_forever)
        server.answer = answer
        await anyio.sleep(INTERVAL + 1)
        assert crd_check.flaw
        server.answer = FULL
    assert crd_check.flaw == ""
    assert looptime == 2 * INTERVAL


def test_only_kinds_that_write_declared_fields_are_looked_at() -> None:
    """It is a request per worker, and needs a permission that few have."""
    by_name = declared_kind(Declaration(name="Gadget.v1.example.com"))
    others = declared_kind(Declaration(name="Shop.v1.example.com", suspend_path=".spec.a", workload_only=True))
    checks = crd_checks(Server(FULL), [*BUILTIN, WIDGET, by_name, others], lambda: None)
    assert [gvk.kind for gvk in checks] == ["Widget"]
