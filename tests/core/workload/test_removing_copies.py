"""Removing copies: what was seen, once, everywhere it can be reached."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from multikueue.core.model.names import Json
from multikueue.core.workload.effects import DeleteJob, DeleteWorkload
from multikueue.core.workload.worker_states import Served, Unserved
from tests.core.building import (
    copy_of,
    decide,
    job_copy_of,
    snapshot,
    worker,
    workload,
)
from tests.core.wording import words


class TestDeleting:
    def test_deletes_name_the_object_that_was_seen(self) -> None:
        """Never a stranger's object that has taken the name since (item 26)."""
        local = workload(quota=False)
        stopped = job_copy_of(local, uid="jb", status={"active": 0})
        seen = snapshot(local, worker("w1", copy_of(local, held=True, uid="wl"), stopped))
        first, second = decide(seen).effects
        assert isinstance(first, DeleteJob)
        assert isinstance(second, DeleteWorkload)
        assert (first.uid, second.uid, second.held, second.finalizers) == ("jb", "wl", True, ())

    def test_what_is_being_deleted_is_not_deleted_again(self) -> None:
        """A job with a slow finalizer costs one request, not one at every event."""
        local = workload(quota=False)
        seen = snapshot(local, worker("w1", copy_of(local, deleting=True), job_copy_of(local, deleting=True)))
        assert decide(seen).effects == ()

    def test_kueues_finalizer_comes_off_a_copy_that_somebody_else_deleted(self) -> None:
        """Otherwise the worker would keep it for ever; other finalizers stay."""
        local = workload(quota=False)
        (effect,) = decide(snapshot(local, worker("w1", copy_of(local, deleting=True, held=True)))).effects
        assert isinstance(effect, DeleteWorkload)
        assert (effect.held, effect.finalizers) == (True, ("example.com/slow",))

    def test_clusters_out_of_the_config_are_cleaned_too(self) -> None:
        """A cluster that leaves a config is cleaned, never forgotten (item 28)."""
        local = workload(deleting=True)
        seen = snapshot(local, worker("w9", copy_of(local), job_copy_of(local), configured=False, kind=Unserved()))
        assert words(seen) == ["delete job on w9", "delete workload on w9"]

    def test_the_local_job_may_be_gone_when_its_copies_are_cleaned(self) -> None:
        """Deleting a job on the manager deletes it everywhere."""
        local = workload(deleting=True)
        assert words(snapshot(local, worker("w1", None, job_copy_of(local)), job={})) == ["delete job on w1"]


class TestHeldUp:
    """A webhook refuses the deletion of the job, or we may not delete its kind: it would run on, with its quota."""

    RUNS = workload(cluster="w1")
    REST = ("delete job on w1", "delete workload on w1")

    @pytest.mark.parametrize(
        "local", [None, workload(deleting=True, cluster="w1"), workload(finished="OwnerNotFound", cluster="w1")]
    )
    @pytest.mark.parametrize("kind", [Served(), Unserved(timedelta(days=1))])
    def test_what_nobody_wants_is_asked_to_stop(self, local: Json | None, kind: Served | Unserved) -> None:
        def seen(seconds: int, **facts: Any) -> list[str]:
            copy = copy_of(self.RUNS, **({"admitted": True, "owned": True} | facts))
            there = worker("w1", copy, job_copy_of(self.RUNS), kind=kind)
            return words(snapshot(local, there, job={}, quiet_for=timedelta(seconds=seconds)))

        assert tuple(seen(4)) == (self.REST if local is not None else ("stop on w1", *self.REST))
        assert tuple(seen(5)) == ("stop on w1", *self.REST)
        for facts in ({"stopping": True}, {"finished": "Succeeded"}, {"evicted": True}, {"spec": {"active": False}}):
            assert tuple(seen(5, **facts)) == self.REST
