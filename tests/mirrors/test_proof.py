"""Names of nodes, and the proof by which a mirror of our making is told from anything else."""

from __future__ import annotations

from typing import Any

import pytest

from multikueue.core.model.names import Json, ObjectKey
from multikueued.mirror_names import NODE_PREFIX, PROOF, WORKER, WORKER_POD, WORKER_POD_UID, node_name, worker_label
from multikueued.mirrors.proof import ProvenMirror, proof, proven

KEY = b"0123456789abcdef"
SAID: dict[str, str] = {
    "mirror_uid": "m-1",
    "worker": "worker1",
    "worker_pod": "mk-team-a/train-0",
    "worker_pod_uid": "w-1",
}


def a_mirror(said: dict[str, str] = SAID, key: bytes = KEY) -> Json:
    """A mirror whose annotations are true, and whose proof was made of what is told."""
    annotations = {WORKER: "worker1", WORKER_POD: "mk-team-a/train-0", WORKER_POD_UID: "w-1"}
    annotations[PROOF] = proof(key, **said)
    return {"metadata": {"namespace": "team-a", "name": "train-0", "uid": "m-1", "annotations": annotations}}


def test_a_mirror_that_we_have_made_says_which_pod_it_shows() -> None:
    there = ObjectKey("mk-team-a", "train-0")
    assert proven(KEY, a_mirror()) == ProvenMirror("team-a", "train-0", "m-1", "worker1", there, "w-1")


@pytest.mark.parametrize("field", SAID)
def test_a_proof_is_worth_nothing_for_another(field: str) -> None:
    assert proven(KEY, a_mirror({**SAID, field: f"{SAID[field]}2"})) is None


def test_a_proof_of_another_key_is_none() -> None:
    assert proven(KEY, a_mirror(key=b"another key of 16")) is None


@pytest.mark.parametrize("key", [None, b""])
def test_without_a_key_nothing_is_proven(key: bytes | None) -> None:
    assert proven(key, a_mirror(key=b"")) is None


@pytest.mark.parametrize("name", [WORKER, WORKER_POD, WORKER_POD_UID, PROOF])
@pytest.mark.parametrize("value", [None, "", "other", "worker1/", "é"])
def test_a_mirror_whose_annotations_are_changed_is_none(name: str, value: Any) -> None:
    mirror = a_mirror()
    mirror["metadata"]["annotations"][name] = value
    assert proven(KEY, mirror) is None


def test_a_pod_that_takes_over_the_annotations_of_a_mirror_is_none() -> None:
    """That broke the trial: a tenant deletes the mirror, and makes it by hand."""
    mirror = a_mirror()
    mirror["metadata"]["uid"] = "m-2"
    assert proven(KEY, mirror) is None


def test_a_pod_of_somebody_else_is_none() -> None:
    assert proven(KEY, {"metadata": {"namespace": "team-a", "name": "web", "uid": "p"}}) is None


@pytest.mark.parametrize(("first", "second"), [(("w", "a/b"), ("wa", "/b")), (('w","a', "b/c"), ("w", 'a","b/c'))])
def test_no_field_runs_into_the_next(first: tuple[str, str], second: tuple[str, str]) -> None:
    first_said, other = ({**SAID, "worker": worker, "worker_pod": pod} for worker, pod in (first, second))
    assert proof(KEY, **first_said) != proof(KEY, **other)


def test_a_node_is_called_after_its_worker() -> None:
    assert node_name("worker1") == f"{NODE_PREFIX}worker1" == "multikueue-worker1"
    assert worker_label("worker1") == "worker1"


def test_long_names_fit_and_stay_apart() -> None:
    long, longer = "w" * 250, "w" * 251
    assert {len(node_name(long)), len(node_name(longer))} == {253}
    assert {len(worker_label(long)), len(worker_label(longer))} == {63}
    assert node_name(long) != node_name(longer)
    assert worker_label(long) != worker_label(longer)
