"""The part about workers from ManagedClusters: its settings can be pasted."""

from __future__ import annotations

import re
from pathlib import Path

from multikueue.core.inventory.ocm_workers.spoke import OWNER_LABEL, SPOKE_ANNOTATION, UID_ANNOTATION
from multikueue.core.inventory.settings import DEFAULT_VALIDITY
from multikueue.runtime.inventory.spoke_reader import LINGER
from multikueued.settings.file import parse_settings

WORKERS = (Path(__file__).parents[2] / "docs" / "workers.md").read_text()
PAGE = WORKERS.partition("\n## Workers from ManagedClusters\n")[2]


def test_its_settings_can_be_pasted() -> None:
    (text,) = re.findall(r"^```yaml\n# settings\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    settings = parse_settings(text)
    assert settings.ocm.grants
    assert settings.ocm.clusters.token_validity == DEFAULT_VALIDITY


def test_its_labels_and_times_are_those_of_the_code() -> None:
    for name in (OWNER_LABEL, SPOKE_ANNOTATION, UID_ANNOTATION):
        assert f"`{name}`" in PAGE
    assert LINGER == 300
    assert "After five more minutes" in " ".join(PAGE.split())
