"""What an annotation on a MultiKueueCluster says: that the worker gets nothing new."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from multikueue.core.model.labels import CORDON_ANNOTATION
from multikueue.core.model.outside_text import one_line

MAX_CORDON: Final = 200
"""Characters of the reason of a cordon that are told."""


def cordon_of(annotations: Mapping[str, str]) -> str:
    """That a MultiKueueCluster gets nothing new, and why if whoever cordoned it said so; empty: it does."""
    noted = annotations.get(CORDON_ANNOTATION, "")
    if noted.lower() in ("", "false"):
        return ""
    said = one_line(noted)[:MAX_CORDON]
    return "cordoned" if noted.lower() == "true" else f"cordoned: {said}"
