"""Annotations of jobs: they narrow, order, and never widen."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multikueue.core.dispatchers.scored import job_annotations
from multikueue.core.dispatchers.scored.job_annotations import (
    LONGEST,
    NAMES,
    PREFERENCE,
    SELECTOR,
    TAINTS,
    TOGETHER,
    TOLERATIONS,
    job_named,
    read,
)
from multikueue.core.model.names import GVK, ClusterName
from multikueue.errors import Cause

LABELS = {"region": "eu", "gpu": "h100", "example.com/site": "a"}


def why(asked: dict[str, str], *, taints: str = "", company: str | None = None) -> Cause | None:
    """Why the worker `w1` is not for a job with these annotations."""
    where = None if company is None else ClusterName(company)
    reason = read(asked).excludes(ClusterName("w1"), LABELS, {TAINTS: taints} if taints else {}, where)
    return reason.why if reason is not None else None


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({}, None),
        ({NAMES: "w1"}, None),
        ({NAMES: " w2 , w1 "}, None),
        ({NAMES: "w2"}, Cause.NOT_NAMED),
        ({NAMES: ""}, Cause.UNREADABLE),
        ({NAMES: "W1"}, Cause.UNREADABLE),
        ({SELECTOR: "region=eu"}, None),
        ({SELECTOR: "region==eu,gpu"}, None),
        ({SELECTOR: "region in (us, eu),gpu=h100,!spot"}, None),
        ({SELECTOR: "region!=us,region notin (us),absent!=x,absent notin (x)"}, None),
        ({SELECTOR: "example.com/site=a"}, None),
        ({SELECTOR: "region notin (eu,us)"}, Cause.NOT_SELECTED),
        ({SELECTOR: "spot"}, Cause.NOT_SELECTED),
        ({SELECTOR: "!gpu"}, Cause.NOT_SELECTED),
        ({SELECTOR: "region=us"}, Cause.NOT_SELECTED),
        ({SELECTOR: "region=eu,"}, Cause.UNREADABLE),
        ({SELECTOR: "region in (eu"}, Cause.UNREADABLE),
        ({SELECTOR: "region in (e u)"}, Cause.UNREADABLE),
        ({SELECTOR: ""}, Cause.UNREADABLE),
        ({TOGETHER: "job/train"}, Cause.NOT_TOGETHER),
        ({TOGETHER: "train"}, Cause.UNREADABLE),
        ({SELECTOR: "Example.com/site=a"}, Cause.UNREADABLE),
        ({SELECTOR: "a..b/site"}, Cause.UNREADABLE),
    ],
)
def test_which_worker_a_job_excludes(asked: dict[str, str], expected: Cause | None) -> None:
    assert why(asked) is expected


def test_a_job_goes_where_its_company_is() -> None:
    assert why({TOGETHER: "job/train"}, company="w1") is None
    assert why({TOGETHER: "job/train"}, company="w2") is Cause.NOT_TOGETHER


@pytest.mark.parametrize(
    ("taints", "tolerations", "expected"),
    [
        ("spot=true:NoDispatch", None, Cause.NOT_TOLERATED),
        ("spot=true:NoDispatch", "spot=true", None),
        ("spot=true:NoDispatch", "spot", None),
        ("spot=true:NoDispatch", "spot=false", Cause.NOT_TOLERATED),
        ("spot=true:NoDispatch,arm:NoDispatch", "spot", Cause.NOT_TOLERATED),
        ("spot=true:NoDispatch,arm:NoDispatch", "spot,arm", None),
        ("spot=true:NoDispatch", "spot, =", Cause.NOT_TOLERATED),  # ignored whole
        ("spot=true", "spot=true", Cause.NOT_TOLERATED),  # an unreadable taint keeps all away
    ],
)
def test_taints(taints: str, tolerations: str | None, expected: Cause | None) -> None:
    assert why({} if tolerations is None else {TOLERATIONS: tolerations}, taints=taints) is expected


@pytest.mark.parametrize(
    ("asked", "points", "ignored"),
    [
        ("region=eu:100,region=us:10", 1.0, ()),
        ("region=us:100,gpu=h100:30", 0.3, ()),
        ("region=us:100", 0.0, ()),
        ("region=eu:101", 0.0, (PREFERENCE,)),
        ("region=eu:100,rubbish", 0.0, (PREFERENCE,)),
    ],
)
def test_a_preference_is_points_for_labels(asked: str, points: float, ignored: tuple[str, ...]) -> None:
    narrowing = read({PREFERENCE: asked})

    assert (narrowing.preference(LABELS), narrowing.ignored, narrowing.unreadable) == (points, ignored, ())


@pytest.mark.parametrize("name", [NAMES, SELECTOR, TOGETHER, PREFERENCE, TOLERATIONS])
def test_a_text_without_end_is_not_read(name: str) -> None:
    """A quarter of a million commas took the loop for two minutes, at each look at the job."""
    for text in ("," * 250_000, "a," * 125_000 + "a", "a=a:1," * 40_000 + "a=a:1"):
        narrowing = read({name: text})
        assert name in (*narrowing.unreadable, *narrowing.ignored)


@given(st.dictionaries(st.sampled_from([NAMES, SELECTOR, TOGETHER, PREFERENCE, TOLERATIONS]), st.text(max_size=30)))
def test_whatever_stands_there_is_read_or_told(asked: dict[str, str]) -> None:
    narrowing = read(asked)

    assert set(narrowing.unreadable) <= {NAMES, SELECTOR, TOGETHER}
    assert set(narrowing.ignored) <= {PREFERENCE, TOLERATIONS}
    assert why({}) is None


def test_of_what_cannot_be_read_only_the_first_such_part_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever submits jobs decides how many parts there are, and each decision about such a job reads them."""
    parts: list[str] = []
    monkeypatch.setattr(job_annotations, "_select", parts.append)
    assert read({SELECTOR: "," * LONGEST}).unreadable == (SELECTOR,)
    assert parts == [""]


@pytest.mark.parametrize(
    ("together", "gvk", "name"),
    [
        ("job/train", GVK.of("batch/v1", "Job"), "train"),
        ("rayjob.ray.io/train", GVK.of("ray.io/v1", "RayJob"), "train"),
        ("rayjob/train", GVK.of("ray.io/v1", "RayJob"), "train"),
        ("rayjob.example.com/train", GVK.of("ray.io/v1", "RayJob"), ""),
        ("pod/train", GVK.of("batch/v1", "Job"), ""),
    ],
)
def test_a_job_is_named_by_its_kind_with_or_without_the_group(together: str, gvk: GVK, name: str) -> None:
    assert job_named(together, gvk) == name
