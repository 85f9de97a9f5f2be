"""The health of an informer: a pure value."""

from __future__ import annotations

import attrs

from multikueue.core.machinery.backoff import Backoff
from multikueue.errors import ApiError, Forbidden, ServerFault, TooManyRequests, Unreachable, Unreadable
from multikueue.kube import InformerStatus

SYNCED = InformerStatus(synced=True, lists=3, histories=1)
NO = Forbidden("no", status=403)
DOWN = Unreachable("down")


def failed(status: InformerStatus, error: ApiError, failures: int = 1, *, now: float = 0.0) -> InformerStatus:
    """The status after a failure, with a back-off of a second, and of a minute for refusals."""
    return status.failed(error, failures, now, backoff=Backoff(1, 8), refused=Backoff(60, 600), fraction=0.0)


def test_it_keeps_the_time_of_the_first_failure_until_a_watch_is_established() -> None:
    """A list in between does not count as recovery."""
    first = failed(SYNCED, DOWN, now=7)
    assert first == attrs.evolve(SYNCED, failures=1, failing_since=7, last_error="down", retry_in=1, cause=DOWN.cause)
    second = failed(first.listed(), DOWN, 2, now=9)
    assert (second.failing_since, second.retry_in, second.lists) == (7, 2, 4)
    assert second.established() == attrs.evolve(SYNCED, lists=4)


def test_refusals_have_a_back_off_of_their_own() -> None:
    """After nine failures a first 403 waits as long as any first 403, and a connection error starts the count again."""
    refused = failed(failed(SYNCED, DOWN, 9), NO, 10)
    assert (refused.retry_in, refused.refusals, refused.refused) == (60, 1, True)
    assert failed(refused, NO, 11).retry_in == 120
    assert failed(failed(refused, DOWN, 11), NO, 12).retry_in == 60
    assert failed(refused.established(), NO).refusals == 1


def test_the_third_server_fault_in_a_row_is_a_refusal() -> None:
    """One may be chance."""
    fault = ServerFault("broken webhook", status=500)
    assert [failed(SYNCED, fault, failures).refused for failures in (1, 2, 3)] == [False, False, True]
    assert not failed(SYNCED, DOWN, 3).refused, "no answer is no refusal"


def test_retry_after_makes_the_wait_longer_and_never_shorter() -> None:
    assert failed(SYNCED, TooManyRequests("later", retry_after=20), 1).retry_in == 20
    assert failed(SYNCED, TooManyRequests("later", retry_after=2), 9).retry_in == 8


def test_a_history_that_went_backwards_is_counted() -> None:
    assert SYNCED.went_backwards() == attrs.evolve(SYNCED, histories=2)


def test_a_loss_begins_only_when_a_server_that_could_not_be_read_stops_answering() -> None:
    """An hour of too much to read is no hour of silence."""
    full = Unreadable("too much")
    first = failed(failed(SYNCED, full, 1, now=0), full, 2, now=3600)
    assert first.unreadable
    silent = failed(first, DOWN, 3, now=3700)
    assert (silent.unreadable, silent.failing_since) == (False, 3700)
    assert failed(silent, DOWN, 4, now=3800).failing_since == 3700
    assert failed(silent, full, 4, now=3800).failing_since == 3800
    assert not silent.established().unreadable


def test_what_is_too_much_to_read_is_not_read_again_within_a_moment() -> None:
    """Each attempt may be a list of a thousand pages, and nothing that passes by itself makes it smaller."""
    assert [failed(SYNCED, Unreadable("too much"), failures).retry_in for failures in (1, 2)] == [5, 8]
