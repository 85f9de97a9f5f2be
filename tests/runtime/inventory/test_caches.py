"""What decisions about configs go by of Workloads that we have just written ourselves."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final, cast

from multikueue.core.model.conditions import new_condition
from multikueue.core.model.names import Json, ObjectKey
from multikueue.protocols import ApiClient
from multikueue.runtime.inventory.caches import HubCaches

KEY: Final = ObjectKey("default", "w")
BEGAN: Final = datetime(2026, 1, 1, tzinfo=UTC)


def workload(version: int, state: str, uid: str = "a") -> Json:
    """A Workload with quota, and our entry."""
    status = {
        "conditions": [new_condition("QuotaReserved", True, "QuotaReserved", "", now=BEGAN)],
        "admissionChecks": [{"name": "placed", "state": state}],
    }
    metadata = {"name": "w", "namespace": "default", "uid": uid, "resourceVersion": str(version)}
    kind = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload"}
    return {**kind, "metadata": metadata, "spec": {"active": True}, "status": status}


def caches() -> HubCaches:
    return HubCaches.build(cast(ApiClient, None), lambda: 0.0)


def shown(hub: HubCaches, obj: Json | None) -> None:
    """A watch shows this."""
    hub.workloads.put(KEY, obj)
    hub.forget(KEY)


def state(hub: HubCaches) -> str | None:
    work = hub.held_by("placed").get(KEY)
    return None if work is None else work.states["placed"]


async def test_what_was_written_counts_until_a_watch_shows_more() -> None:
    """Another controller acts on our entry at once: its cluster left the config meanwhile (seed 730034)."""
    hub = caches()
    shown(hub, workload(1, "Pending"))
    assert state(hub) == "Pending"
    hub.wrote(workload(3, "Ready"))
    assert state(hub) == "Ready"
    shown(hub, workload(2, "Pending"))
    assert state(hub) == "Ready", "an event from before the write"
    shown(hub, workload(4, "Pending"))
    assert state(hub) == "Pending", "somebody has written it since"


async def test_a_later_workload_of_that_name_is_another() -> None:
    hub = caches()
    shown(hub, workload(1, "Pending"))
    hub.wrote(workload(9, "Ready"))
    shown(hub, None)
    assert state(hub) is None
    shown(hub, workload(10, "Pending", uid="b"))
    assert state(hub) == "Pending"


async def test_a_write_to_a_server_that_another_has_replaced_is_forgotten() -> None:
    """One that was restored from a backup: its resourceVersions went backwards."""
    hub = caches()
    shown(hub, workload(8, "Pending"))
    hub.wrote(workload(9, "Ready"))
    hub.workloads.status = hub.workloads.status.went_backwards()
    shown(hub, workload(5, "Pending"))
    assert state(hub) == "Pending"


async def test_one_that_cannot_be_read_hides_no_other() -> None:
    """Anybody may write a Workload."""
    assert caches().workloads.keeps_unreadable
