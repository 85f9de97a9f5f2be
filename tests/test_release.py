"""The version is one, wherever it stands."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path

from tests.release import steps, versions


def test_each_place_has_the_same_version() -> None:
    assert set(versions().values()) == {importlib.metadata.version("multikueue")}


def test_a_person_is_told_each_file_and_where_it_goes(tmp_path: Path) -> None:
    for name in ("multikueue-1.2.3-py3-none-any.whl", "multikueue-1.2.3.tar.gz", "multikueued-1.2.3.tgz"):
        (tmp_path / name).write_bytes(b"")
    listing = steps(tmp_path, "1.2.3")
    assert all(listing.count(file.name) == 2 for file in tmp_path.iterdir()), "its sum, and where it goes"
    assert "cosign sign REGISTRY/multikueue@sha256:" in listing
