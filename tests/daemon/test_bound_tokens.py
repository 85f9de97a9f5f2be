"""When a bound token is renewed, what is asked for, and what is said when that fails: by values alone."""

from __future__ import annotations

import base64
import json
from datetime import timedelta

import pytest
from prometheus_client import generate_latest
from prometheus_client.registry import CollectorRegistry

from multikueue.core.model.names import Json, ObjectKey
from multikueue.errors import Forbidden, MultiKueueError, NotFound, Unauthorized, Unreachable
from multikueue.testing import NOW
from multikueued.metrics.tokens import TokenMetrics
from multikueued.tokens.bound import ACCOUNT, DEFAULT_LIFE, NOT_BOUND, SHORTEST, Bound, bound_in, life_of, request_spec
from multikueued.workers.renewal import remedy, retry_in

ACCOUNT_THERE = ObjectKey("kueue-system", "multikueue")
WEEK = timedelta(days=7)
FRESH = Bound(ACCOUNT_THERE, "multikueue-bound").with_life(NOW, WEEK)


def secret(annotations: Json) -> Json:
    return {"metadata": {"name": "worker1-kubeconfig", "namespace": "kueue-system", "annotations": annotations}}


def test_the_annotations_say_it_all() -> None:
    assert bound_in(secret(dict(FRESH.annotations))) == FRESH
    assert set(FRESH.annotations) == set(NOT_BOUND)
    assert bound_in(secret({})) is None
    for account in ("multikueue", "/x", "x/", "a/../b", "a/b/c", "a/b%2f", ""):
        assert bound_in(secret({ACCOUNT: account})) is None


def test_it_is_renewed_at_four_fifths_of_its_life() -> None:
    assert not FRESH.is_due(NOW)
    assert not FRESH.is_due(NOW + 0.79 * WEEK)
    assert FRESH.is_due(NOW + 0.8 * WEEK)
    assert not FRESH.is_late(NOW + 0.85 * WEEK)
    assert FRESH.is_late(NOW + 0.9 * WEEK)


def test_a_clock_that_differs_renews_it_earlier_and_never_later() -> None:
    """Whoever wrote the Secret was ahead: the token seems to be from the future, so nobody knows when it ends."""
    assert FRESH.is_due(NOW - timedelta(minutes=2))
    assert not FRESH.is_due(NOW - timedelta(seconds=50))


@pytest.mark.parametrize(
    "annotations",
    [{}, {"multikueue.dev/token-issued": "soon"}, {"multikueue.dev/token-expires": "2026-01-01T00:00:00Z"}],
)
def test_a_token_of_which_no_times_are_known_is_renewed_at_once(annotations: Json) -> None:
    bound = bound_in(secret({ACCOUNT: "a/b", **annotations}))
    assert bound is not None
    assert bound.is_due(NOW)
    assert bound.is_late(NOW)
    assert bound.life == DEFAULT_LIFE


def test_the_request_names_what_the_token_is_bound_to() -> None:
    reference = {"apiVersion": "v1", "kind": "Secret", "name": "multikueue-bound"}
    assert request_spec(FRESH, WEEK) == {"expirationSeconds": 604_800, "boundObjectRef": reference}
    assert request_spec(Bound(ACCOUNT_THERE), SHORTEST) == {"expirationSeconds": 600}


def jwt(claims: object) -> str:
    return f"e30.{base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip('=')}.c2ln"


@pytest.mark.parametrize(
    ("answer", "life"),
    [
        # The server shortened it, and its clock is years ahead: only the distance counts.
        ({"spec": {"expirationSeconds": 9999}, "status": {"token": jwt({"iat": 4e9, "exp": 4e9 + 3600})}}, 3600),
        ({"spec": {"expirationSeconds": 1200}, "status": {"token": "opaque"}}, 1200),
        ({"spec": {"expirationSeconds": 1200}, "status": {"token": jwt([])}}, 1200),
        ({"status": {"token": jwt({"iat": 5, "exp": 5})}}, 600),
    ],
)
def test_how_long_a_token_lasts_is_by_the_servers_clock_alone(answer: Json, life: int) -> None:
    assert life_of(answer) == timedelta(seconds=life)


def test_attempts_come_more_often_as_the_end_comes_near() -> None:
    assert [retry_in(FRESH, number, NOW, 0.0) for number in (1, 2, 3, 20)] == [30, 60, 120, 1800]
    assert retry_in(FRESH, 20, NOW + WEEK - timedelta(minutes=4), 0.0) == 60
    assert retry_in(FRESH, 20, NOW + WEEK * 2, 0.0) == 1800, "one that has ended cannot be renewed"


@pytest.mark.parametrize(
    ("error", "writing", "words"),
    [
        (Forbidden(""), False, "multikueue worker rotate worker1 --bound"),
        (Forbidden(""), True, "boundTokens.enabled"),
        (Unauthorized(""), False, "has ended"),
        (NotFound(""), False, "is gone"),
    ],
)
def test_what_a_refusal_asks_for(error: MultiKueueError, writing: bool, words: str) -> None:
    assert words in remedy(error, "worker1", writing=writing)
    assert remedy(Unreachable(""), "worker1", writing=writing) == ""


def test_series_of_workers_that_are_gone_vanish() -> None:
    registry = CollectorRegistry()
    metrics = TokenMetrics(registry)
    metrics.ends({"worker1": NOW, "worker2": NOW})
    metrics.tried("worker1", "failed")
    metrics.ends({"worker2": NOW})
    text = generate_latest(registry).decode()
    assert 'expires_timestamp_seconds{cluster="worker2"}' in text
    assert 'expires_timestamp_seconds{cluster="worker1"}' not in text
    assert 'multikueue_token_renewals_total{cluster="worker1",outcome="failed"} 1.0' in text
