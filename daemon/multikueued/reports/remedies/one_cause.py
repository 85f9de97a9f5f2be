"""One cause is one finding: which ids tell of the same, and what becomes of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from types import MappingProxyType
from typing import Final, Protocol, TypeVar

CAUSES: Final = (
    ("kubeconfig-key", "kubeconfig-secret", "kubeconfig-unusable", "kubeconfig-refused"),
    ("credentials-expire", "bad-token"),
    ("worker-permission-missing", "rbac"),
    ("worker-without-kueue", "worker-without-kind", "crd-missing"),
    ("worker-namespace-missing", "namespace-missing"),
    ("worker-local-queue-missing", "local-queue-missing"),
    ("worker-cluster-queue", "queue-inactive"),
    ("never-fits", "quota-too-small"),
    ("worker-hung", "worker-down", "worker-not-connected"),
)
"""The ids of findings that tell of one cause: the one with the best remedy first."""
_PLACES: Final = MappingProxyType({name: (ids[0], place) for ids in CAUSES for place, name in enumerate(ids)})


class Told(Protocol):
    """What findings have in common."""

    @property
    def id(self) -> str:
        """Of the finding."""

    @property
    def object(self) -> str:
        """What it is about; empty: its workers."""

    @property
    def workers(self) -> tuple[str, ...]:
        """Those that show it; none: it is about the manager."""


T = TypeVar("T", bound=Told)


def one_each(findings: Iterable[T]) -> list[tuple[T, tuple[T, ...]]]:
    """Each cause once, in the order of the findings: the one with the best remedy, and the others that tell of it.

    What is about the manager stands for itself, and so do two findings of one id about workers alone.
    """
    by_cause: dict[str, list[tuple[int, int, T]]] = defaultdict(list)
    for number, one in enumerate(findings):
        cause, place = _PLACES.get(one.id, (one.id, 0))
        by_cause[cause].append((place, number, one))
    kept: list[tuple[int, T, tuple[T, ...]]] = []
    for alike in by_cause.values():
        alike.sort(key=lambda each: each[:2])
        best: list[tuple[int, T, list[T]]] = []
        for _, number, one in alike:
            behind = next((others for _, better, others in best if _tells(better, one)), None)
            if behind is None:
                best.append((number, one, []))
            else:
                behind.append(one)
        kept += [(number, one, tuple(others)) for number, one, others in best]
    return [(one, others) for _, one, others in sorted(kept, key=lambda each: each[0])]


def _tells(better: Told, other: Told) -> bool:
    """Whether a finding tells of what the other does."""
    if better.object or other.object:
        return better.object == other.object and bool(better.workers)
    return better.id != other.id and bool(better.workers) and set(other.workers) <= set(better.workers)
