"""What a change costs those who watch: one event each where it happened, and none elsewhere."""

from __future__ import annotations

import pytest

from tests.benchmarks.watchers import measured

pytestmark = pytest.mark.timeout(120)


async def test_each_change_is_one_event_for_who_watches_its_namespace() -> None:
    watched = await measured(jobs=40, watchers=6, namespaces=3, changes=50)

    assert watched["complete"]
    assert watched["events"] == 50 * 2
