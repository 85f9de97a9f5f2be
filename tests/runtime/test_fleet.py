"""The fleet in memory that other tests stand on."""

from __future__ import annotations

import asyncio
from typing import Any

import anyio
import pytest

from multikueue.core.model.kinds import JOB
from multikueue.core.model.names import ObjectKey
from multikueue.errors import NotFound
from multikueue.sandbox.apiserver.verbs.deleting import DeleteOptions
from multikueue.sandbox.apiserver.verbs.updating import Target
from multikueue.testing import job
from tests.runtime.fleet import Fleet

pytestmark = pytest.mark.looptime


async def test_what_is_deleted_again_before_the_collector_has_let_it_go_is_gone() -> None:
    """In the background, which takes the finalizer off: nothing is left for the collector to do."""
    faults: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: faults.append(context))
    fleet = Fleet()
    await fleet.admin.create(JOB, job("train"))
    registry = fleet.manager.registry
    target = Target(registry.cluster.types[JOB.gvk.group, JOB.gvk.version, JOB.plural], "default", "train")
    for policy in ("Foreground", "Background"):
        registry.delete(target, DeleteOptions(propagation=policy))
    await anyio.sleep(1)
    assert faults == []
    with pytest.raises(NotFound):
        await fleet.admin.get(JOB, ObjectKey("default", "train"))
