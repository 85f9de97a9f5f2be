"""Sets of CustomResourceDefinitions: those of real projects, and those the sandbox ships."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from multikueue.core.model.names import Json
from tests.controlplane.crds import read
from tests.data.files import JOB_CRDS, KUEUES_CRDS

KUEUE: Final = "kueue"
"""The name of Kueue's own."""
OWN: Final = "own"
"""The name of those the sandbox ships."""
_SHIPPED: Final = Path(__file__).parents[2] / "multikueue" / "sandbox" / "crds"
_FOLDERS: Final = {
    "jobs": JOB_CRDS,
    KUEUE: KUEUES_CRDS,
    "ocm": _SHIPPED / "ocm",
    OWN: _SHIPPED,
}
REAL: Final = tuple(name for name in _FOLDERS if name != OWN)
"""The names of those of real projects; of OCM's, some are ours, and a real API server takes them."""


def definitions(name: str) -> list[Json]:
    """The CustomResourceDefinitions of a set."""
    return read(_FOLDERS[name])
