"""Quantities are read and written as Kubernetes does."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multikueue.core.quantities import thousandths, written


@pytest.mark.parametrize(
    ("text", "thousandths"),
    [
        ("1", 1_000),
        (2, 2_000),
        ("500m", 500),
        ("0.5", 500),
        (".5", 500),
        ("1.", 1_000),
        ("1k", 1_000_000),
        ("1Gi", 1_073_741_824_000),
        ("16M", 16_000_000_000),
        ("1e3", 1_000_000),
        ("1E", 10**21),
        ("100u", 1),
        ("-1", -1_000),
    ],
)
def test_a_quantity_is_read_in_thousandths_rounded_up(text: str, thousandths: int) -> None:
    assert thousandths(text) == thousandths


@pytest.mark.parametrize("text", ["", "one", "1 Gi", "1KiB", "0x10"])
def test_what_is_not_a_quantity_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a quantity"):
        thousandths(text)


@pytest.mark.parametrize(
    ("resource", "thousandths", "text"),
    [
        ("cpu", 1_000, "1"),
        ("cpu", 1_500, "1500m"),
        ("cpu", 2_000_000, "2k"),
        ("cpu", 0, "0"),
        ("memory", thousandths("1Gi"), "1Gi"),
        ("memory", thousandths("1536Mi"), "1536Mi"),
        ("memory", thousandths("1000"), "1000"),
        ("nvidia.com/gpu", 4_000, "4"),
    ],
)
def test_an_amount_is_written_in_canonical_form(resource: str, thousandths: int, text: str) -> None:
    assert written(resource, thousandths) == text


@given(st.sampled_from(["cpu", "memory", "pods"]), st.integers(min_value=0, max_value=10**18))
def test_nothing_is_lost_in_writing(resource: str, thousandths: int) -> None:
    assert thousandths(written(resource, thousandths)) == thousandths
