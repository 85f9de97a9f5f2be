"""Resource quantities in their canonical form: `0.5` is `500m`, `1024Mi` is `1Gi`."""

from __future__ import annotations

import re
from decimal import ROUND_CEILING, Decimal
from typing import Any

_FORM = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))(?:([numkMGTPE]|[KMGTPE]i)|[eE]([+-]?\d+))?")
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}


def _match(value: Any) -> re.Match[str]:
    match = _FORM.fullmatch(str(value)) if not isinstance(value, bool) else None
    if match is None:
        raise ValueError("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")
    return match


def number_of(value: Any) -> Decimal:
    """The number a quantity stands for.

    Raises:
        ValueError: it is no quantity.
    """
    match = _match(value)
    number, suffix = Decimal(match[1]), match[2] or ""
    if suffix in _BINARY:
        return number * Decimal(2 ** _BINARY[suffix])
    return number.scaleb(int(match[3]) if match[3] else _DECIMAL[suffix])


def canonical_quantity(value: Any) -> str:
    """The canonical form of a quantity.

    Raises:
        ValueError: it is none.
    """
    match = _match(value)
    number, suffix = Decimal(match[1]), match[2] or ""
    if suffix in _BINARY:
        return _binary(number * Decimal(2 ** _BINARY[suffix]))
    exponent = int(match[3]) if match[3] else _DECIMAL[suffix]
    return _decimal(number.scaleb(exponent), exponential=match[3] is not None)


def _binary(number: Decimal) -> str:
    if number != number.to_integral_value() or abs(number) < 1024:
        return _decimal(number, exponential=False)
    whole = int(number)
    fitting = [suffix for suffix, power in _BINARY.items() if whole % 2**power == 0]
    return f"{whole // 2 ** _BINARY[fitting[-1]]}{fitting[-1]}" if fitting else str(whole)


def _decimal(number: Decimal, *, exponential: bool) -> str:
    nanos = int(number.scaleb(9).to_integral_value(ROUND_CEILING))
    if nanos == 0:
        return "0"
    suffix, power = max(((s, p) for s, p in _DECIMAL.items() if nanos % 10 ** (p + 9) == 0), key=lambda item: item[1])
    whole = nanos // 10 ** (power + 9)
    if exponential:
        return f"{whole}e{power}" if power else str(whole)
    return f"{whole}{suffix}"
