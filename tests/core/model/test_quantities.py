"""Quantities are read exactly and written in Kubernetes' own form."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multikueue.core.model.quantities import Quantity, thousandths, written


@pytest.mark.parametrize(
    ("quantity", "expected"),
    [
        ("1", 1000),
        (2, 2000),
        ("500m", 500),
        ("1.5", 1500),
        (".5", 500),
        ("1Ki", 1_024_000),
        ("1k", 1_000_000),
        ("1e3", 1_000_000),
        ("1E", 10**21),
        ("2E2", 200_000),
        ("1n", 1),
        ("-1", -1000),
        ("0", 0),
    ],
)
def test_all_forms_are_read(quantity: str | int, expected: int) -> None:
    """What is finer than a thousandth is rounded up."""
    assert thousandths(quantity) == expected


@pytest.mark.parametrize("text", ["", "x", "1x", "1 Gi", "1ki", "--1", "e3", "1e9999", "9" * 1_000_000])
def test_what_is_no_quantity_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="not a quantity"):
        thousandths(text)


@pytest.mark.parametrize(
    ("resource", "amount", "expected"),
    [
        ("cpu", 1500, "1500m"),
        ("cpu", 3000, "3"),
        ("cpu", 2_000_000, "2k"),
        ("memory", 1024**3 * 1000, "1Gi"),
        ("memory", 1025 * 1000, "1025"),
        ("hugepages-2Mi", 2 * 1024**2 * 1000, "2Mi"),
        ("nvidia.com/gpu", 1_024_000, "1024"),
        ("memory", 0, "0"),
    ],
)
def test_amounts_are_written_as_kubernetes_would(resource: str, amount: int, expected: str) -> None:
    assert written(resource, amount) == expected


@given(st.sampled_from(["cpu", "memory", "example.com/x"]), st.integers(0, 10**24))
def test_what_is_written_reads_the_same(resource: str, amount: int) -> None:
    assert thousandths(written(resource, amount)) == amount


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("5G", "5G"),
        ("5000M", "5G"),
        ("5Gi", "5Gi"),
        ("5120Mi", "5Gi"),
        ("1.5Gi", "1536Mi"),
        ("0.5Ki", "512"),
        ("1023.5Ki", "1048064"),
        ("1.0005Ki", "1024512m"),
        ("1500m", "1500m"),
        ("5368709120", "5368709120"),
        ("5e9", "5e9"),
        ("1e21", "1e21"),
        ("12345E", "12345E"),
        ("1500e0", "1500"),
        ("15e-1", "1500e-3"),
        ("0Gi", "0"),
        (4000, "4k"),
        ("-2048Ki", "-2Mi"),
    ],
)
def test_a_quantity_keeps_its_family_of_suffixes(text: str | int, expected: str) -> None:
    """As resource.Quantity of apimachinery v0.36.3 writes each of them."""
    assert str(Quantity.parse(text)) == expected


def test_the_first_amount_that_is_not_zero_decides_how_a_sum_is_written() -> None:
    zero, binary, decimal = Quantity.parse("0"), Quantity.parse("1Gi"), Quantity.parse("1G")
    assert str(zero + binary + binary) == "2Gi"
    assert str(decimal + decimal) == "2G"
    assert str(decimal + binary) == "2073741824"


@pytest.mark.parametrize("quantity", ["\u0663", "1\u0660Gi", "\uff11", "1e\u0663"])
def test_digits_of_other_scripts_are_none(quantity: str) -> None:
    """Python takes them for numbers; no API server does."""
    with pytest.raises(ValueError, match="not a quantity"):
        thousandths(quantity)
