"""The page for authors of job kinds: what it shows works as it stands, beside the package and not in it."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import attrs
import pytest
import yaml

from multikueue.adapters.declaration import Declaration
from multikueue.adapters.declared.profiles import names
from multikueue.runtime.plugins import KIND_GROUP
from multikueued.run.kinds import configured_kinds
from multikueued.settings.file import parse_settings
from multikueued.settings.frameworks import framework_names

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "adapters.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


def test_the_code_runs_from_top_to_bottom(tmp_path: Path) -> None:
    """As somebody would try it: pasted into a file, in an empty folder, with the library installed."""
    script = tmp_path / "render.py"
    script.write_text("\n".join(blocks("python")))
    environment = {"PYTHONPATH": f"{ROOT}:{ROOT / 'daemon'}", "PATH": ""}
    ran = subprocess.run(
        [sys.executable, "-W", "error", str(script)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=28,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-3000:]


def test_the_settings_it_shows_can_be_used() -> None:
    shown = [text for text in blocks("yaml") if "externalFrameworks" in text]
    assert shown
    for text in shown:
        assert configured_kinds(parse_settings(text))


def test_the_object_it_shows_is_one() -> None:
    (shown,) = (yaml.safe_load(text) for text in blocks("yaml") if "apiVersion" in text)
    assert (shown["apiVersion"], shown["kind"]) == ("studio.example.com/v1", "Render")


def test_the_entry_point_it_shows_is_in_our_group() -> None:
    (shown,) = (tomllib.loads(text) for text in blocks("toml"))
    assert list(shown["project"]["entry-points"]) == [KIND_GROUP]


@pytest.mark.parametrize("field", [field.name for field in attrs.fields(Declaration)])
def test_every_field_of_a_declaration_is_in_the_table(field: str) -> None:
    first, *rest = field.split("_")
    assert f"`{first + ''.join(word.capitalize() for word in rest)}`" in PAGE


def test_every_profile_is_named() -> None:
    assert [name for name in names() if name not in PAGE] == []


def test_the_frameworks_it_names_exist() -> None:
    named = set(re.findall(r"\b(?:batch/job|[a-z.-]+\.(?:io|org|dev)/[a-z]+job)\b", PAGE))
    assert named
    assert named <= set(framework_names())
