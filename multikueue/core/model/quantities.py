"""Kubernetes quantities (`500m`, `1Gi`): read exactly, written in the form Kubernetes itself would choose."""

from __future__ import annotations

import re
from decimal import ROUND_CEILING, Decimal
from typing import Final, Literal

import attrs

MILLI: Final = 1000
"""Thousandths in one unit. Kueue counts CPU in them and everything else in whole units."""
MOST_COUNTED: Final = 10**18
"""Of those, in one amount: Kueue counts in 64 bits, and before v0.18 the sum of a cohort had to fit as well."""

BINARY: Final = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50, "Ei": 2**60}
"""What the binary suffixes stand for."""
POWERS: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
"""What the decimal suffixes stand for, as powers of ten."""
LONGEST: Final = 40
"""Characters of a quantity: API servers take a million digits, which cost a minute to read, or raise."""
_FORM: Final = re.compile(
    r"(?P<number>[+-]?(?:\d+(?:\.\d*)?|\.\d+))(?P<suffix>[eE][+-]?\d{1,3}|[KMGTPE]i|[numkMGTPE]|)", re.ASCII
)


def exact(quantity: str) -> tuple[Decimal, str]:
    """The exact number that a quantity stands for, and its suffix.

    Raises:
        ValueError: it is not a quantity.
    """
    match = _FORM.fullmatch(quantity) if len(quantity) <= LONGEST else None
    if match is None:
        raise ValueError(f"not a quantity: {quantity[:LONGEST]!r}")
    number, suffix = Decimal(match["number"]), match["suffix"]
    if suffix in BINARY:
        return number * BINARY[suffix], suffix
    return number.scaleb(POWERS[suffix] if suffix in POWERS else int(suffix[1:])), suffix


def thousandths(quantity: str | int | float) -> int:
    """The quantity in thousandths; what is finer is rounded up, as Kubernetes does.

    Raises:
        ValueError: it is not a quantity.
    """
    number, _ = exact(str(quantity).strip())
    return int((number * MILLI).to_integral_value(rounding=ROUND_CEILING))


Family = Literal["decimal", "binary", "exponent"]
"""Of suffixes: `5G`, `5Gi` or `5e9`."""


@attrs.frozen
class Quantity:
    """An amount, and the family of suffixes it is written with: sums keep it, so `2G` and `3G` make `5G`."""

    thousandths: int
    family: Family = "decimal"

    @classmethod
    def parse(cls, quantity: str | int | float) -> Quantity:
        """Read a quantity.

        Raises:
            ValueError: it is not one.
        """
        _, suffix = exact(str(quantity).strip())
        family: Family = "binary" if suffix in BINARY else "decimal" if suffix in POWERS else "exponent"
        return cls(thousandths(quantity), family)

    def __add__(self, other: Quantity) -> Quantity:
        """The sum. As in Kubernetes the first amount that is not zero decides how it is written."""
        return Quantity(self.thousandths + other.thousandths, self.family if self.thousandths else other.family)

    def __str__(self) -> str:
        """As Kubernetes writes it: the biggest suffix that loses nothing; below 1Ki and with fractions never binary."""
        number, power = self.thousandths, -3
        if self.family == "binary" and number % MILLI == 0 and abs(number) >= 1024 * MILLI:
            return _binary(number // MILLI)
        exponent = self.family == "exponent"
        while number and number % 1000 == 0 and (exponent or power < max(POWERS.values())):
            number, power = number // 1000, power + 3
        if number == 0 or power == 0:
            return str(number)
        if exponent:
            return f"{number}e{power}"
        return f"{number}{next(suffix for suffix, known in POWERS.items() if known == power)}"


def _binary(number: int) -> str:
    suffix = ""
    for step in BINARY:
        if number % 1024:
            break
        number, suffix = number // 1024, step
    return f"{number}{suffix}"


def written(resource: str, amount: int) -> str:
    """An amount in thousandths as Kubernetes writes it: bytes with binary suffixes, everything else with decimal."""
    if amount % MILLI:
        return f"{amount}m"
    whole = amount // MILLI
    binary = is_in_bytes(resource)
    steps, base = (list(BINARY), 1024) if binary else (["k", "M", "G", "T", "P", "E"], 1000)
    suffix = ""
    for step in steps:
        if whole == 0 or whole % base:
            break
        whole, suffix = whole // base, step
    return f"{whole}{suffix}"


def is_in_bytes(resource: str) -> bool:
    """Whether a resource is counted in bytes."""
    return resource in ("memory", "ephemeral-storage") or resource.startswith("hugepages-")
