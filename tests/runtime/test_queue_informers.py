"""The queues of a cluster: which change is told to whom."""

from __future__ import annotations

from typing import Final, cast

import attrs
import pytest

from multikueue.core.dispatchers.dispatcher import SILENT_AFTER, Known
from multikueue.core.model.names import Json, ObjectKey
from multikueue.kube.informers.informer import Informer
from multikueue.kube.informers.informer_status import InformerStatus
from multikueue.protocols import ApiClient
from multikueue.runtime.caches.queue_informers import QueueInformers

pytestmark = pytest.mark.looptime

KEY: Final = ObjectKey("default", "q")


def local(target: str | None, **metadata: str) -> Json:
    """A LocalQueue."""
    spec = {"clusterQueue": target} if target is not None else {}
    return {"metadata": {"name": "q", "namespace": "default", **metadata}, "spec": spec}


def queues(names: list[str], *, figures: bool = False, slim: bool = True) -> QueueInformers:
    """Informers that never run."""
    return QueueInformers.build(
        cast(ApiClient, None),
        lambda key: names.append(key.name),
        on_status=lambda _: names.append("status"),
        slim=slim,
        on_figures=(lambda: names.append("figures")) if figures else None,
    )


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (None, local("a"), ["a"]),
        (local("a"), None, ["a"]),
        (local("b"), local("a"), ["a", "b"]),
        (local("a"), local("a", uid="2"), []),
        (None, local(None), ["q"]),
    ],
)
async def test_the_cluster_queues_whose_sum_may_change_are_told(
    old: Json | None, new: Json | None, expected: list[str]
) -> None:
    """Those before and after; a ClusterQueue names none, and is meant itself."""
    names: list[str] = []
    queues(names).local_queues._on_change(KEY, old, new)
    assert names == expected


async def test_a_status_is_told_to_both() -> None:
    names: list[str] = []
    made = queues(names, figures=True)
    made.local_queues._on_status(made.local_queues.status)
    assert names == ["status", "figures"]


async def test_each_change_tells_figures_and_cohorts_are_followed_for_them_alone() -> None:
    names: list[str] = []
    made = queues(names, figures=True)
    assert made.cohorts is not None
    made.cluster_queues._on_change(KEY, local("a"), local("a", uid="2"))
    made.cohorts._on_change(KEY, {}, {})
    made.cohorts._on_status(made.cohorts.status)
    assert names == ["figures"] * 3
    assert queues(names).cohorts is None


@pytest.mark.parametrize(("figures", "slim", "kept"), [(False, True, False), (True, True, True), (False, False, True)])
async def test_the_status_of_a_queue_is_kept_if_somebody_reads_it(figures: bool, slim: bool, kept: bool) -> None:
    obj: Json = {"metadata": {"name": "q"}, "spec": {"resourceGroups": [], "cohort": "c"}, "status": {"x": 1}}
    queue = _kept(queues([], figures=figures, slim=slim).cluster_queues, obj)
    assert ("status" in queue, "cohort" in queue["spec"]) == (kept, kept)
    assert queue["spec"]["resourceGroups"] == []


def _kept(informer: Informer, obj: Json) -> Json:
    assert informer.transform is not None
    return informer.transform(obj) or {}


@pytest.mark.parametrize("synced", [(False, False), (True, False), (False, True), (True, True)])
async def test_they_are_known_once_both_are(synced: tuple[bool, bool]) -> None:
    made = queues([])
    for informer, yes in zip(made.both, synced, strict=True):
        informer.status = attrs.evolve(informer.status, synced=yes)
    assert made.known == all(synced)


async def test_a_local_queue_without_a_target_has_an_empty_one() -> None:
    made = queues([])
    made.local_queues.put(KEY, local(None))
    made.local_queues.put(ObjectKey("default", "r"), {**local("a"), "metadata": {"namespace": "default", "name": "r"}})
    assert list(made.targets()) == [(KEY, ""), (ObjectKey("default", "r"), "a")]


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize(
    ("status", "known"),
    [
        (InformerStatus(synced=True), Known.AWAITED),
        (InformerStatus(failures=1, failing_since=0.0), Known.AWAITED),
        (InformerStatus(failures=9, failing_since=-2 * SILENT_AFTER.total_seconds()), Known.SILENT),
        (InformerStatus(failures=1, failing_since=0.0, refused=True), Known.FORBIDDEN),
        (InformerStatus(failures=1, failing_since=0.0, unreadable=True), Known.ODD),
        (InformerStatus(synced=True, failures=1, failing_since=0.0, unreadable=True), Known.ODD),
    ],
)
async def test_figures_that_will_not_come_soon_are_not_awaited(
    which: int, status: InformerStatus, known: Known
) -> None:
    """A job waited without a word for a worker whose answers cannot be read: each of them counts as an answer."""
    made = queues([], figures=True)
    made.both[which].status = status
    made.both[1 - which].status = InformerStatus()
    assert made.figures_known is known
