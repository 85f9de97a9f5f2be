"""How messages name several things, and what may be meant by a mistyped name."""

from __future__ import annotations

import pytest

from multikueue.core.model.name_lists import did_you_mean, instead, listed


@pytest.mark.parametrize(
    ("names", "told"), [("", ""), ("a", "a"), ("abcde", "a, b, c, d, e"), ("abcdefg", "a, b, c, d, e and 2 more")]
)
def test_the_first_of_many_are_named(names: str, told: str) -> None:
    assert listed([*names]) == told


def test_each_name_that_may_be_meant_is_quoted() -> None:
    known = ("ray.io/rayjob", "ray.io/rayservice", "batch/job")
    assert did_you_mean("rayio/rayjob", known) == 'did you mean "ray.io/rayjob"?'
    assert did_you_mean("ray.io/raysob", known, most=2) == 'did you mean "ray.io/rayjob" or "ray.io/rayservice"?'
    assert did_you_mean("RayJob", ["rayjob"]) == 'did you mean "rayjob"?'
    assert did_you_mean("kubeflow", known) == ""


def test_where_none_is_like_it_those_there_are_are_named() -> None:
    assert instead("oslq", ("rome", "oslo")) == ': did you mean "oslo"?'
    assert instead("x", ("rome", "oslo")) == "; there are oslo, rome"
    assert instead("x", ()) == ""
