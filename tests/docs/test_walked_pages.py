"""The quick start and the set-up page: few commands, files that exist, the same commands in both languages."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

from multikueued.settings.file import load_settings, parse_settings
from tests.integration.walking import commands

DOCS: Final = Path(__file__).parents[2] / "docs"
PAGES: Final = ("quickstart.md", "setup.md")
CHART: Final = "docker build "
_FENCED: Final = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def blocks(page: str) -> list[tuple[str, str]]:
    """Language and text of each block, without the comments behind settings."""
    fenced = _FENCED.findall((DOCS / page).read_text())
    return [(language, re.sub(r" +#.*", "", text)) for language, text in fenced]


def test_the_quick_start_is_twelve_commands() -> None:
    """`tests/integration/test_quickstart.py` walks them; behind them comes the chart."""
    assert [command.startswith(CHART) for command in commands("quickstart.md")].index(True) == 12


@pytest.mark.parametrize("page", PAGES)
def test_both_languages_have_the_same_blocks(page: str) -> None:
    assert blocks(f"zh/{page}") == blocks(page)


def test_both_readmes_have_the_same_code() -> None:
    """But for the picture."""
    ours, theirs = blocks("../README.md"), blocks("zh/README.md")
    assert [block for block in theirs if block[0] != "text"] == [block for block in ours if block[0] != "text"]


def test_the_readme_is_a_screen_and_a_half() -> None:
    """A newcomer said that its status was a wall of text: it had a thousand words."""
    text = (DOCS.parent / "README.md").read_text()
    assert len(text.split()) < 600
    assert max(len(paragraph.split()) for paragraph in text.split("\n\n") if "|" not in paragraph) < 90


@pytest.mark.parametrize("page", [*PAGES, *(f"zh/{page}" for page in PAGES)])
def test_the_files_it_names_exist(page: str) -> None:
    text = (DOCS / page).read_text()
    named = set(re.findall(r"\bdocs/examples/[\w.-]+", text))
    assert named
    assert [path for path in named if not (DOCS.parent / path).is_file()] == []
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text)
    assert [link for link in links if not ((DOCS / page).parent / link).exists()] == []


def test_the_settings_can_be_used() -> None:
    load_settings(DOCS / "examples" / "laptop.yaml")
    shown = [text for language, text in blocks("setup.md") if language == "yaml" and "apiVersion:" not in text]
    for text in shown:
        parse_settings(text)
    assert len(shown) == 2
