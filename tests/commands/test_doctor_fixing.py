"""What `doctor --fix` does with what it has shown: asks first, and changes what was read or nothing."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from multikueue.core.model.kinds import MUTATING_WEBHOOKS
from multikueue.core.model.names import ObjectKey, Resource
from multikueue.errors import Conflict, Forbidden
from multikueued.doctor.fixes import Fix, mend

FIX = Fix("delete MutatingWebhookConfiguration old", MUTATING_WEBHOOKS, ObjectKey("", "old"), "seen", "7")


@attrs.define(eq=False)
class Manager:
    """Notes what is deleted."""

    error: Exception | None = None
    deleted: list[tuple[Resource, ObjectKey, dict[str, str]]] = attrs.field(factory=list)

    async def delete(self, resource: Resource, key: ObjectKey, **preconditions: str) -> None:
        """See `Writer.delete`."""
        if self.error is not None:
            raise self.error
        self.deleted.append((resource, key, preconditions))


async def done(manager: Any, *wanted: Fix, agreed: bool = True) -> int:
    """Mend with an answer."""
    return await mend(manager, wanted, lambda _: agreed)


async def test_what_was_read_is_deleted_and_nothing_newer(capsys: pytest.CaptureFixture[str]) -> None:
    manager = Manager()
    assert await done(manager, FIX) == 1
    assert manager.deleted == [(MUTATING_WEBHOOKS, FIX.key, {"uid": "seen", "resource_version": "7"})]
    assert capsys.readouterr().err.splitlines() == [f"would {FIX.what}", f"done: {FIX.what}"]


async def test_nothing_happens_without_a_yes() -> None:
    manager = Manager()
    assert await done(manager, FIX, agreed=False) == 0
    assert manager.deleted == []


@pytest.mark.parametrize(
    ("error", "words"),
    [(Conflict("changed"), "it was changed or deleted meanwhile"), (Forbidden("you may not"), "you may not")],
)
async def test_what_cannot_be_done_is_told(error: Exception, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert await done(Manager(error), FIX) == 0
    assert words in capsys.readouterr().err
