"""Where Kueue's CustomResourceDefinitions are."""

from __future__ import annotations

from pathlib import Path

import yaml

from multikueue.core.names import Json

_ROOT = Path(__file__).parents[2]
_PLACES = (_ROOT.parent / "shared" / "crds" / "kueue", _ROOT / "multikueue" / "sandbox" / "crds")


def kueue_crds() -> list[Json]:
    """Kueue's own CRDs if they are beside the checkout, else those the sandbox ships."""
    for place in _PLACES:
        manifests = [yaml.safe_load(path.read_text()) for path in sorted(place.glob("*.yaml"))]
        if manifests:
            return manifests
    raise FileNotFoundError(f"no CRDs in any of {', '.join(map(str, _PLACES))}")
