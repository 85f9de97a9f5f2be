"""Where CustomResourceDefinitions are: those beside the checkout, and those the sandbox ships."""

from __future__ import annotations

from pathlib import Path

from multikueue.core.model.names import Json
from tests.controlplane.crds import read

_ROOT = Path(__file__).parents[2]
_SHARED = _ROOT.parent / "shared" / "crds"
OWN = "own"
"""The name of those the sandbox ships."""


def places() -> dict[str, Path]:
    """The folders that are there by name: `kueue`, `jobs`, `ocm` beside the checkout, and `own`."""
    folders = {folder.name: folder for folder in sorted(_SHARED.glob("*")) if any(folder.glob("*.yaml"))}
    return {**folders, OWN: _ROOT / "multikueue" / "sandbox" / "crds"}


def definitions(place: str) -> list[Json]:
    """The CustomResourceDefinitions of a folder."""
    return read(places()[place])
