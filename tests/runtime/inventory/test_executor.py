"""What becomes of writes, and of those behind one that is refused."""

from __future__ import annotations

from typing import Any, cast

import attrs
import pytest

from multikueue.core.effects import Apply, Create, Delete, Effect, Patch
from multikueue.core.model.kinds import MULTIKUEUE_CLUSTER, MULTIKUEUE_CONFIG, WORKLOAD
from multikueue.core.model.names import Json
from multikueue.errors import ApiError, Conflict, NotFound, ServerFault
from multikueue.protocols import ApiClient
from multikueue.runtime.events import EventRecorder
from multikueue.runtime.inventory.executor import Executor
from tests.runtime.fleet import now

SEEN: Json = {"metadata": {"name": "c", "uid": "u", "resourceVersion": "7"}}
ENTRY = Apply(WORKLOAD, {"metadata": {"namespace": "default", "name": "w"}}, "multikueue")
CREATE = Create(MULTIKUEUE_CONFIG, SEEN)
PATCH = Patch(MULTIKUEUE_CONFIG, SEEN, {"metadata": {"labels": {"a": "b"}}})
DELETE = Delete(MULTIKUEUE_CONFIG, SEEN)
GONE, CHANGED, FAULT = NotFound("gone", status=404), Conflict("changed", status=409), ServerFault("500", status=500)


@attrs.define
class Server:
    """A server that refuses one verb."""

    refused: str = ""
    error: ApiError = GONE
    requests: list[str] = attrs.field(factory=list)
    bodies: list[Any] = attrs.field(factory=list)

    def __getattr__(self, verb: str) -> Any:
        async def answer(_resource: object, *sent: Any, **options: Any) -> Json:
            if verb == self.refused:
                raise self.error
            self.requests.append(verb)
            self.bodies.append((sent, options))
            return SEEN

        return answer


def executor(server: Server, **options: Any) -> Executor:
    """An executor that sends to a server."""
    client = cast(ApiClient, server)
    return Executor(client, EventRecorder(client, "multikueue-placement", instance="test", clock=now), **options)


@pytest.mark.parametrize(("error", "again"), [(CHANGED, True), (FAULT, True), (GONE, False)])
async def test_an_entry_that_was_not_written_is_decided_about_again(error: ApiError, again: bool) -> None:
    """What has changed of a Workload may be a message of another check, to which no handler listens: with a conflict
    that counts as done, the Workload waits for ever."""
    failed = await executor(Server("apply", error)).execute([ENTRY])
    assert (failed == (ENTRY, error)) if again else failed is None


@pytest.mark.parametrize(
    ("verb", "effect", "error", "failed", "others"),
    [
        ("create", CREATE, GONE, True, []),
        ("create", CREATE, FAULT, True, []),
        ("merge_patch", PATCH, GONE, False, []),
        ("merge_patch", PATCH, CHANGED, True, []),
        ("delete", DELETE, GONE, False, ["create", "apply"]),
        ("delete", DELETE, CHANGED, True, []),
    ],
)
async def test_what_is_refused_ends_it_and_what_is_gone_is_no_failure(
    verb: str, effect: Effect, error: ApiError, failed: bool, others: list[str]
) -> None:
    server, written = Server(verb, error), list[Effect]()
    failure = await executor(server).execute([effect, ENTRY, CREATE], lambda effect, _: written.append(effect))
    assert failure == ((effect, error) if failed else None)
    assert server.requests == others
    assert written == ([CREATE, ENTRY] if others else [])


async def test_writes_name_the_very_object_that_was_seen() -> None:
    server = Server()
    assert await executor(server).execute([PATCH, DELETE]) is None
    ((_, patch), _), (_, deletion) = server.bodies
    assert patch == {"metadata": {"labels": {"a": "b"}, "uid": "u", "resourceVersion": "7"}}
    assert deletion == {"uid": "u", "resource_version": "7"}


async def test_a_kind_may_have_a_writer_of_its_own() -> None:
    server, other = Server(), Server()
    writers = {MULTIKUEUE_CLUSTER: cast(ApiClient, other)}
    assert await executor(server, writers=writers).execute([CREATE, Create(MULTIKUEUE_CLUSTER, SEEN)]) is None
    assert (server.requests, other.requests) == (["create"], ["create"])
