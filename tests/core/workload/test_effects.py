"""What the debug log says of a decision: objects, and not the names of classes."""

from __future__ import annotations

import pytest

from multikueue.core.model.kinds import JOB
from multikueue.core.model.names import ClusterName, Json, ObjectKey
from multikueue.core.workload.effects import (
    MANAGER,
    AnnounceWorkload,
    ApplyStatus,
    CountAdmitted,
    CountRejections,
    CreateJob,
    CreateWorkload,
    DeleteJob,
    DeleteWorkload,
    Effect,
    PatchJob,
    PatchJobStatus,
    PatchWorkload,
    describe,
)

W1, KEY = ClusterName("w1"), ObjectKey("team", "train")
OBJECT: Json = {"metadata": {"namespace": "team", "name": "train"}}


@pytest.mark.parametrize(
    ("effect", "words"),
    [
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
    ],
)
def test_each_effect_names_its_object(effect: Effect, words: str) -> None:
    assert describe(effect) == words
