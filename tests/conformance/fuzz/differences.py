"""The differences between the sandbox and a real server that are known, and why each is left."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from tests.conformance.fuzz.operations import Operation
from tests.conformance.fuzz.outcomes import Outcome


@attrs.frozen
class Known:
    """A known difference.

    Attributes:
        name: short.
        reason: why it is left.
        fits: whether an operation with these outcomes (real, sandbox) shows it.
    """

    name: str
    reason: str
    fits: Callable[[Operation, Outcome, Outcome], bool]


KNOWN: tuple[Known, ...] = ()


def explain(operation: Operation, real: Outcome, sandbox: Outcome) -> Known | None:
    """The known difference that this is, if any."""
    return next((known for known in KNOWN if known.fits(operation, real, sandbox)), None)
