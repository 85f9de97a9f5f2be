"""The pages about the code name what is in the code."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
LIBRARY = ROOT / "multikueue"
PAGE = (DOCS / "architecture.md").read_text()
GLOSSARY = (DOCS / "glossary.md").read_text()
FILE = re.compile(r"`((?:[a-z_]+/)+(?:[a-z_]+\.py)?)`")
WAY = re.findall(r"^\| \d+ \| `(.+?)` \| (.+) \|$", PAGE, re.MULTILINE)
EXPLAINED = re.findall(r"^\| [^|]+ \| `(\w+)` \| `(daemon/.+?)` \|$", PAGE, re.MULTILINE)
TERMS = re.findall(r"^\| ([^|`]+) \| .+ \| (`.+?`) \| [^|]+ \|$", GLOSSARY, re.MULTILINE)


def section(title: str) -> str:
    return PAGE.split(f"## {title}\n", 1)[1].split("\n## ", 1)[0]


def test_every_file_it_names_exists() -> None:
    reading = section("Reading the core")
    in_core, elsewhere = FILE.findall(reading), FILE.findall(PAGE.replace(reading, ""))
    assert len(in_core) > 10
    assert len(elsewhere) > 10
    assert [name for name in in_core if not (LIBRARY / "core" / name).exists()] == []
    assert [name for name in elsewhere if not any((base / name).exists() for base in (LIBRARY, ROOT))] == []


def test_one_workload_passes_twelve_files_at_most() -> None:
    assert 0 < len(WAY) <= 12


@pytest.mark.parametrize(("file", "what"), WAY)
def test_each_file_of_the_way_holds_what_is_said_of_it(file: str, what: str) -> None:
    """The first class, function or table that a row names is defined in the row's file."""
    name = re.findall(r"`(\w+)`", what)[0]
    assert re.search(rf"^(?:(?:class|def) {name}\b|{name}: Final)", (LIBRARY / file).read_text(), re.MULTILINE)


def test_each_step_of_an_explanation_is_made_where_it_says() -> None:
    assert len(EXPLAINED) > 6
    absent = [step for step in EXPLAINED if f"def {step[0]}(" not in (ROOT / step[1]).read_text()]
    assert absent == []


def test_the_layers_are_those_that_the_linter_holds() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = re.findall(r"^\| `([a-z.]+)`", section("Layers"), re.MULTILINE)
    assert layers == contracts[0]["layers"]


def test_the_glossary_is_in_alphabetical_order_and_names_files_that_exist() -> None:
    terms = [term.lower() for term, _ in TERMS]
    assert len(terms) == GLOSSARY.count("\n|") - 2
    assert terms == sorted(terms)
    files = [file for _, where in TERMS for file in re.findall(r"`(.+?)`", where)]
    assert [file for file in files if not (LIBRARY / file).is_file()] == []


def test_what_it_says_is_in_a_file_is_defined_there() -> None:
    named = re.findall(r"`(\w+)` in `([a-z_/]+\.py)`", PAGE)
    paths = {
        file: next(base / file for base in (LIBRARY, LIBRARY / "core") if (base / file).exists()) for _, file in named
    }
    absent = [
        (name, file)
        for name, file in named
        if not re.search(rf"^(?:(?:class|def) {name}\b|{name}\b.*=)", paths[file].read_text(), re.MULTILINE)
    ]
    assert len(named) > 10
    assert absent == []
