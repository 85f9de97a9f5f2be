"""A job that a worker has, as the manager and the worker show it."""

from __future__ import annotations

from typing import Any

import attrs

from multikueue.adapters.job import KINDS
from multikueue.core.model.names import Json
from multikueue.core.model.objects import uid
from multikueue.testing import copy_of, job, job_copy_of, stored, workload
from multikueued.reading.placed_job import PlacedJob

KEY = b"k" * 32
LOCAL_JOB = stored(job())
LOCAL = workload(LOCAL_JOB, cluster="worker1", nominated=("worker1",))
SOUGHT = PlacedJob("job/train", "default", "worker1", LOCAL, "multikueue", object=LOCAL_JOB, mark_key=KEY)
WITHOUT_KEY = attrs.evolve(SOUGHT, mark_key=None)


def job_copy(**options: Any) -> Json:
    """The job's copy on worker1."""
    return job_copy_of(KINDS[0], LOCAL_JOB, LOCAL, **{"mark_key": KEY, **options})


def workload_copy(**options: Any) -> Json:
    """The Workload's copy on worker1."""
    return copy_of(LOCAL, **{"mark_key": KEY, **options})


def owned_by(owner: Json, *, controller: bool = True) -> Json:
    """An owner reference."""
    named = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"]}
    return {**named, "uid": uid(owner), "controller": controller}


def pod(name: str, owner: Json | None = None, *, phase: str = "Running", at: int = 0, **metadata: Any) -> Json:
    """A pod as a worker shows it; `at` is the second in which it was created."""
    made: Json = {
        "name": name,
        "namespace": "default",
        "uid": f"uid-of-{name}",
        "creationTimestamp": f"2026-01-01T00:00:{at:02}Z",
        "ownerReferences": [owned_by(owner)] if owner is not None else [],
        **metadata,
    }
    spec = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "example.com/train"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": made, "spec": spec, "status": {"phase": phase}}
