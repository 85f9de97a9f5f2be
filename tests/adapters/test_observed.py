"""What a status has observed: on the manager it is told in the generations of the manager's job."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from multikueue.adapters import JobKind
from multikueue.core.model.adapter import OnHold
from multikueue.core.model.names import Json
from multikueue.core.model.objects import dig, with_value
from multikueue.sandbox.apiserver.verbs.patching import merge_patch
from tests.adapters.kinds import NOW, STAMP, a_job, row

OBSERVED = ("status", "observedGeneration")
SHOWN = ("Pod", "RayCluster", "RayJob", "RayService", "AppWrapper", "TrainJob", "JobSet")


def at(job: Json, generation: Any, status: Json | None = None) -> Json:
    """A job that runs, whose API server has counted so many changes of its spec."""
    spec = {**job["spec"], "suspend": False}
    return {**job, "spec": spec, "metadata": {**job["metadata"], "generation": generation}, "status": status or {}}


def said(seen: int) -> Json:
    condition = {"type": "Said", "status": "True", "reason": "Said", "observedGeneration": seen}
    return {"observedGeneration": seen, "conditions": [condition]}


def shown(kind: JobKind, local: Json, remote: Json) -> Json:
    patch = kind.status_patch(local, remote, NOW)
    return local if patch is None else merge_patch(local, {"status": patch["status"]})


@pytest.mark.parametrize("name", SHOWN)
@pytest.mark.parametrize(
    ("here", "there", "seen", "expected"), [(1, 2, 2, 1), (4, 2, 2, 4), (4, 2, 1, 3), (1, 3, 2, 0)]
)
def test_it_is_the_managers_own(name: str, here: int, there: int, seen: int, expected: int) -> None:
    """Whoever waits for a job compares it with the job's generation: the worker's is never equal for long."""
    kind = row(name)
    after = shown(kind, at(a_job(kind), here), at(a_job(kind), there, said(seen)))
    assert dig(after, *OBSERVED) == expected
    generations = [
        condition.get("observedGeneration")
        for condition in after["status"]["conditions"]
        if condition["type"] == "Said"
    ]
    assert generations == [expected]
    assert kind.status_patch(after, at(a_job(kind), there, said(seen)), NOW) is None, "written once"


def test_it_is_left_out_where_a_write_of_the_status_counts() -> None:
    kind = attrs.evolve(row("JobSet"), status=attrs.evolve(row("JobSet").status, subresource=False))
    after = shown(kind, at(a_job(kind), 5), at(a_job(kind), 2, {"phase": "Running", "observedGeneration": 2}))
    assert after["status"] == {"phase": "Running"}


@pytest.mark.parametrize("odd", [None, "2", {}, True])
def test_odd_generations_change_nothing(odd: Any) -> None:
    kind, status = row("JobSet"), said(1)
    patch = kind.status_patch(at(a_job(kind), odd), at(a_job(kind), 2, status), NOW)
    assert patch is not None
    assert patch["status"] == status


REFUSED: Json = {"jobDeploymentStatus": "ValidationFailed", "reason": "ValidationFailed", "message": "too long"}


class TestRefusedRayJobs:
    """KubeRay's word by which every Kueue puts a RayJob on hold, until its spec is another."""

    def refused(self) -> Json:
        kind = row("RayJob")
        return shown(kind, at(a_job(kind), 3), at(a_job(kind), 1, REFUSED))

    def test_it_is_said_of_the_spec_as_it_is(self) -> None:
        """KubeRay itself does not say of which."""
        assert self.refused()["status"] == {**REFUSED, "observedGeneration": 3}
        assert row("RayJob").on_hold_here(self.refused()) is OnHold.YES

    def test_another_spec_makes_it_outdated(self) -> None:
        changed = with_value(self.refused(), ("metadata", "generation"), 4)
        assert row("RayJob").on_hold_here(changed) is OnHold.OUTDATED

    def test_it_is_taken_back_with_its_words(self) -> None:
        patch = row("RayJob").release_patch(self.refused())
        assert patch is not None
        after = merge_patch(self.refused(), {"status": patch["status"]})
        assert after["status"] == {"jobDeploymentStatus": "Suspended", "observedGeneration": 3}
        assert row("RayJob").on_hold_here(after) is OnHold.NO

    def test_one_that_is_held_is_not_taken_for_one_that_its_kueue_stops(self) -> None:
        waits = with_value(self.refused(), ("spec", "suspend"), True)
        assert not row("RayJob").is_stopped_here(waits)
        assert row("RayJob").is_stopped_here(with_value(waits, ("metadata", "generation"), 4)), "its spec was changed"

    def test_a_copy_of_it_has_no_status(self) -> None:
        assert "status" not in row("RayJob").copy(self.refused(), STAMP)

    @pytest.mark.parametrize("name", ["Job", "RayCluster", "Pod"])
    def test_other_kinds_have_no_such_word(self, name: str) -> None:
        assert row(name).on_hold_here(at(a_job(row(name)), 1, REFUSED)) is OnHold.UNKNOWN
