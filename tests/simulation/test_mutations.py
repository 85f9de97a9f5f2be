"""The simulation finds what it is there to find: with a known defect put back, a seed breaks.

What it cannot see is in `UNSEEN`, and a unit test sees it: see `test_planted_bugs`.
"""

from __future__ import annotations

import pytest

from tests.simulation.__main__ import SEEDS
from tests.simulation.choosing_mutations import UNSEEN
from tests.simulation.guard_mutations import GUARDS
from tests.simulation.mutations import MUTATIONS, simulate_mutated
from tests.simulation.simulating import simulate

TRIES = 60
"""Seeds looked at: whatever changes the order of events moves the first that catches."""
FIRST = {
    "the_first_event_after_a_resume_is_dropped": 107,
    "stops_without_eviction_are_ignored": 5,
    "lost_workers_get_no_grace": 40,
    "losers_are_not_cleaned_once_assigned": 36,
    "lost_workers_get_a_third_of_the_grace": 62,
    "losers_out_of_the_config_are_kept": 44,
    "kinds_stay_unwatched": 74,
    "a_gate_that_is_being_opened_is_shut": 37,
    "all_gates_open_at_once": 37,
    "connecting_wakes_nobody": 28,
    "copies_are_planned": 6,
    "earlier_attempts_are_forgotten": 42,
    "an_attempt_is_evicted_once": 21,
    "earliest_admission_wins": 101,
    "errors_quote_kubeconfigs": 18,
    "every_admitted_worker_runs_it": 32,
    "failed_deletions_are_forgotten": 46,
    "finished_jobs_are_made_again": 28,
    "jobs_are_created_before_the_record": 9,
    "names_are_not_kept_apart": 167,
    "lost_answers_count_as_not_sent": 13,
    "origins_are_not_checked": 40,
    "removed_clusters_are_forgotten": 109,
    "stale_copies_are_believed": 92,
    "unmarked_copies_win": 55,
    "places_are_not_written": 134,
    "copies_are_made_under_the_managers_name": 4,
    "an_unreadable_mapping_is_none": 68,
    "marks_lead_nowhere": 4,
    "the_way_back_is_the_mapping": 64,
    "company_is_ignored": 3,
    "copies_with_quota_are_taken_back": 225,
    "flavors_are_summed": 103,
    "flavors_of_the_manager_are_ignored": 3,
    "what_waits_goes_round_at_once": 24,
    "later_ones_overtake": 478,
    "names_are_ignored": 3,
    "narrowing_annotations_are_ignored": 3,
    "offers_take_no_room": 80,
    "queues_that_are_not_there_are_asked": 3,
    "room_that_has_grown_wakes_nobody": 4,
    "selectors_are_ignored": 24,
    "taints_are_ignored": 4,
    "what_cannot_be_read_is_ignored": 3,
    "an_erased_worker_is_a_lost_job": 56,
    "external_nominations_are_ignored": 23,
    "kinds_taken_out_are_forgotten": 1,
    "placed_pods_are_not_told": 8,
    "a_lease_counts_from_the_answer": 61,
    "a_lease_is_taken_a_period_early": 58,
    "a_timeout_counts_as_not_sent": 99,
    "an_earlier_copy_is_believed_while_pending": 100,
    "deletes_have_no_uid": 40,
    "quota_is_freed_before_the_job_has_stopped": 65,
    "sizes_stay_on_the_manager": 9,
    "busy_clusters_are_dropped_beside_another_controller": 9,
    "decisions_are_believed_at_once": 39,
    "orders_are_written_at_once": 39,
    "orders_have_no_hysteresis": 89,
    "parts_of_decisions_are_believed": 1,
    "copies_are_owned_by_nobody": 62,
    "what_is_somebody_elses_is_shared": 12,
    "jobs_do_not_wait_for_what_they_need": 62,
    "messages_of_nobody_are_written": 25,
    "workers_are_recorded_unasked": 6,
    "holds_are_evictions": 17,
    "pods_that_are_left_are_not_waited_for": 13,
    "jobs_are_deleted_in_the_background": 120,
    "accepted_deletions_are_removals": 123,
    "copies_are_not_kept": 19,
    "only_a_finished_copy_is_kept": 3,
    "ends_lose_their_counts": 16,
    "counters_go_back": 118,
    "refusals_are_final": 3,
    "settled_ends_are_ignored": 18,
    "quota_is_held_until_pods_have_ended": 77,
    "second_names_get_offers": 43,
    "copies_of_other_names_are_stale": 2,
}
"""Where to begin to look; found by `python -m tests.simulation --mutation NAME --seeds 500`."""
WITH = {
    "a_relist_forgets_one_deletion": "delete_behind_a_410",
    "an_attempt_is_evicted_once": "evict_twice_unwatched",
    "stops_without_eviction_are_ignored": "stop_without_eviction",
    "only_a_finished_copy_is_kept": "absent_kueue",
    "second_names_get_offers": "rename_a_worker",
    "copies_of_other_names_are_stale": "rename_a_worker",
}
"""What must happen for these to be seen, which few seeds draw at the right moment: a row of `adversity.ROWS`."""
RUNS_TWICE = {
    "a_timeout_counts_as_not_sent",
    "an_earlier_copy_is_believed_while_pending",
    "earlier_attempts_are_forgotten",
    "earliest_admission_wins",
    "every_admitted_worker_runs_it",
    "finished_jobs_are_made_again",
    "jobs_are_created_before_the_record",
    "pods_that_are_left_are_not_waited_for",
    "jobs_are_deleted_in_the_background",
    "lost_answers_count_as_not_sent",
    "lost_workers_get_a_third_of_the_grace",
    "lost_workers_get_no_grace",
    "quota_is_freed_before_the_job_has_stopped",
    "removed_clusters_are_forgotten",
    "stale_copies_are_believed",
}
"""Those of the first promise: nothing runs twice. `nox` puts these back, its gate all others as well."""
CAUGHT = [
    pytest.param(name, marks=() if name in RUNS_TWICE else pytest.mark.gate)
    for name in sorted(MUTATIONS.keys() - GUARDS.keys() - UNSEEN)
]


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", CAUGHT)
def test_a_defect_put_back_is_caught(name: str) -> None:
    """A seed that is fine breaks once the defect is there: the net has no hole where upstream had a bug.

    Whether the gate's seeds are fine is not looked at here: `nox` and its gate run each of them.
    Where the seeds that are noted see it no more, as draws have changed, all of the gate's are tried.
    """
    first, extra = FIRST.get(name, 0), (WITH[name],) if name in WITH else ()
    for seed in dict.fromkeys((*range(first, first + TRIES), *range(SEEDS))):
        is_fine = seed < SEEDS and not extra
        if simulate_mutated(name, seed, extra).broken and (is_fine or not simulate(seed, extra=extra).broken):
            return
    pytest.fail(f"not caught: look for other seeds with python -m tests.simulation --mutation {name} --seeds 500")


@pytest.mark.parametrize("name", sorted(GUARDS))
def test_a_guard_can_be_taken_away(name: str) -> None:
    """What it replaces is still there: which seeds find it is measured outside of the gate."""
    with GUARDS[name]():
        pass
