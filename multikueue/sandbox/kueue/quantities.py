"""Kubernetes quantities (`500m`, `1Gi`) as whole numbers of thousandths, and back.

Thousandths are as fine as Kueue counts CPU; anything finer is rounded up, as Kueue does.
"""

from __future__ import annotations

import re
from decimal import ROUND_CEILING, Decimal
from typing import Final

_BINARY: Final = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50, "Ei": 2**60}
_DECIMAL: Final = {
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
    "": Decimal(1),
    "k": Decimal("1e3"),
    "M": Decimal("1e6"),
    "G": Decimal("1e9"),
    "T": Decimal("1e12"),
    "P": Decimal("1e15"),
    "E": Decimal("1e18"),
}
_FORM: Final = re.compile(
    r"(?P<number>[+-]?(?:\d+(?:\.\d*)?|\.\d+))(?P<suffix>(?:[eE][+-]?\d+)|[KMGTPE]i|[numkMGTPE]|)"
)

MILLI: Final = 1000
"""Thousandths in one unit."""


def parse(quantity: str | int | float) -> int:
    """The quantity in thousandths, rounded up.

    Raises:
        ValueError: it is not a quantity.
    """
    match = _FORM.fullmatch(str(quantity).strip())
    if match is None:
        raise ValueError(f"not a quantity: {quantity!r}")
    number, suffix = Decimal(match["number"]), match["suffix"]
    if suffix in _BINARY:
        value = number * _BINARY[suffix]
    elif suffix in _DECIMAL:
        value = number * _DECIMAL[suffix]
    else:
        value = number.scaleb(int(suffix[1:]))
    return int((value * MILLI).to_integral_value(rounding=ROUND_CEILING))


def written(resource: str, thousandths: int) -> str:
    """The amount in Kubernetes' canonical form: bytes with binary suffixes, everything else with decimal ones."""
    if thousandths % MILLI:
        return f"{thousandths}m"
    whole = thousandths // MILLI
    binary = resource in ("memory", "ephemeral-storage") or resource.startswith("hugepages-")
    steps, base = (list(_BINARY), 1024) if binary else (["k", "M", "G", "T", "P", "E"], 1000)
    suffix = ""
    for step in steps:
        if whole == 0 or whole % base:
            break
        whole, suffix = whole // base, step
    return f"{whole}{suffix}"
