"""What becomes of a write of the placement check that is refused."""

from __future__ import annotations

from typing import Any, cast

import pytest

from multikueue.core.effects import Apply
from multikueue.core.model.kinds import WORKLOAD
from multikueue.core.model.names import Json
from multikueue.errors import ApiError, Conflict, NotFound, ServerFault
from multikueue.protocols import ApiClient
from multikueue.runtime.events import EventRecorder
from multikueue.runtime.inventory.executor import Executor
from tests.runtime.fleet import now

ENTRY = Apply(WORKLOAD, {"metadata": {"namespace": "default", "name": "w"}}, "multikueue")


class Refusing:
    """A server that refuses each apply."""

    def __init__(self, error: ApiError) -> None:
        self.error = error

    async def apply(self, *_args: Any, **_options: Any) -> Json:
        """See `Writer`."""
        raise self.error


@pytest.mark.parametrize(
    ("error", "again"), [(Conflict("changed"), True), (ServerFault("500"), True), (NotFound("gone"), False)]
)
async def test_an_entry_that_was_not_written_is_decided_about_again(error: ApiError, again: bool) -> None:
    """What has changed of a Workload may be a message of another check, to which no handler listens: with a conflict
    that counts as done, the Workload waits for ever."""
    client = cast(ApiClient, Refusing(error))
    events = EventRecorder(client, "multikueue-placement", instance="test", clock=now)
    failed = await Executor(client, events).execute([ENTRY])
    assert (failed == (ENTRY, error)) if again else failed is None
