"""What a worker's Kueue lacks of what copies may need: by its API's schema, and by its version.

What is left out of an object that was sent tells the same, of any kind.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, Final, TypeAlias

import attrs

from multikueue.core.model.conditions import condition, new_condition, says_the_same
from multikueue.core.model.labels import MAX_LABEL_VALUE
from multikueue.core.model.names import Json, Resource
from multikueue.core.model.objects import dig, name_of
from multikueue.core.model.workloads import component_index, has_members

Version: TypeAlias = tuple[int, int]

OLDEST: Final[Version] = (0, 15)
"""The first version of Kueue that serves v1beta2."""
NAMES_BY_ANNOTATION: Final[Version] = (0, 18)
"""The first that reads the name of a job's Workload from an annotation; before it there is only the label."""
GATES: Final = ".spec.preemptionGates"
"""Since 0.17."""
CONSTRAINTS: Final = ".spec.podSets[*].topologyRequest.podsetSliceRequiredTopologyConstraints"
"""Slices of a topology within slices."""
FIELDS: Final = (GATES, CONSTRAINTS)
"""The fields of a Workload that older versions do not have: their API servers drop them without a word."""
_TAG: Final = re.compile(r":v?(\d{1,4})\.(\d{1,4})(?!\d)")
_INDEX: Final = re.compile(r"\[\d+\]")


@attrs.frozen
class WorkerKueue:
    """What is known of a worker's Kueue."""

    version: Version | None = None
    """By its controller's image; None: not known."""
    missing: frozenset[str] = frozenset()
    """Those of `FIELDS` that its API does not have."""
    read: bool = False
    """Whether its API has been read: else what is not in `missing` may be missing, too."""

    @property
    def drops_gates(self) -> bool:
        """Whether it preempts for a copy at once, because the gate does not arrive."""
        return GATES in self.missing

    @property
    def loses_long_names(self) -> bool:
        """Whether a job there does not find a Workload whose name is too long for a label."""
        return self.drops_gates or (self.version is not None and self.version < NAMES_BY_ANNOTATION)

    def why_not_found(self, workload: Json) -> str:
        """Why a job there would not find its Workload, and run without it; empty: it would. Groups look for none."""
        if not self.loses_long_names or len(name_of(workload)) <= MAX_LABEL_VALUE:
            return ""
        is_grouped = has_members(workload) or component_index(workload) is not None
        flaw = f"{self.name} there has no room for the name of its Workload: upgrade it, or shorten the job's name"
        return "" if is_grouped else flaw

    @property
    def number(self) -> str:
        """The version as people write it: `0.17`; empty while it is not known."""
        return ".".join(map(str, self.version)) if self.version is not None else ""

    @property
    def name(self) -> str:
        """What it is called: `Kueue 0.17`, and `Kueue` while the version is not known."""
        return f"Kueue {self.number}".rstrip()

    @property
    def lacks(self) -> tuple[str, ...]:
        """What it lacks, and what follows; empty: nothing that is known."""
        return tuple(self._lacks())

    def _lacks(self) -> Iterator[str]:
        if self.drops_gates:
            yield f"{GATES} (it preempts at once: with orchestrated preemption it is asked when its turn has come)"
        if CONSTRAINTS in self.missing:
            yield f"{CONSTRAINTS} (jobs run there without)"
        if self.loses_long_names:
            yield f"names of Workloads over {MAX_LABEL_VALUE} characters (such jobs are not offered to it)"

    def without(self, dropped: Iterable[str]) -> WorkerKueue:
        """What is known once its answer to a copy lacks fields that were sent; see `dropped_fields`."""
        fields = {_INDEX.sub("[*]", path) for path in dropped}
        return attrs.evolve(self, missing=self.missing | fields.intersection(FIELDS))


def version_of(image: str) -> Version | None:
    """The version that the tag of an image tells; None: none."""
    tag = _TAG.search(image.partition("@")[0].rpartition("/")[2])
    return (int(tag[1]), int(tag[2])) if tag is not None else None


KUEUE: Final = "multikueue.dev/KueueComplete"
"""A condition: whether the worker's Kueue has what copies may need."""


def kueue_status(cluster: Json, kueue: WorkerKueue, now: datetime) -> Json | None:
    """The condition that says what the worker's Kueue lacks, or None if the object says the same already.

    A worker that never lacked anything has none.

    Args:
        cluster: the MultiKueueCluster.
        kueue: what is known of the worker's.
        now: the manager's wall clock.
    """
    before, lacks = condition(cluster, KUEUE), "; ".join(kueue.lacks)
    if not lacks and (before is None or not kueue.read):
        return None
    said = (False, "Older", f"{kueue.name} there lacks {lacks}") if lacks else (True, "Complete", f"{kueue.name} there")
    wanted = new_condition(KUEUE, *said, now=now, generation=dig(cluster, "metadata", "generation"))
    return None if says_the_same(before, wanted) else wanted


TOLD: Final = 5
"""Fields that are named; of the others the number."""


def dropped_fields(sent: Json, stored: Json) -> tuple[str, ...]:
    """The paths of fields of the spec that were sent with a value, and are not there in what was stored.

    A field that is empty, 0 or false counts as there: who writes an object anew leaves such fields out. Entries of a
    list are compared if there are as many as before.
    """
    return tuple(_missing(".spec", sent.get("spec"), stored.get("spec")))


def told_dropped(cluster: str, resource: Resource, sent: Json, stored: Json) -> str:
    """What a user should know of a copy that is not as it was sent; empty if it is.

    Args:
        cluster: the worker.
        resource: of the copy.
        sent: the copy.
        stored: what the worker answered.
    """
    dropped = dropped_fields(sent, stored)
    if not dropped:
        return ""
    more = f" and {len(dropped) - TOLD} more" if len(dropped) > TOLD else ""
    kind = resource.gvk.kind
    return (
        f'worker cluster "{cluster}" has left {", ".join(dropped[:TOLD])}{more} out of {kind} "{name_of(sent)}", which '
        f"runs there without: its API of {kind} is older than the manager's, or a webhook there removes them"
    )


def topology_of(workload: Json) -> Json:
    """A Workload with nothing but how its pods are to be placed: of the rest its worker's job has what it needs."""
    requests = [
        {"topologyRequest": pod_set.get("topologyRequest")} for pod_set in dig(workload, "spec", "podSets") or ()
    ]
    return {"metadata": workload["metadata"], "spec": {"podSets": requests}}


def _missing(path: str, sent: Any, stored: Any) -> Iterator[str]:
    if sent == stored:
        return
    if isinstance(sent, dict) and isinstance(stored, dict):
        for field, value in sent.items():
            if field in stored:
                yield from _missing(f"{path}.{field}", value, stored[field])
            elif value:
                yield f"{path}.{field}"
    elif isinstance(sent, list) and isinstance(stored, list) and len(sent) == len(stored):
        for number, (item, stored_item) in enumerate(zip(sent, stored, strict=True)):
            if item != stored_item:  # of tens of thousands few differ
                yield from _missing(f"{path}[{number}]", item, stored_item)
