"""Making a failing run smaller: leave out troubles and jobs as long as it still fails."""

from __future__ import annotations

from tests.simulation.simulating import Run, simulate


def shrink(seed: int, extra: tuple[str, ...] = ()) -> Run:
    """The failing run of this seed with as little in it as still fails; the seed's own run if it is fine."""
    run = simulate(seed, extra=extra)
    left_out: frozenset[int] = frozenset()
    if not run.broken:
        return run
    for event in range(run.events):
        smaller = simulate(seed, left_out | {event}, extra)
        if smaller.broken:
            run, left_out = smaller, left_out | {event}
    return run
