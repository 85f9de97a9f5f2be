"""The settings of profiles: what is read, and what is refused with its path."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from multikueue.core.dispatchers.scored.profile import Hold, Profile, Then, Weights, parse_profile, parse_profiles


def test_a_profile_says_only_what_differs() -> None:
    profile = parse_profile(
        {
            "offer": {"candidates": 2, "retry": "1m30s"},
            "hold": "never",
            "scores": {"cost": 70},
            "preference": {"place=local": 100, "region=eu": 10},
            "giveUp": {"after": "1h", "then": "Deactivate"},
        },
        "p",
    )

    assert profile == Profile(
        candidates=2,
        retry=timedelta(seconds=90),
        hold=Hold.NEVER,
        weights=Weights(cost=70),
        preference="place=local:100,region=eu:10",
        give_up_after=timedelta(hours=1),
        then=Then.DEACTIVATE,
    )


def test_there_is_always_a_default() -> None:
    assert parse_profiles(None) == {"default": Profile()}
    assert parse_profiles({"x": {}, "default": {"hold": "never"}})["default"].hold is Hold.NEVER


@pytest.mark.parametrize(
    ("value", "where"),
    [
        ([], "p is not an object"),
        ({"offers": {}}, "p.offers is not known"),
        ({"offer": {"retry": "14s"}}, "p.offer.retry is 14s: at least 15s"),
        ({"offer": {"retry": 15}}, "p.offer.retry is 15"),
        ({"offer": {"candidates": 0}}, "p.offer.candidates is 0"),
        ({"offer": {"most": 21}}, "p.offer.most is 21"),
        ({"offer": {"most": True}}, "p.offer.most is True"),
        ({"offer": {"candidates": 4}}, "p.offer.candidates is 4: no more than most, 3"),
        ({"hold": "ever"}, "p.hold is 'ever'"),
        ({"hold": {}}, "p.hold is {}"),
        ({"scores": {"luck": 1}}, "p.scores.luck is not known"),
        ({"scores": {"cost": -1}}, "p.scores.cost is -1"),
        ({"scores": {"cost": float("nan")}}, "p.scores.cost is nan"),
        ({"preference": ["place=local"]}, "p.preference is not an object"),
        ({"preference": {"place": 100}}, "p.preference has 'place': 100"),
        ({"preference": {"place=local": 101}}, "p.preference has 'place=local': 101"),
        ({"preference": {"place=local": "x"}}, "p.preference has 'place=local': 'x'"),
        ({"giveUp": {"after": "0s"}}, "p.giveUp.after is '0s'"),
        ({"giveUp": {"then": "None"}}, "p.giveUp.then is 'None'"),
    ],
)
def test_what_is_wrong_is_told_with_its_path(value: Any, where: str) -> None:
    with pytest.raises(ValueError, match="^" + where.replace("[", r"\[").replace("{", r"\{").replace(".", r"\.")):
        parse_profile(value, "p")
