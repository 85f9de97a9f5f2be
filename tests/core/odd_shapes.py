"""Objects with any JSON in place of any field, and what the entry check makes of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs
from hypothesis import strategies as st

from multikueue.core.model.names import Json
from multikueue.core.model.objects import clone
from multikueue.core.model.shape import job_flaw, workload_flaw
from tests.core.door import Snapshot, Worker, hidden

SCALARS = st.none() | st.booleans() | st.integers(-5, 2**63) | st.floats(allow_nan=False) | st.text(max_size=5)
LIKELY: list[Any] = [[1], [None], ["a"], [{"type": 1}], [{"name": [1]}], {"a": 1}, {"a": []}, "x", 7, True]
"""What many fields are not."""
READ = [
    ("metadata", "labels"),
    ("metadata", "annotations"),
    ("metadata", "ownerReferences"),
    ("metadata", "finalizers"),
    ("spec",),
    ("spec", "podSets"),
    ("spec", "priorityClassRef"),
    ("spec", "preemptionGates"),
    ("status",),
    ("status", "conditions"),
    ("status", "admission"),
    ("status", "admissionChecks"),
    ("status", "preemptionGates"),
    ("status", "schedulingStats"),
]
"""Fields that decisions read, whether an object has them or not."""
ODD = st.sampled_from(LIKELY) | st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(), inner, max_size=2)
)


def paths(value: Any, before: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of each field and entry below a value."""
    steps = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, inner in steps:
        yield (*before, step)
        yield from paths(inner, (*before, step))


def spoiled(obj: Json, path: tuple[Any, ...], value: Any) -> Json:
    """A copy of the object with another value at a path."""
    made: Json = clone(obj)
    parent: Any = made
    for step in path[:-1]:
        parent = parent.setdefault(step, {}) if isinstance(parent, dict) else parent[step]
    parent[path[-1]] = value
    return made


@st.composite
def odd(draw: st.DrawFn, obj: Json) -> Json:
    """An object with any JSON in place of some field but its name and namespace, which lists and watches check."""
    kept = (("metadata",), ("metadata", "name"), ("metadata", "namespace"))
    checked = [path for path in paths(obj) if path not in kept]
    return spoiled(obj, draw(st.sampled_from(READ) | st.sampled_from(checked)), draw(ODD))


def as_read(worker: Worker) -> Worker:
    """The worker as informers show it: without objects whose shape is wrong."""
    if worker.copy is not None and workload_flaw(worker.copy):
        return hidden(worker, "Workload cannot be read")
    jobs = (*worker.jobs, *worker.shared)
    return (
        hidden(worker, "Job cannot be read", jobs_only=True) if any(job_flaw(copy.object) for copy in jobs) else worker
    )


@st.composite
def with_odd_objects(draw: st.DrawFn, seen: Snapshot) -> Snapshot:
    """The snapshot with odd objects on its workers, before anybody has checked them."""

    def made_odd(worker: Worker) -> Worker:
        copy, first, others = worker.copy, worker.jobs[:1], worker.jobs[1:]
        if copy is not None and draw(st.booleans()):
            copy = draw(odd(copy))
        spoil_job = draw(st.booleans())
        jobs = [attrs.evolve(job, object=draw(odd(job.object))) if spoil_job else job for job in first]
        return attrs.evolve(worker, copy=copy, jobs=(*jobs, *others))

    return attrs.evolve(seen, workers=tuple(map(made_odd, seen.workers)))
