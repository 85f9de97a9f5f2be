"""Who else has written the status of a job on the manager: its own controller, if that does not leave it to us."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from multikueue.core.model.names import Json
from multikueue.core.model.objects import dig

EXPECTED: Final = ("multikueue", "kueue")
"""How the field managers begin that may write the status of a delegated job: our clients' and Kueue's."""


def other_status_writers(job: Json) -> tuple[str, ...]:
    """The field managers that have written a job's status, but for ourselves and Kueue.

    A subresource's writer is noted apart, so this tells nothing of kinds without `/status`.
    """
    return tuple(dict.fromkeys(_others(dig(job, "metadata", "managedFields"))))


def with_other_writers_only(job: Json) -> Json:
    """The job with what `other_status_writers` reads of `managedFields`, as a rule nothing; changes its argument."""
    found = other_status_writers(job)
    job["metadata"].pop("managedFields", None)
    if found:
        job["metadata"]["managedFields"] = [{"manager": name, "subresource": "status"} for name in found]
    return job


def _others(entries: Any) -> Iterator[str]:
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict) and entry.get("subresource") == "status":
            name = str(entry.get("manager") or "")
            if name and not name.startswith(EXPECTED):
                yield name
