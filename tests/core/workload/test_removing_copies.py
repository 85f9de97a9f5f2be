"""Removing copies: what was seen, once, everywhere it can be reached."""

from __future__ import annotations

from multikueue.core.workload.effects import DeleteJob, DeleteWorkload
from multikueue.core.workload.worker_states import Unserved
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
