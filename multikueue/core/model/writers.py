"""Which controllers have written the status of a job on the manager: its own one, if that does not leave it to us."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from multikueue.core.model.names import Json
from multikueue.core.model.objects import dig

CONTROLLERS: Final = frozenset(
    (
        "kube-controller-manager",
        "manager",  # as the program is called in the images of JobSet, the training operator, Trainer and AppWrapper
        "kuberay-operator",
        "mpi-operator",
        "training-operator",
        *("jobset", "mpi", "appwrapper", "trainer", "training"),  # as `go build` calls some of them
    )
)
"""What controllers of job kinds are called as field managers. Whoever else writes a status, a person or a program of
theirs, runs no job by that."""


def status_controllers(job: Json) -> tuple[str, ...]:
    """The field managers among `CONTROLLERS` that have written a job's status.

    A subresource's writer is noted apart, so this tells nothing of kinds without `/status`.
    """
    return tuple(dict.fromkeys(_controllers_in(dig(job, "metadata", "managedFields"))))


def with_status_controllers_only(job: Json) -> Json:
    """The job with what `status_controllers` reads of `managedFields`, as a rule nothing; changes its argument."""
    managers = status_controllers(job)
    job["metadata"].pop("managedFields", None)
    if managers:
        job["metadata"]["managedFields"] = [{"manager": name, "subresource": "status"} for name in managers]
    return job


def drop_managed_fields(obj: Json) -> Json:
    """The object without `managedFields`: they are half of its size, and no decision reads them."""
    obj["metadata"].pop("managedFields", None)
    return obj


def _controllers_in(entries: Any) -> Iterator[str]:
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict) and entry.get("subresource") == "status":
            name = str(entry.get("manager") or "")
            if name in CONTROLLERS:
                yield name
