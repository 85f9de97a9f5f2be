"""Objects and shorthands of these tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
import anyio.lowlevel

from multikueue.core.model.names import Json, ObjectKey
from multikueue.sandbox.apiserver.kinds.resources import ResourceType
from multikueue.sandbox.apiserver.verbs.updating import Target

CONFIG_MAPS = ResourceType(plural="configmaps", kind="ConfigMap")


def config_map(name: str, **metadata: Any) -> Json:
    """A ConfigMap in the default namespace."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default", **metadata},
    }


def job(name: str = "j", **metadata: Any) -> Json:
    """A suspended Job in the default namespace."""
    pod_spec = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "x"}]}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "default", **metadata},
        "spec": {"suspend": True, "template": {"spec": pod_spec}},
    }


def key(name: str = "j") -> ObjectKey:
    """A key in the default namespace."""
    return ObjectKey("default", name)


def at(name: str, row: ResourceType = CONFIG_MAPS) -> Target:
    """A target in the default namespace."""
    return Target(row, "default", name)


async def turn_until(holds: Callable[[], bool]) -> None:
    """Let other tasks run until something holds."""
    for _ in range(1000):
        if holds():
            return
        await anyio.lowlevel.checkpoint()
    raise AssertionError("it never held")
