"""Pods that only a label shows, of a kind whose controller does not set `blockOwnerDeletion`."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import attrs
import pytest

from multikueue.core.model.conditions import condition
from multikueue.core.model.labels import GIVE_UP_ANNOTATION, PLACEMENTS_ANNOTATION
from multikueue.core.model.names import Json
from tests.core.applying import carry_out
from tests.core.building import ADAPTER, copy_of, snapshot, worker, workload
from tests.core.door import NOW, WAITS, LookForPods, Lost, Snapshot, decide, those
from tests.core.wording import words

KIND = attrs.evolve(ADAPTER, pods_label="example.com/job")


def moved(**facts: Any) -> Json:
    local = workload(**facts)
    local["metadata"].setdefault("annotations", {})[PLACEMENTS_ANNOTATION] = (
        '[{"worker": "w1", "since": "2026-11-21T10:00:00Z"}]'
    )
    return local


POD: Json = {"metadata": {"name": "train-0", "namespace": "team", "uid": "pod"}, "status": {"phase": "Running"}}


def seen(pods: tuple[Json, ...] | None, local: Json | None = None, **facts: Any) -> Snapshot:
    return attrs.evolve(
        snapshot(local or moved(), worker("w1", pods=pods), worker("w2", pods=None), adapter=KIND), **facts
    )


@pytest.mark.parametrize("pods", [None, (POD,)], ids=["nobody has looked", "one is there"])
def test_nobody_is_offered_the_next_attempt_before_they_have_ended(pods: tuple[Json, ...] | None) -> None:
    decided = decide(seen(pods))
    looks = those(LookForPods, decided.effects)
    assert [(look.cluster, look.selector) for look in looks] == [("w1", "example.com/job=train")]
    assert not [word for word in words(seen(pods)) if word.startswith(("create", "record"))]
    assert decided.look_again == 2.0


@pytest.mark.parametrize(("quiet", "again"), [(2, 2.0), (16, 16.0), (90, 60.0), (86_400, 60.0)])
def test_they_are_looked_for_less_often_the_longer_they_are_there(quiet: int, again: float) -> None:
    assert decide(seen((POD,), quiet_for=timedelta(seconds=quiet))).look_again == again


def test_once_there_are_none_it_is_offered_anywhere() -> None:
    assert "create workload on w2" in words(seen((), moved(nominated=("w1", "w2"))))


def test_the_first_attempt_has_left_none() -> None:
    assert not those(LookForPods, decide(seen(None, workload())).effects)


def test_they_are_looked_for_though_kueue_has_made_the_workload_again() -> None:
    """It stops a job that was resized, and deletes its Workload: the next one names no placement while its pods run."""
    local = workload()
    decided = decide(seen(None, local, last_worker="w1"))
    assert [look.cluster for look in those(LookForPods, decided.effects)] == ["w1"]
    assert not [word for word in words(seen(None, local, last_worker="w1")) if word.startswith(("create", "record"))]


def test_while_they_do_not_end_others_get_the_quota() -> None:
    assert any(
        word.startswith("give back: Waiting for worker cluster")
        for word in words(seen((POD,), quiet_for=timedelta(seconds=90)))
    )


@pytest.mark.parametrize("pods", [None, (POD,)], ids=["nobody has looked since", "one is there"])
def test_without_quota_it_waits_for_them_all_the_same(pods: tuple[Json, ...] | None) -> None:
    """They were forgotten with the quota: its job looked as if it waited for nothing else."""
    waits = told_by(seen((POD,), moved(evictions=1)))
    queued = moved(evictions=1, quota=False)
    queued["status"]["conditions"].append(condition(waits, WAITS))
    assert condition(told_by(seen(pods, queued)), WAITS) is not None
    assert condition(told_by(seen((), queued)), WAITS) is None


def told_by(shown: Snapshot) -> Json:
    after = carry_out(shown, decide(shown))
    assert after.workload is not None
    return after.workload


def test_out_of_sight_they_may_run_until_their_worker_is_given_up() -> None:
    """Its copy went at once with its deletion, and nobody had looked for its pods when the worker was lost."""
    local = moved(nominated=("w2",))
    lost = worker("w1", pods=None, reach=Lost(NOW))
    shown = snapshot(local, lost, worker("w2", copy_of(local, admitted=True)), adapter=KIND, last_worker="w1")
    assert not [word for word in words(shown) if word.startswith("record")]


def test_a_person_may_give_them_up() -> None:
    local = moved()
    local["metadata"]["annotations"][GIVE_UP_ANNOTATION] = "w1/pod"
    assert not those(LookForPods, decide(seen((POD,), local)).effects)
