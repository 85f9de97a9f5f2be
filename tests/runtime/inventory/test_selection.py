"""Which ManagedClusters become workers, and which change has which of them looked at."""

from __future__ import annotations

from typing import Any, Final, cast

import attrs
import pytest

from multikueue.core.inventory.names import ADDON_FINALIZER
from multikueue.core.inventory.ocm_workers.spoke import SPOKE_ANNOTATION
from multikueue.core.model.kinds import MULTIKUEUE_CLUSTER, MULTIKUEUE_CONFIG, SECRET
from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.protocols import ApiClient
from multikueue.runtime.controller import Process
from multikueue.runtime.inventory.caches import HubCaches, OcmCaches, when_readable
from multikueue.runtime.inventory.selection import PlacementSelection
from multikueue.runtime.inventory.spokes import Spokes
from tests.runtime.fleet import now
from tests.runtime.inventory.hub import Chosen, settings
from tests.runtime.inventory.test_caches import KEY, caches
from tests.runtime.inventory.test_handlers import check, cluster, config, of_kueue

pytestmark = pytest.mark.looptime

NAMESPACE: Final = "kueue-system"
LABEL: Final = "cluster.open-cluster-management.io/placement"


def decision(*names: str, placement: str = "a") -> Json:
    """A PlacementDecision."""
    metadata = {"name": "d", "namespace": NAMESPACE, "labels": {LABEL: placement}}
    return {"metadata": metadata, "status": {"decisions": [{"clusterName": name, "reason": ""} for name in names]}}


def marked(obj: Json, **metadata: Any) -> Json:
    """An object with other metadata."""
    return {**obj, "metadata": {**obj["metadata"], **metadata}}


@attrs.define(eq=False)
class Wired:
    """A selection over caches with the Placement of one check, and who was told of what."""

    hub: HubCaches = attrs.field(factory=caches)
    ocm: OcmCaches = attrs.field(
        factory=lambda: OcmCaches.build(cast(ApiClient, None), NAMESPACE, lambda: None, lambda: 0.0)
    )
    named: list[str] = attrs.field(factory=list)
    selection: PlacementSelection = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.selection = PlacementSelection(self.hub, self.ocm)
        self.selection.listen(self.named.append, lambda: self.named.append("all"))
        self.hub.checks.put(ObjectKey("", "a"), check("a"))
        self.ocm.placements.put(ObjectKey(NAMESPACE, "a"), {"metadata": {"name": "a", "namespace": NAMESPACE}})
        self.ocm.decisions.put(ObjectKey(NAMESPACE, "d"), decision("c1"))

    def read(self) -> None:
        """All of OCM's kinds have been read."""
        for informer in (self.ocm.placements, self.ocm.decisions, self.ocm.scores):
            informer.status = informer.status.listed()


async def test_what_a_placement_selects_is_known_once_all_has_been_read() -> None:
    wired = Wired()
    assert (wired.selection.known, wired.selection.selects("c1")) == (False, False)
    wired.read()
    assert (wired.selection.known, wired.selection.selects("c1"), wired.selection.selects("c2")) == (True, True, False)


@pytest.mark.parametrize(
    ("shown", "known", "selects"),
    [
        (check("a"), True, True),
        (check("a", placement="another"), True, False),
        (marked(check("a"), deletionTimestamp="2026-01-01T00:00:00Z"), True, False),
        (marked(check("a"), finalizers=[ADDON_FINALIZER]), False, True),
        (marked(of_kueue("a"), finalizers=[ADDON_FINALIZER]), True, False),
    ],
)
async def test_checks_that_count(shown: Json, known: bool, selects: bool) -> None:
    """One that ends selects nothing; while the addon has one, nothing is ours to follow."""
    wired = Wired()
    wired.read()
    wired.hub.checks.put(ObjectKey("", "a"), shown)
    assert (wired.selection.known, wired.selection.selects("c1")) == (known, selects)


@pytest.mark.parametrize(
    ("old", "new", "names"),
    [
        (None, decision("c1", "c2"), ["c1", "c2"]),
        (decision("c1"), None, ["c1"]),
        (decision("c1", "c2"), decision("c2", "c3"), ["c1", "c3"]),
        (decision("c1"), decision("c1"), []),
        (None, {"metadata": {"name": "d"}, "status": {"decisions": [{"clusterName": ""}, {}]}}, []),
        (None, {"metadata": {"name": "d"}, "status": {"decisions": "odd"}}, []),
    ],
)
async def test_a_decision_tells_the_clusters_that_come_and_go(
    old: Json | None, new: Json | None, names: list[str]
) -> None:
    wired = Wired()
    wired.ocm.decisions._on_change(KEY, old, new)
    assert wired.named == names


ENDING: Final = {"deletionTimestamp": "2026-01-01T00:00:00Z"}


@pytest.mark.parametrize(
    ("old", "new", "tells"),
    [
        (None, check("a"), True),
        (check("a"), None, True),
        (check("a"), marked(check("a"), uid="2"), True),
        (check("a"), marked(check("a"), **ENDING), True),
        (check("a"), check("a", placement="b"), True),
        (check("a"), marked(check("a"), finalizers=[ADDON_FINALIZER]), True),
        (check("a"), marked(check("a"), labels={"x": "y"}), False),
        (marked(of_kueue("a"), name="a", uid="a"), check("a"), True),
    ],
)
async def test_a_check_tells_all_if_it_means_something_else(old: Json | None, new: Json | None, tells: bool) -> None:
    wired = Wired()
    wired.hub.checks._on_change(KEY, old, new)
    assert wired.named == (["all"] if tells else [])


@pytest.mark.parametrize(
    ("changed", "tells"),
    [({"uid": "2"}, True), (ENDING, True), ({"labels": {"x": "y"}}, False), ({"name": "a"}, False)],
)
async def test_a_placement_tells_all_if_it_is_another_or_ends(changed: Json, tells: bool) -> None:
    wired = Wired()
    before: Json = {"metadata": {"name": "a", "uid": "1"}}
    wired.ocm.placements._on_change(KEY, before, marked(before, **changed))
    assert wired.named == (["all"] if tells else [])


async def test_a_kind_tells_when_it_is_read_and_when_it_begins_or_ceases_to_fail() -> None:
    calls: list[int] = []
    changed = when_readable(lambda: calls.append(1))
    status = caches().checks.status
    for step, total in (
        (status, 0),
        (status.listed(), 1),
        (status.listed().listed(), 1),
        (attrs.evolve(status.listed(), failures=1), 2),
        (attrs.evolve(status.listed(), failures=2), 2),
        (status.listed(), 3),
    ):
        changed(step)
        assert len(calls) == total


def spokes(hub: HubCaches) -> Spokes:
    """The workers of spokes, before they run."""
    client = cast(ApiClient, None)
    process = Process(now, lambda: 0.0, "test")
    # Any informer will do: nothing runs, and nothing is read.
    return Spokes(client, client, hub, caches().configs, Chosen(), settings(), process)


def due(made: Spokes) -> list[str]:
    """The spokes that are to be looked at."""
    names = []
    queue = made.controller.queue
    while (key := queue.take()) is not None:
        queue.release(key)
        names.append(key.name)
    return names


@pytest.mark.parametrize(
    ("resource", "old", "new", "names"),
    [
        (MULTIKUEUE_CLUSTER, None, cluster("c1"), ["c1"]),
        (MULTIKUEUE_CLUSTER, cluster("c1"), None, ["c1"]),
        (MULTIKUEUE_CONFIG, config("a", "w1"), config("a", "w2"), ["w1", "w2"]),
        (MULTIKUEUE_CONFIG, None, config("a", "renamed"), ["renamed", "c9"]),
        (SECRET, None, {}, []),
    ],
)
async def test_what_shows_on_the_hub_concerns_spokes(
    resource: Resource, old: Json | None, new: Json | None, names: list[str]
) -> None:
    """By the name of a worker, or by what that notes."""
    hub = caches()
    hub.clusters.put(ObjectKey("", "renamed"), marked(cluster("renamed"), annotations={SPOKE_ANNOTATION: "c9"}))
    made = spokes(hub)
    made._changed(resource, ObjectKey("", "x"), old, new)
    assert due(made) == names


@pytest.mark.parametrize(
    ("secret", "names"),
    [
        ("multikueue-c1", ["c1"]),
        ("c1-multikueue", ["c1"]),
        ("kueue-admin-c1-kubeconfig", ["c1"]),
        ("multikueue-", []),
        ("another", []),
        ("multikueue-multikueue", ["multikueue"]),
    ],
)
async def test_a_secret_concerns_the_spokes_whose_it_may_be(secret: str, names: list[str]) -> None:
    made = spokes(caches())
    made._changed(SECRET, ObjectKey(NAMESPACE, secret), None, {})
    assert due(made) == names


async def test_all_are_those_of_which_anything_is_there() -> None:
    hub = caches()
    hub.clusters.put(ObjectKey("", "w1"), cluster("w1"))
    made = spokes(hub)
    made.informers.clusters.put(ObjectKey("", "c1"), {"metadata": {"name": "c1"}})
    made.informers.accounts.put(ObjectKey("c2", "multikueue"), {})
    made.informers.permissions.put(ObjectKey("c3", "multikueue"), {})
    made.enqueue_all()
    assert due(made) == ["c1", "c2", "c3", "w1"]
    assert made.problem("c1") == ""
