"""In which namespace of a worker copies are made: written first, and never another one while something is there."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import attrs
import pytest

from multikueue.core.model.labels import (
    LAST_WORKER_ANNOTATION,
    NAMESPACE_ON_ANNOTATION,
    NAMESPACES_ANNOTATION,
    QUEUES_ANNOTATION,
)
from multikueue.core.model.names import ClusterName, Json, ObjectKey
from multikueue.core.model.objects import clone
from tests.core.building import EARLIER, UNMARKED, copy_of, snapshot, worker, workload
from tests.core.door import (
    MANAGER,
    ApplyStatus,
    CreateWorkload,
    Creating,
    PatchWorkload,
    Snapshot,
    Unanswered,
    decide,
    only,
    sole,
    those,
)
from tests.core.wording import words

MAPPED = {NAMESPACES_ANNOTATION: '{"*": "mk-*"}'}
OFFERED = workload(nominated=("w1",))
RECORDED = workload(cluster="w1")
HERE = OFFERED["metadata"]["namespace"]
THERE = f"mk-{HERE}"
W1 = ClusterName("w1")


def noted(obj: Json, places: Mapping[str, str]) -> Json:
    made: Json = clone(obj)
    made["metadata"].setdefault("annotations", {})[NAMESPACE_ON_ANNOTATION] = json.dumps(places)
    return made


def of(local: Json, **facts: Any) -> Snapshot:
    return snapshot(local, attrs.evolve(worker("w1"), annotations=MAPPED, **facts))


def test_the_namespace_is_written_before_the_first_copy_is_made_there() -> None:
    effects = decide(of(OFFERED)).effects
    assert not those(CreateWorkload, effects)
    write = only(PatchWorkload, effects)
    assert (write.cluster, write.key) == (MANAGER, ObjectKey.of(OFFERED))
    assert json.loads(write.patch["metadata"]["annotations"][NAMESPACE_ON_ANNOTATION]) == {"w1": THERE}
    assert write.patch["metadata"]["uid"] == OFFERED["metadata"]["uid"]

    effects = decide(of(noted(OFFERED, {"w1": THERE}), namespace=THERE)).effects
    made = only(CreateWorkload, effects)
    assert made.object["metadata"]["namespace"] == THERE
    assert NAMESPACE_ON_ANNOTATION not in made.object["metadata"]["annotations"]
    assert not those(PatchWorkload, effects)


def test_the_note_is_the_only_write_on_the_manager_until_it_is_seen() -> None:
    """All others are made from the same version of the Workload, and would be refused; they are decided anew."""
    new = workload()
    assert [type(effect) for effect in decide(of(new)).effects] == [PatchWorkload]
    after = decide(of(noted(new, {"w1": THERE}), namespace=THERE)).effects
    assert [type(effect) for effect in after] == [ApplyStatus, CreateWorkload]


def test_without_names_of_its_own_nothing_is_written() -> None:
    effects = decide(snapshot(OFFERED, worker("w1"))).effects
    assert [type(effect) for effect in effects] == [CreateWorkload]


def place_of(seen: Snapshot) -> str:
    """The namespace of w1 in which something is made, or that is written before that."""
    effects = decide(seen).effects
    for made in those(CreateWorkload, effects):
        return str(made.object["metadata"]["namespace"])
    written = only(PatchWorkload, effects).patch["metadata"]["annotations"][NAMESPACE_ON_ANNOTATION]
    return str(json.loads(written)["w1"])


@pytest.mark.parametrize(
    ("local", "facts"),
    [
        (RECORDED, {"copy": copy_of(RECORDED, admitted=True)}),
        (OFFERED, {"in_flight": Creating()}),
        (OFFERED, {"creation": Unanswered(timedelta(seconds=1))}),
    ],
)
def test_while_anything_is_or_may_be_there_it_keeps_its_namespace(local: Json, facts: dict[str, Any]) -> None:
    """Else a job could be made twice on one worker, in two namespaces."""
    assert place_of(of(local, namespace="before", **facts)) == "before"


def test_a_creation_without_an_answer_keeps_its_namespace_though_somebody_has_removed_the_note() -> None:
    """The copy was made in the manager's namespace then, which may be somebody else's there."""
    assert place_of(of(OFFERED, creation=Unanswered(timedelta(seconds=1), "before"))) == "before"


@pytest.mark.parametrize(("facts", "there"), [({}, THERE), ({"namespace_proven": True}, "before")])
def test_the_recorded_worker_keeps_its_namespace_where_others_of_the_job_are(facts: dict[str, Any], there: str) -> None:
    """Where nothing is, anybody may have written that it is there."""
    slice_ = workload(cluster="w1", elastic=True, replaces="older")
    assert place_of(of(slice_, namespace="before", **facts)) == there


def test_a_slice_says_where_it_is_once_others_of_its_job_show_it() -> None:
    """Kueue records its worker. A creation writes the note, but where the job could not be read none was sent, and once
    the slice before was gone its copy was made in the manager's namespace."""
    before = noted(workload(cluster="w1"), {"w1": "before"})
    seen = attrs.evolve(of(workload(cluster="w1"), namespace="before"), siblings=(before,), unreadable_job="odd")
    write = only(PatchWorkload, decide(seen).effects)
    assert json.loads(write.patch["metadata"]["annotations"][NAMESPACE_ON_ANNOTATION]) == {"w1": "before"}
    said = attrs.evolve(seen, workload=noted(workload(cluster="w1"), {"w1": "before"}))
    assert not those(PatchWorkload, decide(said).effects)


def test_others_of_its_job_that_have_ended_decide_nothing() -> None:
    """A slice that never started had been recorded there; the next one was made in the manager's namespace."""
    over = workload(cluster="w1", finished="FailedToStart")
    running = workload(cluster="w1")
    seen = attrs.evolve(of(OFFERED), siblings=(over,))
    assert place_of(seen) == THERE
    seen = attrs.evolve(of(OFFERED), siblings=(running,))
    assert place_of(seen) == HERE


def test_a_queue_of_another_name_is_no_difference_and_a_new_name_remakes_what_is_only_offered() -> None:
    here = OFFERED["spec"]["queueName"]
    renamed = {QUEUES_ANNOTATION: json.dumps({here: "theirs"})}
    there = attrs.evolve(worker("w1"), annotations=renamed)
    made = sole(CreateWorkload, decide(snapshot(OFFERED, there)).effects)
    assert made.object["spec"]["queueName"] == "theirs"

    copy = {**made.object, "metadata": {**made.object["metadata"], "uid": "u"}, "status": {"conditions": []}}
    kept = decide(snapshot(OFFERED, attrs.evolve(there, copy=copy)))
    assert not kept.effects
    remade = decide(snapshot(OFFERED, attrs.evolve(worker("w1"), copy=copy)))
    assert [type(effect).__name__ for effect in remade.effects] == ["DeleteWorkload"]


def test_a_worker_that_has_no_namespace_for_it_gets_nothing() -> None:
    nowhere = attrs.evolve(worker("w1"), annotations={NAMESPACES_ANNOTATION: "{}"})
    assert not [effect for effect in decide(snapshot(OFFERED, nowhere)).effects if effect.cluster != MANAGER]


def test_unproven_copies_under_the_name_here_count_only_where_the_workload_has_been() -> None:
    """Elsewhere the namespace of that name is somebody else's; a job that an eviction left unseen is waited for."""
    copy = copy_of(OFFERED, attempt=UNMARKED, admitted=True)
    stranger = of(OFFERED, copy=copy)
    assert words(stranger) == words(of(OFFERED))
    evicted = clone(OFFERED)
    evicted["metadata"]["annotations"] = {LAST_WORKER_ANNOTATION: "w1"}
    for seen in (attrs.evolve(stranger, last_worker=W1), attrs.evolve(stranger, workload=evicted)):
        assert "delete workload on w1" in words(seen)
    assert words(of(RECORDED, copy=copy)) == ["create job on w1"]
    ours = of(OFFERED, copy=copy_of(OFFERED, attempt=EARLIER))
    assert words(ours) == ["delete workload on w1"]
