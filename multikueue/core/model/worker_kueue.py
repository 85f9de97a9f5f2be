"""What a worker's Kueue lacks of what copies may need: by its API's schema, and by its version."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias

import attrs

from multikueue.core.model.labels import MAX_LABEL_VALUE

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
        found = {_INDEX.sub("[*]", path) for path in dropped}
        return attrs.evolve(self, missing=self.missing | found.intersection(FIELDS))


def version_of(image: str) -> Version | None:
    """The version that the tag of an image tells; None: none."""
    found = _TAG.search(image.partition("@")[0].rpartition("/")[2])
    return (int(found[1]), int(found[2])) if found is not None else None
