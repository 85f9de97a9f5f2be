"""Texts of others as parts of a message, and the head of a message behind which they stand."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multikueue.core.dispatchers.incremental import Round
from multikueue.core.model.check_message import (
    Message,
    condensed,
    means_the_same,
)
from multikueue.core.model.outside_text import MAX_PART, plain, without_addresses

TOO_SMALL = (
    "couldn't assign flavors to pod set main: insufficient quota for cpu in flavor default, previously considered "
    "podsets requests (0) + current podset request (3) > maximum capacity (1)"
)


@given(st.text(max_size=3_000))
def test_a_part_is_one_short_line_that_can_be_printed(text: str) -> None:
    made = plain(text)
    assert len(made) <= MAX_PART
    assert not [character for character in made if unicodedata.category(character)[0] == "C"]
    assert " · " not in made
    assert " — " not in made


@pytest.mark.parametrize(
    "address",
    [
        "https://10.0.0.7:6443/apis?timeout=5s",
        "10.96.0.1:443",
        "192.168.1.20",
        "[2001:db8::1]:6443",
        "api.worker1.example.com:6443",
        "worker-1.example:443",
    ],
)
def test_it_has_no_address_of_a_server(address: str) -> None:
    """Whoever may read a Workload need not know where workers are."""
    assert plain(f'webhook failed: Post "{address}": refused').count("[address]") == 1
    assert address not in plain(f'webhook failed: Post "{address}": refused')


@pytest.mark.parametrize("text", ["since 2026-11-21T12:00:00Z", "image busybox:1.36", "v1.2.3", "cpu (3 > 1)"])
def test_what_is_no_address_stays(text: str) -> None:
    assert plain(text) == text


@pytest.mark.parametrize("text", ["a." * 500_000, "a-" * 500_000, "[" + ":" * 1_000_000])
def test_a_text_without_end_costs_no_more_than_it_is_long(text: str) -> None:
    """An event of the core group may have a megabyte: the API server took hours for it, and answered nobody else."""
    assert without_addresses(text) == text


def test_what_kueue_says_about_quota_is_told_shorter() -> None:
    """The words are its own; an unknown text of another version stays whole."""
    assert condensed(TOO_SMALL) == "insufficient quota for cpu in flavor default (3 > 1)"
    assert condensed("something new (3) > (1)") == "something new (3) > (1)"


@given(head=st.text(max_size=50), parts=st.lists(st.text(max_size=300).map(plain), max_size=4))
def test_the_head_is_read_back_as_it_was_written(head: str, parts: list[str]) -> None:
    """Also one that has in it what stands between head and reasons."""
    for text in (head, f"{head} — {head}"):
        assert Message.read(Message(text, tuple(parts)).render()).head == text


def test_a_round_goes_on_whatever_stands_behind_it() -> None:
    offered = "The workload is offered to [w1], round 2 since 2026-11-21T12:00:00.000Z"
    for tail in ([], ["w1: no quota"], ["w1: no quota", "w2: not nominated yet"]):
        assert Round.parse(Message.read(Message(offered, tuple(tail)).render()).head) == Round.parse(offered)


def test_times_a_few_seconds_apart_mean_the_same() -> None:
    """They are computed anew with each look; nobody is told of that."""
    words = "w1: asked again at 2026-11-21T12:05:00Z: denied"
    assert means_the_same(words, "w1: asked again at 2026-11-21T12:05:01Z: denied")
    assert not means_the_same(words, "w1: asked again at 2026-11-21T12:06:00Z: denied")
    assert not means_the_same(words, "w1: asked again at 2026-11-21T12:05:00Z: denied again")


@pytest.mark.parametrize(
    ("message", "parts"),
    [
        ("", {}),
        ("Offered to w1, w2", {}),
        ("Offered to w1 — w1: insufficient quota", {"w1": "insufficient quota"}),
        (
            'Round 2 — w1: LocalQueue "a" doesn\'t exist · w2: said; w1: no · w10: x',
            {"w1": 'LocalQueue "a" doesn\'t exist', "w2": "said; w1: no", "w10": "x"},
        ),
        (
            'The workload was admitted on "w1" — '
            "w1: unreachable since 2026-01-01T00:00:00Z; moves at 2026-01-01T00:15:00Z",
            {"w1": "unreachable since 2026-01-01T00:00:00Z; moves at 2026-01-01T00:15:00Z"},
        ),
        ("Said by a dispatcher — nothing of ours", {}),
    ],
)
def test_the_parts_of_a_message(message: str, parts: dict[str, str]) -> None:
    assert Message.read(message).by_worker(["w1", "w2", "w10"]) == parts


def test_no_worker_has_no_part() -> None:
    assert Message.read("a — b: c").by_worker([]) == {}
