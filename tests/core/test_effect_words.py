"""What the debug log says of a decision: objects, and not the names of classes."""

from __future__ import annotations

import sys

import pytest

from multikueue.core.effect_words import describe
from multikueue.core.model.dependencies import Dependency, DependencyMark
from multikueue.core.model.kinds import JOB
from multikueue.core.model.names import ClusterName, Json, ObjectKey
from tests.core.door import (
    MANAGER,
    AnnounceWorkload,
    ApplyStatus,
    CheckDependencies,
    CountAdmitted,
    CountRejections,
    CreateDependencies,
    CreateJob,
    CreateWorkload,
    DeleteJob,
    DeleteWorkload,
    Effect,
    LookForPods,
    OwnDependencies,
    PatchJob,
    PatchJobStatus,
    PatchWorkload,
)

W1, KEY = ClusterName("w1"), ObjectKey("team", "train")
OBJECT: Json = {"metadata": {"namespace": "team", "name": "train"}}
NEEDED, SEAL = (Dependency("ConfigMap", "a"), Dependency("Secret", "b")), DependencyMark(b"secret")


WORDS: tuple[tuple[Effect, str], ...] = (
    (ApplyStatus(MANAGER, OBJECT, "m"), "apply the status of Workload team/train on the manager"),
    (PatchJobStatus(JOB, KEY, {}), "patch the status of jobs.batch team/train on the manager"),
    (AnnounceWorkload("Normal", "said"), "event Normal: said"),
    (CountAdmitted("q", W1), "count it as admitted on w1"),
    (CountRejections(((W1, "NoRoom"),)), "count 1 workers as not offered"),
    (CreateWorkload(W1, OBJECT), "create Workload team/train on w1"),
    (PatchWorkload(W1, KEY, {}), "patch Workload team/train on w1"),
    (DeleteWorkload(W1, KEY, "u"), "delete Workload team/train on w1"),
    (CreateJob(W1, JOB, OBJECT), "create jobs.batch team/train on w1"),
    (PatchJob(W1, JOB, KEY, {}), "patch jobs.batch team/train on w1"),
    (DeleteJob(W1, JOB, KEY, "u"), "delete jobs.batch team/train on w1"),
    (CheckDependencies(W1, "team", NEEDED, SEAL), 'look for ConfigMap "a", Secret "b" on w1'),
    (CreateDependencies(W1, "team", NEEDED[:1], SEAL, "train", "mk"), 'make or share ConfigMap "a" on w1'),
    (OwnDependencies(W1, "team", NEEDED[:1], SEAL, {}), 'have the job own ConfigMap "a" on w1'),
    (LookForPods(W1, "team", "job-name=train", "1"), "look for pods with job-name=train on w1"),
)


@pytest.mark.parametrize(("effect", "words"), WORDS)
def test_each_effect_names_its_object(effect: Effect, words: str) -> None:
    assert describe(effect) == words


def test_every_effect_has_words() -> None:
    """No union of them is written down: what is new is missed here."""
    named = [kind for kind in vars(sys.modules[Effect.__module__]).values() if isinstance(kind, type)]
    effects = [kind for kind in named if issubclass(kind, Effect)]
    kinds = {kind for kind in effects if not any(other is not kind and issubclass(other, kind) for other in effects)}
    assert kinds == {type(effect) for effect, _ in WORDS}


def test_what_marks_copies_is_not_shown() -> None:
    assert "secret" not in repr(CheckDependencies(W1, "team", NEEDED, SEAL))
