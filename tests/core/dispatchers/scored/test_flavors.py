"""Which flavors pods may use: the rule of Kueue's flavor assigner, and what follows for room."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from multikueue.core.dispatchers.scored import kueue_objects
from multikueue.core.dispatchers.scored.entries import Entry
from multikueue.core.dispatchers.scored.facts import Group, PodSet, QueueFacts, ResourceRequest
from multikueue.core.dispatchers.scored.ledger import Ledger
from multikueue.core.dispatchers.scored.room import placed
from multikueue.core.model.flavors import MOST_DEMANDS, MOST_MARKS, Flavor, Pods, flavors
from multikueue.core.model.names import ClusterName, Json, ObjectKey
from multikueue.core.model.shape import LONGEST, pods_flaw
from multikueue.errors import Cause
from tests.core.building import workload
from tests.core.dispatchers.scored.pending import pending, queue, why
from tests.core.door import NOW
from tests.core.odd_shapes import ODD, paths, spoiled

T4, A100, ANY = "t4", "a100", "any"
PLACE = (ClusterName("w1"), "queue")


def flavor(name: str, labels: Json | None = None, **more: Any) -> Json:
    return {"metadata": {"name": name}, "spec": {"nodeLabels": labels or {}, **more}}


def affinity(*terms: Json) -> Json:
    required = {"nodeSelectorTerms": list(terms)}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}}


def expressions(*terms: tuple[str, str, list[str]]) -> Json:
    return {"matchExpressions": [{"key": key, "operator": how, "values": values} for key, how, values in terms]}


MODELS = (flavor(T4, {"gpu": "t4", "memory": "16"}), flavor(A100, {"gpu": "a100", "memory": "80"}), flavor(ANY))
SPOT = {"key": "spot", "value": "yes", "effect": "NoSchedule"}


def usable(pods: Json, *objects: Json, names: tuple[str, ...] = (T4, A100, ANY)) -> tuple[str, ...]:
    known = tuple(flavors(objects).values())
    return Group(frozenset({"gpu"}), names, known).usable(Pods.of(pods))


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        ({}, (T4, A100, ANY)),
        ({"nodeSelector": {"gpu": "a100"}}, (A100,)),
        ({"nodeSelector": {"gpu": "h100"}}, ()),
        ({"nodeSelector": {"disk": "ssd"}}, (T4, A100, ANY)),  # a key that no flavor of the group has
        ({"nodeSelector": {"disk": "ssd", "gpu": "t4"}}, (T4,)),
        (affinity(expressions(("gpu", "In", ["a100", "t4"]))), (T4, A100)),
        (affinity(expressions(("gpu", "NotIn", ["t4"]))), (A100, ANY)),
        (affinity(expressions(("gpu", "Exists", []))), (T4, A100)),
        (affinity(expressions(("gpu", "DoesNotExist", []))), (ANY,)),
        (affinity(expressions(("memory", "Gt", ["40"]))), (A100,)),
        (affinity(expressions(("memory", "Lt", ["40"]))), (T4,)),
        (affinity(expressions(("gpu", "Gt", ["40"]))), ()),
        (affinity(expressions(("gpu", "In", ["a100"]), ("memory", "Lt", ["40"]))), ()),
        (affinity(expressions(("gpu", "In", ["t4"])), expressions(("memory", "Gt", ["40"]))), (T4, A100)),
        (affinity(expressions(("gpu", "In", ["t4"])), expressions(("disk", "Exists", []))), (T4, A100, ANY)),
        (affinity({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}), (T4, A100, ANY)),
        ({"nodeSelector": {"gpu": "a100"}, **affinity(expressions(("memory", "Lt", ["40"])))}, ()),
        ({"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{}]}}}, (T4, A100, ANY)),
    ],
)
def test_labels(pods: Json, expected: tuple[str, ...]) -> None:
    assert usable(pods, *MODELS) == expected


@pytest.mark.parametrize(
    ("toleration", "tolerates"),
    [
        ({"key": "spot", "value": "yes"}, True),
        ({"key": "spot", "operator": "Equal", "value": "no"}, False),
        ({"key": "spot", "operator": "Exists"}, True),
        ({"operator": "Exists"}, True),
        ({"key": "other", "operator": "Exists"}, False),
        ({"key": "spot", "operator": "Exists", "effect": "NoSchedule"}, True),
        ({"key": "spot", "operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "spot", "operator": "Gt", "value": "1"}, False),  # the taint's value is no number
    ],
)
def test_taints(toleration: Json, tolerates: bool) -> None:
    expected = (T4,) if tolerates else ()
    assert usable({"tolerations": [toleration]}, flavor(T4, nodeTaints=[SPOT]), names=(T4,)) == expected
    theirs = flavor(T4, nodeTaints=[SPOT], tolerations=[toleration])
    assert usable({}, theirs, names=(T4,)) == expected, "a flavor's tolerations are added to its pods"


@pytest.mark.parametrize(("effect", "excludes"), [("NoExecute", True), ("PreferNoSchedule", False)])
def test_effects(effect: str, excludes: bool) -> None:
    assert bool(usable({}, flavor(T4, nodeTaints=[{**SPOT, "effect": effect}]), names=(T4,))) is not excludes


def test_taints_are_compared_as_numbers_where_a_toleration_says_so() -> None:
    tainted = flavor(T4, nodeTaints=[{**SPOT, "value": "5"}])
    for operator, expected in (("Gt", (T4,)), ("Lt", ())):
        pods = {"tolerations": [{"key": "spot", "operator": operator, "value": "3"}]}
        assert usable(pods, tainted, names=(T4,)) == expected


@pytest.mark.parametrize(
    "unknown",
    [
        (),
        (flavor(T4, {"gpu": 1}),),
        (flavor(T4, {str(number): "x" for number in range(MOST_MARKS + 1)}),),
        (flavor(T4, {"gpu": "t4"}, topologyName="racks"),),
        (flavor(T4, {"gpu": "x" * (LONGEST + 1)}),),
        ({"spec": {}},),
    ],
)
def test_an_unknown_flavor_excludes_nothing(unknown: tuple[Json, ...]) -> None:
    assert usable({"nodeSelector": {"gpu": "a100"}}, *MODELS[1:], *unknown) == (T4, A100)


def test_pods_that_demand_too_much_or_what_cannot_be_read_may_use_any() -> None:
    many = affinity(expressions(("gpu", "In", ["x"] * MOST_DEMANDS)))
    long = {"nodeSelector": {"gpu": "x" * (LONGEST + 1)}}
    for pods in (many, long, {"nodeSelector": ["gpu"]}, {"tolerations": [{"key": 1}]}):
        assert usable(pods, *MODELS) == (T4, A100, ANY)


@given(st.data(), ODD)
def test_flavors_and_pods_of_any_shape_can_be_read(data: st.DataObject, odd: object) -> None:
    pods = {"nodeSelector": {"gpu": "a"}, "tolerations": [SPOT], **affinity(expressions(("gpu", "Gt", ["1"])))}
    shown = spoiled(pods, data.draw(st.sampled_from([*paths(pods)])), odd)
    obj = flavor(T4, {"gpu": "5"}, nodeTaints=[SPOT], tolerations=[SPOT])
    theirs = spoiled(obj, data.draw(st.sampled_from([*paths(obj)])), odd)
    assert usable(shown, theirs, obj) is not None
    assert (Pods.of(shown) is None) >= bool(pods_flaw(shown))


def two_models(free_t4: int, free_a100: int, **more: Any) -> QueueFacts:
    """A worker's queue with two flavors."""
    known = tuple(flavors(MODELS[:2]).values())
    free = {(T4, "gpu"): free_t4, (A100, "gpu"): free_a100}
    full = {(T4, "gpu"): 16, (A100, "gpu"): 8}
    groups = (Group(frozenset({"gpu"}), (T4, A100), known),)
    return attrs.evolve(queue(), groups=groups, free=free, ceiling=full, nominal=full, **more)


def wanting(gpus: int, model: str) -> ResourceRequest:
    return ResourceRequest((PodSet({"gpu": gpus}, pods=Pods.of({"nodeSelector": {"gpu": model}})),))


def test_each_pod_set_gets_a_flavor_it_may_use() -> None:
    request = ResourceRequest((*wanting(2, A100).pod_sets, *wanting(3, T4).pod_sets, PodSet({"gpu": 1})))
    assert placed(request, two_models(8, 8).groups, {(T4, "gpu"): 8, (A100, "gpu"): 8}) == {
        (A100, "gpu"): 2,
        (T4, "gpu"): 4,
    }


@pytest.mark.parametrize(
    ("gpus", "model", "expected", "detail"),
    [
        (4, A100, Cause.NO_ROOM, "needs 4m gpu, 0 of a100"),
        (12, A100, Cause.NEVER_FITS, "no flavor could ever hold 12m gpu, 8m of a100"),
        (
            4,
            "h100",
            Cause.NEVER_FITS,
            "no flavor could ever hold pods with its node selector, affinity and tolerations",
        ),
    ],
)
def test_room_in_another_flavor_is_none(gpus: int, model: str, expected: Cause, detail: str) -> None:
    waiting = pending({"w1": two_models(16, 0), "w2": queue(0)}, request=wanting(gpus, model))
    answer = waiting.ask()
    assert (answer.names, why(answer)["w1"]) == ((), expected)
    assert str(answer.reasons[ClusterName("w1")]) == detail


def test_it_goes_where_the_flavor_it_may_use_has_room() -> None:
    waiting = pending({"w1": two_models(16, 2), "w2": two_models(0, 4)}, request=wanting(4, A100))
    assert waiting.ask().names == ("w2",)


def entry(name: str, model: str, seconds: int = 0) -> Entry:
    key = ObjectKey("default", name)
    return Entry(key, name, "cq", 0, NOW, NOW, wanting(4, model), (PLACE,))


def test_claims_are_to_the_flavor_that_they_may_use() -> None:
    ledger = Ledger()
    ledger.set_queue(PLACE, two_models(4, 4))
    ledger.put(entry("a", A100))
    ledger.put(entry("t", T4))
    assert set(ledger.woken(NOW)) == {ObjectKey("default", "a"), ObjectKey("default", "t")}
    ledger.put(entry("a", A100))
    net = ledger.net(ObjectKey("default", "new"), PLACE, NOW)
    assert net == {(T4, "gpu"): 0, (A100, "gpu"): 0}


def test_a_changed_flavor_changes_who_may_go_there() -> None:
    facts = two_models(4, 4)
    groups = (attrs.evolve(facts.groups[0], known=(Flavor(T4, (("gpu", "a100"),)),)),)
    assert attrs.evolve(facts, groups=groups).terms != facts.terms


def test_what_kueue_says_of_a_workload_and_a_worker() -> None:
    """From the objects: pod sets by name, and flavors only where one of the group excludes pods."""
    obj = workload()
    obj["spec"]["podSets"] = [
        {"name": "main", "count": 1, "template": {"spec": {"nodeSelector": {"gpu": "t4"}}}},
        {"name": "bare", "count": 1},
    ]
    usage = {"resourceUsage": {"gpu": 1}}
    obj["status"]["admission"]["podSetAssignments"] = [{"name": name, **usage} for name in ("main", "bare", "odd")]
    request = kueue_objects.request(obj)
    assert request is not None
    assert [pod_set.pods for pod_set in request.pod_sets] == [Pods.of({"nodeSelector": {"gpu": "t4"}}), None, None]

    group = {"coveredResources": ["gpu"], "flavors": [{"name": T4}, {"name": ANY}]}
    made = {"metadata": {"name": "q"}, "spec": {"resourceGroups": [group]}}
    for known, expected in (({T4: MODELS[0]}, True), ({ANY: MODELS[2]}, False)):
        tree = kueue_objects.tree([made], [], flavors(known.values()))
        assert bool(kueue_objects.queue_facts(tree, made, NOW).groups[0].known) is expected
