"""The differences between the sandbox and a real server that are known, and why each is left."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from tests.conformance.fuzz.operations import SECRETS, Operation
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


def _empties_immutable_data(operation: Operation, real: Outcome, sandbox: Outcome) -> bool:
    refused = real.code == 422 and real.body["causes"] == [["FieldValueForbidden", "data"]]
    return operation.kind is SECRETS and refused and sandbox.code == 200 and operation.body.get("data") == {}


KNOWN: tuple[Known, ...] = (
    Known(
        "no data and empty data of an immutable Secret",
        "A real server refuses `data: {}` for an immutable Secret that has no data, because Go tells a nil map from an "
        "empty one there. Both mean the same everywhere else, and the sandbox keeps only one of them.",
        _empties_immutable_data,
    ),
)


def explain(operation: Operation, real: Outcome, sandbox: Outcome) -> Known | None:
    """The known difference that this is, if any."""
    return next((known for known in KNOWN if known.fits(operation, real, sandbox)), None)
