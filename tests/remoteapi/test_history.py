"""How many jobs there were, step by step: a ring for each namespace, bounded."""

from __future__ import annotations

from datetime import timedelta

from multikueue.core.model.conditions import timestamp
from multikueue.testing import NOW
from multikueued.remoteapi import history
from multikueued.remoteapi.history import ALL, STEPS, History


def test_the_last_steps_are_kept_oldest_first() -> None:
    kept = History()
    for step in range(STEPS + 5):
        kept.note(NOW + timedelta(minutes=step), {ALL: (step, 1, 0, 0), "team-a": (step % 2, 0, 0, 0)})

    every, own = kept.of(ALL), kept.of("team-a")
    assert every["running"] == list(range(5, STEPS + 5))
    assert own["running"][-2:] == [1, 0]
    assert len(own["failed"]) == STEPS
    assert (every["since"], every["step"]) == (timestamp(NOW), 60.0)


def test_a_namespace_that_comes_later_had_none_before_and_one_that_is_gone_is_forgotten() -> None:
    kept = History()
    kept.note(NOW, {ALL: (0, 0, 0, 0)})
    kept.note(NOW, {ALL: (2, 0, 0, 0), "late": (2, 0, 0, 0)})
    assert kept.of("late")["running"] == [0, 2]
    for _ in range(STEPS):
        kept.note(NOW, {ALL: (0, 0, 0, 0)})
    kept.note(NOW, {ALL: (0, 0, 0, 0)})
    assert kept.of("late") == {"step": 60.0}


def test_tenants_cannot_fill_the_memory_with_namespaces() -> None:
    """6 KiB each: those beyond the bound count in the sum alone."""
    kept = History()
    names = {f"ns-{number}": (1, 0, 0, 0) for number in range(history.NAMESPACES + 50)}
    kept.note(NOW, {ALL: (len(names), 0, 0, 0), **names})

    assert kept.of(ALL)["running"] == [history.NAMESPACES + 50]
    assert sum("running" in kept.of(name) for name in names) == history.NAMESPACES
