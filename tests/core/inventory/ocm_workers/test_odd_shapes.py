"""What others write may be of any shape: a decision is made nevertheless, and nothing is deleted for it."""

from __future__ import annotations

from typing import Any, Final

import pytest

from multikueue.core.effects import Delete
from multikueue.core.inventory.ocm_workers.plan import plan_spoke
from multikueue.core.inventory.ocm_workers.spoke import Spoke, SpokeWorker
from multikueue.core.inventory.settings import SpokeSettings
from multikueue.core.model.names import Json
from tests.core.inventory.ocm_workers import building as b
from tests.core.inventory.ocm_workers.test_spoke_plan import BOTH, changed, fresh, part_of, settled
from tests.core.odd_shapes import paths, spoiled

ODD: Final[tuple[Any, ...]] = (None, 0, True, "x", [], {}, ["x"], [None], [{}], {"x": 1})
FIELDS: Final = ("managed", "account", "permission", "profile", "token", "worker")


@BOTH
@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("ready", [True, False], ids=["ready", "not ready"])
def test_a_field_of_another_type_does_no_harm(settings: SpokeSettings, field: str, ready: bool) -> None:
    whole = changed(settled(fresh(settings), settings), profile=b.profile(), token=b.token())
    obj = part_of(whole, field)
    for path in paths(obj):
        if path[0] not in ("spec", "status", "data") and path != ("metadata", "labels"):
            continue
        for value in ODD:
            if path == ("metadata", "labels") and not isinstance(value, dict | None):
                continue  # informers take metadata of other types for unreadable
            spoke = _with(whole, field, spoiled(obj, path, value))
            plan = plan_spoke(spoke if ready else changed(spoke, secret=None), settings, b.NOW)
            removed = [effect for effect in plan.effects if isinstance(effect, Delete)]
            assert removed == [] or field == "worker", (path, value)


def _with(whole: Spoke, field: str, obj: Json) -> Spoke:
    return changed(whole, workers=(SpokeWorker(obj),)) if field == "worker" else changed(whole, **{field: obj})
