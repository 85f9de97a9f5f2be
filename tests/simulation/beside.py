"""Another MultiKueue controller beside ours: a config of its own is filled by a Placement, and we only look after that.

It runs what its config lists, as Kueue's own does: whoever takes a cluster from the list while something runs there has
it run twice.
"""

from __future__ import annotations

import random
from contextlib import suppress
from typing import Final

import anyio
import attrs

from multikueue.core.model.conditions import new_condition, timestamp
from multikueue.core.model.kinds import (
    ADMISSION_CHECK,
    CLUSTER_QUEUE,
    LOCAL_QUEUE,
    MULTIKUEUE_CONFIG,
    WORKLOAD,
)
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import dig
from multikueue.core.model.workloads import (
    CheckState,
    check_state,
    cluster_name,
    has_quota,
    is_admitted,
    is_evicted,
    is_finished,
)
from multikueue.errors import ApiError
from multikueue.sandbox import setting_up
from multikueue.sandbox.apiserver import DirectClient
from multikueue.sandbox.objects import built
from multikueue.sandbox.ocm.kinds import PLACEMENT
from multikueue.sandbox.setting_up import KUEUE_NAMESPACE
from tests.simulation.inventory import PLACEMENT_CONTROLLER, Inventory
from tests.simulation.objects import find, objects
from tests.simulation.virtual_time import wall_clock

THEIRS: Final = "theirs"
"""The name of everything of theirs."""
THEIR_PLACEMENT: Final = "theirs-placement"
"""Their check for the Placement, which is ours to answer."""
_CONTROLLER: Final = "example.com/multikueue"


@attrs.define(eq=False)
class Neighbour:
    """The other controller, and its users."""

    inventory: Inventory
    seed: int
    client: DirectClient = attrs.field(init=False)
    _ends: dict[ObjectKey, float] = attrs.field(factory=dict)
    """When what it runs is over."""
    _lengths: dict[ObjectKey, float] = attrs.field(factory=dict)
    """For how many seconds each of its Workloads runs."""

    def __attrs_post_init__(self) -> None:
        self.client = DirectClient(self.inventory.manager.registry, user="neighbour")

    async def set_up(self) -> None:
        """Their queue, with the two checks that the guide says, and their Placement: the same as ours."""
        api = self.client
        await api.create(ADMISSION_CHECK, setting_up.admission_check(_CONTROLLER, THEIRS, named=THEIRS))
        active = new_condition("Active", True, "Active", "", now=wall_clock(0.0)())
        patch = {"status": {"conditions": [active]}}
        await api.merge_patch(ADMISSION_CHECK, ObjectKey("", THEIRS), patch, subresource="status")
        placed = setting_up.admission_check(PLACEMENT_CONTROLLER, THEIR_PLACEMENT, PLACEMENT, THEIRS)
        await api.create(ADMISSION_CHECK, placed)
        queue = setting_up.cluster_queue({"cpu": "4", "memory": "64Gi"}, [THEIRS, THEIR_PLACEMENT], THEIRS)
        await api.create(CLUSTER_QUEUE, queue)
        await api.create(LOCAL_QUEUE, setting_up.local_queue(name=THEIRS, of=THEIRS))
        await api.create(PLACEMENT, built(PLACEMENT, THEIRS, KUEUE_NAMESPACE, spec=self.inventory.spec))

    async def run(self) -> None:
        """Have users submit, and run what they submit, until cancelled."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._submit)
            while True:
                for workload in [
                    workload for workload in objects(self.inventory.manager, WORKLOAD) if is_theirs(workload)
                ]:
                    with suppress(ApiError):  # somebody else has written it: the next round sees what
                        await self._look(workload)
                await anyio.sleep(1.0)

    async def _submit(self) -> None:
        dice = random.Random(f"neighbour/{self.seed}")
        for number in range(dice.randint(3, 6)):
            await anyio.sleep(dice.uniform(5, 90))
            key = ObjectKey("default", f"{THEIRS}-{number}")
            self._lengths[key] = dice.uniform(20, 200)
            await self.client.create(WORKLOAD, _workload(key.name))

    async def _look(self, workload: Json) -> None:
        key, now = ObjectKey.of(workload), wall_clock(0.0)()
        running = cluster_name(workload) is not None
        if is_finished(workload):
            return
        if running and (is_evicted(workload) or check_state(workload, THEIRS) is not CheckState.READY):
            await self._write(key, {"clusterName": None})  # it was evicted, and may be waiting again by now
            return
        if is_evicted(workload) or not has_quota(workload):
            return
        if running and is_admitted(workload) and anyio.current_time() >= self._ends[key]:
            over = new_condition("Finished", True, "Succeeded", "", now=now)
            await self._write(key, {"conditions": [*workload["status"]["conditions"], over]})
        elif not running and check_state(workload, THEIR_PLACEMENT) is CheckState.READY:
            config = find(self.inventory.manager, MULTIKUEUE_CONFIG, ObjectKey("", THEIRS))
            listed = dig(config, "spec", "clusters") or []
            if listed:
                await self._start(key, listed[0], workload)

    async def _start(self, key: ObjectKey, worker: str, workload: Json) -> None:
        """Name a worker, and say that it runs there."""
        now = timestamp(wall_clock(0.0)())
        entries = [
            {**entry, "state": "Ready", "lastTransitionTime": now} if entry["name"] == THEIRS else entry
            for entry in workload["status"]["admissionChecks"]
        ]
        await self._write(key, {"nominatedClusterNames": [worker]})
        await self._write(key, {"nominatedClusterNames": None, "clusterName": worker, "admissionChecks": entries})
        self._ends[key] = anyio.current_time() + self._lengths[key]

    async def _write(self, key: ObjectKey, status: Json) -> None:
        await self.client.merge_patch(WORKLOAD, key, {"status": status}, subresource="status")


def is_theirs(workload: Json) -> bool:
    """Whether a Workload is in their queue."""
    return bool(dig(workload, "spec", "queueName") == THEIRS)


def busy(inventory: Inventory) -> dict[str, str]:
    """The clusters on which something of theirs runs, and what."""
    return {
        name: workload["metadata"]["name"]
        for workload in objects(inventory.manager, WORKLOAD)
        if is_theirs(workload) and not is_finished(workload) and (name := cluster_name(workload)) is not None
    }


def _workload(name: str) -> Json:
    resources = {"requests": {"cpu": "1", "memory": "64Mi"}}
    pods = {"containers": [{"name": "main", "image": "busybox", "resources": resources}], "restartPolicy": "Never"}
    spec = {"queueName": THEIRS, "active": True, "podSets": [{"name": "main", "count": 1, "template": {"spec": pods}}]}
    return built(WORKLOAD, name, "default", spec=spec)
